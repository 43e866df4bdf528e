"""`knapserve bench serve`: streams prompts from running servers; with `--engine`, beside the same engine in-process.

The prompts go to the servers, to the engine and to `generate` in turn, so that all see the machine in the same moments:
the ratio of a server's tokens per second to the engine's is what HTTP streaming keeps. The client is the standard
library's, in threads: on a machine that serves itself, what a client spends on a chunk is taken from the server.
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
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine.config import EngineConfig
from engine.errors import ConfigError

if TYPE_CHECKING:
    from bench.prompts import Text
    from bench.targets import BenchTarget, Prompt

_URL = "http://127.0.0.1:8000"
_OBSERVE_EVERY = 8  # rounds of turns between two looks at the memory's bandwidth
_WARM_UP = "This is not one of the prompts."
_SAYS = re.compile(rb'"(?:content|text)":\s*"[^"]')  # what a chunk with text has


@dataclass(slots=True)
class Served:
    """What came from a server. Seconds."""

    tokens: int = 0
    seconds: float = 0.0
    chunks: int = 0
    first_token: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)  # between chunks with text

    def add(self, other: Served) -> None:
        """Count in what came for another prompt, but for its time."""
        self.tokens += other.tokens
        self.chunks += other.chunks
        self.first_token += other.first_token
        self.gaps += other.gaps

    def figures(self) -> dict[str, float]:
        """What was seen of it: milliseconds, and tokens per second."""
        found = {"tokens_per_second": self.tokens / self.seconds}
        if self.chunks:
            found["tokens_per_chunk"] = self.tokens / self.chunks
        for name, seconds in (("first_token_ms", self.first_token), ("between_chunks_ms", self.gaps)):
            if seconds:
                found[name] = 1e3 * statistics.median(seconds)
        return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `bench serve` besides the engine's own."""
    from bench.peers.hugging_face import add_hugging_face_argument
    from bench.peers.llama_cpp import add_llama_cpp_argument
    from bench.prompts import add_prompt_arguments, positive

    parser.add_argument(
        "--url", action="append", default=[], help=f"base URL of a server; repeatable, all in the same run ({_URL})"
    )
    add_prompt_arguments(parser)
    parser.add_argument(
        "--streams", "--concurrency", type=lambda text: [positive(part) for part in text.split(",")], default=[1],
        metavar="N,N…", help="streams at a time (1); of several numbers, such as 1,16, each is compared with the first",
    )  # fmt: skip
    parser.add_argument("--ignore-eos", action="store_true", help="always generate --max-tokens tokens")
    parser.add_argument(
        "--completions", action="store_true", help="ask /v1/completions: the model has no chat template"
    )
    parser.add_argument("--policy", default=None, help="draft policy to ask for")
    parser.add_argument(
        "--engine", action="store_true", help="run the same prompts in-process too, in turns; with --policy none, "
        "what share of the memory bandwidth that reaches"
    )  # fmt: skip
    add_hugging_face_argument(parser)
    add_llama_cpp_argument(parser)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run, print figures and, as the last line, JSON. Raises ConfigError."""
    from bench.prompts import read_prompts

    texts = read_prompts(args.prompts, args.limit)
    inside = _Inside(args, config, texts) if args.engine or args.hf or args.llama_cpp is not None else None
    results = [_compare(args, inside, _told_apart(texts, run), streams) for run, streams in enumerate(args.streams)]
    for result in results[1:]:
        _print_ratios(result, results[0])
    print(json.dumps(results[0] | ({"by_streams": results} if len(results) > 1 else {})))
    return 0


def _told_apart(texts: Sequence[Text], run: int) -> list[Text]:
    """Texts that no earlier run has left in a server's cache."""
    return [text._replace(prompt=f"{run + 1}. {text.prompt}") for text in texts] if run else list(texts)


def _compare(args: argparse.Namespace, inside: _Inside | None, texts: Sequence[Text], streams: int) -> dict[str, Any]:
    """Everybody answers everything, so many streams at a time; prints the table."""
    from bench.prompts import Text

    servers = [_Server(url, args, streams) for url in args.url or [_URL]]
    answerers: list[Callable[[Sequence[Text]], object]] = [server.answer for server in servers]
    answerers += inside.answerers(streams) if inside is not None else []
    for answer in answerers:  # connections, caches
        answer([Text(_WARM_UP)] * streams)
    for server in servers:
        server.served = Served()
    if inside is not None:
        inside.begin()
    for number, start in enumerate(range(0, len(texts), streams)):
        turn = number % len(answerers)
        for answer in answerers[turn:] + answerers[:turn]:
            answer(texts[start : start + streams])
        # Reading memory leaves nothing of a model in the processor's caches: rarely, and before another one each time.
        if inside is not None and inside.bandwidth is not None and number % (_OBSERVE_EVERY * len(answerers) + 1) == 0:
            inside.bandwidth.observe()
    found: list[dict[str, Any]] = [{"name": server.url} | server.served.figures() for server in servers]
    result: dict[str, Any] = {"prompts": len(texts), "streams": streams, "servers": found}
    if inside is not None:
        result |= inside.figures()
    if (engine := result.get("engine")) is not None:
        for row in found:
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
    from bench.results import aligned, reading_line

    print(f"{result['prompts']} prompts, {result['streams']} streams, in turns in one run")
    cells = [list(_COLUMNS.values())]
    for row in _rows(result):
        cells.append([row["name"], *(f"{row[key]:.2f}" if key in row else "" for key in list(_COLUMNS)[1:])])
    print(aligned(cells))
    if result.get("bandwidth"):
        print(reading_line(result["bandwidth"]))


