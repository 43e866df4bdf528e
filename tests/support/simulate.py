"""Compare policies in simulated time: `python -m tests.support.simulate`.

The model really answers; the profile, with some noise, decides how long passes take. Two policies then differ only by
their decisions: differences of one per cent show, where runs in real time show five.

With `--unsteady 1.5` passes take 1.5 times as long for half of the time. Policies see that, the figures do not count
it. Searches take the time of their passes. Decisions and cold caches take none, so a good result has to be measured
again in real time.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from bench.prompts import add_prompt_arguments, encode, positive, read_prompts
from bench.targets import Prompt
from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.draft.costs import CostModel
from engine.errors import EngineDeadError
from engine.runtime.build import LoadedModel
from engine.types import GenerateRequest, RequestFailure, SamplingParams
from profiles.schema import LatencyProfile
from server.settings import Settings, add_arguments
from tests.support.timed import TickingClock, TimedRunner


class Result(NamedTuple):
    """Tokens per second by domain and in total, and the error of predicted acceptance for each request."""

    domains: dict[str, float]
    total: float
    errors: list[float]


class Simulation:
    """A core whose rounds take simulated time."""

    def __init__(self, model: LoadedModel, config: EngineConfig, unsteady: float = 1.0) -> None:
        """`unsteady`: the factor by which passes are slower in half of the time."""
        assert model.profile is not None
        model.clock = self.clock = TickingClock(0.0)
        truth = CostModel(model.spec, model.profile)
        self.core: EngineCore = model.core(
            config, own_cache=True, wrap_runner=lambda runner: TimedRunner(runner, self.clock, truth, unsteady)
        )

    @property
    def _usual_time(self) -> float:
        """Seconds of the clock if passes always took their usual time."""
        return self.clock.time - self.core.runner.lost  # type: ignore[attr-defined, no-any-return]

    def answer(self, prompts: Sequence[Prompt], policy: str, sampling: SamplingParams, streams: int) -> Result:
        """Answer all prompts, `streams` at a time."""
        core, todo = self.core, list(enumerate(prompts))[::-1]
        live: dict[str, str] = {}  # domains
        seconds: defaultdict[str, float] = defaultdict(float)
        tokens: defaultdict[str, int] = defaultdict(int)
        acceptance: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])  # predicted, accepted, drafted
        while todo or live:
            while todo and len(live) < streams:
                index, prompt = todo.pop()
                live[str(index)] = prompt.domain
                core.add(GenerateRequest(str(index), prompt.tokens, replace(sampling, seed=index), policy))
            before = self._usual_time
            report = core.step()
            for round in report.rounds if not report.prompt_tokens else ():
                domain = live[round.request_id]
                seconds[domain] += (self._usual_time - before) / len(report.rounds)
                tokens[domain] += round.emitted
                if round.drafted and round.predicted_acceptance is not None:
                    found = round.predicted_acceptance * round.drafted, round.accepted, round.drafted
                    sums = zip(acceptance[round.request_id], found, strict=True)
                    acceptance[round.request_id] = [a + b for a, b in sums]
            for event in report.events:
                if isinstance(event, RequestFailure):
                    raise EngineDeadError(str(event.error))
                if event.finish_reason is not None:
                    del live[event.request_id]
        errors = [abs(predicted - accepted) / drafted for predicted, accepted, drafted in acceptance.values()]
        speeds = {domain: tokens[domain] / seconds[domain] for domain in seconds}
        return Result(speeds, sum(tokens.values()) / sum(seconds.values()), errors)


def compare(args: argparse.Namespace, profile: LatencyProfile | None = None) -> dict[str, Any]:
    """Compare `args.policy` with `none`."""
    config = Settings.read((EngineConfig,), args, {}).build(EngineConfig)
    model = LoadedModel(config, profile=profile)
    texts = read_prompts(args.prompts, args.limit)
    if args.shuffle is not None:
        Random(args.shuffle).shuffle(texts)
    prompts = [encode(model, text) for text in texts]
    sampling = SamplingParams(max_tokens=args.max_tokens, temperature=args.temperature)
    plain, drafting = (
        Simulation(model, config, args.unsteady).answer(prompts, policy, sampling, args.concurrency)
        for policy in ("none", args.policy)
    )
    domains = {domain: drafting.domains[domain] / speed for domain, speed in plain.domains.items()}
    return {
        "speedup": drafting.total / plain.total,
        "mean": statistics.mean(domains.values()),
        "lowest": min(domains.values()),
        "acceptance_error": statistics.median(drafting.errors) if drafting.errors else None,
        "domains": domains,
    }


def main(argv: Sequence[str] | None = None, profile: LatencyProfile | None = None) -> None:
    """Print the comparison as JSON. `profile` takes the place of the measured one."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser, EngineConfig)
    add_prompt_arguments(parser)
    parser.add_argument("--policy", default="knapspec")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="mix the prompts")
    parser.add_argument("--concurrency", type=positive, default=1)
    parser.add_argument("--temperature", type=float, default=0.0)
    help = "what passes take for half of the time (1)"
    parser.add_argument("--unsteady", type=float, default=1.0, metavar="FACTOR", help=help)
    print(json.dumps(compare(parser.parse_args(argv), profile)))


if __name__ == "__main__":
    main()
