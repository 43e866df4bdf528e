"""Where the tokens of an answer come from: what is copied, and what has to be looked at on the way to a quoted line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from engine.embedded.conversation import END
from engine.embedded.matching import Spelling, matches

_SPACE, _NEW_LINE = "Ġ", "Ċ"  # how byte-level BPE writes them
FIRST_TOKENS = 8  # of a line, which tell it from others
_BELOW_VALUE = 3  # tokens from a value, over its colon and the new line, to the mark of the quote
_UNSURE_TOKENS = 5  # of a quote found by a value, until enough is said for the rest to be copied from where it stands


@dataclass(frozen=True)
class Places:
    """Which tokens are to be looked at from which, of rows of one length: pairs, each once, in order.

    at      [n], a token as row × length + t.
    place   [n], an s of the same row that it looks at.
    length  of the rows.
    """

    at: np.ndarray
    place: np.ndarray
    length: int

    @staticmethod
    def of(pairs: list[tuple[np.ndarray, np.ndarray]], length: int) -> Places:
        """All pairs of arrays `at`, `place`, in whatever order."""
        codes = [at.astype(np.int64) * length + place for at, place in pairs]
        at, place = np.divmod(np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.int64), length)
        return Places(at, place, length)

    def dense(self, rows: int) -> np.ndarray:
        """[rows, length, length] of bool: `out[r, t, s]`."""
        out = np.zeros((rows * self.length, self.length), bool)
        out[self.at, self.place] = True
        return out.reshape(rows, self.length, self.length)


class Sources:
    """Finds which earlier tokens each learned one may be copied from, by how they are written.

    Tokens differ where their texts do not: a value that begins a JSON string has no space before it and is often cut
    otherwise than in the text that it comes from, and its first token is the one that decides which value is copied.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        added = tokenizer.get_added_tokens_decoder()
        names = [tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())]
        # A number for each kind of character; an added token is one, of its own.
        written = [[f"<{i}>"] if i in added else list(name) for i, name in enumerate(names)]
        numbers = {c: n for n, c in enumerate(sorted({c for characters in written for c in characters}))}
        ends = np.array([len(characters) for characters in written]).cumsum()
        self._spelling = Spelling(
            np.array([numbers[c] for characters in written for c in characters], np.int32),
            np.concatenate(([0], ends[:-1])),
            ends,
            np.array([name.startswith(_SPACE) and len(name) > 1 for name in names]),
        )

    def __call__(self, ids: np.ndarray, learned: np.ndarray) -> Places:
        """ids, learned [rows, length] -> of every learned token t the places s, s < t.

        What token t says, without a space before it, stands in s and on from there, from the beginning of s or in a
        longer run that begins there; and nowhere earlier is it part of a longer run of equal characters. Something
        without equal neighbours, a space apart, counts if it is the only one of its kind.
        """
        return Places(*matches(ids, learned, self._spelling), ids.shape[1])


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

    def __call__(self, ids: np.ndarray, learned: np.ndarray, sources: Places) -> tuple[Places, Places, Places]:
        """ids, learned [rows, length], what `Sources` found -> three others, s <= t.

        value      t is the end of the value above a quote, or between it and the quote; s is where the value ends in
                   the line that is quoted.
        beginning  t is in a line that is quoted, and s is one of the line's first tokens.
        first      t is one of the first tokens of a quote below a value, and s its source.
        """
        length = ids.shape[1]
        value, beginning, first_said = [], [], []
        new = np.ones_like(learned)
        new[:, 1:] = ~learned[:, :-1] | self._ends[ids[:, :-1]]
        for r, mark in np.argwhere(learned & new & (ids == self._mark)).tolist():
            row, base = ids[r], r * length
            if (line := self._line(row, mark, sources, base, learned[r])) is None:
                continue
            first, end = line
            t, s = np.nonzero(np.tri(end - first, min(FIRST_TOKENS, end - first), -1, dtype=bool))
            beginning.append((base + first + t, first + s))
            if mark >= _BELOW_VALUE and learned[r, mark - 1] and row[mark - 2] == self._colon:
                said = mark - _BELOW_VALUE
                if (found := self._like(row, said, first, end)) is None:
                    continue
                t = np.arange(said, mark + 1)
                value.append((base + t, np.full_like(t, found)))
                unsure = _between(sources, base + mark + 1, base + min(mark + 1 + _UNSURE_TOKENS, length))
                first_said.append((sources.at[unsure], sources.place[unsure]))
        return Places.of(value, length), Places.of(beginning, length), Places.of(first_said, length)

    def _line(
        self, row: np.ndarray, mark: int, sources: Places, base: int, learned: np.ndarray
    ) -> tuple[int, int] | None:
        """The first token of the line that is quoted after `mark`, and the one after its last; None if unknown."""
        if mark + 1 == len(row):
            return None  # cut off
        last = mark + 1 + int(np.argmax(self._ends[row[mark + 1 :]]))
        told = _between(sources, base + mark + 1, base + last)
        given = ~learned[sources.place[told]]
        at, places = sources.at[told][given], sources.place[told][given]
        places = places[np.bincount(at - base)[at - base] == 1]
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


def _between(sources: Places, begin: int, end: int) -> slice:
    """Which of the pairs have `at` in [begin, end)."""
    return slice(*np.searchsorted(sources.at, (begin, end)).tolist())
