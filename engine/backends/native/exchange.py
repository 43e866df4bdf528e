"""Exchange drafts with the native library, and edit logits in Python in the middle of its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import torch
from torch import Tensor

from engine.backends.native.attention import NativeCache
from engine.kernels import structures as native
from engine.model.decoder import Draft
from engine.sampling.logits import MASK_BELOW_CONFIDENCE
from engine.sampling.sample import draft_noise, sampling_array
from engine.step import Work

# (draw, drafted tokens so far, function that returns the logits [vocab], to edit in place) -> whether they may differ
EditDraw = Callable[[int, int, Callable[[], Tensor]], bool]
_plan_bytes = lru_cache(256)(bytes)  # `Variants` as bytes


class LogitEdits:
    """The kernels' callback for edits of logits. `finish` raises the first exception of an edit."""

    def __init__(self, vocab: int) -> None:
        self._row_type = ctypes.c_float * vocab
        self._edit: EditDraw | None = None
        self._error: BaseException | None = None
        self.callback = native.EDIT_CALLBACK(self._call)

    def begin(self, edit: EditDraw) -> None:
        """Set the edit for the next call of the library."""
        self._edit, self._error = edit, None

    def finish(self) -> None:
        """Raise the exception that an edit raised during the call, if any."""
        self._edit = None
        if self._error is not None:
            raise self._error

    def row(self, address: int) -> Tensor:
        """Return the logits [vocab] at an address, without a copy."""
        return torch.frombuffer(self._row_type.from_address(address), dtype=torch.float32)

    def _call(self, i: int, drafted: int, address: int) -> bool:
        try:
            assert self._edit is not None
            return self._edit(i, drafted, partial(self.row, address))
        except BaseException as error:  # ctypes would print it and go on
            self._error = self._error or error
            return False


class DraftBuffers:
    """Arrays for drafts of `count` requests and up to `longest` tokens each.

    The decoder reuses them: allocating them anew takes as long as a draft pass of a small model.
    """

    def __init__(self, count: int, longest: int, edits: LogitEdits) -> None:
        self._longest = longest
        ints, floats = ctypes.c_int32 * count, ctypes.c_float * count
        self._slabs, self._starts, self._max_tokens, self._lengths = ints(), ints(), ints(), ints()
        self._min_confidence = floats()
        self._tokens = (ctypes.c_int32 * (count * (longest + 1)))()
        self._confidences = (ctypes.c_float * (count * longest))()
        self._no_edits = bytes(count)
        self.batch = native.DraftBatch(
            slabs=self._slabs,
            starts=self._starts,
            max_tokens=self._max_tokens,
            min_confidence=self._min_confidence,
            edit=edits.callback,
            tokens=self._tokens,
            lengths=self._lengths,
            confidences=self._confidences,
            mask_below=MASK_BELOW_CONFIDENCE,
            requests=count,
            longest=longest,
        )

    def load(self, work: Sequence[Work], cache: NativeCache) -> None:
        """Write `count` plans into the arrays."""
        plans = [w.plan for w in work if w.plan is not None]
        for i, (w, plan) in enumerate(zip(work, plans, strict=True)):
            assert 0 <= w.slab < cache.slabs
            assert 0 <= w.start <= cache.length - plan.gamma
            self._slabs[i], self._starts[i], self._max_tokens[i] = w.slab, w.start, plan.gamma
            self._min_confidence[i] = plan.min_confidence
            self._tokens[i * (self._longest + 1)] = w.tokens[-1]
        batch = self.batch
        batch.plans = b"".join([_plan_bytes(plan.variants) for plan in plans])
        batch.sampling = sampling_array([w.sampling for w in work], [draft_noise(plan.variants) for plan in plans])
        edited = any(w.processor is not None for w in work)
        batch.edited = bytes([edit_time(w) for w in work]) if edited else self._no_edits

    def so_far(self, i: int, drafted: int) -> list[int]:
        """Return the first `drafted` tokens of draft i."""
        first = i * (self._longest + 1) + 1
        return self._tokens[first : first + drafted]

    def drafts(self) -> list[Draft]:
        """Return the drafts that the kernels wrote."""
        firsts = range(0, len(self._confidences), self._longest)
        lengths = zip(firsts, self._lengths, strict=True)
        return [Draft(self.so_far(i, n), self._confidences[at : at + n]) for i, (at, n) in enumerate(lengths)]


def edit_time(work: Work) -> int:
    """Return when the kernels let Python edit the logits of a draft: never (0), before a draw, or after it.

    After it: only a token of less confidence than `MASK_BELOW_CONFIDENCE` is checked, and drawn again. A token of more
    confidence may break the grammar; verification rejects it.
    """
    if work.processor is None:
        return 0
    after = work.processor.mask_after_draw and work.sampling.greedy
    return native.EDIT_AFTER_DRAW if after else native.EDIT_BEFORE_DRAW