def _rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [*result["servers"], *([result["engine"]] if "engine" in result else []), *result.get("others", ())]


def _print_ratios(result: dict[str, Any], first: dict[str, Any]) -> None:
    """What more streams bring, and note it in `result`."""
    for row, before in zip(_rows(result), _rows(first), strict=True):
        row["over_first"] = row["tokens_per_second"] / before["tokens_per_second"]
        print(f"{row['name']}: {result['streams']} streams are {row['over_first']:.1f} × {first['streams']}")


class _Inside:
    """The engine, transformers' `generate` and llama.cpp in this process."""

    def __init__(self, args: argparse.Namespace, config: EngineConfig, texts: Sequence[Text]) -> None:
        from bench.peers.hugging_face import hugging_face
        from bench.peers.llama_cpp import llama_cpp
        from bench.targets import PolicyTarget
        from engine.runtime.bandwidth import ReadBandwidth
        from engine.runtime.build import LoadedModel
        from engine.types import SamplingParams

        self.model = LoadedModel(config)
        sampling = SamplingParams(max_tokens=args.max_tokens, temperature=0.0, ignore_eos=args.ignore_eos)
        policy = args.policy or config.draft_policy
        self.engine = PolicyTarget(policy, self.model.core(config), sampling) if args.engine else None
        self.others: list[BenchTarget] = [*hugging_face(args.hf, self.model, sampling)]
        asked = self._encoded([*_told_apart(texts, len(args.streams)), texts[0]._replace(prompt=_WARM_UP)])
        self.others += llama_cpp(args.llama_cpp, self.model, sampling, asked, max(args.streams))
        self.bandwidth: ReadBandwidth | None = None
        if self.engine is not None and policy == "none":
            model = self.model
            self.bandwidth = ReadBandwidth(model.decoder.device, model.clock, model.key.threads, model.decoder.packed)
        self.targets: list[BenchTarget] = [*([self.engine] if self.engine is not None else []), *self.others]

    def _encoded(self, texts: Sequence[Text]) -> list[Prompt]:
        from bench.prompts import encode

        return [encode(self.model, text) for text in texts]

    def answerers(self, streams: int) -> list[Callable[[Sequence[Text]], object]]:
        return [
            lambda texts, c=target: c.run(self._encoded(texts), streams)  # type: ignore[misc]
            for target in self.targets
        ]

    def begin(self) -> None:
        """Count from here on."""
        from bench.targets import Tally

        for target in self.targets:
            target.tally = Tally()

    def figures(self) -> dict[str, Any]:
        from bench.results import bytes_read

        found: dict[str, Any] = {"others": [_speed(other.name, other.tally) for other in self.others]}
        if self.engine is not None:
            tally = self.engine.tally
            first = 1e3 * statistics.median(tally.first_token)
            found["engine"] = _speed("engine", tally) | {"first_token_ms": first}
            if self.bandwidth is not None:
                found["bandwidth"] = bytes_read(tally, self.model, self.bandwidth.median)
        return found


def _speed(name: str, tally: Any) -> dict[str, Any]:
    return {"name": name, "tokens_per_second": tally.tokens / tally.seconds}


class _Server:
    """One server, and so many streams from it."""

    def __init__(self, url: str, args: argparse.Namespace, streams: int) -> None:
        self.url = url
        self.served = Served()
        self._clients = [_Client(url, args) for _ in range(streams)]
        self._pool = ThreadPoolExecutor(streams)

    def answer(self, texts: Sequence[Text]) -> None:
        started = time.perf_counter()
        for part in self._pool.map(_Client.stream, self._clients, [text.prompt for text in texts]):
            self.served.add(part)
        self.served.seconds += time.perf_counter() - started


class _Client:
    """One stream at a time over one connection."""

    def __init__(self, base: str, args: argparse.Namespace) -> None:
        """Raises ConfigError if `base` is not a URL."""
        self._base, self._args = base, args
        try:
            url = urlsplit(base)
            kind = {"http": HTTPConnection, "https": HTTPSConnection}[url.scheme]
            self._connection = kind(url.hostname or "127.0.0.1", url.port, timeout=120)
        except (KeyError, ValueError, HTTPException):
            raise ConfigError(f"--url takes a URL such as {_URL}, not {base}") from None
        endpoint = "/v1/completions" if args.completions else "/v1/chat/completions"
        self._path = url.path.rstrip("/").removesuffix("/v1") + endpoint
        self._headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            self._headers["Authorization"] = f"Bearer {key}"

    def stream(self, text: str) -> Served:
        """What came for one prompt. Raises ConfigError."""
        args, served = self._args, Served()
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
                raise ConfigError(f"{self._base} answered {response.status}: {response.read(500)!r}")
            usage: dict[str, Any] = {}
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                now = time.perf_counter()
                if b'"completion_tokens"' in line:
                    usage = json.loads(line[6:])["usage"]
                if _SAYS.search(line):
                    served.chunks += 1
                    (served.gaps if served.first_token else served.first_token).append(now - last)
                    last = now
            served.tokens = usage["completion_tokens"]
        except (HTTPException, OSError) as error:
            raise ConfigError(f"{self._base}: {error or type(error).__name__}") from None
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{self._base}: the stream does not say how many tokens it had") from None
        return served
