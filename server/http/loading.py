"""Answers while the model loads: the process lives, but takes no requests yet."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from server.http.asgi import SANE_ID
from server.http.errors import unavailable
from server.metrics.registry import CONTENT_TYPE
from server.openai.replies.schemas import Status

_LOOKS = 0.02  # seconds between looks at whether it is over
_PATIENCE = 5.0  # seconds for a client to send its request
_METRICS = b"# HELP knapserve_loading 1 while the model loads.\n# TYPE knapserve_loading gauge\nknapserve_loading 1.0\n"
_READ = 1 << 20  # bytes of a body that are read, so that the client gets to read the answer


class Loading:
    """While it is entered, requests that come to a listening socket get 503 (`loading`), `/live` and `/metrics` 200.

    Who comes after it was left waits in the socket's queue for the server.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._server = _Server(listener)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_LOOKS,), daemon=True)

    def __enter__(self) -> None:
        self._listener.setblocking(False)  # or a client that leaves at once would leave the thread waiting
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE

    def _answer(self) -> None:
        length = self.headers.get("content-length", "0")
        self.rfile.read(min(int(length), _READ) if length.isdecimal() else 0)
        path = self.path.partition("?")[0]
        status, headers = 200, {"content-type": "application/json"}
        if path == "/metrics":  # the target is up, as Prometheus puts it
            body, headers = _METRICS, {"content-type": CONTENT_TYPE}
        elif path == "/live":
            body = json.dumps(Status().model_dump()).encode()
        else:
            error = unavailable("The model is loading.", "loading")
            body, status = json.dumps(error.body()).encode(), error.status
            headers |= error.headers or {}
        self.send_response_only(status)
        headers |= {"content-length": str(len(body)), "connection": "close"}
        given = self.headers.get("x-request-id", "")
        headers["x-request-id"] = given if SANE_ID.fullmatch(given) else uuid.uuid4().hex
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

    def log_message(self, *_: object) -> None: ...
