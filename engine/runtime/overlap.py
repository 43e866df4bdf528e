"""Plain decoding on an asynchronous device: the next round's pass starts before this round's tokens are read.

The device never waits for the host then. A round whose requests turn out to be others throws the started pass away.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from engine.model.attention import Attention, Segment
from engine.model.decoder import Decoder, Draws
from engine.step import Work
from engine.tensors import to_device


class PlainPass:
    """One row of each of some requests through the whole model, and the draws after them, being computed."""

    def __init__(
        self, decoder: Decoder, attention: Attention, work: Sequence[Work], offset: int = 0, last: Tensor | None = None
    ) -> None:
        """`offset`: positions from the work's start to the rows. `last` [work]: the rows' tokens on the device, where
        the host has not read them yet."""
        self._decoder, self._attention = decoder, attention
        starts = [w.start + offset for w in work]
        batch = attention.prepare([Segment(w.slab, at, 1) for w, at in zip(work, starts, strict=True)])
        self._rows = {w.request_id: i for i, w in enumerate(work)}
        self._sampling = [w.sampling for w in work]
        draws = Draws(range(len(work)), self._sampling, [at + 1 for at in starts])
        tokens = [w.tokens[0] for w in work] if last is None else last
        self._drawn = decoder.step(tokens, batch, (decoder.spec.whole,), draws).drawn
        # Slab, position and token of each row; until the last pass is read, the token before it.
        self._inputs = [(w.slab, at, w.tokens[0]) for w, at in zip(work, starts, strict=True)]

    def computes(self, work: Sequence[Work]) -> bool:
        """Whether this pass computes all of this work."""
        for w in work:
            i = self._rows.get(w.request_id)
            if i is None or self._inputs[i] != (w.slab, w.start, w.tokens[0]) or self._sampling[i] is not w.sampling:
                return False
        return True

    def start_next(self, work: Sequence[Work]) -> PlainPass | None:
        """Start the next round's pass for all requests that have room for it, before this pass is read."""
        going = [w for w in work if w.next_row_reserved]
        if not going:
            return None
        rows, last = [self._rows[w.request_id] for w in going], self._drawn.tokens
        if rows != [*range(len(self._rows))]:
            last = last.index_select(0, to_device(rows, last.device))
        return PlainPass(self._decoder, self._attention, going, 1, last)

    def wait(self) -> None:
        """Wait until the device has computed this pass."""
        self._drawn.wait()

    def read(self, work: Sequence[Work], following: PlainPass | None) -> list[int]:
        """Wait for the drawn token of each request; tell `following`, which started from them."""
        drawn = self._drawn.wait().tokens
        if following is not None:
            began = zip(following._rows, following._inputs, strict=True)
            following._inputs = [(slab, at, drawn[self._rows[request]]) for request, (slab, at, _) in began]
        return [drawn[self._rows[w.request_id]] for w in work]
