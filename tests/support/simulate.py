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
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from torch import Tensor

from bench.prompts import add_prompt_arguments, encode, positive, read_prompts
from bench.targets import Prompt
from engine.architecture.spec import SKIP, Variants
from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore, StepRunner
from engine.draft.base import CandidatePass
from engine.draft.costs import CostModel, lock_step
from engine.errors import ConfigError, EngineDeadError
from engine.model.knapsack import Knapsack
from engine.runtime.build import LoadedModel
from engine.step import StepOutput, StepPlan
from engine.types import GenerateRequest, RequestFailure, SamplingParams
from profiles.schema import LatencyProfile
from server.settings import Settings, add_arguments
from tests.support.cores import Delegate

_STRETCH = 64  # rounds for which an unsteady machine stays as it is, on average
_NOISE = 0.03  # standard deviation of what a pass takes, as a share
_DRAFT_SETUP = 1.5e-5  # seconds of a draft beside its passes
_OUTSIDE = 5e-5  # seconds of a round outside the passes, and of that for each request more
_SHARED_OUTSIDE = 0.3
_SEARCH_OUTSIDE = 1e-4  # seconds of a search beside each of its sublayers


class SimulatedClock:
    """A clock that advances by the time of passes."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time


class _TimedSearch(Delegate):
    """A search whose sublayers take their share of a pass of the same width."""

    def __init__(self, inner: CandidatePass, clock: SimulatedClock, truth: CostModel, context: int) -> None:
        super().__init__(inner)
        self._clock, self._truth, self._context = clock, truth, context

    def fill_rows(self, table: Knapsack, count: int) -> None:
        """Fill one row, so that each takes its time."""
        menu, rows = table.menus[len(table.rows)], table.states.shape[0] * table.states.shape[1]
        share = self._truth.verify_pass(rows, [self._context]) / self._truth.spec.sublayers
        self._clock.time += (len(menu) - (SKIP in menu)) * share + _SEARCH_OUTSIDE
        self.inner.fill_rows(table, 1)

    def draws(self, states: Tensor, plans: Sequence[Variants]) -> tuple[list[list[int]], list[list[float]]]:
        self._clock.time += self._truth.profile.head(states.shape[0] * states.shape[1])
        drawn: tuple[list[list[int]], list[list[float]]] = self.inner.draws(states, plans)
        return drawn


class Result(NamedTuple):
    """Tokens per second by domain and in total, and the error of predicted acceptance for each request."""

    domains: dict[str, float]
    total: float
    errors: list[float]


class _TimedRunner(Delegate):
    """A runner whose rounds take simulated time."""

    def __init__(self, inner: StepRunner, clock: SimulatedClock, truth: CostModel, unsteady: float) -> None:
        super().__init__(inner)
        self._clock, self._truth = clock, truth
        self._random, self._moments = Random(0), Random(1)
        self._unsteady, self._slow = unsteady, 1.0
        self.lost = 0.0  # seconds of the clock beyond the usual time of passes

    def candidates(self, slab: int, positions: Sequence[int], *sampled: Any) -> CandidatePass:
        found = self.inner.candidates(slab, positions, *sampled)
        return _TimedSearch(found, self._clock, self._truth, max(positions))

    def run(
        self, plan: StepPlan, on_wait: Callable[[], None] | None = None, *, overlap_next: bool = False
    ) -> StepOutput:
        out = self.inner.run(plan, on_wait)
        contexts = [work.start for work in plan.work]
        rows = sum(len(w.tokens) + o.draft_rows for w, o in zip(plan.work, out.outputs, strict=True))
        # None for parts of prompts, of which there are more or fewer as time goes: the others' is to stay the same.
        noise = self._random.gauss(1.0, _NOISE) if all(work.draws_token for work in plan.work) else 1.0
        verify = self._truth.verify_pass(rows, contexts) * noise
        draft = 0.0
        drafting = [(w, o.drafted) for w, o in zip(plan.work, out.outputs, strict=True) if o.drafted and not w.copied]
        for live, passes in lock_step(drafting):
            assert live[0].plan is not None
            draft += passes * self._truth.draft_pass(live[0].plan.variants, [w.start for w in live])
        if drafting:
            draft = (draft + _DRAFT_SETUP) * self._random.gauss(1.0, _NOISE)
        if self._moments.random() < 1 / _STRETCH:
            self._slow = self._unsteady if self._slow == 1.0 else 1.0
        self.lost += (self._slow - 1.0) * (draft + verify)
        draft, verify = self._slow * draft, self._slow * verify
        self._clock.time += draft + verify + _OUTSIDE * (1 + _SHARED_OUTSIDE * (len(contexts) - 1))
        return StepOutput(out.outputs, out.draft_passes, draft, verify)


class Simulation:
    """A core whose rounds take simulated time."""

    def __init__(self, model: LoadedModel, config: EngineConfig, unsteady: float = 1.0) -> None:
        """`unsteady`: the factor by which passes are slower in half of the time."""
        assert model.profile is not None
        model.clock = self.clock = SimulatedClock()
        truth = CostModel(model.spec, model.profile)
        self.core: EngineCore = model.core(
            config, own_cache=True, wrap_runner=lambda runner: _TimedRunner(runner, self.clock, truth, unsteady)
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


def config_with(model: str | None, settings: Sequence[str]) -> EngineConfig:
    """The engine's settings, from texts such as `knapspec_interval=16`. Raises ConfigError."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, EngineConfig)
    flags = [f"--{text.replace('_', '-')}" for text in settings]
    try:
        args, unknown = parser.parse_known_args(flags + ([f"--model={model}"] if model else []))
    except argparse.ArgumentError as error:
        raise ConfigError(str(error)) from None
    if unknown:
        raise ConfigError(f"not a setting of the engine and its value: {', '.join(unknown)}")
    return Settings.read((EngineConfig,), args, {}).build(EngineConfig)


def compare(args: argparse.Namespace, profile: LatencyProfile | None = None) -> dict[str, Any]:
    """Compare `args.policy` with `none`."""
    config = config_with(args.model, args.set)
    model = LoadedModel(config, profile=profile)
    texts = read_prompts(args.prompts, args.limit) * args.repeat
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
    parser.add_argument("--model", help="as for `knapserve serve`")
    add_prompt_arguments(parser)
    parser.add_argument("--policy", default="knapspec")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SETTING=VALUE", help="a setting of the engine; repeatable"
    )
    parser.add_argument("--repeat", type=positive, default=1)
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="mix the prompts")
    parser.add_argument("--concurrency", type=positive, default=1)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument(
        "--unsteady", type=float, default=1.0, metavar="FACTOR", help="what passes take for half of the time (1)"
    )
    print(json.dumps(compare(parser.parse_args(argv), profile)))


if __name__ == "__main__":
    main()
