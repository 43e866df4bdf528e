"""Run passes before the first request, so that kernels are compiled and libraries loaded by then."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch

from engine.clock import Clock
from engine.kv.pages import CacheSize
from engine.model.attention import Attention, Segment
from engine.model.decoder import Decoder, Draws
from engine.model.knapsack import solve
from engine.plans import LOW_BIT, SKIP, TARGET, WINDOW, Variants
from engine.types import SamplingParams

_SECONDS = 20.0  # no further shape is warmed up after these
_SEQUENCES, _ROWS = 64, 16  # largest pass: sequences, and rows of each
_REPETITIONS = 3  # passes of each shape: CUDA graphs are recorded at the third
_SEARCH_ROWS, _SEARCH_BEAM = 4, 6
_GREEDY = SamplingParams(temperature=0.0)


@torch.inference_mode()
def warm_up(
    decoder: Decoder, attention: Attention, size: CacheSize, length: int, clock: Clock, *, shapes: bool
) -> None:
    """Run one pass, or a search and all `shapes` of passes that decoding and drafts of the copy use.

    A time limit ends it early, but not before the search. `length`: longest context in tokens.
    """
    if not shapes:
        _run_pass(decoder, attention, [Segment(0, 0, 1)])
        return
    end, layers = clock.now() + _SECONDS, decoder.spec.layers
    _run_search(decoder, attention, length)
    copy = ((LOW_BIT, LOW_BIT), (WINDOW, LOW_BIT)) if LOW_BIT in decoder.weights.heads else ()
    drafts = [(*pair * layers, LOW_BIT) for pair in copy]
    counts = list(_powers(min(_SEQUENCES, size.slabs)))
    every: list[tuple[int, int, Variants | None]] = [(n, 1, plan) for n, plan in product(counts, [None, *drafts])]
    every += product(counts, list(_powers(min(_ROWS, length)))[1:], [None])
    for sequences, rows, plan in every:
        for _ in range(_REPETITIONS):
            _run_pass(decoder, attention, [Segment(slab, 0, rows) for slab in range(sequences)], plan)
        if clock.now() > end:
            return


def _powers(limit: int) -> Iterator[int]:
    """Yield 1, 2, 4 … below `limit`, then `limit`: backends pad other counts to one of these."""
    return (min(1 << i, limit) for i in range((limit - 1).bit_length() + 1))


def _run_pass(decoder: Decoder, attention: Attention, segments: list[Segment], plan: Variants | None = None) -> None:
    """Run a pass of the whole model, or of a draft with this plan, and draw after each row."""
    rows = sum(segment.rows for segment in segments)
    draws = Draws(range(rows), [_GREEDY] * rows, range(rows), confidence=True, least=[0.0] * rows if plan else ())
    decoder.step([0] * rows, attention.prepare(segments), (plan or decoder.spec.whole,), draws).drawn.wait()


def _run_search(decoder: Decoder, attention: Attention, length: int) -> None:
    """Search a plan as policy knapspec does: libraries load their kernels at the first use."""
    segment = Segment(0, 0, min(_SEARCH_ROWS, length))
    states: list[torch.Tensor] = []
    decoder.run(decoder.embed([0] * segment.rows), attention.prepare([segment]), states)
    positions = range(segment.rows)

    def transition(index: int, x: torch.Tensor, variant: int) -> torch.Tensor:
        batch = attention.candidates(0, positions, len(x))
        return decoder.sublayer(index, x.flatten(0, 1), batch, variant).view_as(x)

    sublayers, variant = decoder.spec.sublayers, max(decoder.weights.heads)
    menu = {TARGET: 0, SKIP: 2} | ({variant: 1} if variant == LOW_BIT else {})
    found = solve(torch.stack(states), [menu] * sublayers, transition, capacity=2 * sublayers, beam=_SEARCH_BEAM)
    final = torch.stack([candidate.state for candidate in found]).flatten(0, 1)
    logits = decoder.head(final, variant)
    decoder.sampler.sample(logits, [_GREEDY] * len(final), range(len(final)), confidence=True).wait()
