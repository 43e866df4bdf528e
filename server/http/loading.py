"""A small HTTP server that answers probes while the model loads."""

import json
import socket
import ssl
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from server.http.asgi import VALID_REQUEST_ID
from server.http.errors import unavailable
from server.metrics.registry import CONTENT_TYPE, loading_gauge
from server.openai.replies.schemas import Status

_POLL_SECONDS = 0.02  # how often the server checks whether to stop
_CLIENT_TIMEOUT = 5.0  # seconds for a client to send its request
_MAX_BODY = 1 << 20  # bytes; an unread body would reset the connection before the client reads the reply


@contextmanager
def answer_while_loading(listener: socket.socket, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    """Answer requests on a listening socket: 200 on `/live` and `/metrics`, elsewhere 503.

    After exit, new connections wait in the socket's queue until the main server accepts them.
    """
    server = _SocketServer(listener, tls)
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), daemon=True)
    listener.setblocking(False)  # else accept() could block after a client has disconnected
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


class _SocketServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._tls = tls

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection, in a thread of its own. Clients that leave, or do not speak TLS, are no news."""
        request.settimeout(_CLIENT_TIMEOUT)
        with suppress(OSError), self._tls.wrap_socket(request, server_side=True) if self._tls else request as client:
            super().finish_request(client, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = _CLIENT_TIMEOUT

    def _answer(self) -> None:
        length = self.headers.get("content-length", "0")
        self.rfile.read(min(int(length), _MAX_BODY) if length.isdecimal() else 0)
        path = self.path.partition("?")[0]
        status, headers = 200, {"content-type": "application/json"}
        if path == "/metrics":  # Prometheus considers the target up
            registry = CollectorRegistry()
            loading_gauge(registry).set(1)
            body, headers = generate_latest(registry), {"content-type": CONTENT_TYPE}
        elif path == "/live":
            body = json.dumps(Status().model_dump()).encode()
        else:
            error = unavailable("The model is loading.", "loading")
            body, status = json.dumps(error.body()).encode(), error.status
            headers |= error.headers or {}
        self.send_response_only(status)
        headers |= {"content-length": str(len(body)), "connection": "close"}
        client_id = self.headers.get("x-request-id", "")
        headers["x-request-id"] = client_id if VALID_REQUEST_ID.fullmatch(client_id) else uuid.uuid4().hex
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

    def log_message(self, *_: object) -> None: ...
