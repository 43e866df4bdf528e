"""`knapserve bench serve`: stream prompts from running servers, perhaps beside the engine here.

Servers, engine and `generate` answer the prompts in turns, so that all run under the same
conditions. The ratio of a server's tokens per second to the engine's is the share that HTTP
streaming leaves.
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
from bench.results import Column, Row, table
from bench.targets import BenchTarget, PolicyTarget, Prompt, answer_in_order, warm_up
from engine.config.engine import EngineConfig
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

_OBSERVE_EVERY = 8  # rounds of turns between two measurements of the memory bandwidth
_WARM_UP = Text("This is not one of the prompts.")
_COLUMNS = (
    Column("", "name", "{}"),
    Column("tok/s", "tokens_per_second"),
    Column("of engine", "share_of_engine"),
    Column("tok/chunk", "tokens_per_chunk"),
    Column("first ms", "first_token_ms"),
    Column("added ms", "first_token_added_ms"),
    Column("gap ms", "between_chunks_ms"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench serve`."""
    parser.add_argument("--url", action="append", default=[], help=f"URL of a server; repeatable (default: {URL})")
    add_prompt_arguments(parser)
    parser.add_argument(
        "--streams", "--concurrency", default=[1], metavar="N,N…",
        type=lambda text: [positive(part) for part in text.split(",")],
        help="number of concurrent streams, or several numbers, compared with the first (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--ignore-eos", action="store_true", help="ignore ends of sequence: all answers have --max-tokens tokens"
    )
    parser.add_argument(
        "--completions", action="store_true", help="use /v1/completions, for models without a chat template"
    )
    parser.add_argument("--policy", default=None, help="draft policy of the requests (default: the server's)")
    parser.add_argument(
        "--engine", action="store_true",
        help="also run the engine in this process, in turns with the servers; with --policy none, report its share "
        "of the memory bandwidth",
    )  # fmt: skip
    add_peer_arguments(parser)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run the benchmark; print tables, and JSON as the last line. Raises ConfigError."""
    texts = read_prompts(args.prompts, args.limit)
    bench = _Bench(args, config, texts)
    results = [bench.compare(_with_run_number(texts, run), streams) for run, streams in enumerate(args.streams)]
    print(json.dumps(results[0] | ({"by_streams": results} if len(results) > 1 else {})))
    return 0


def _with_run_number(texts: Sequence[Text], run: int) -> list[Text]:
    """Prefix the texts with the number of the run, so that no prefix cache has them."""
    return [text._replace(prompt=f"{run + 1}. {text.prompt}") for text in texts] if run else list(texts)


class _Bench:
    """The targets in this process, loaded once: the engine, transformers and llama.cpp."""

    def __init__(self, args: argparse.Namespace, config: EngineConfig, texts: Sequence[Text]) -> None:
        self.args = args
        self.model: LoadedModel | None = None
        self.engine: PolicyTarget | None = None
        self.bandwidth: ReadBandwidth | None = None
        self.others: list[BenchTarget] = []
        self.first: list[Row] = []  # the rows of the first number of streams
        if not (args.engine or args.hf or args.llama_cpp is not None):
            return
        self.model = LoadedModel(config)
        sampling = SamplingParams(max_tokens=args.max_tokens, temperature=0.0, ignore_eos=args.ignore_eos)
        if args.engine:
            policy = args.policy or config.draft_policy
            self.engine = PolicyTarget(policy, self.model.core(config), sampling, name="engine")
            if policy == "none":
                self.bandwidth = ReadBandwidth(self.model)
        prompts = self._prompts([*_with_run_number(texts, len(args.streams)), _WARM_UP])
        self.others = peers(args, self.model, sampling, prompts, max(args.streams))

    def _prompts(self, texts: Sequence[Text]) -> list[Prompt]:
        """Make prompts of texts, whose tokens only targets in this process need."""
        return [Prompt(text.prompt, ()) if self.model is None else encode(self.model, text) for text in texts]

    def compare(self, texts: Sequence[Text], streams: int) -> dict[str, Any]:
        """Let all targets answer the texts in turns. Print a table, return results for JSON."""
        servers = [ServerTarget(url, self.args, streams) for url in self.args.url or [URL]]
        targets: list[BenchTarget] = [*servers]
        if self.engine is not None:
            targets.append(self.engine)
        targets += self.others
        warm_up(targets, self._prompts([_WARM_UP] * streams), streams)
        prompts = self._prompts(texts)
        batches = [prompts[start : start + streams] for start in range(0, len(prompts), streams)]
        for number in answer_in_order(targets, batches, streams):
            # Measuring the bandwidth clears the CPU's caches: do it rarely, each time before
            # another target.
            if self.bandwidth is not None and number % (_OBSERVE_EVERY * len(targets) + 1) == 0:
                self.bandwidth.observe()
        rows = [_row(target) for target in targets]
        own, others = rows[: len(servers)], rows[len(targets) - len(self.others) :]
        result: dict[str, Any] = {"prompts": len(texts), "streams": streams, "servers": own, "others": others}
        if self.engine is not None:
            engine = result["engine"] = rows[len(servers)]
            for row in own:
                row["share_of_engine"] = row["tokens_per_second"] / engine["tokens_per_second"]
                if "first_token_ms" in row:
                    row["first_token_added_ms"] = row["first_token_ms"] - engine["first_token_ms"]
            if self.bandwidth is not None:
                result["bandwidth"] = self.bandwidth.share(self.engine.stats.total)
        print(f"{len(texts)} prompts, {streams} streams, targets in turns")
        print(table(rows, _COLUMNS))
        if result.get("bandwidth"):
            print(bandwidth_line(result["bandwidth"]))
        for row, before in zip(rows, self.first, strict=False):
            row["over_first"] = row["tokens_per_second"] / before["tokens_per_second"]
            ratio = f"{row['over_first']:.1f} × the speed of {self.args.streams[0]}"
            print(f"{row['name']}: {streams} streams reach {ratio}")
        self.first = self.first or rows
        return result


def _row(target: BenchTarget) -> Row:
    """Return rates in tokens per second, and median times in milliseconds."""
    stats = target.stats
    row: Row = {"name": target.name, "tokens_per_second": stats.total.speed}
    if stats.chunks:
        row["tokens_per_chunk"] = stats.total.tokens / stats.chunks
    for name, seconds in (("first_token_ms", stats.first_token), ("between_chunks_ms", stats.gaps)):
        if seconds:
            row[name] = 1e3 * statistics.median(seconds)
    return row
