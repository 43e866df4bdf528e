"""Edit logits in Python in the middle of a call of the native library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from engine.kernels import structures as native

# (draw, drafted tokens so far, function that returns the logits [vocab], to edit in place) -> whether they may differ
EditDraw = Callable[[int, int, Callable[[], Tensor]], bool]


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
