"""Passes that take the time of a latency profile, not the machine's: no decision of a policy depends on its speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.checkpoints.shapes import SHAPES, shape
from engine.config.engine import EngineConfig
from engine.core.engine import EngineCore
from engine.core.rounds import StepRunner
from engine.draft.base import CandidatePass
from engine.draft.costs import CostModel, lock_step
from engine.kv.cache import bytes_per_token
from engine.model import passes
from engine.model.decoder import Draft, OneCallDecoder, VerifyPass
from engine.plans import Variants
from engine.runtime.build import LoadedModel
from engine.runtime.measure import Design, Measurement
from engine.runtime.runner import Runner
from engine.step import Overlap, StepOutput, StepPlan, Work
from profiles.fit import Observation, price
from profiles.schema import LatencyProfile

_STRETCH = 64  # rounds for which an unsteady machine stays as it is, on average
_NOISE = 0.03  # standard deviation of what a pass takes, as a share
_DRAFT_SETUP = 1.5e-5  # seconds of a draft beside its passes
_OUTSIDE = 5e-5  # seconds of a round outside the passes, and of that for each request more
_SHARED_OUTSIDE = 0.3
_SEARCH_OUTSIDE = 1e-4  # seconds of a search beside each of its sublayers


class Delegate:
    """Pass everything on to `inner`; subclasses override the methods that they watch."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class TickingClock:
    """A clock that advances by `tick` per reading, and by the time of passes."""

    def __init__(self, tick: float) -> None:
        self.tick, self.time = tick, 0.0

    def now(self) -> float:
        self.time += self.tick
        return self.time


class _TimedSearch(Delegate):
    """A search whose sublayers take their share of a pass of the same width."""

    def __init__(self, inner: CandidatePass, clock: TickingClock, truth: CostModel, context: int) -> None:
        super().__init__(inner)
        self._clock, self._truth, self._context = clock, truth, context

    def sublayer(self, index: int, states: Tensor, variant: int) -> Tensor:
        rows = states.shape[0] * states.shape[1]
        self._clock.time += (
            self._truth.verify_pass(rows, [self._context]) / self._truth.spec.sublayers + _SEARCH_OUTSIDE
        )
        found: Tensor = self.inner.sublayer(index, states, variant)
        return found

    def draws(self, states: Tensor, plans: Sequence[Variants]) -> tuple[list[list[int]], list[list[float]]]:
        self._clock.time += self._truth.profile.head(states.shape[0] * states.shape[1])
        drawn: tuple[list[list[int]], list[list[float]]] = self.inner.draws(states, plans)
        return drawn


class TimedRunner(Delegate):
    """A runner whose rounds take simulated time."""

    def __init__(self, inner: StepRunner, clock: TickingClock, truth: CostModel, unsteady: float = 1.0) -> None:
        super().__init__(inner)
        self._clock, self._truth = clock, truth
        self._random, self._moments = Random(0), Random(1)
        self._unsteady, self._slow = unsteady, 1.0
        self.lost = 0.0  # seconds of the clock beyond the usual time of passes

    def candidates(self, slab: int, positions: Sequence[int], *sampled: Any) -> CandidatePass:
        found = self.inner.candidates(slab, positions, *sampled)
        return _TimedSearch(found, self._clock, self._truth, max(positions))

    def run(self, plan: StepPlan, overlap: Overlap | None = None) -> StepOutput:
        out = self.inner.run(plan, overlap)
        contexts = [work.start for work in plan.work]
        rows = sum(len(w.tokens) + o.drafted for w, o in zip(plan.work, out.outputs, strict=True))
        # None for parts of prompts, of which there are more or fewer as time goes: the others' is to stay the same.
        noise = self._random.gauss(1.0, _NOISE) if all(work.draws_token for work in plan.work) else 1.0
        verify = self._truth.verify_pass(rows, contexts) * noise
        draft = 0.0
        drafting = [(w, o.drafted) for w, o in zip(plan.work, out.outputs, strict=True) if o.drafted and w.drafting]
        for live, count in lock_step(drafting):
            assert live[0].plan is not None
            draft += count * self._truth.draft_pass(live[0].plan.variants, [w.start for w in live])
        if drafting:
            draft = (draft + _DRAFT_SETUP) * self._random.gauss(1.0, _NOISE)
        if self._moments.random() < 1 / _STRETCH:
            self._slow = self._unsteady if self._slow == 1.0 else 1.0
        self.lost += (self._slow - 1.0) * (draft + verify)
        draft, verify = self._slow * draft, self._slow * verify
        self._clock.time += draft + verify + _OUTSIDE * (1 + _SHARED_OUTSIDE * (len(contexts) - 1))
        return StepOutput(out.outputs, draft, verify, out.following)


