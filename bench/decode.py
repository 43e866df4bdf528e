"""`knapserve bench decode`: compare draft policies, which take short turns in one run."""

import argparse
import json
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.bandwidth import ReadBandwidth, bandwidth_line
from bench.contenders import Contender, contenders
from bench.files import check_writable, write
from bench.measurements import Totals
from bench.peers import add_peer_arguments, peers
from bench.prompts import Text, add_prompt_arguments, context_tokens, encode, numbers, positive, read_prompts
from bench.results import Row, add_llama_cpp_ratios, domain_table, speeds, summarise, table
from bench.targets import BenchTarget, PolicyTarget, answer_in_turns, warm_up
from engine.checkpoints.hub import SYNTHETIC
from engine.config.engine import EngineConfig
from engine.config.fields import AMOUNT
from engine.errors import ConfigError
from engine.logs import progress_bar
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench decode`."""
    add_prompt_arguments(parser)
    parser.add_argument(
        "--policies", default="none,fixed,layerskip,knapspec", metavar="NAME,NAME…",
        help="draft policies, perhaps with settings of their own: knapspec:menu=skip; none always runs "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--concurrency", type=positive, default=1, help="number of prompts in flight (default: 1)")
    parser.add_argument(
        "--context", default="0", metavar="N,N…",
        help="context lengths: tokens of Python's own reference before each prompt (default: 0)",
    )  # fmt: skip
    parser.add_argument("--repeat", type=positive, default=1, help="number of runs over the prompts (default: 1)")
    parser.add_argument("--temperature", type=float, default=0.0, help="temperature; 0: greedy (default: 0)")
    parser.add_argument(
        "--ignore-eos", action="store_true", help="ignore ends of sequence: all answers have --max-tokens tokens"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the results to this file, as JSON")
    add_peer_arguments(parser)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run the benchmark; print tables, and JSON as the last line. Raises ConfigError."""
    entries = contenders(args.policies, config)
    if args.out is not None:
        check_writable(args.out, "--out")
    contexts = numbers("--context", args.context, int, AMOUNT)
    texts = read_prompts(args.prompts, args.limit)
    model = LoadedModel(config)
    model.warm_up()
    bench = _Bench(args, model, texts)
    found = [bench.compare(entries, context) for context in contexts]
    result = json.dumps(found[0] | ({"contexts": found} if len(found) > 1 else {}))
    if args.out is not None:
        write(args.out, result + "\n")
    print(result)
    return 0


class _Bench:
    """The model, prompts and sampling parameters that all comparisons of a run share."""

    def __init__(self, args: argparse.Namespace, model: LoadedModel, texts: Sequence[Text]) -> None:
        self.args, self.model = args, model
        self.sampling = SamplingParams(
            max_tokens=args.max_tokens, temperature=args.temperature, ignore_eos=args.ignore_eos
        )
        self.prompts = [encode(model, text) for text in texts]
        # The prompts of each turn, in one run: enough to keep the streams busy most of the time.
        size = 1 if args.concurrency == 1 else 4 * args.concurrency
        self.batches = [self.prompts[start : start + size] for start in range(0, len(texts), size)]

    def compare(self, entries: Sequence[Contender], context: int) -> dict[str, Any]:
        """Run all targets after `context` tokens of text. Print tables, return results for JSON."""
        model, args = self.model, self.args
        before = context_tokens(model, context)
        policies = [
            PolicyTarget(policy, model.core(config, own_cache=True), self.sampling, before, name)
            for name, policy, config in entries
        ]
        policies[0].check(self.prompts)
        if context and (args.hf or args.llama_cpp is not None):
            raise ConfigError("--context cannot be combined with --hf or --llama-cpp")
        others = peers(args, model, self.sampling, self.prompts, args.concurrency)
        # The other policies stay out, since they would learn from the prompt.
        warm_up([policies[0], *others], self.prompts[:1])
        bandwidth = ReadBandwidth(model)
        differing = self._run(policies, others, bandwidth)
        targets = [*policies, *others]
        rows = [self._row(target, policies[0]) for target in targets]
        add_llama_cpp_ratios(rows)
        figures: dict[str, Any] = {
            "machine": model.key.hardware,
            "model": model.source.name,
            "context": len(before),
            "threads": model.key.threads,
            "dtype": model.key.dtype,
            "weight_bytes": model.decoder.weights.nbytes,
            "prompts": len(self.prompts),
            "concurrency": args.concurrency,
            "answers_that_differ_from_none": differing,
            "bandwidth": bandwidth.share(policies[0].stats.total),
            "rows": rows,
            "domains": self._by_domain(targets),
            "by_prompt": self._by_prompt(policies),
        }
        self._print(figures)
        return figures

    def _run(self, policies: Sequence[PolicyTarget], others: Sequence[BenchTarget], bandwidth: ReadBandwidth) -> int:
        """Run all prompts on all targets. Returns how many answers differ from the first policy's."""
        show, differing = progress_bar("answering prompts"), 0
        batches = self.batches * self.args.repeat
        turns = answer_in_turns(policies, batches, self.args.concurrency)
        for number, (batch, found) in enumerate(zip(batches, turns, strict=True), 1):
            for target in others:
                target.run(batch, self.args.concurrency)
            differing += sum(found)
            bandwidth.observe()
            show(number / len(batches))
        return differing

    def _row(self, target: BenchTarget, plain: BenchTarget) -> Row:
        pairs = zip(target.stats.batches, plain.stats.batches, strict=True)
        median = statistics.median(own.speed / other.speed for own, other in pairs)
        return summarise(target.name, target.stats.total, plain.stats.total) | {"speedup_median": median}

    def _by_domain(self, targets: Sequence[BenchTarget]) -> dict[str, dict[str, float]]:
        """Return speed-ups over the first target, domain → name → ratio, of batches with one domain.

        Policies of the engine also have the speed-up of decoding alone.
        """
        numbers: dict[str, list[int]] = {}  # batch numbers by domain
        for number, prompts in enumerate(self.batches * self.args.repeat):
            domains = {prompt.domain for prompt in prompts}
            if len(domains) == 1:
                numbers.setdefault(domains.pop(), []).append(number)
        speedups: dict[str, dict[str, float]] = {}
        for domain, own in numbers.items():
            plain, *others = (Totals.sum(target.stats.batches[number] for number in own) for target in targets)
            found = speedups[domain] = {}
            for target, totals in zip(targets[1:], others, strict=True):
                figures = speeds(totals, plain)
                found[target.name] = figures["speedup"]
                if "decode_speedup" in figures:
                    found[f"{target.name}, decode"] = figures["decode_speedup"]
        return speedups

    def _by_prompt(self, policies: Sequence[PolicyTarget]) -> dict[str, list[float]]:
        """Return the speed-ups of policies over the first one, by prompt or batch: medians of runs.

        They are those of decoding alone, or of whole answers of one token.
        """
        plain, count = policies[0].stats.batches, len(self.batches)
        found: dict[str, list[float]] = {}
        for target in policies[1:]:
            rows = [speeds(own, before) for own, before in zip(target.stats.batches, plain, strict=True)]
            ratios = [row.get("decode_speedup") or row["speedup"] for row in rows]
            found[target.name] = [statistics.median(ratios[i::count]) for i in range(count)]
        return found

    def _print(self, figures: Row) -> None:
        key, args, context = self.model.key, self.args, figures["context"]
        weights = figures["weight_bytes"] / 1e6
        print(f"{platform.machine()} {key.machine}, {key.dtype}; {key.shape}; {weights:,.0f} MB of weights per pass")
        if self.model.source.name.startswith(SYNTHETIC):
            print("SYNTHETIC weights: real shape, random text")
        after = f" after {context} tokens of text" if context else ""
        in_flight = f"{args.concurrency} in flight, at most {args.max_tokens} tokens each"
        print(f"{len(self.prompts)} prompts{after}, {in_flight}, targets in turns")
        print(table(figures["rows"]))
        if figures["bandwidth"]:
            print(bandwidth_line(figures["bandwidth"]))
        if args.concurrency > 1 and args.hf:
            print("hf-generate answers one prompt at a time")
        if len(figures["domains"]) > 1:
            print("speed-up by domain:")
            print(domain_table(figures["domains"]))
        lowest = ", ".join(f"{name} {min(ratios):.3f}" for name, ratios in figures["by_prompt"].items())
        if lowest:
            unit = "prompt" if args.concurrency == 1 else "batch"
            print(f"lowest speed-up of decoding by {unit} (median of {args.repeat}): {lowest}")
