"""Find this machine's latency profile, or time passes of designed sub-networks and fit one to them."""

from __future__ import annotations

import logging
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from engine.architecture.spec import ModelSpec
from engine.clock import Clock
from engine.config.engine import EngineConfig
from engine.errors import ProfileMismatchError
from engine.kv.cache import bytes_per_token
from engine.logs import progress_bar
from engine.model import passes
from engine.model.attention import Attention, Segment
from engine.model.decoder import Decoder, OneCallDecoder, VerifyPass
from engine.plans import LOW_BIT, SKIP, TARGET, Variants, exit_plan
from engine.step import Plan, Work
from engine.types import SamplingParams
from profiles import store
from profiles.fit import Observation, add_copy, fit, price
from profiles.schema import LatencyProfile, ProfileError, ProfileKey

log = logging.getLogger("knapserve.engine")

_HIGH_RESIDUAL = 0.15  # relative error of a fit that deserves a warning
_SHORT_CONTEXT = 64  # tokens of context at which the costs of sublayers are separated
_BUDGET, _COPY_BUDGET = 4.0, 2.0  # seconds of the measurement at a start, of everything or for a copy's costs
# Bytes of K/V of the longest context that a start measures, by device: it writes them once, and each pass reads them.
_LONGEST = {"cpu": 512 << 20, "cuda": 16 << 30}
_MIN_REPETITIONS, _MAX_REPETITIONS = 3, 40  # measurements of each pass, at a start
_PATIENCE = 20.0  # seconds after which one repetition is enough: the machine is slow or busy
_MAX_DRAFT_ROWS = 16  # wider passes of the copy in fewer bits are not measured
_DRAFTS = 12  # timed
_DRAFT_LENGTH = 5  # tokens
_CUDA_WARM_UPS = 3  # the first two passes of a shape compile kernels, the third records a CUDA graph
_CPU_WARM_UPS, _CPU_WARM_DESIGNS = 5, 4
_GREEDY = SamplingParams(temperature=0.0)


@dataclass(frozen=True, slots=True)
class Design:
    """A pass to time: rows of one request at a context, through a sub-network, with or without head and draws."""

    rows: int
    context: int
    plan: Variants
    head: bool = True

    def observe(self, spec: ModelSpec, variants: Sequence[int], seconds: float) -> Observation:
        """Describe the pass, which took `seconds`, for the fit. `variants`: all that the model has."""
        *sublayers, head = self.plan

        def count(part: Sequence[int]) -> tuple[int, ...]:
            return tuple(part.count(variant) for variant in variants)

        attention, mlp = count(sublayers[0::2]), count(sublayers[1::2])
        heads = count([head] if self.head else [])
        return Observation(self.rows, tuple(spec.spans(self.plan, self.context)), attention, mlp, heads, seconds)


