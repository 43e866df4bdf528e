"""`knapserve bench serve`: streams prompts from a running server; with `--engine`, beside the same engine in-process.

The prompts go to the server and to the engine in turn, so that both see the machine in the same moments: the ratio of
their tokens per second is what HTTP streaming keeps. The client is the standard library's, in threads: on a machine
that serves itself, every microsecond that a client spends on a chunk is the server's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine.config import EngineConfig
from engine.errors import ConfigError


@dataclass(slots=True)
class Served:
    """What came from the server. Seconds."""

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `bench serve` besides the engine's own."""
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="base URL of the server")
    parser.add_argument(
        "--prompts", type=Path, default=None, help='JSON lines like {"prompt": "…"} (prompts for the embedded model)'
    )
    parser.add_argument("--limit", type=int, default=0, help="use only this many prompts, evenly picked; 0: all")
    parser.add_argument("--concurrency", type=int, default=1, help="streams at a time")
    parser.add_argument("--max-tokens", type=int, default=128, help="of an answer (128)")
    parser.add_argument("--ignore-eos", action="store_true", help="always generate --max-tokens tokens")
    parser.add_argument(
        "--completions", action="store_true", help="ask /v1/completions: the model has no chat template"
    )
    parser.add_argument("--policy", default=None, help="draft policy to ask for")
    parser.add_argument("--engine", action="store_true", help="run the same prompts in-process too, in turns")


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run, print figures and, as the last line, JSON."""
    from engine.bench import encode, read_prompts
    from engine.build import EMBEDDED, LoadedModel
    from engine.contenders import PolicyContender
    from engine.types import SamplingParams

    texts = read_prompts(args.prompts or EMBEDDED / "prompts.jsonl", args.limit)
    batches = [texts[i : i + args.concurrency] for i in range(0, len(texts), args.concurrency)]
    inside: PolicyContender | None = None
    if args.engine:
        model = LoadedModel(config)
        sampling = SamplingParams(max_tokens=args.max_tokens, temperature=0.0, ignore_eos=args.ignore_eos)
        inside = PolicyContender(args.policy or config.draft_policy, model.core(config), sampling)
    served = Served()
    clients = [_Client(args) for _ in range(args.concurrency)]
    with ThreadPoolExecutor(args.concurrency) as pool:
        for number, batch in enumerate(batches):
            for turn in (0, 1) if number % 2 else (1, 0):
                if turn:
                    started = time.perf_counter()
                    for part in pool.map(_Client.stream, clients, [text.prompt for text in batch]):
                        served.add(part)
                    served.seconds += time.perf_counter() - started
                elif inside is not None:
                    inside.run([encode(model, text) for text in batch], args.concurrency)
    result: dict[str, Any] = {
        "streams": args.concurrency,
        "tokens_per_second": served.tokens / served.seconds,
        "tokens_per_chunk": served.tokens / served.chunks,
        "first_token_ms": 1e3 * statistics.median(served.first_token),
        "between_chunks_ms": 1e3 * statistics.median(served.gaps),
    }
    print(f"{len(texts)} prompts, {args.concurrency} streams, {args.url}")
    if inside is not None:
        engine = inside.tally.tokens / inside.tally.seconds
        first = 1e3 * statistics.median(inside.tally.first_token)
        result |= {
            "engine_tokens_per_second": engine,
            "share_of_engine": result["tokens_per_second"] / engine,
            "engine_first_token_ms": first,
            "first_token_added_ms": result["first_token_ms"] - first,
        }
    for name, value in result.items():
        print(f"{name:>26}  {value:.3f}")
    print(json.dumps(result))
    return 0


class _Client:
    """One stream at a time over one connection."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        url = urlsplit(args.url)
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        self._connection = kind(url.hostname or "127.0.0.1", url.port, timeout=120)
        endpoint = "/v1/completions" if args.completions else "/v1/chat/completions"
        self._path = url.path.rstrip("/").removesuffix("/v1") + endpoint
        self._headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            self._headers["Authorization"] = f"Bearer {key}"
        self._text = b'"text":"' if args.completions else b'"content":"'  # what a chunk with text has,
        self._none = self._text + b'"'  # and one without

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
                raise ConfigError(f"the server answered {response.status}: {response.read(500)!r}")
            for line in response:
                if not line.startswith(b"data: {"):
                    continue
                now = time.perf_counter()
                if b'"choices":[]' in line:
                    served.tokens += json.loads(line[6:])["usage"]["completion_tokens"]
                elif self._text in line and self._none not in line:
                    served.chunks += 1
                    (served.gaps if served.first_token else served.first_token).append(now - last)
                    last = now
        except (HTTPException, OSError) as error:
            raise ConfigError(f"{args.url}: {error or type(error).__name__}") from None
        return served
