"""Times real passes of designed sub-networks and fits a latency profile to them."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from engine.architecture.spec import LOW_BIT, SKIP, TARGET, ModelSpec, Variants, exit_plan
from engine.clock import Clock
from engine.model.attention import Attention, Segment
from engine.model.decoder import Decoder, DraftRequest, Draws
from engine.sampling.sample import sample
from engine.types import SamplingParams
from profiles.fit import Observation, fit, price
from profiles.schema import LatencyProfile, ProfileKey

_SHORT = 64  # the context at which sublayers are told apart
_BUDGET = 4.0  # seconds of the measurement at a start
_REPETITIONS = (3, 40)  # least and most of it
_MOST_DRAFTING = 16  # rows of a pass of the copy in fewer bits
_DRAFTS = 12  # times that drafts are timed,
_DRAFT_LENGTH = 5  # tokens each
_GREEDY = SamplingParams(temperature=0.0)


@dataclass(frozen=True, slots=True)
class Design:
    """A pass to time: rows of one request at a context, through a sub-network, with head and draw or not."""

    rows: int
    context: int
    plan: Variants
    head: bool = True

    def observe(self, spec: ModelSpec, variants: Sequence[int], seconds: float) -> Observation:
        """`variants`: those that there are."""
        *sublayers, head = self.plan

        def count(part: Sequence[int]) -> tuple[int, ...]:
            return tuple(part.count(variant) for variant in variants)

        attention, mlp = count(sublayers[0::2]), count(sublayers[1::2])
        heads = count([head] if self.head else [])
        return Observation(self.rows, tuple(spec.spans(self.plan, self.context)), attention, mlp, heads, seconds)


@dataclass(frozen=True, slots=True)
class Grid:
    """Row counts and context lengths to measure; `wide` rows, as of prompts, at the first two contexts alone."""

    rows: tuple[int, ...]
    contexts: tuple[int, ...]
    wide: tuple[int, ...] = ()

    def within(self, length: int) -> Grid:
        """What of it a context of `length` tokens has room for; a short one is measured at half and whole."""
        rows, wide = (tuple(r for r in counts if r < length) for counts in (self.rows, self.wide))
        most = length - max(r for r in self.rows if r < length)  # that leaves room for the rows
        contexts = tuple(n for n in self.contexts if n <= most)
        if len(contexts) < 2:
            contexts = tuple(sorted({min(self.contexts[0], most // 2), *contexts, most} - {0}))
        return Grid(rows, contexts, tuple(r for r in wide if contexts[:2][-1] + r <= length))


QUICK = Grid((1, 2, 4, 8, 16, 32), (_SHORT, 1536))
THOROUGH = Grid(
    (1, 2, 3, 4, 6, 8, 12, 16), (_SHORT, 512, 2048, 8192, 16384, 32768, 65536, 131072), (32, 64, 128, 256, 512)
)


def thorough_grid(length: int) -> Grid:
    """The grid of a model whose contexts end at `length` tokens: up to there."""
    most = length - max(THOROUGH.rows)
    return replace(THOROUGH, contexts=(*(n for n in THOROUGH.contexts if n < 0.75 * most), most))


@dataclass(slots=True)
class Measured:
    """A profile, the passes that it was fitted to, and others that it had not seen: design and median seconds."""

    profile: LatencyProfile
    passes: list[tuple[Design, float]] = field(default_factory=list)
    unseen: list[tuple[Design, float]] = field(default_factory=list)


class Measurement:
    """Whole passes at several row counts and context lengths, interleaved so that a slow moment hurts none alone."""

    def __init__(self, decoder: Decoder, attention: Attention, clock: Clock) -> None:
        self._decoder, self._attention, self._clock = decoder, attention, clock
        self._chooser = random.Random(0)

    def run(
        self, key: ProfileKey, *, budget: float = _BUDGET, progress: Callable[[float], None] = lambda share: None
    ) -> LatencyProfile:
        """Measure the essentials for about `budget` seconds and fit. `progress` gets the share done."""
        grid = QUICK.within(self._attention.cache.length)
        designs = list(self._designs(grid))
        started = self._clock.now()

        def share_done(repetition: int) -> float:
            least, most = _REPETITIONS
            if repetition < least:
                return repetition / most
            return max(repetition / most, (self._clock.now() - started) / budget)

        return self._fit(key, self._medians(designs, share_done, progress))

    def thorough(
        self, key: ProfileKey, grid: Grid, *, repetitions: int, progress: Callable[[float], None] = lambda share: None
    ) -> Measured:
        """Measure all of `grid`, each pass `repetitions` times, and some sub-networks that the fit does not see."""
        grid = grid.within(self._attention.cache.length)
        designs, unseen = list(self._designs(grid)), list(self._unseen(grid))
        timed = self._medians([*designs, *unseen], lambda repetition: repetition / repetitions, progress)
        passes, rest = timed[: len(designs)], timed[len(designs) :]
        return Measured(self._fit(key, passes), passes, rest)

    def _fit(self, key: ProfileKey, passes: Sequence[tuple[Design, float]]) -> LatencyProfile:
        profile = fit(
            key, [design.observe(self._decoder.spec, self._decoder.variants, seconds) for design, seconds in passes]
        )
        return replace(profile, drafting=self._drafting(profile))

    @torch.inference_mode()
    def _drafting(self, profile: LatencyProfile) -> float:
        """What passes of whole drafts take, as a share of what the profile says: median over sub-networks.

        Between drafts all of the model runs, as in a round: what drafts is not in the processor's nearest cache.
        """
        spec, variants = self._decoder.spec, self._decoder.variants
        if self._draft(spec.whole) is None:
            return 1.0
        low = [(LOW_BIT,) * len(spec.whole)] if LOW_BIT in variants else []
        exits = [exit_plan(spec, depth) for depth in {spec.layers // 3, spec.layers // 2} if depth]
        shares = []
        for _ in range(_DRAFTS):
            for plan in low or (*exits, self._half(), self._half()):
                self._time(Design(1, 0, spec.whole))
                parts = price(profile, Design(1, _SHORT, plan).observe(spec, variants, 0.0))
                shares.append((self._draft(plan) or parts) / parts)
        return statistics.median(shares)

    def _draft(self, variants: Variants) -> float | None:
        """Seconds of a pass within a draft; None if the backend does not run drafts in one call."""
        context = min(_SHORT, self._attention.cache.length - _DRAFT_LENGTH - 1)
        request = DraftRequest(0, context, 0, variants, _DRAFT_LENGTH, 0.0, 0.0, _GREEDY)
        started = self._clock.now()
        drafted = self._decoder.draft(self._attention, [request]) if context > 0 else None
        return None if drafted is None else (self._clock.now() - started) / drafted.passes

    def _medians(
        self, designs: Sequence[Design], share_done: Callable[[int], float], progress: Callable[[float], None]
    ) -> list[tuple[Design, float]]:
        """Every design in turn, again and again until all is done; median seconds of each.

        Context by context: a long one leaves nothing of the model in the processor's caches. Narrow passes last: after
        wide ones they took half as long again (measured).
        """
        turns = sorted(range(len(designs)), key=lambda i: (designs[i].context, -designs[i].rows))
        whole = self._decoder.spec.whole
        times: list[list[float]] = [[] for _ in designs]
        cache, context = self._attention.cache, max(design.context for design in designs)
        cache.fill(0, context)  # memory never written need not be read
        # On CUDA the first two passes of a shape compile and run as they are written, the third is recorded.
        for design in list(designs) * 3 if self._decoder.device.type == "cuda" else list(designs[:4]) * 5:
            self._time(design)
        repetition = 0
        while (share := share_done(repetition)) < 1:
            progress(share)
            last = -1
            for i in turns:
                if designs[i].context != last:
                    last = designs[i].context
                    self._time(Design(1, last, whole))
                times[i].append(self._time(designs[i]))
            repetition += 1
        progress(1.0)
        cache.discard(0, 0, context)
        return [(design, statistics.median(seconds)) for design, seconds in zip(designs, times, strict=True)]

    def _designs(self, grid: Grid) -> Iterator[Design]:
        """What tells fixed cost, projections, scans, MLPs and head apart."""
        layers = self._decoder.spec.layers
        short, *longer = grid.contexts
        for rows in (*grid.rows, *grid.wide):
            for variant in self._decoder.variants if rows <= _MOST_DRAFTING else (TARGET,):
                attention = (variant, SKIP) * layers + (variant,)
                none = (SKIP, SKIP) * layers + (variant,)
                for plan in ((variant,) * (2 * layers + 1), attention, (SKIP, variant) * layers + (variant,), none):
                    yield Design(rows, short, plan)
            yield Design(rows, short, self._half())
            yield Design(rows, short, none, head=False)
            for context in longer[:1] if rows in grid.wide else longer:
                yield Design(rows, context, self._decoder.spec.whole)
                yield Design(rows, context, (TARGET, SKIP) * layers + (TARGET,))

    def _unseen(self, grid: Grid) -> Iterator[Design]:
        """Sub-networks as drafts use them, and whole passes between the knots."""
        for context in grid.contexts:
            yield Design(1, context, self._half())
            yield Design(1, context, self._half())
        for low, high in zip(grid.contexts, grid.contexts[1:], strict=False):
            yield Design(1, (low + high) // 2, self._half())
            yield Design(5, (low + high) // 2, self._decoder.spec.whole)

    def _half(self) -> Variants:
        layers = self._decoder.spec.layers
        return (*self._chooser.sample((TARGET, SKIP) * layers, 2 * layers), TARGET)

    @torch.inference_mode()
    def _time(self, design: Design) -> float:
        """Seconds of one pass, draw included, in one call where rounds do it in one."""
        started = self._clock.now()
        segments = [Segment(0, design.context, design.rows)]
        draws = Draws(*([*range(design.rows)], [_GREEDY] * design.rows) if design.head else ([], []))
        tokens = [0] * design.rows
        if self._decoder.verify(self._attention, segments, tokens, draws, variants=design.plan) is not None:
            return self._clock.now() - started
        batch = self._attention.prepare(segments)
        x = self._decoder.run_plan(self._decoder.embed(tokens), batch, design.plan)
        if design.head:
            positions = range(design.context + 1, design.context + design.rows + 1)
            sample(self._decoder.head(x, design.plan[-1]), draws.sampling, positions, confidence=True)
        elif x.device.type == "cuda":
            torch.cuda.synchronize(x.device)
        return self._clock.now() - started
