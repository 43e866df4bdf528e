"""The side of the engine that owns tensors: `StepPlan` in, `StepOutput` out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from engine.clock import Clock
from engine.model.attention import Attention
from engine.model.decoder import Decoder
from engine.plans import Variants
from engine.runtime.overlap import PlainPass
from engine.runtime.speculate import propose, verify
from engine.sampling.sample import Edit, draft_noise
from engine.step import Overlap, StepOutput, StepPlan, WorkOutput
from engine.types import SamplingParams

_DRAWN_ROWS = 128  # rows of a search whose logits are held at once: a row may take a megabyte


class Runner:
    """Runs rounds on one device. Used by one thread."""

    def __init__(self, decoder: Decoder, attention: Attention, clock: Clock, *, overlaps: bool | None = None) -> None:
        """`overlaps`: whether host and device work at the same time; by default, unless the device is a CPU."""
        self.decoder = decoder
        self.attention = attention
        self.overlaps = decoder.device.type != "cpu" if overlaps is None else overlaps
        self._clock = clock

    @torch.inference_mode()
    def run(self, plan: StepPlan, overlap: Overlap | None = None) -> StepOutput:
        """Run one round: new pages of the cache, draft passes, the verify pass."""
        on_wait = None if overlap is None else overlap.on_wait
        current = None if overlap is None else overlap.started
        started = self._clock.now()
        self.attention.cache.place(plan.placements)
        plain = overlap is not None and bool(plan.work) and all(work.plain for work in plan.work)
        if current is not None and not (plain and current.computes(plan.work)):
            current.wait()  # this round's time begins after that pass
            current, started = None, self._clock.now()
        if overlap is not None and plain:
            if not isinstance(current, PlainPass):
                current = PlainPass(self.decoder, self.attention, plan.work)
            following = current.start_next(plan.work) if overlap.start_next else None
            overlap.on_wait()
            outputs = tuple([WorkOutput((token,)) for token in current.read(plan.work, following)])
            return StepOutput(outputs, 0.0, self._clock.now() - started, following)
        drafts = propose(self.decoder, self.attention, plan.work, ahead=self.overlaps, on_wait=on_wait)
        drafts_by_passes = any(work.drafting is not None for work in plan.work)
        drafted = self._clock.now()
        begun = self._mark() if drafts_by_passes else None
        outputs = verify(self.decoder, self.attention, plan.work, drafts, on_wait=on_wait)
        verified = self._clock.now()
        if begun is not None and (ended := self._mark()) is not None:
            ended.synchronize()
            drafted = max(verified - begun.elapsed_time(ended) / 1e3, started)
        return StepOutput(outputs, drafted - started if drafts_by_passes else 0.0, verified - drafted)

    def _mark(self) -> torch.cuda.Event | None:
        """Mark the end of what a GPU has to compute so far: after a draft, its last pass may still be running.

        That pass was started before the draft was found to have ended. Its time is the draft's, not the verify pass's.
        """
        if self.decoder.device.type != "cuda":
            return None
        mark = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        mark.record()
        return mark

    def candidates(
        self, slab: int, positions: Sequence[int], sampling: SamplingParams, edits: Iterable[Edit | None] = ()
    ) -> SearchPass:
        """Return the passes of a search over verified rows of the request in `slab`.

        `edits`: the request's edit of the logits after each row, if any. Each is valid until the next is taken.
        """
        batch_of = cache(partial(self.attention.candidates, slab, positions))
        return SearchPass(self.decoder, batch_of, positions, sampling, iter(edits))


@dataclass(slots=True)
class SearchPass:
    """`engine.draft.base.CandidatePass` over the live cache; reads the cache, never writes it."""

    _decoder: Decoder
    _batch_of: Callable[[int], Any]  # the batch for a number of candidates
    _positions: Sequence[int]
    _sampling: SamplingParams
    _edits: Iterator[Edit | None]
    _drawn_rows: int = 0

    @torch.inference_mode()
    def embed(self, tokens: Sequence[int]) -> Tensor:
        return self._decoder.embed(tokens)

    @torch.inference_mode()
    def run(self, states: Tensor, plans: Sequence[Variants]) -> Tensor:
        rows = [plan for plan in plans for _ in range(states.shape[1])]
        return self._decoder.run_plans(states.flatten(0, 1), self._batch_of(len(plans)), rows).view_as(states)

    @torch.inference_mode()
    def sublayer(self, index: int, states: Tensor, variant: int) -> Tensor:
        batch = self._batch_of(len(states))
        return self._decoder.sublayer(index, states.flatten(0, 1), batch, variant).view_as(states)

    @torch.inference_mode()
    def draws(self, states: Tensor, plans: Sequence[Variants]) -> tuple[list[list[int]], list[list[float]]]:
        tokens: list[list[int]] = [[] for _ in plans]
        shares: list[list[float]] = [[] for _ in plans]
        step = max(1, _DRAWN_ROWS // len(plans))
        for first in range(0, states.shape[1], step):
            for i, (drawn, top) in enumerate(self._draws(states[:, first : first + step], plans)):
                tokens[i] += drawn
                shares[i] += top
        if self._drawn_rows == len(self._positions):
            next(self._edits, None)  # there is none: this lets the iterator stop following the request's grammar
        return tokens, shares

    def _draws(self, states: Tensor, plans: Sequence[Variants]) -> list[tuple[list[int], list[float]]]:
        """Draw from the next rows of states [plans, rows, hidden]: each plan's tokens and probabilities."""
        count, rows = states.shape[:2]
        each = [plan for plan in plans for _ in range(rows)]
        positions = [p + 1 for p in self._positions[self._drawn_rows : self._drawn_rows + rows]]
        self._drawn_rows += rows
        logits = self._decoder.heads(states.flatten(0, 1), each)
        for row in range(rows):
            edit = next(self._edits, None)
            if edit is None:
                continue
            if logits.dtype not in (torch.float32, torch.float64):
                logits = logits.float()
            for candidate in range(count):
                edit(logits[candidate * rows + row])
        noise = [draft_noise(plan) for plan in each]
        sampling, positions = [self._sampling] * (count * rows), positions * count
        drawn = self._decoder.sampler.sample(logits, sampling, positions, confidence=True, noise=noise).wait()
        firsts = range(0, count * rows, rows)
        return [(drawn.tokens[i : i + rows], drawn.confidence[i : i + rows]) for i in firsts]
