"""Decisions of draft policies in `choice.cpp`: tens of microseconds less each, which small models notice."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_double, c_int32, c_void_p
from itertools import chain
from sys import float_info
from typing import Any

from engine.draft.alike import (
    EVIDENCE,
    MOST_ROWS,
    MOST_TESTED,
    PLANS,
    PROMISES,
    REQUESTS,
    USUAL,
    Memory,
    Variants,
)
from engine.draft.objective import HOPE, POOLED_FROM, POOLED_ROWS, PRIOR, SHARED_ROWS, Chosen, Prices, Question
from engine.draft.tpt import CELLS, AcceptanceCounts
from engine.native.library import Library

_Doubles = POINTER(c_double)
_PRIOR = (c_double * CELLS)(*PRIOR.ravel())


class _Memory(Structure):
    _fields_ = (
        ("features", c_void_p),
        ("having", c_void_p),
        ("counts", c_void_p),
        ("tested", c_void_p),
        ("requests", c_int32),
        ("columns", c_int32),
    )


class _Alike(Structure):
    _fields_ = (
        ("known", _Doubles),
        ("columns", POINTER(c_int32)),
        ("found", _Doubles),
        ("agreement", _Doubles),
        ("prior", _Doubles),
        *(
            (name, c_double)
            for name in (
                "shared",
                "pooled",
                "pooled_from",
                "bandwidth",
                "strange",
                "power",
                "most_tested",
                "most",
                "usual",
            )
        ),
        ("plans", c_int32),
        ("slot", c_int32),
    )


class _Likely(Structure):
    _fields_ = (
        ("brought", c_void_p),
        ("sums", _Doubles),
        ("cells", _Doubles),
        *((name, c_double) for name in ("bandwidth", "strange", "power", "most_tested")),
        ("column", c_int32),
        ("slot", c_int32),
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


_EMPTY = [0.0] * CELLS


class NativeMemory(Memory):
    """`Memory` that compares requests in C++."""

    def __init__(self, library: Library) -> None:
        super().__init__()
        self._library = library
        self._known = (c_double * (PLANS * CELLS))()
        self._plans = (c_int32 * PLANS)()
        self._agreement = (c_double * PLANS)()
        self._sums, self._cells = (c_double * 4)(), (c_double * CELLS)()
        arrays = (self.features, self.having, self.counts, self.tested)
        self._native = _Memory(*(array.ctypes.data for array in arrays), REQUESTS, PLANS)

    def _remember(self, slot: int, tokens: array[int]) -> None:
        address, length = tokens.buffer_info()
        self._library.remember(byref(self._native), slot, address, length)

    def _regress(self, slot: int, known: Mapping[Variants, AcceptanceCounts]) -> tuple[Any, Sequence[float]]:
        found = (c_double * ((1 + len(known)) * CELLS))()
        for i, (variants, counts) in enumerate(known.items()):
            self._known[i * CELLS : (i + 1) * CELLS] = [*counts.cells]
            self._plans[i] = self.columns[variants]
        asked = _Alike(
            *(self._known, self._plans, found, self._agreement),
            *(
                _PRIOR,
                SHARED_ROWS,
                POOLED_ROWS,
                POOLED_FROM,
                *EVIDENCE,
                MOST_TESTED,
                MOST_ROWS,
                USUAL,
                len(known),
                slot,
            ),
        )
        self._library.alike(byref(self._native), byref(asked))
        return found, self._agreement[: len(known)]

    def _likely(self, slot: int, column: int) -> tuple[list[float], list[float]]:
        asked = _Likely(self.brought.ctypes.data, self._sums, self._cells, *PROMISES, MOST_TESTED, column, slot)
        self._library.likely(byref(self._native), byref(asked))
        return self._sums[:], self._cells[:]


class NativeChooser:
    """`objective.choose` and `objective.promises` in C++."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known = (c_double * (PLANS * CELLS))()
        self._own = (c_double * (PLANS * CELLS))()
        self._chosen = (_Chosen * 2)()

    def __call__(self, question: Question) -> tuple[Chosen, Chosen | None]:
        prices = question.prices
        plans, points, likes = len(question.known), len(prices.rows), len(question.alike)
        for i, (known, own) in enumerate(zip(question.known, question.own, strict=True)):
            self._known[i * CELLS : (i + 1) * CELLS] = [*known]
            self._own[i * CELLS : (i + 1) * CELLS] = [*(own or _EMPTY)]
        alike = (_Doubles * likes)(*question.alike)
        asked = _Choosing(
            *(self._known, self._own, alike, _PRIOR),
            *((c_double * plans)(*prices.draft), (c_double * plans)(*question.trust)),
            *((c_double * points)(*prices.rows), (c_double * points)(*prices.verify)),
            *(
                prices.overhead,
                prices.accepted,
                SHARED_ROWS,
                POOLED_ROWS,
                POOLED_FROM,
                question.drift,
                question.hope * HOPE,
            ),
            *(plans, likes, prices.gamma, prices.requests, points),
        )
        self._library.choose(byref(asked), self._chosen)
        best, other = self._chosen
        return _made(best), _made(other) if other.plan >= 0 else None

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
