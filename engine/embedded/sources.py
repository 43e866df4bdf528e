"""Where the tokens of an answer come from: what is copied, and what has to be looked at on the way to a quoted line."""

from __future__ import annotations

import numpy as np
from tokenizers import Tokenizer

from engine.embedded.conversation import END

_SPACE, _NEW_LINE = "Ġ", "Ċ"  # how byte-level BPE writes them
_ADDED = 1 << 21  # beyond all characters
FIRST_TOKENS = 8  # of a line, which tell it from others
_BELOW_VALUE = 3  # tokens from a value, over its colon and the new line, to the mark of the quote
_UNSURE_TOKENS = 5  # of a quote found by a value, until enough is said for the rest to be copied from where it stands


class Sources:
    """Finds which earlier tokens each learned one may be copied from, by how they are written.

    Tokens differ where their texts do not: a value that begins a JSON string has no space before it and is often cut
    otherwise than in the text that it comes from, and its first token is the one that decides which value is copied.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        added = tokenizer.get_added_tokens_decoder()
        names = [tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())]
        # A character each; an added token is one, of its own.
        self._characters = [
            np.array([_ADDED + i] if i in added else [ord(c) for c in name], np.int32) for i, name in enumerate(names)
        ]
        self._width = np.array([len(characters) for characters in self._characters])
        self._spaced = np.array([name.startswith(_SPACE) and len(name) > 1 for name in names])

    def __call__(self, ids: np.ndarray, learned: np.ndarray) -> np.ndarray:
        """ids, learned [rows, length] -> [rows, length, length]: `out[r, t, s]`, s < t.

        What token t says, without a space before it, stands in s and on from there, from the beginning of s or in a
        longer run that begins there; and nowhere earlier is it part of a longer run of equal characters. Something
        without equal neighbours, a space apart, counts if it is the only one of its kind.
        """
        out = np.zeros((*ids.shape, ids.shape[1]), bool)
        for r, row in enumerate(ids):
            told = np.nonzero(learned[r])[0]
            if len(told):
                self._row(row, told, out[r])
        return out

    def _row(self, ids: np.ndarray, told: np.ndarray, out: np.ndarray) -> None:
        ids, last = ids[: told[-1] + 1], told[-1]
        text = np.concatenate([self._characters[i] for i in ids])
        ends = self._width[ids].cumsum()
        begins = ends - self._width[ids] + self._spaced[ids]  # of what is left without the space
        token = np.repeat(np.arange(last + 1), self._width[ids])
        at, width = begins[told], (ends - begins)[told]
        before, after = _runs(text, at)
        place = np.arange(len(text))
        found = (after >= width[:, None]) & (place < (ends - self._width[ids])[told][:, None])
        found &= place - before <= begins[token]
        runs = np.where(found, before + after, 0)
        longest = runs.max(axis=1)
        best = found & (runs == longest[:, None])
        best[(longest <= width + 1) & (best.sum(axis=1) > 1)] = False
        which, where = np.nonzero(best)
        out[told[which], token[where]] = True


class Quotes:
    """Finds the lines that answers quote, and what has to be looked at on the way to their first tokens.

    A quote is a line of an answer that begins with ">"; a line that ends with a colon above it ends with the value by
    which the quoted line was found.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        names = [tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())]
        self._mark, self._colon = tokenizer.token_to_id(">"), tokenizer.token_to_id(":")
        self._ends = np.array([name.startswith(_NEW_LINE) or name == END for name in names])
        self._plain = [name.lstrip(_SPACE) for name in names]

    def __call__(
        self, ids: np.ndarray, learned: np.ndarray, sources: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ids, learned [rows, length], what `Sources` found -> three arrays like the last, of t and s, s <= t.

        value      t is the end of the value above a quote, or between it and the quote; s is where the value ends in
                   the line that is quoted.
        beginning  t is in a line that is quoted, and s is one of the line's first tokens.
        first      t is one of the first tokens of a quote below a value, and s its source.
        """
        value, beginning, first_said = (np.zeros_like(sources) for _ in range(3))
        for r, row in enumerate(ids):
            given = sources[r] & ~learned[r]
            new = np.concatenate(([True], ~learned[r, :-1] | self._ends[row[:-1]]))
            for mark in np.flatnonzero(learned[r] & new & (row == self._mark)).tolist():
                if (line := self._line(row, mark, given)) is None:
                    continue
                first, end = line
                before = np.tri(end - first, min(FIRST_TOKENS, end - first), -1, dtype=bool)
                beginning[r, first:end, first : first + before.shape[1]] = before
                if mark >= _BELOW_VALUE and learned[r, mark - 1] and row[mark - 2] == self._colon:
                    said = mark - _BELOW_VALUE
                    if (found := self._like(row, said, first, end)) is None:
                        continue
                    value[r, said : mark + 1, found] = True
                    unsure = slice(mark + 1, mark + 1 + _UNSURE_TOKENS)
                    first_said[r, unsure] = sources[r, unsure]
        return value, beginning, first_said

    def _line(self, row: np.ndarray, mark: int, given: np.ndarray) -> tuple[int, int] | None:
        """The first token of the line that is quoted after `mark`, and the one after its last; None if unknown."""
        last = mark + 1 + int(np.argmax(self._ends[row[mark + 1 :]]))
        told = given[mark + 1 : last]
        places = told.argmax(axis=1)[told.sum(axis=1) == 1]
        if len(places):  # but those far from the others, which happen to stand once elsewhere
            places = places[abs(places - np.median(places)) <= last - mark]
        if 2 * len(places) <= last - mark:
            return None
        return int(places.min()), int(places.max()) + 1

    def _like(self, row: np.ndarray, said: int, first: int, end: int) -> int | None:
        """Where from `first` to `end` the longest run of tokens ends that are like those that end at `said`; None if
        there is none."""

        def run(place: int) -> int:
            length = 0
            while place - length >= first and self._plain[row[place - length]] == self._plain[row[said - length]]:
                length += 1
            return length

        found = max(range(first, end), key=run)
        return found if run(found) else None


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
