"""Where texts are alike: which earlier tokens say what a learned one says, in the longest run of equal characters.

Twice: in numpy, and as loops for numba, which are forty times as fast and used where it is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np


class Spelling(NamedTuple):
    """How the tokens of a vocabulary are written.

    characters  of all tokens, one after the other, each kind of character a number from 0.
    begins      of each token, where its own are among these,
    ends        and where they end.
    spaced      whether its first character is a space before a word.
    """

    characters: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    spaced: np.ndarray


Found = tuple[np.ndarray, np.ndarray]  # tokens as row × length + t, and for each one that it may come from, s < t


def matches(ids: np.ndarray, learned: np.ndarray, spelling: Spelling) -> Found:
    """ids, learned [rows, length] -> of every learned token those that `Sources` tells of, by rows and by t."""
    find = compiled() or matches_in_numpy
    return find(np.ascontiguousarray(ids, np.int64), np.ascontiguousarray(learned), spelling)


@cache
def compiled() -> Callable[[np.ndarray, np.ndarray, Spelling], Found] | None:
    """`matches_in_loops` as numba compiles it, a few seconds after its first call; None where numba is missing."""
    if importlib.util.find_spec("numba") is None:
        return None
    numba: Any = importlib.import_module("numba")
    made: Callable[[np.ndarray, np.ndarray, Spelling], Found] = numba.njit(nogil=True)(matches_in_loops)
    return made


def matches_in_loops(ids: np.ndarray, learned: np.ndarray, spelling: Spelling) -> Found:
    """`matches`, token by token: only places with the right first character are visited, by a chain of such places."""
    characters, begins, ends, spaced = spelling
    kinds, length = characters.max() + 1, ids.shape[1]
    at, place, count = np.empty(1024, np.int64), np.empty(1024, np.int64), 0
    begin = np.empty(length + 1, np.int64)  # of each token in the text
    for r in range(len(ids)):
        last = length - 1
        while last >= 0 and not learned[r, last]:
            last -= 1
        begin[0] = 0
        for t in range(last + 1):
            begin[t + 1] = begin[t] + ends[ids[r, t]] - begins[ids[r, t]]
        size = begin[last + 1]
        text, token = np.empty(size, np.int32), np.empty(size, np.int64)
        for t in range(last + 1):
            text[begin[t] : begin[t + 1]] = characters[begins[ids[r, t]] : ends[ids[r, t]]]
            token[begin[t] : begin[t + 1]] = t
        before_it = np.empty(size, np.int64)  # the last place before each that has the same character
        latest = np.full(kinds, -1, np.int64)
        chained, told_from = 0, -1
        for t in range(last + 1):
            start, end = begin[t] + spaced[ids[r, t]], begin[t + 1]
            if not learned[r, t] or start == end:
                continue
            if told_from < 0:
                told_from = start
            while chained < begin[t]:
                before_it[chained], latest[text[chained]] = latest[text[chained]], chained
                chained += 1
            width, longest, alike, first = end - start, 0, 0, count
            p = latest[text[start]]
            while p >= 0:
                after = 1
                while start + after < size and text[p + after] == text[start + after]:
                    after += 1
                if after >= width:
                    before = 0
                    most = min(start - told_from, p)
                    while before < most and text[p - 1 - before] == text[start - 1 - before]:
                        before += 1
                    s = token[p]
                    if p - before <= begin[s] + spaced[ids[r, s]] and before + after >= longest:
                        if before + after > longest:
                            longest, alike, count = before + after, 0, first
                        alike += 1
                        if count == first or place[count - 1] != s:
                            if count == len(at):
                                at, place = np.append(at, at), np.append(place, place)
                            at[count], place[count] = r * length + t, s
                            count += 1
                p = before_it[p]
            if longest <= width + 1 and alike > 1:
                count = first
            place[first:count] = place[first:count][::-1].copy()
    return at[:count], place[:count]


def matches_in_numpy(ids: np.ndarray, learned: np.ndarray, spelling: Spelling) -> Found:
    """`matches`, row by row."""
    found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for r in np.flatnonzero(learned.any(axis=1)).tolist():
        told = np.flatnonzero(learned[r])
        t, s = _row(ids[r, : told[-1] + 1], told, spelling)
        found.append((r * ids.shape[1] + t, s))
    at, place = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return at, place


def _row(ids: np.ndarray, told: np.ndarray, spelling: Spelling) -> Found:
    widths = (spelling.ends - spelling.begins)[ids]
    text = np.concatenate([spelling.characters[spelling.begins[i] : spelling.ends[i]] for i in ids])
    ends = widths.cumsum()
    begins = ends - widths + spelling.spaced[ids]  # of what is left without the space
    token = np.repeat(np.arange(len(ids)), widths)
    at, width = begins[told], (ends - begins)[told]
    before, after = _runs(text, at)
    place = np.arange(len(text))
    found = (after >= width[:, None]) & (place < (ends - widths)[told][:, None])
    found &= place - before <= begins[token]
    runs = np.where(found, before + after, 0)
    longest = runs.max(axis=1)
    best = found & (runs == longest[:, None])
    best[(longest <= width + 1) & (best.sum(axis=1) > 1)] = False
    which, where = np.nonzero(best)
    pairs = np.unique(told[which] * len(ids) + token[where])
    return pairs // len(ids), pairs % len(ids)


def _runs(text: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many characters before, and from, each place of `at` (ascending) are the same as those before, and from,
    each place of the text: two arrays [len(at), len(text)]. Those before are counted from the first of `at` on."""
    first, count = int(at[0]), len(text)
    rows = {int(i): n for n, i in enumerate(at)}
    before, after = (np.zeros((len(at), count), np.int32) for _ in range(2))
    run = np.zeros(count, np.int32)
    for i in range(first, int(at[-1]) + 1):
        if i in rows:
            before[rows[i]] = run
        run[1:] = (run[:-1] + 1) * (text[:-1] == text[i])
        run[0] = 0
    run[:] = 0
    for i in range(count - 1, first - 1, -1):
        run[:-1] = run[1:] + 1
        run[-1] = 1
        run *= text == text[i]
        if i in rows:
            after[rows[i]] = run
    return before, after
