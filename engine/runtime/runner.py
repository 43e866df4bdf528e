"""StepPlan in, StepOutput out: the side of the engine that owns tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from engine.architecture.spec import Variants
from engine.clock import Clock
from engine.draft.knapsack import Knapsack, reaching
from engine.kv.blocks import Placement
from engine.model.attention import Attention, AttentionBatch
from engine.model.decoder import Decoder
from engine.runtime.speculate import PlainPass, decode, propose, verify
from engine.sampling.sample import Edit, draft_noise, sample
from engine.step import StepOutput, StepPlan
from engine.types import SamplingParams


class Runner:
    """Runs rounds on one device. Used by one thread."""

    def __init__(self, decoder: Decoder, attention: Attention, clock: Clock) -> None:
        self.decoder = decoder
        self.attention = attention
        self._clock = clock
        self._under_way: PlainPass | None = None
        self.apart = decoder.device.type != "cpu"  # passes go on while this thread does something else

    @torch.inference_mode()
    def run(self, plan: StepPlan, meanwhile: Callable[[], None] | None = None, *, go_on: bool = False) -> StepOutput:
        """One round: copies, draft passes, the verify pass. While passes go on apart, `meanwhile` is called, perhaps
        several times; with `go_on`, where all work is plain, the next round's pass is begun before this one is read.
        """
        if not self.apart:
            meanwhile = None
        started = self._clock.now()
        self.attention.cache.place(plan.placements)
        for copy in plan.copies:
            self.attention.cache.copy(copy.source, copy.target, copy.tokens)
        for slab, first, last in plan.discards:
            self.attention.cache.discard(slab, first, last)
        under_way, self._under_way = self._under_way, None
        plain = bool(self.apart and plan.work) and all(work.plain for work in plan.work)
        if under_way is not None and not (plain and under_way.has(plan.work)):
            under_way.wait()  # in no round's time
            under_way, started = None, self._clock.now()
        if plain:
            current = under_way or PlainPass(self.decoder, self.attention, plan.work)
            outputs, self._under_way = decode(plan.work, current, go_on=go_on, meanwhile=meanwhile)
            return StepOutput(outputs, 0, 0.0, self._clock.now() - started)
        drafts, passes = propose(self.decoder, self.attention, plan.work, late=self.apart, meanwhile=meanwhile)
        drafted = self._clock.now()
        outputs = verify(self.decoder, self.attention, plan.work, drafts, meanwhile=meanwhile)
        return StepOutput(outputs, passes, drafted - started if passes else 0.0, self._clock.now() - drafted)

    def imagine(self, placements: Sequence[Placement], slab: int, tokens: int) -> None:
        """Fill so many positions of a slab with made-up keys and values."""
        self.attention.cache.place(placements)
        self.attention.cache.fill(slab, tokens)

    def candidates(
        self, slab: int, positions: Sequence[int], sampling: SamplingParams, edits: Iterable[Edit | None] = ()
    ) -> SearchPass:
        """Sublayer calls for a search over verified rows of the request in `slab`.

        `edits`: what it asks to be done to the logits after each row, if anything; each holds until the next is made.
        """
        return SearchPass(self, slab, tuple(positions), sampling, edits)


class SearchPass:
    """`draft.base.CandidatePass` over the live cache; reads it, never writes."""

    def __init__(
        self,
        runner: Runner,
        slab: int,
        positions: tuple[int, ...],
        sampling: SamplingParams,
        edits: Iterable[Edit | None],
    ) -> None:
        self._runner, self._slab, self.positions, self._sampling = runner, slab, positions, sampling
        self._edits = iter(edits)
        self._drawn = 0  # rows
        self._batches: dict[int, AttentionBatch] = {}  # by the number of candidates
        self._by_operations = reaching(self._sublayer)

    @torch.inference_mode()
    def reach(
        self, index: int, variants: Sequence[int], states: Tensor, direction: Tensor
    ) -> tuple[Tensor, list[list[float]]]:
        return self._by_operations(index, variants, states, direction)

    @torch.inference_mode()
    def fill(self, table: Knapsack, most: int) -> bool:
        decoder = self._runner.decoder
        return table.beam > 0 and decoder.fill(table, self._batch(table.beam), most)

    def _sublayer(self, index: int, states: Tensor, variant: int) -> Tensor:
        x, batch = states.flatten(0, 1), self._batch(len(states))
        return self._runner.decoder.sublayer(index, x, batch, variant).view_as(states)

    def _batch(self, count: int) -> AttentionBatch:
        batch = self._batches.get(count)
        if batch is None:
            batch = self._batches[count] = self._runner.attention.candidates(self._slab, self.positions, count)
        return batch

    @torch.inference_mode()
    def draws(self, states: Tensor, plans: Sequence[Variants]) -> tuple[list[list[int]], list[list[float]]]:
        count, rows = states.shape[:2]
        each = [plan for plan in plans for _ in range(rows)]
        positions = [p + 1 for p in self.positions[self._drawn : self._drawn + rows]]
        self._drawn += rows
        logits = self._runner.decoder.heads(states.flatten(0, 1), each)
        for row in range(rows):
            edit = next(self._edits, None)
            if edit is None:
                continue
            if logits.dtype not in (torch.float32, torch.float64):
                logits = logits.float()
            for candidate in range(count):
                edit(logits[candidate * rows + row])
        noise = [draft_noise(plan) for plan in each]
        drawn = sample(logits, [self._sampling] * (count * rows), positions * count, confidence=True, noise=noise)
        firsts = range(0, count * rows, rows)
        return [drawn.tokens[i : i + rows] for i in firsts], [drawn.confidence[i : i + rows] for i in firsts]