class TimedModel(LoadedModel):
    """A model with a clock of its own, by which rounds take the time of its profile, with some noise."""

    def __init__(self, config: EngineConfig, **options: Any) -> None:
        super().__init__(config, TickingClock(1e-6), **options)  # requests arrive one after the other

    def core(
        self,
        config: EngineConfig,
        *,
        costs: CostModel | None = None,
        wrap_runner: Callable[[Runner], StepRunner] = lambda runner: runner,
        **options: Any,
    ) -> EngineCore:
        def timed(runner: Runner) -> StepRunner:
            truth = CostModel(self.spec, costs.profile if costs else self.profile)
            return wrap_runner(TimedRunner(runner, self.clock, truth))  # type: ignore[arg-type]

        return super().core(config, costs=costs, wrap_runner=timed, **options)


class ProfiledPasses:
    """A decoder and its attention whose passes take the time that a profile says, by its own clock."""

    dtype, device = torch.bfloat16, torch.device("cpu")

    def __init__(self, profile: LatencyProfile) -> None:
        self._profile, self.time, self.cache = profile, 0.0, self
        self.spec = next(spec for spec in map(shape, SHAPES) if spec.shape_key == profile.key.shape)
        self.length, self.variants = profile.contexts[-1] + 16, tuple(range(1, profile.variants + 1))
        self.weights = SimpleNamespace(heads=self.variants)

    def now(self) -> float:
        return self.time

    def price(self, o: Observation) -> float:
        return price(self._profile, o)

    def _take(self, design: Design) -> None:
        self.time += self.price(design.observe(self.spec, self.variants, 0.0))

    def verify(self, _: Any, rows: VerifyPass) -> None:
        assert rows.variants is not None
        segment = rows.segments[0]
        self._take(Design(segment.rows, segment.start, rows.variants, bool(rows.draw_rows)))

    def draft(self, _: Any, work: list[Work]) -> list[Draft]:
        assert work[0].plan is not None
        for _token in range(work[0].gamma):
            self._take(Design(1, work[0].start, work[0].plan.variants))
        return []

    def fill(self, slab: int, tokens: int) -> None:
        self.time += tokens * bytes_per_token(self.spec, self.dtype) / 1e9  # a GB/s

    def measurement(self) -> Measurement:
        model: Any = self
        return Measurement(model, model, self)


class ProfiledModel(ProfiledPasses):
    """One that drafts and verifies in calls of its own."""


OneCallDecoder.register(ProfiledModel)


class ProfiledGpu(ProfiledPasses):
    """One on a GPU: drafts take `drafting` of the time of their passes, and the first of each plan ten times that."""

    device = torch.device("cuda")

    def __init__(self, profile: LatencyProfile, monkeypatch: pytest.MonkeyPatch, drafting: float = 1.0) -> None:
        super().__init__(profile)
        self._drafting, self._recorded = drafting, set[Variants]()
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
        monkeypatch.setattr(passes, "verify", lambda decoder, attention, rows: decoder.verify(attention, rows))
        monkeypatch.setattr(
            passes, "draft", lambda decoder, attention, work, **how: decoder.draft(attention, work, **how)
        )

    def draft(self, _: Any, work: list[Work], *, pipelined: bool = False) -> list[Draft]:
        assert pipelined
        assert work[0].plan is not None
        variants, started = work[0].plan.variants, self.time
        super().draft(_, work)
        slow = 1.0 if variants in self._recorded else 10.0
        self._recorded.add(variants)
        self.time = started + slow * self._drafting * (self.time - started)
        return []


def slower(profile: LatencyProfile, factor: float, *, copy: bool) -> LatencyProfile:
    """The profile of a machine that takes `factor` times as long; a copy costs 0.4 of the model's own weights."""
    tables: dict[str, Any] = {}
    for name in ("projection_at", "mlp_at", "head_at"):
        own = factor * np.array(getattr(profile, name)[0])
        tables[name] = [own.tolist(), (0.4 * own).tolist()][: 1 + copy]
    scans = (factor * np.array(profile.scan_at)).tolist()
    return replace(profile, fixed=factor * profile.fixed, scan_at=scans, **tables)
