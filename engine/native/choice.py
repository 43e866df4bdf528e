"""Decisions of draft policies in `choice.cpp`: tens of microseconds less each, which small models notice.

What is asked is written into structures that stay: to make one anew takes longer than most answers.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_double, c_int32, c_uint64, c_void_p, memset
from itertools import chain
from struct import Struct
from sys import float_info
from typing import Any

from engine.draft.alike import (
    EVIDENCE,
    FEATURES,
    FEW_UNDRAFTED,
    MOST_MADE,
    MOST_ROWS,
    MOST_TESTED,
    PLANS,
    PROMISES,
    REQUESTS,
    USUAL,
    Memory,
    Variants,
)
from engine.draft.objective import (
    AS_ALL,
    AS_OTHERS,
    AS_OTHERS_MADE,
    BROUGHT,
    HOPE,
    POOLED_FROM,
    POOLED_ROWS,
    PRIOR,
    SHARED_ROWS,
    Chosen,
    Prices,
    Promised,
    Question,
)
from engine.draft.tpt import CELLS, AcceptanceCounts
from engine.native.library import Library

_Doubles = POINTER(c_double)
_PRIOR = (c_double * CELLS)(*PRIOR.ravel())
_POINTS = 32  # widths of verify passes that there is room for at first
_SIZE = CELLS * 8  # bytes of one plan's cells
_write = Struct(f"={CELLS}d").pack_into
_Found = c_double * (BROUGHT + CELLS)


_KERNELS = EVIDENCE, PROMISES


class _Memory(Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("features", "having", "counts", "tested", "brought", "begun")),
        ("most_tested", c_double),
        ("most_made", c_double),
        ("bandwidth", c_double * len(_KERNELS)),
        ("strange", c_double * len(_KERNELS)),
        ("rarity", c_double * ((REQUESTS + 1) * len(_KERNELS))),
        ("norm", c_double * (REQUESTS * len(_KERNELS))),
        ("users", c_uint64 * (FEATURES * REQUESTS // 64)),
        ("columns", c_int32),
        ("few_undrafted", c_int32),
    )


class _Alike(Structure):
    _fields_ = (
        ("known", _Doubles),
        ("columns", POINTER(c_int32)),
        ("found", _Doubles),
        ("agreement", _Doubles),
        ("prior", _Doubles),
        *((name, c_double) for name in ("shared", "pooled", "pooled_from", "most", "usual")),
        ("plans", c_int32),
        ("slot", c_int32),
    )


class _Promised(Structure):
    _fields_ = (
        ("likely", _Doubles),
        ("known", c_double * CELLS),
        ("own", c_double * CELLS),
        ("brought", c_double * 2),
        *((name, c_double) for name in ("gain", "as_all", "as_others", "as_others_made")),
        *((name, c_int32) for name in ("threshold", "gamma", "seen", "decided")),
    )


class _Choosing(Structure):
    _fields_ = (
        ("known", _Doubles),
        ("own", _Doubles),
        ("alike", POINTER(_Doubles)),
        *((name, _Doubles) for name in ("prior", "draft", "trust", "knots", "verify")),
        *((name, c_double) for name in ("overhead", "accepted", "shared", "pooled", "pooled_from", "drift", "hope")),
        *((name, c_int32) for name in ("plans", "likes", "gamma", "requests", "points")),
    )


class _Chosen(Structure):
    _fields_ = (
        *((name, c_double) for name in ("tpt", "drafted", "accepted")),
        *((name, c_int32) for name in ("plan", "threshold", "gamma")),
    )


class NativeMemory(Memory):
    """`Memory` that places and compares requests in C++."""

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library
        self._known = (c_double * (PLANS * CELLS))()
        self._columns = (c_int32 * PLANS)()
        self._agreement = (c_double * PLANS)()
        arrays = (self.features, self.having, self.counts, self.tested, self.brought, self.begun)
        memory = _Memory(*(array.ctypes.data for array in arrays), MOST_TESTED, MOST_MADE)
        memory.columns, memory.few_undrafted = PLANS, FEW_UNDRAFTED
        memory.bandwidth[:] = [kernel.bandwidth for kernel in _KERNELS]
        memory.strange[:] = [kernel.strange for kernel in _KERNELS]
        memory.rarity[:] = [
            float(weight) for weights in zip(*(k.rarities for k in _KERNELS), strict=True) for weight in weights
        ]
        self._native = byref(memory)
        self._asked = _Alike(known=self._known, columns=self._columns, agreement=self._agreement, prior=_PRIOR)
        self._asked.shared, self._asked.pooled, self._asked.pooled_from = SHARED_ROWS, POOLED_ROWS, POOLED_FROM
        self._asked.most, self._asked.usual = MOST_ROWS, USUAL

    def _place(self, tokens: array[int]) -> int:
        place: int = self._library.remember(self._native, *tokens.buffer_info(), self._requests)
        return place

    def _regress(self, slot: int, known: Mapping[Variants, AcceptanceCounts]) -> tuple[Any, Sequence[float]]:
        for i, (variants, counts) in enumerate(known.items()):
            _write(self._known, i * _SIZE, *counts.cells)
            self._columns[i] = self.columns[variants]
        asked, plans = self._asked, len(known)
        asked.found = found = (c_double * ((1 + plans) * CELLS))()
        asked.plans, asked.slot = plans, slot
        self._library.alike(self._native, byref(asked))
        return found, self._agreement[:plans]

    def _likely(self, slot: int, column: int) -> Any:
        found = _Found()
        self._library.likely(self._native, slot, column, found)
        return found


class NativeChooser:
    """`objective.choose`, `objective.corrected` and `objective.promises` in C++."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known = (c_double * (PLANS * CELLS))()
        self._own = (c_double * (PLANS * CELLS))()
        self._owners = 0  # plans from which on nothing is written there
        self._alike = (_Doubles * 1)()
        numbers: list[Any] = [(c_double * size)() for size in (PLANS, PLANS, _POINTS, _POINTS)]
        self._draft, self._trust, self._rows, self._verify = numbers
        self._rows_of: Sequence[float] | None = None  # what is written there
        self._asked = _Choosing(
            *(self._known, self._own, self._alike, _PRIOR, *numbers),
            shared=SHARED_ROWS,
            pooled=POOLED_ROWS,
            pooled_from=POOLED_FROM,
        )
        self._chosen = (_Chosen * 2)()
        self._promised = _Promised(as_all=AS_ALL, as_others=AS_OTHERS, as_others_made=AS_OTHERS_MADE)
        self._told = (c_double * 2)()

    def __call__(self, question: Question) -> tuple[Chosen, Chosen | None]:
        prices, asked = question.prices, self._asked
        plans, points, likes = len(question.known), len(prices.rows), len(question.alike)
        for i, known in enumerate(question.known):
            _write(self._known, i * _SIZE, *known)
        self._write_own(question.own)
        if likes > len(self._alike):
            asked.alike = self._alike = (_Doubles * likes)()
        for i, found in enumerate(question.alike):
            self._alike[i] = found
        if prices.rows is not self._rows_of:
            self._take_rows(prices.rows)
        self._draft[:plans], self._trust[:plans], self._verify[:points] = prices.draft, question.trust, prices.verify
        asked.overhead, asked.accepted = prices.overhead, prices.accepted
        asked.drift, asked.hope = question.drift, question.hope * HOPE
        asked.plans, asked.likes, asked.points = plans, likes, points
        asked.gamma, asked.requests = prices.gamma, prices.requests
        self._library.choose(byref(asked), self._chosen)
        best, other = self._chosen
        return _made(best), _made(other) if other.plan >= 0 else None

    def _take_rows(self, rows: Sequence[float]) -> None:
        if len(rows) > len(self._rows):
            self._asked.knots = self._rows = (c_double * len(rows))()
            self._asked.verify = self._verify = (c_double * len(rows))()
        self._rows[: len(rows)] = self._rows_of = rows

    def _write_own(self, own: Sequence[Sequence[float] | None]) -> None:
        if self._owners:
            memset(self._own, 0, self._owners * _SIZE)
            self._owners = 0
        for i, seen in enumerate(own):
            if seen is not None:
                _write(self._own, i * _SIZE, *seen)
                self._owners = i + 1

    def corrected(self, promised: Promised) -> tuple[float, float]:
        asked, own = self._promised, promised.own
        asked.likely, asked.gain = promised.likely, promised.gain
        asked.threshold, asked.gamma = promised.threshold, promised.gamma
        asked.decided, asked.seen = promised.decided, own is not None
        _write(asked, _Promised.known.offset, *promised.known)
        if own is not None:
            _write(asked, _Promised.own.offset, *own)
        asked.brought[:] = promised.brought
        self._library.corrected(byref(asked), self._told)
        factor, acceptance = self._told
        return factor, acceptance

    def promises(self, known: Sequence[Sequence[float]], prices: Prices) -> list[float]:
        plans, points = len(known), len(prices.rows)
        asked = _Choosing(
            known=(c_double * (plans * CELLS))(*chain.from_iterable(known)),
            prior=_PRIOR,
            draft=(c_double * plans)(*prices.draft),
            trust=(c_double * plans)(*[1.0] * plans),
            knots=(c_double * points)(*prices.rows),
            verify=(c_double * points)(*prices.verify),
            overhead=prices.overhead,
            accepted=prices.accepted,
            shared=float_info.max,
            pooled=POOLED_ROWS,
            pooled_from=POOLED_FROM,
            plans=plans,
            gamma=prices.gamma,
            requests=prices.requests,
            points=points,
        )
        tpt = (c_double * plans)()
        self._library.promises(byref(asked), tpt)
        return tpt[:]


def _made(chosen: _Chosen) -> Chosen:
    return Chosen(
        *(chosen.plan, chosen.threshold, chosen.gamma),
        *(chosen.tpt, chosen.drafted, chosen.accepted),
    )
