"""A blocking HTTP client that may be slow, and a probe: another user's short requests, all the time."""

from __future__ import annotations

import json
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

_PROBE = {"prompt": "The capital of France is", "max_tokens": 1, "temperature": 0}
LEFT = -1  # status of a reply for which the client did not wait
_PAUSE = 0.02  # seconds between probes
_MEMORY = ("process_resident_memory_bytes", "knapserve_engine_process_resident_memory_bytes")


class Server:
    """A running server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.address = parts.hostname or "", parts.port or 80

    def context_length(self) -> int:
        """Return the context length of the server's model."""
        status, body = self.get("/v1/models")
        assert status == 200, f"no models at /v1/models of {self.address} (status {status or 'missing'})"
        return int(json.loads(body)["data"][0]["max_model_len"])

    def get(self, path: str) -> tuple[int, bytes]:
        return self._request("GET", path, None)

    def post(self, path: str, body: bytes, timeout: float = 60.0) -> tuple[int, bytes]:
        """Return status and body; status 0 if the connection fails, LEFT after `timeout` seconds without a byte."""
        return self._request("POST", path, body, timeout)

    def _request(self, method: str, path: str, body: bytes | None, timeout: float = 60.0) -> tuple[int, bytes]:
        connection = HTTPConnection(*self.address, timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        except TimeoutError:
            return LEFT, b""
        except (OSError, HTTPException):
            return 0, b""
        finally:
            connection.close()

    @contextmanager
    def posted(self, path: str, body: bytes) -> Iterator[socket.socket]:
        """A connection on which a request was sent, and whose reply is not read yet."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(self.address, timeout=60) as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            end.sendall(head.encode() + body)
            yield end

    def read_slowly(self, path: str, body: bytes, seconds: float) -> int:
        """Read a reply at 1 kB/s for some seconds, then leave. Returns the status."""
        with suppress(OSError), self.posted(path, body) as end:
            first, until = end.recv(1024), time.monotonic() + seconds
            while time.monotonic() < until and end.recv(1024):
                time.sleep(1.0)
            return int(first.split()[1])
        return 0

    def memory(self) -> list[float]:
        """Return the resident memory of the server's process and of the engine's, in bytes."""
        found = dict.fromkeys(_MEMORY, 0.0)
        for family in text_string_to_metric_families(self.get("/metrics")[1].decode()):
            if family.name in found:
                found[family.name] = family.samples[0].value
        return [*found.values()]


class Probe:
    """Asks for one token, and whether the server lives, again and again, until it is left."""

    def __init__(self, server: Server) -> None:
        self._over = threading.Event()
        self.tokens: list[float] = []  # seconds of each request
        self.lives: list[float] = []
        self.texts: set[str] = set()
        self.failures = 0
        body = json.dumps(_PROBE).encode()
        token = partial(server.post, "/v1/completions", body), self.tokens
        live = partial(server.get, "/live"), self.lives
        self._threads = [threading.Thread(target=self._ask, args=each, daemon=True) for each in (token, live)]

    def __enter__(self) -> Probe:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, send: Callable[[], tuple[int, bytes]], seconds: list[float]) -> None:
        while not self._over.wait(_PAUSE):
            started = time.perf_counter()
            status, reply = send()
            seconds.append(time.perf_counter() - started)
            self.failures += status != 200
            if status == 200 and seconds is self.tokens:
                self.texts.add(json.loads(reply)["choices"][0]["text"])

    @staticmethod
    def milliseconds(seconds: list[float]) -> tuple[float, float, float]:
        """Return the median, the 99th percentile and the worst; zeros if there are none."""
        values = sorted(1e3 * value for value in seconds or [0.0])
        return statistics.median(values), values[int(0.99 * (len(values) - 1))], values[-1]