@dataclass(frozen=True, slots=True)
class Grid:
    """Row counts and context lengths to measure.

    `wide` row counts, as of prompts, are measured at `contexts[0]` and `contexts[far]` only; `within` lowers `far` to
    the last context that has room for them. A `brief` grid has no passes with MLPs beyond the first context: attention
    alone costs less time, and tells more of scans.
    """

    rows: tuple[int, ...]
    contexts: tuple[int, ...]
    wide: tuple[int, ...] = ()
    brief: bool = False
    far: int = 1

    def within(self, length: int) -> Grid:
        """Return the part of the grid that fits into `length` tokens, with at least two contexts."""
        rows, wide = (tuple(r for r in counts if 2 * r <= length) for counts in (self.rows, self.wide))
        contexts = tuple(n for n in self.contexts if n + max(rows) <= length)
        if len(contexts) < 2:
            longest = length - max(rows + wide)
            contexts = tuple(sorted({min(self.contexts[0], longest // 2), longest} - {0}))
        roomy = [i for i, n in enumerate(contexts[: self.far + 1]) if n + max(wide, default=0) <= length]
        far = max([1, *roomy])
        fitting = tuple(r for r in wide if contexts[far] + r <= length)
        return replace(self, rows=rows, contexts=contexts, wide=fitting, far=far)


# Passes on CUDA are as wide as the next power of two (engine/backends/cuda/attention.py), so that costs rise in steps
# after 2^k rows. Beyond 16 rows of a request, kernels are launched one by one, which takes longer: two such counts
# price further rows, as a single one would continue the jump.
_LAYOUTS = (1, 2, 3, 4, 5, 8, 9, 16)
QUICK = {
    "cpu": Grid((1, 2, 4, 8), (_SHORT_CONTEXT, 1536), (16, 32), brief=True),
    "cuda": Grid(_LAYOUTS, (_SHORT_CONTEXT, 1536), (64, 512), brief=True),
}
COPY = Grid((1, 4, 16), (_SHORT_CONTEXT, 1536), brief=True)  # the grid for a copy's costs
_CONTEXTS, _WIDE = (_SHORT_CONTEXT, 512, 2048, 8192, 16384, 32768, 65536, 131072), (32, 64, 128, 256, 512)
# Over 512 tokens, a GPU scans in less time than launches of wide passes vary by; over 8,192 it does not.
THOROUGH = {"cpu": Grid((1, 2, 3, 4, 6, 8, 12, 16), _CONTEXTS, _WIDE), "cuda": Grid(_LAYOUTS, _CONTEXTS, _WIDE, far=3)}


def quick_grid(device: str, length: int, most: int) -> Grid:
    """Return the quick grid for contexts of up to `length` tokens, with the longest, or one of `most` tokens."""
    quick = QUICK[device]
    longest = min(length - max(quick.rows), most)
    contexts = (*quick.contexts, longest) if longest > 2 * quick.contexts[-1] else quick.contexts
    return replace(quick, contexts=contexts).within(length)


def thorough_grid(device: str, length: int) -> Grid:
    """Return the thorough grid for contexts of up to `length` tokens, the longest included."""
    thorough = THOROUGH[device]
    longest = length - max(thorough.rows)
    return replace(thorough, contexts=(*(n for n in thorough.contexts if n < 0.75 * longest), longest))


@dataclass(slots=True)
class Measured:
    """A profile, with the passes that it was fitted to and others that the fit did not see.

    Each pass has its median seconds.
    """

    profile: LatencyProfile
    passes: list[tuple[Design, float]] = field(default_factory=list)
    unseen: list[tuple[Design, float]] = field(default_factory=list)


class Measurement:
    """Times passes at several row counts and context lengths.

    The passes take turns, so that a slow moment of the machine does not fall on one of them alone.
    """

    def __init__(self, decoder: Decoder, attention: Attention, clock: Clock) -> None:
        self._decoder, self._attention, self._clock = decoder, attention, clock
        self._variants = tuple(decoder.weights.heads)  # TARGET, and LOW_BIT if there is a copy
        self._chooser = random.Random(0)

    def run(
        self,
        key: ProfileKey,
        grid: Grid | None = None,
        *,
        budget: float = _BUDGET,
        progress: Callable[[float], None] = lambda share: None,
    ) -> LatencyProfile:
        """Measure `grid`, or the quick grid, for about `budget` seconds, and fit. `progress` gets the share done."""
        length, spec = self._attention.cache.length, self._decoder.spec
        device = self._decoder.device.type
        most = _LONGEST[device] // bytes_per_token(spec, self._decoder.dtype)
        designs = list(self._designs(grid.within(length) if grid else quick_grid(device, length, most)))
        started = self._clock.now()

        def share_done(repetition: int) -> float:
            spent = self._clock.now() - started
            if repetition == 0 or (repetition < _MIN_REPETITIONS and spent < _PATIENCE):
                return repetition / _MAX_REPETITIONS
            return max(repetition / _MAX_REPETITIONS, spent / budget)

        return self._fit(key, self._medians(designs, share_done, progress))

    def complete(
        self, key: ProfileKey, profile: LatencyProfile, *, progress: Callable[[float], None] = lambda share: None
    ) -> tuple[LatencyProfile, float]:
        """Measure the copy in fewer bits for about two seconds, and add its costs to a profile without them.

        The whole model is measured too: the factor by which it takes longer than by the profile divides the copy's
        costs, and is returned with the result.
        """
        quick, spec = self.run(key, COPY, budget=_COPY_BUDGET, progress=progress), self._decoder.spec
        whole = [Design(rows, _SHORT_CONTEXT, spec.whole).observe(spec, (TARGET,), 0.0) for rows in quick.rows]
        factor = statistics.median(price(quick, each) / price(profile, each) for each in whole)
        return add_copy(profile, quick, factor), factor

    def thorough(
        self, key: ProfileKey, grid: Grid, *, repetitions: int, progress: Callable[[float], None] = lambda share: None
    ) -> Measured:
        """Measure all of `grid`, and some sub-networks that the fit does not see, `repetitions` times each."""
        grid = grid.within(self._attention.cache.length)
        designs, unseen = list(self._designs(grid)), list(self._unseen(grid))
        timed = self._medians([*designs, *unseen], lambda repetition: repetition / repetitions, progress)
        fitted = timed[: len(designs)]
        return Measured(self._fit(key, fitted), fitted, timed[len(designs) :])

    def _fit(self, key: ProfileKey, timed: Sequence[tuple[Design, float]]) -> LatencyProfile:
        profile = fit(key, [design.observe(self._decoder.spec, self._variants, seconds) for design, seconds in timed])
        return replace(profile, drafting=self._draft_factor(profile))

    @torch.inference_mode()
    def _draft_factor(self, profile: LatencyProfile) -> float:
        """Return the measured time of a pass within a draft, divided by its price in the profile: the median.

        The whole model runs between drafts, as in a round, so that its weights displace the drafter's in the
        processor's caches. A GPU records a plan's passes during its first draft, which the median ignores.
        """
        spec, variants = self._decoder.spec, self._variants
        context = min(_SHORT_CONTEXT, self._attention.cache.length - _DRAFT_LENGTH - 1)
        as_passes = self._decoder.device.type == "cpu" and not isinstance(self._decoder, OneCallDecoder)
        if as_passes or context <= 0:
            return 1.0
        low = [(LOW_BIT,) * len(spec.whole)] if LOW_BIT in variants else []
        exits = [exit_plan(spec.layers, depth) for depth in {spec.layers // 3, spec.layers // 2} if depth]
        plans = low or (*exits, self._half(), self._half())
        ratios: list[float] = []
        while len(ratios) < _DRAFTS:
            for plan in plans:
                self._time(Design(1, 0, spec.whole))
                predicted = price(profile, Design(1, _SHORT_CONTEXT, plan).observe(spec, variants, 0.0))
                ratios.append(self._seconds_per_draft_pass(plan, context) / predicted)
        return statistics.median(ratios)

    def _seconds_per_draft_pass(self, variants: Variants, context: int) -> float:
        work = Work("", 0, context, (0,), draws_token=True, sampling=_GREEDY, plan=Plan(variants, _DRAFT_LENGTH))
        started = self._clock.now()
        passes.draft(self._decoder, self._attention, [work], pipelined=self._decoder.device.type == "cuda")
        return (self._clock.now() - started) / _DRAFT_LENGTH

    def _medians(
        self, designs: Sequence[Design], share_done: Callable[[int], float], progress: Callable[[float], None]
    ) -> list[tuple[Design, float]]:
        """Time every design in turn until `share_done(repetition)` reaches 1; return the median seconds of each.

        Turns are sorted by context, because reading a long context displaces the model's weights in the processor's
        caches. Within a context, rows descend: a narrow pass right after a wide one takes 1.5 times as long (measured).
        """
        turns = sorted(range(len(designs)), key=lambda i: (designs[i].context, -designs[i].rows))
        whole = self._decoder.spec.whole
        times: list[list[float]] = [[] for _ in designs]
        context = max(design.context for design in designs)
        self._attention.cache.fill(0, context)  # reading memory that was never written would take less time
        if self._decoder.device.type == "cuda":
            warm_ups = list(designs) * _CUDA_WARM_UPS
        else:
            warm_ups = list(designs[:_CPU_WARM_DESIGNS]) * _CPU_WARM_UPS
        for design in warm_ups:
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
        return [(design, statistics.median(seconds)) for design, seconds in zip(designs, times, strict=True)]

    def _designs(self, grid: Grid) -> Iterator[Design]:
        """Yield passes that separate the costs of a pass, of projections, attention, MLPs and the head."""
        layers = self._decoder.spec.layers
        short, *longer = grid.contexts
        for rows in (*grid.rows, *grid.wide):
            for variant in self._variants if rows <= _MAX_DRAFT_ROWS else (TARGET,):
                attention = (variant, SKIP) * layers + (variant,)
                none = (SKIP, SKIP) * layers + (variant,)
                for plan in ((variant,) * (2 * layers + 1), attention, (SKIP, variant) * layers + (variant,), none):
                    yield Design(rows, short, plan)
            yield Design(rows, short, self._half())
            yield Design(rows, short, none, head=False)
            for context in (grid.contexts[grid.far],) if rows in grid.wide else longer:
                if not grid.brief:
                    yield Design(rows, context, self._decoder.spec.whole)
                yield Design(rows, context, (TARGET, SKIP) * layers + (TARGET,))

    def _unseen(self, grid: Grid) -> Iterator[Design]:
        """Yield sub-networks as drafts use them, and whole passes between the contexts of the grid."""
        for context in grid.contexts:
            yield Design(1, context, self._half())
            yield Design(1, context, self._half())
        for low, high in zip(grid.contexts, grid.contexts[1:], strict=False):
            yield Design(1, (low + high) // 2, self._half())
            yield Design(5, (low + high) // 2, self._decoder.spec.whole)

    def _half(self) -> Variants:
        """Return a random plan of half of the sublayers, and the head."""
        layers = self._decoder.spec.layers
        return (*self._chooser.sample((TARGET, SKIP) * layers, 2 * layers), TARGET)

    @torch.inference_mode()
    def _time(self, design: Design) -> float:
        """Return the seconds of one pass, draws included."""
        started = self._clock.now()
        segments = [Segment(0, design.context, design.rows)]
        drawn = range(design.rows if design.head else 0)
        tokens, sampling = [0] * design.rows, [_GREEDY] * len(drawn)
        rows = VerifyPass(segments, tokens, drawn, sampling, variants=design.plan)
        passes.verify(self._decoder, self._attention, rows)
        if not design.head and self._decoder.device.type == "cuda":
            torch.cuda.synchronize(self._decoder.device)
        return self._clock.now() - started


def find_or_measure(config: EngineConfig, key: ProfileKey, measurement: Measurement) -> tuple[LatencyProfile, str]:
    """Return the profile for `key` and its file, or "measured, not saved".

    `--profile` comes first, then a stored profile for `key`. A stored profile with another copy of the weights, or
    none, gives the costs of the model's own weights; those of the copy are measured. Without one, everything is. What
    was measured is stored. Raises ProfileMismatchError if the file of `--profile` lacks the key, or if a file is
    damaged.
    """
    try:
        if config.profile is not None:
            profiles = {profile.key: profile for profile in store.load(config.profile)}
            if key not in profiles:
                known = ", ".join(each.slug for each in profiles) or "nothing"
                raise ProfileMismatchError(
                    f"{config.profile} has profiles for {known}; this machine and model are {key.slug}"
                )
            log.info("latency profile loaded, as named: %s", config.profile)
            return profiles[key], str(config.profile)
        found = store.find(key, config.profile_dir)
    except ProfileError as error:
        raise ProfileMismatchError(str(error)) from None
    progress = progress_bar("measuring this machine")
    if found is None:
        log.info("no latency profile of this machine and model: measuring for some seconds")
        profile = measurement.run(key, progress=progress)
    else:
        profile, path = found
        if profile.key == key:
            log.info("latency profile loaded: %s", path)
            return profile, str(path)
        log.info("latency profile loaded: %s, entry %s, for the model's own weights", path, profile.key.slug)
        profile = profile.without_copy()
        if not key.draft_bits:
            return profile, str(path)
        profile, factor = measurement.complete(key, profile, progress=progress)
        log.info("%d-bit copy measured; passes now take %.2f times what that entry says", key.draft_bits, factor)
    if profile.residual > _HIGH_RESIDUAL:
        log.warning("the latency profile fits badly: median error %.0f %%", 100 * profile.residual)
    try:
        path = store.save(profile, config.profile_dir or store.default_directory())
        log.info("latency profile measured and saved: %s", path)
        return profile, str(path)
    except (OSError, ProfileError) as error:
        log.warning("cannot save the latency profile: %s", error)
        return profile, "measured, not saved"
