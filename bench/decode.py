"""`knapserve bench decode`: compare draft policies, which take short turns in one run."""

import argparse
import json
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import results
from bench.bandwidth import ReadBandwidth
from bench.compare.contenders import Contender, contenders
from bench.files import check_writable, write
from bench.peers.hugging_face import add_hugging_face_argument, hugging_face
from bench.peers.llama_cpp import add_llama_cpp_argument, llama_cpp
from bench.prediction_error import prediction_errors
from bench.prompts import Text, add_prompt_arguments, context_tokens, encode, numbers, positive, read_prompts
from bench.targets import BatchTotals, BenchTarget, PolicyTarget, Prompt, RunStats, run_in_turns, sum_batches
from engine.checkpoints.hub import SYNTHETIC
from engine.config.engine import EngineConfig
from engine.config.fields import AMOUNT
from engine.core.policies import POLICIES
from engine.errors import ConfigError
from engine.logs import progress_bar
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench decode`."""
    add_prompt_arguments(parser)
    parser.add_argument(
        "--policies", default="none,fixed,layerskip,knapspec", metavar="NAME,NAME…",
        help="draft policies, perhaps with settings of their own: knapspec:menu=skip; none always runs (default: "
        "%(default)s)",
    )  # fmt: skip
    parser.add_argument("--concurrency", type=positive, default=1, help="number of prompts in flight (default: 1)")
    parser.add_argument(
        "--context", default="0", metavar="N,N…",
        help="context lengths to measure: tokens of Python's own reference before each prompt (default: 0)",
    )  # fmt: skip
    parser.add_argument("--repeat", type=positive, default=1, help="number of runs over the prompts (default: 1)")
    parser.add_argument("--temperature", type=float, default=0.0, help="sampling temperature; 0: greedy (default: 0)")
    parser.add_argument(
        "--ignore-eos", action="store_true", help="ignore end-of-sequence tokens: every answer has --max-tokens tokens"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the results to this file, as JSON")
    add_hugging_face_argument(parser)
    add_llama_cpp_argument(parser)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run the benchmark; print tables, and JSON as the last line. Raises ConfigError."""
    entries = contenders(args.policies, POLICIES, config)
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


def _speedups(name: str, batch: BatchTotals, plain: BatchTotals) -> Iterator[tuple[str, float]]:
    """Yield the speed-up of whole answers, and that of decoding if it is known."""
    yield name, batch.tokens / batch.seconds * plain.seconds / plain.tokens
    if batch.decode_seconds and plain.decode_tokens:
        speed, before = batch.decode_tokens / batch.decode_seconds, plain.decode_tokens / plain.decode_seconds
        yield f"{name}, decode", speed / before


class _Bench:
    """The model, prompts and sampling parameters that all comparisons of a run share."""

    def __init__(self, args: argparse.Namespace, model: LoadedModel, texts: Sequence[Text]) -> None:
        self.args, self.model = args, model
        self.sampling = SamplingParams(
            max_tokens=args.max_tokens, temperature=args.temperature, ignore_eos=args.ignore_eos
        )
        self.prompts = [encode(model, text) for text in texts]

    def compare(self, entries: Sequence[Contender], context: int) -> dict[str, Any]:
        """Run all targets after `context` tokens of text, print the tables, and return the results for JSON."""
        model, args = self.model, self.args
        before = context_tokens(model, context)
        policies = [
            PolicyTarget(policy, model.core(config, own_cache=True), self.sampling, before, name)
            for name, policy, config in entries
        ]
        policies[0].check(self.prompts)
        if context and (args.hf or args.llama_cpp is not None):
            raise ConfigError("--context cannot be combined with --hf or --llama-cpp")
        targets: list[BenchTarget] = [*policies]
        targets += hugging_face(args.hf, model, self.sampling)
        targets += llama_cpp(args.llama_cpp, model, self.sampling, self.prompts, args.concurrency)
        # Warm up. `none` is the only policy here, as others would learn.
        for target in [policies[0], *targets[len(policies) :]]:
            target.run(self.prompts[:1], 1)
            target.stats = RunStats()
        bandwidth = results.bandwidth_meter(model)
        differing = self._run(policies, targets[len(policies) :], bandwidth)
        rows = [results.summarise(c, policies[0].stats, model.spec.layers) for c in targets]
        results.add_llama_cpp_ratios(rows)
        reading = results.read_bandwidth(policies[0].stats, model, bandwidth.median)
        self._print(rows, len(before), reading)
        domains = self._by_domain(targets)
        if len(domains) > 1:
            print("speed-up by domain:")
            print(results.aligned([*results.domain_lines(domains)]))
        by_prompt = self._by_prompt(policies)
        lowest = ", ".join(f"{name} {min(ratios):.3f}" for name, ratios in by_prompt.items())
        if lowest:
            unit = "prompt" if args.concurrency == 1 else "batch"
            print(f"lowest speed-up of decoding by {unit} (median of {args.repeat}): {lowest}")
        drafted = next((c.stats for c in policies if c.name.startswith("knapspec")), None)
        if drafted is not None:
            share = drafted.knapsack_seconds / drafted.seconds
            print(f"knapspec finished {drafted.searches} searches in {share:.1%} of the time, decisions excluded")
        figures = self._figures(rows, len(before), reading, differing) | {"domains": domains, "by_prompt": by_prompt}
        if drafted and (errors := prediction_errors(drafted.history)).tpt.size:
            print(f"prediction errors of knapspec by request: {errors}")
            figures["prediction_errors"] = errors.as_dict()
        return figures

    def _run(self, policies: Sequence[PolicyTarget], others: Sequence[BenchTarget], bandwidth: ReadBandwidth) -> int:
        """Run all prompts on all targets. Returns the number of answers that differ from those of the first policy."""
        streams = self.args.concurrency
        differing = 0
        show = progress_bar("answering prompts")
        batches = self._batches()
        for number, batch in enumerate(batches):
            plain, *rest = run_in_turns(policies, batch, streams, first=number % len(policies))
            for target in others:
                target.run(batch, streams)
            differing += sum(a != b for answers in rest for a, b in zip(answers, plain, strict=True))
            bandwidth.observe()
            show((number + 1) / len(batches))
        return differing

    def _batches(self) -> list[list[Prompt]]:
        """Return the prompts of each turn, in all runs: enough to keep the streams busy most of the time."""
        size = 1 if self.args.concurrency == 1 else 4 * self.args.concurrency
        one_run = [self.prompts[start : start + size] for start in range(0, len(self.prompts), size)]
        repeats: int = self.args.repeat
        return one_run * repeats

    def _by_domain(self, targets: Sequence[BenchTarget]) -> dict[str, dict[str, float]]:
        """Return the speed-up over the first target, domain → name → ratio, from batches with a single domain.

        Policies of the engine also have the speed-up of decoding alone.
        """
        numbers: dict[str, list[int]] = {}  # batch numbers by domain
        for number, prompts in enumerate(self._batches()):
            domains = {prompt.domain for prompt in prompts}
            if len(domains) == 1:
                numbers.setdefault(domains.pop(), []).append(number)
        speedups: dict[str, dict[str, float]] = {}
        for domain, own in numbers.items():
            plain, *others = (sum_batches(target.stats.batches[number] for number in own) for target in targets)
            speedups[domain] = {}
            for target, batch in zip(targets[1:], others, strict=True):
                speedups[domain] |= _speedups(target.name, batch, plain)
        return speedups

    def _by_prompt(self, policies: Sequence[PolicyTarget]) -> dict[str, list[float]]:
        """Return the speed-ups of policies over the first one, by prompt or batch: medians of the runs.

        Those of decoding alone, or of the whole answer if it is one token.
        """
        plain, *others = (target.stats.batches for target in policies)
        count = len(plain) // self.args.repeat
        found: dict[str, list[float]] = {}
        for target, batches in zip(policies[1:], others, strict=True):
            ratios = [[*_speedups("", own, before)][-1][1] for own, before in zip(batches, plain, strict=True)]
            found[target.name] = [statistics.median(ratios[i::count]) for i in range(count)]
        return found

    def _print(self, rows: Sequence[dict[str, Any]], context: int, reading: Mapping[str, float]) -> None:
        key, args = self.model.key, self.args
        weights = self.model.decoder.weight_bytes / 1e6
        print(f"{platform.machine()} {key.machine}, {key.dtype}; {key.shape}; {weights:,.0f} MB of weights per pass")
        if self.model.source.name.startswith(SYNTHETIC):
            print("SYNTHETIC weights: real shape, random text")
        after = f" after {context} tokens of text" if context else ""
        print(
            f"{len(self.prompts)} prompts{after}, {args.concurrency} in flight, at most {args.max_tokens} tokens each, "
            "targets in turns"
        )
        print(results.table(rows))
        if reading:
            print(results.bandwidth_line(reading))
        if args.concurrency > 1 and args.hf:
            print("hf-generate answers one prompt at a time")

    def _figures(
        self, rows: list[dict[str, Any]], context: int, reading: Mapping[str, float], differing: int
    ) -> dict[str, Any]:
        key = self.model.key
        return {
            "machine": key.hardware,
            "model": self.model.source.name,
            "context": context,
            "threads": key.threads,
            "dtype": key.dtype,
            "weight_bytes": self.model.decoder.weight_bytes,
            "prompts": len(self.prompts),
            "concurrency": self.args.concurrency,
            "answers_that_differ_from_none": differing,
            "bandwidth": reading,
            "rows": rows,
        }
