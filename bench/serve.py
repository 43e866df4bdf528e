"""`knapserve bench serve`: stream prompts from running servers, optionally beside the same engine in this process.

Servers, engine and `generate` answer the prompts in turns, so that all run under the same conditions. The ratio of a
server's tokens per second to the engine's is the share that HTTP streaming leaves. The client is `http.client` in
threads, because a client on the same machine takes its CPU time from the server.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from bench.bandwidth import ReadBandwidth
from bench.peers.hugging_face import add_hugging_face_argument, hugging_face
from bench.peers.llama_cpp import add_llama_cpp_argument, llama_cpp
from bench.prompts import Text, add_prompt_arguments, encode, positive, read_prompts
from bench.results import aligned, bandwidth_line, bandwidth_meter, read_bandwidth
from bench.targets import BenchTarget, PolicyTarget, Prompt, RunStats
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

_URL = "http://127.0.0.1:8000"
_OBSERVE_EVERY = 8  # rounds of turns between two measurements of the memory bandwidth
_WARM_UP = "This is not one of the prompts."
_TEXT_CHUNK = re.compile(rb'"(?:content|text)":\s*"[^"]')


@dataclass(slots=True)
class StreamStats:
    """Tokens, chunks and times of streamed answers. Times in seconds."""

    tokens: int = 0
    seconds: float = 0.0
    chunks: int = 0
    first_token: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)  # between chunks with text

    def add(self, other: StreamStats) -> None:
        """Add another answer, except its `seconds`: concurrent answers overlap."""
        self.tokens += other.tokens
        self.chunks += other.chunks
        self.first_token += other.first_token
        self.gaps += other.gaps

    def figures(self) -> dict[str, float]:
        """Return rates in tokens per second, and median times in milliseconds."""
        result = {"tokens_per_second": self.tokens / self.seconds}
        if self.chunks:
            result["tokens_per_chunk"] = self.tokens / self.chunks
        for name, seconds in (("first_token_ms", self.first_token), ("between_chunks_ms", self.gaps)):
            if seconds:
                result[name] = 1e3 * statistics.median(seconds)
        return result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench serve`."""
    parser.add_argument(
        "--url", action="append", default=[], help=f"base URL of a server; repeatable (default: {_URL})"
    )
    add_prompt_arguments(parser)
    parser.add_argument(
        "--streams", "--concurrency", type=lambda text: [positive(part) for part in text.split(",")], default=[1],
        metavar="N,N…", help="number of concurrent streams, or several numbers, compared with the first (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--ignore-eos", action="store_true", help="ignore end-of-sequence tokens: every answer has --max-tokens tokens"
    )
    parser.add_argument(
        "--completions", action="store_true", help="use /v1/completions, for models without a chat template"
    )
    parser.add_argument("--policy", default=None, help="draft policy of the requests (default: the server's)")
    parser.add_argument(
        "--engine", action="store_true", help="also run the engine in this process, in turns with the servers; with "
        "--policy none, report its share of the memory bandwidth"
    )  # fmt: skip
    add_hugging_face_argument(parser)
    add_llama_cpp_argument(parser)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run the benchmark; print tables, and JSON as the last line. Raises ConfigError."""
    texts = read_prompts(args.prompts, args.limit)
    in_process = _InProcess(args, config, texts) if args.engine or args.hf or args.llama_cpp is not None else None
    results = [
        _compare(args, in_process, _with_run_number(texts, run), streams) for run, streams in enumerate(args.streams)
    ]
    for result in results[1:]:
        _print_ratios(result, results[0])
    print(json.dumps(results[0] | ({"by_streams": results} if len(results) > 1 else {})))
    return 0


def _with_run_number(texts: Sequence[Text], run: int) -> list[Text]:
    """Prefix the texts with the number of the run, so that no server has them in its prefix cache."""
    return [text._replace(prompt=f"{run + 1}. {text.prompt}") for text in texts] if run else list(texts)


def _compare(
    args: argparse.Namespace, in_process: _InProcess | None, texts: Sequence[Text], streams: int
) -> dict[str, Any]:
    servers = [_ServerTarget(url, args, streams) for url in args.url or [_URL]]
    runners: list[Callable[[Sequence[Text]], object]] = [server.answer for server in servers]
    runners += in_process.runners(streams) if in_process is not None else []
    for answer in runners:  # warm-up of connections and caches
        answer([Text(_WARM_UP)] * streams)
    for server in servers:
        server.stats = StreamStats()
    if in_process is not None:
        in_process.reset()
    for number, start in enumerate(range(0, len(texts), streams)):
        turn = number % len(runners)
        for answer in runners[turn:] + runners[:turn]:
            answer(texts[start : start + streams])
        # Measuring the bandwidth clears the CPU's caches: do it rarely, before a different target each time.
        if (
            in_process is not None
            and in_process.bandwidth is not None
            and number % (_OBSERVE_EVERY * len(runners) + 1) == 0
        ):
            in_process.bandwidth.observe()
    rows: list[dict[str, Any]] = [{"name": server.url} | server.stats.figures() for server in servers]
    result: dict[str, Any] = {"prompts": len(texts), "streams": streams, "servers": rows}
    if in_process is not None:
        result |= in_process.figures()
    if (engine := result.get("engine")) is not None:
        for row in rows:
            row["share_of_engine"] = row["tokens_per_second"] / engine["tokens_per_second"]
            if "first_token_ms" in row:
                row["first_token_added_ms"] = row["first_token_ms"] - engine["first_token_ms"]
    _print(result)
    return result


_COLUMNS = {
    "name": "",
    "tokens_per_second": "tok/s",
    "share_of_engine": "of engine",
    "tokens_per_chunk": "tok/chunk",
    "first_token_ms": "first ms",
    "first_token_added_ms": "added ms",
    "between_chunks_ms": "gap ms",
}


def _print(result: dict[str, Any]) -> None:
    print(f"{result['prompts']} prompts, {result['streams']} streams, targets in turns")
    cells = [list(_COLUMNS.values())]
    for row in _rows(result):
        cells.append([row["name"], *(f"{row[key]:.2f}" if key in row else "" for key in list(_COLUMNS)[1:])])
    print(aligned(cells))
    if result.get("bandwidth"):
        print(bandwidth_line(result["bandwidth"]))


def _rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [*result["servers"], *([result["engine"]] if "engine" in result else []), *result.get("others", ())]


def _print_ratios(result: dict[str, Any], first: dict[str, Any]) -> None:
    """Add the speed relative to the first number of streams to `result`, and print it."""
    for row, before in zip(_rows(result), _rows(first), strict=True):
        row["over_first"] = row["tokens_per_second"] / before["tokens_per_second"]
        ratio = f"{row['over_first']:.1f} × the speed of {first['streams']}"
        print(f"{row['name']}: {result['streams']} streams reach {ratio}")


class _InProcess:
    """The targets in this process: the engine, `generate` of transformers and llama.cpp."""

    def __init__(self, args: argparse.Namespace, config: EngineConfig, texts: Sequence[Text]) -> None:
        self.model = LoadedModel(config)
        sampling = SamplingParams(max_tokens=args.max_tokens, temperature=0.0, ignore_eos=args.ignore_eos)
        policy = args.policy or config.draft_policy
        self.engine = PolicyTarget(policy, self.model.core(config), sampling) if args.engine else None
        self.others: list[BenchTarget] = [*hugging_face(args.hf, self.model, sampling)]
        prompts = self._encode([*_with_run_number(texts, len(args.streams)), texts[0]._replace(prompt=_WARM_UP)])
        self.others += llama_cpp(args.llama_cpp, self.model, sampling, prompts, max(args.streams))
        self.bandwidth: ReadBandwidth | None = None
        if self.engine is not None and policy == "none":
            self.bandwidth = bandwidth_meter(self.model)
        self.targets: list[BenchTarget] = [*([self.engine] if self.engine is not None else []), *self.others]

    def _encode(self, texts: Sequence[Text]) -> list[Prompt]:
        return [encode(self.model, text) for text in texts]

    def runners(self, streams: int) -> list[Callable[[Sequence[Text]], object]]:
        return [
            lambda texts, c=target: c.run(self._encode(texts), streams)  # type: ignore[misc]
            for target in self.targets
        ]

    def reset(self) -> None:
        """Discard the measurements so far."""
        for target in self.targets:
            target.stats = RunStats()

    def figures(self) -> dict[str, Any]:
        result: dict[str, Any] = {"others": [_speed(other.name, other.stats) for other in self.others]}
        if self.engine is not None:
            stats = self.engine.stats
            first = 1e3 * statistics.median(stats.first_token)
            result["engine"] = _speed("engine", stats) | {"first_token_ms": first}
            if self.bandwidth is not None:
                result["bandwidth"] = read_bandwidth(stats, self.model, self.bandwidth.median)
        return result


def _speed(name: str, stats: RunStats) -> dict[str, Any]:
    return {"name": name, "tokens_per_second": stats.tokens / stats.seconds}


class _ServerTarget:
    """One server with a number of concurrent streams."""

    def __init__(self, url: str, args: argparse.Namespace, streams: int) -> None:
        self.url = url
        self.stats = StreamStats()
        self._clients = [_Client(url, args) for _ in range(streams)]
        self._pool = ThreadPoolExecutor(streams)

    def answer(self, texts: Sequence[Text]) -> None:
        started = time.perf_counter()
        for part in self._pool.map(_Client.stream, self._clients, [text.prompt for text in texts]):
            self.stats.add(part)
        self.stats.seconds += time.perf_counter() - started


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
            raise ConfigError(f"--url must be a URL such as {_URL}, not {base}") from None
        endpoint = "/v1/completions" if args.completions else "/v1/chat/completions"
        self._path = url.path.rstrip("/").removesuffix("/v1") + endpoint
        self._headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            self._headers["Authorization"] = f"Bearer {key}"

    def stream(self, text: str) -> StreamStats:
        """Stream the answer to one prompt. Raises ConfigError."""
        args, stats = self._args, StreamStats()
        body: dict[str, Any] = {
            "max_tokens": args.max_tokens,
            "temperature": 0,
            "ignore_eos": args.ignore_eos,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if args.completions:
            body["prompt"] = text
        else:
            body["messages"] = [{"role": "user", "content": text}]
        if args.policy:
            body["draft_policy"] = args.policy
        last = time.perf_counter()
        try:
            self._connection.request("POST", self._path, json.dumps(body), self._headers)
            response = self._connection.getresponse()
            if response.status != 200:
                raise ConfigError(f"{self._base} returned status {response.status}: {response.read(500)!r}")
            usage: dict[str, Any] = {}
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
            stats.tokens = usage["completion_tokens"]
        except (HTTPException, OSError) as error:
            raise ConfigError(f"{self._base}: {error or type(error).__name__}") from None
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{self._base}: the stream has no usage chunk") from None
        return stats
