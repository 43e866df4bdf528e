"""Times real passes of designed sub-networks and fits a latency profile to them."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from engine.clock import Clock
from engine.model.attention import Segment
from engine.model.backend import Attention
from engine.model.decoder import Decoder
from engine.model.spec import ModelSpec
from engine.sampling import draw
from engine.types import SamplingParams
from profiles.fit import Observation, fit
from profiles.schema import LatencyProfile, ProfileKey

ROWS = (1, 2, 4, 8, 16, 32)
_SHORT = 64
_LONG = 1536


@dataclass(frozen=True, slots=True)
class _Design:
    rows: int
    context: int
    variants: tuple[int, ...]
    head: bool

    def observe(self, spec: ModelSpec, seconds: float) -> Observation:
        attention, mlp = sum(self.variants[0::2]), sum(self.variants[1::2])
        context = spec.scanned(self.variants, self.context) / max(attention, 1)
        return Observation(self.rows, context, attention, mlp, self.head, seconds)


class Measurement:
    """Whole passes at several row counts and context lengths, interleaved so that a slow moment hurts none alone."""

    def __init__(self, decoder: Decoder, attention: Attention, clock: Clock) -> None:
        self._decoder, self._attention, self._clock = decoder, attention, clock

    def run(
        self, key: ProfileKey, *, budget: float = 4.0, progress: Callable[[float], None] = lambda share: None
    ) -> LatencyProfile:
        """Measure for about `budget` seconds and fit. `progress` gets the share done."""
        designs, spec = list(self._designs()), self._decoder.spec
        times: dict[_Design, list[float]] = {design: [] for design in designs}
        for design in designs[:4] * 5:
            self._time(design)
        started = self._clock.now()
        repetition = 0
        while repetition < 3 or (repetition < 40 and self._clock.now() - started < budget):
            for design in designs:
                times[design].append(self._time(design))
            repetition += 1
            progress(min((self._clock.now() - started) / budget, 1.0))
        progress(1.0)
        return fit(key, [design.observe(spec, statistics.median(seconds)) for design, seconds in times.items()])

    def _designs(self) -> Iterator[_Design]:
        layers = self._decoder.spec.layers
        limit = self._attention.cache.length
        chooser = random.Random(0)
        full, none = (1, 1) * layers, (0, 0) * layers
        attention, mlp = (1, 0) * layers, (0, 1) * layers
        for rows in ROWS:
            long = min(_LONG, limit - rows)
            short = min(_SHORT, long // 2)
            if long < 1:
                continue
            half = tuple(chooser.sample((1, 0) * layers, 2 * layers))
            for variants in (full, attention, mlp, half):
                yield _Design(rows, short, variants, True)
            yield _Design(rows, short, none, True)
            yield _Design(rows, short, none, False)
            yield _Design(rows, long, full, True)
            yield _Design(rows, long, attention, True)

    @torch.inference_mode()
    def _time(self, design: _Design) -> float:
        """Seconds of one pass, draw included."""
        started = self._clock.now()
        batch = self._attention.prepare([Segment(0, design.context, design.rows)])
        x = self._decoder.run_plan(self._decoder.embed([0] * design.rows), batch, design.variants)
        if design.head:
            positions = range(design.context + 1, design.context + design.rows + 1)
            draw(self._decoder.head(x), [SamplingParams(temperature=0.0)] * design.rows, positions, confidence=True)
        elif x.device.type == "cuda":
            torch.cuda.synchronize(x.device)
        return self._clock.now() - started
