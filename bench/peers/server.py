"""Benchmark target: a running server, whose streams arrive over HTTP.

The client is `http.client` in threads, because a client on the same machine takes its CPU time from
the server: httpx needs about 0.1 ms a chunk instead of 0.03.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from bench.measurements import RunStats, Totals
from bench.targets import Prompt
from engine.errors import ConfigError

URL = "http://127.0.0.1:8000"
_TEXT_CHUNK = re.compile(rb'"(?:content|text)":\s*"[^"]')


class ServerTarget:
    """One server with a number of concurrent streams, each on a connection of its own."""

    def __init__(self, url: str, args: argparse.Namespace, streams: int) -> None:
        """`args`: the flags of `bench serve`. Raises ConfigError if `url` is not a URL."""
        self.name = url
        self.stats = RunStats()
        self._clients = [_Client(url, args) for _ in range(streams)]
        self._pool = ThreadPoolExecutor(streams)

    def run(self, prompts: Sequence[Prompt], streams: int) -> None:
        """Stream the answers to at most `streams` prompts. Raises ConfigError."""
        started = time.perf_counter()
        answers = [*self._pool.map(_Client.stream, self._clients, [prompt.text for prompt in prompts])]
        tokens = sum(answer.total.tokens for answer in answers)
        self.stats.batches.append(Totals(tokens=tokens, seconds=time.perf_counter() - started))
        for answer in answers:
            self.stats.chunks += answer.chunks
            self.stats.first_token += answer.first_token
            self.stats.gaps += answer.gaps


class _Client:
    """One connection, with one stream at a time."""

    def __init__(self, base: str, args: argparse.Namespace) -> None:
        """Raises ConfigError if `base` is not a URL."""
        self._base, self._args = base, args
        try:
            url = urlsplit(base)
            kind = {"http": HTTPConnection, "https": HTTPSConnection}[url.scheme]
            self._connection = kind(url.hostname or "127.0.0.1", url.port, timeout=120)
        except (KeyError, ValueError, HTTPException):
            raise ConfigError(f"--url must be a URL such as {URL}, not {base}") from None
        endpoint = "/v1/completions" if args.completions else "/v1/chat/completions"
        self._path = url.path.rstrip("/").removesuffix("/v1") + endpoint
        self._headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            self._headers["Authorization"] = f"Bearer {key}"

    def stream(self, text: str) -> RunStats:
        """Stream one answer. Returns its tokens, chunks and times. Raises ConfigError."""
        stats, usage = RunStats(), dict[str, Any]()
        last = time.perf_counter()
        try:
            self._connection.request("POST", self._path, json.dumps(self._body(text)), self._headers)
            response = self._connection.getresponse()
            if response.status != 200:
                raise ConfigError(f"{self._base} returned status {response.status}: {response.read(500)!r}")
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                now = time.perf_counter()
                if b'"completion_tokens"' in line:
                    usage = json.loads(line[6:])["usage"]
                if _TEXT_CHUNK.search(line):
                    stats.chunks += 1
                    (stats.gaps if stats.first_token else stats.first_token).append(now - last)
                    last = now
            stats.batches.append(Totals(tokens=usage["completion_tokens"]))
        except (HTTPException, OSError) as error:
            raise ConfigError(f"{self._base}: {error or type(error).__name__}") from None
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{self._base}: the stream has no usage chunk") from None
        return stats

    def _body(self, text: str) -> dict[str, Any]:
        args = self._args
        body = {
            "max_tokens": args.max_tokens,
            "temperature": 0,
            "ignore_eos": args.ignore_eos,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        body |= {"prompt": text} if args.completions else {"messages": [{"role": "user", "content": text}]}
        return body | ({"draft_policy": args.policy} if args.policy else {})
