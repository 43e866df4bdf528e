"""Exchange drafts with the native library, and edit logits in Python in the middle of its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import torch
from torch import Tensor

from engine.backends.native.attention import NativeCache
from engine.kernels import structures as native
from engine.model.passes import Drafted, DraftRequest
from engine.sampling.logits import MASK_BELOW_CONFIDENCE
from engine.sampling.sample import draft_noise, sampling_array

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

    def load(self, requests: Sequence[DraftRequest], cache: NativeCache) -> None:
        """Write `count` requests into the arrays."""
        for i, r in enumerate(requests):
            assert 0 <= r.slab < cache.slabs
            assert 0 <= r.start <= cache.length - r.gamma
            self._slabs[i], self._starts[i], self._max_tokens[i] = r.slab, r.start, r.gamma
            self._min_confidence[i] = r.min_confidence
            self._tokens[i * (self._longest + 1)] = r.token
        batch = self.batch
        batch.plans = b"".join([_plan_bytes(r.variants) for r in requests])
        batch.sampling = sampling_array([r.sampling for r in requests], [draft_noise(r.variants) for r in requests])
        edited = any(r.edit is not None for r in requests)
        batch.edited = bytes([_edit_time(r) for r in requests]) if edited else self._no_edits

    def so_far(self, i: int, drafted: int) -> list[int]:
        """Return the first `drafted` tokens of draft i."""
        first = i * (self._longest + 1) + 1
        return self._tokens[first : first + drafted]

    def drafted(self, passes: int) -> Drafted:
        """Return the drafts that the kernels wrote in `passes` passes."""
        lengths, longest = self._lengths[:], self._longest
        return Drafted(
            [self.so_far(i, n) for i, n in enumerate(lengths)],
            [self._confidences[i * longest : i * longest + n] for i, n in enumerate(lengths)],
            passes,
        )


def _edit_time(request: DraftRequest) -> int:
    """Return when the kernels let Python edit the logits of this draft; 0: never."""
    if request.edit is None:
        return 0
    return native.EDIT_AFTER_DRAW if request.mask_after_draw else native.EDIT_BEFORE_DRAW
