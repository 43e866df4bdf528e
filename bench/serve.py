"""`knapserve bench serve`: stream prompts from running servers, optionally beside the same engine in this process.

Servers, engine and `generate` answer the prompts in turns, so that all run under the same conditions. The ratio of a
server's tokens per second to the engine's is the share that HTTP streaming leaves.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from typing import Any

from bench.bandwidth import ReadBandwidth, bandwidth_line
from bench.peers import add_peer_arguments, peers
from bench.peers.server import URL, ServerTarget
from bench.prompts import Text, add_prompt_arguments, encode, positive, read_prompts
from bench.results import Row, aligned
from bench.targets import BenchTarget, PolicyTarget, Prompt, answer_in_order, warm_up
from engine.config.engine import EngineConfig
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

_OBSERVE_EVERY = 8  # rounds of turns between two measurements of the memory bandwidth
_WARM_UP = Text("This is not one of the prompts.")
_COLUMNS = {
    "name": "",
    "tokens_per_second": "tok/s",
    "share_of_engine": "of engine",
    "tokens_per_chunk": "tok/chunk",
    "first_token_ms": "first ms",
    "first_token_added_ms": "added ms",
    "between_chunks_ms": "gap ms",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench serve`."""
    parser.add_argument("--url", action="append", default=[], help=f"base URL of a server; repeatable (default: {URL})")
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
    add_peer_arguments(parser)


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


def _prompts(texts: Sequence[Text], model: LoadedModel | None) -> list[Prompt]:
    """Make prompts of texts, whose tokens only targets in this process need."""
    return [Prompt(text.prompt, ()) if model is None else encode(model, text) for text in texts]


class _InProcess:
    """The targets in this process: the engine, `generate` of transformers and llama.cpp."""

    def __init__(self, args: argparse.Namespace, config: EngineConfig, texts: Sequence[Text]) -> None:
        self.model = LoadedModel(config)
        sampling = SamplingParams(max_tokens=args.max_tokens, temperature=0.0, ignore_eos=args.ignore_eos)
        policy = args.policy or config.draft_policy
        self.engine = PolicyTarget(policy, self.model.core(config), sampling, name="engine") if args.engine else None
        prompts = _prompts([*_with_run_number(texts, len(args.streams)), _WARM_UP], self.model)
        self.others = peers(args, self.model, sampling, prompts, max(args.streams))
        self.bandwidth = ReadBandwidth(self.model) if self.engine is not None and policy == "none" else None


def _compare(
    args: argparse.Namespace, in_process: _InProcess | None, texts: Sequence[Text], streams: int
) -> dict[str, Any]:
    """Let all targets answer the texts in turns, print the table, and return the results for JSON."""
    servers = [ServerTarget(url, args, streams) for url in args.url or [URL]]
    engine, bandwidth, others = None, None, list[BenchTarget]()
    model = None
    if in_process is not None:
        engine, bandwidth, others = in_process.engine, in_process.bandwidth, in_process.others
        model = in_process.model
    targets: list[BenchTarget] = [*servers, *([engine] if engine is not None else []), *others]
    warm_up(targets, _prompts([_WARM_UP] * streams, model), streams)
    prompts = _prompts(texts, model)
    batches = [prompts[start : start + streams] for start in range(0, len(prompts), streams)]
    for number in answer_in_order(targets, batches, streams):
        # Measuring the bandwidth clears the CPU's caches: do it rarely, before a different target each time.
        if bandwidth is not None and number % (_OBSERVE_EVERY * len(targets) + 1) == 0:
            bandwidth.observe()
    rows = [_row(server) for server in servers]
    result: dict[str, Any] = {"prompts": len(texts), "streams": streams, "servers": rows}
    if in_process is not None:
        result["others"] = [_row(other) for other in others]
    if engine is not None:
        own = result["engine"] = _row(engine)
        for row in rows:
            row["share_of_engine"] = row["tokens_per_second"] / own["tokens_per_second"]
            if "first_token_ms" in row:
                row["first_token_added_ms"] = row["first_token_ms"] - own["first_token_ms"]
        if bandwidth is not None:
            result["bandwidth"] = bandwidth.share(engine.stats)
    _print(result)
    return result


def _row(target: BenchTarget) -> Row:
    """Return rates in tokens per second, and median times in milliseconds."""
    stats = target.stats
    row: Row = {"name": target.name, "tokens_per_second": stats.total.speed}
    if stats.chunks:
        row["tokens_per_chunk"] = stats.tokens / stats.chunks
    for name, seconds in (("first_token_ms", stats.first_token), ("between_chunks_ms", stats.gaps)):
        if seconds:
            row[name] = 1e3 * statistics.median(seconds)
    return row


def _print(result: dict[str, Any]) -> None:
    print(f"{result['prompts']} prompts, {result['streams']} streams, targets in turns")
    cells = [list(_COLUMNS.values())]
    for row in _rows(result):
        cells.append([row["name"], *(f"{row[key]:.2f}" if key in row else "" for key in list(_COLUMNS)[1:])])
    print(aligned(cells))
    if result.get("bandwidth"):
        print(bandwidth_line(result["bandwidth"]))


def _rows(result: dict[str, Any]) -> list[Row]:
    return [*result["servers"], *([result["engine"]] if "engine" in result else []), *result.get("others", ())]


def _print_ratios(result: dict[str, Any], first: dict[str, Any]) -> None:
    """Add the speed relative to the first number of streams to `result`, and print it."""
    for row, before in zip(_rows(result), _rows(first), strict=True):
        row["over_first"] = row["tokens_per_second"] / before["tokens_per_second"]
        ratio = f"{row['over_first']:.1f} × the speed of {first['streams']}"
        print(f"{row['name']}: {result['streams']} streams reach {ratio}")
