"""Conversations one after the other in batches of one shape, which a GPU's recorded step needs.

A batch is a row of so many tokens: whole conversations, each seen by itself. All that a step has to know of it goes to
the device in one piece, an array of int32 with float32 between, cut by `Layout`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np
import torch
from torch import Tensor

from engine.embedded.batches import PROMPT_SHARE, PROMPT_WEIGHT
from engine.embedded.conversation import SPECIAL_TOKENS, Tokens
from engine.embedded.draws import PROMPT_SAMPLE_WEIGHT
from engine.embedded.sources import Places, Quotes, Sources
from engine.seeds import mix64

LENGTHS = (512, 2048, 8192)  # tokens of the longest conversation: a step is recorded for each of these kinds of batches
FEWEST_TOKENS = 70  # on average of a conversation, for there to be room for all of a batch
PLACES_SHARE = 0.6  # of the tokens of a batch, where the loss is computed at most
KINDS = ("beginning", "value", "sources", "first")  # of what heads are told (`pointing`), in its order
ASKED = {"beginning": 512, "value": 128, "sources": 512, "first": 256}  # tokens of a batch that are told, at most,
PAIRS = {"beginning": 4096, "value": 128, "sources": 1536, "first": 512}  # and places where these may look

# Skills whose prompts are garbled in some conversations, so that wordings are not learned by heart: those whose answers
# hang on few words that nothing else in the prompt says.
GARBLED_SKILLS = frozenset(("echo", "talk", "knapserve", "notice", "sql", "summaries", "fields", "tools", "turns"))
GARBLED_SHARE = 0.5  # of their conversations
MOST_GARBLED = 0.12  # of a prompt's tokens that nothing is copied from: each conversation draws its share below this

# Skills that have one right answer, of which a conversation counts by how hard it is (`recorded.by_hardness`).
EXACT_SKILLS = GARBLED_SKILLS - {"talk"} | {"sums", "translation", "python", "documents", "documents_long"}


@dataclass(frozen=True)
class Layout:
    """Where in a batch's array what is: names and sizes, one after the other; those in FLOATS are float32."""

    width: int

    FLOATS = ("weight", *(f"{kind}_counts" for kind in KINDS), *(f"{kind}_shares" for kind in KINDS))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """
        ids, targets, position   of each token; its place in its own conversation is its position.
        segment                  which conversation it is of; `bounds` says where each begins, then where the last ends.
        exact                    1 for each conversation whose skill is one of EXACT_SKILLS.
        place, weight            where the loss is computed, in no order, and how much it weighs there.
        For each kind of what heads are told: `_asked`, who; `_counts`, 1 where it is somebody; `_row`, `_place`, pairs
        of a number among the asked and a place where it may look; `_shares`, 1 / how many such the asked one has, or 0
        where there is no pair.
        """
        places, segments = int(self.width * PLACES_SHARE) // 256 * 256, self.width // FEWEST_TOKENS
        sizes = dict.fromkeys(("ids", "targets", "position", "segment"), self.width)
        sizes |= {"bounds": segments + 1, "exact": segments + 1, "place": places, "weight": places}
        for kind in KINDS:
            sizes |= {f"{kind}_asked": ASKED[kind], f"{kind}_counts": ASKED[kind]}
            sizes |= {f"{kind}_{part}": PAIRS[kind] for part in ("row", "place", "shares")}
        return sizes

    @property
    def segments(self) -> int:
        """The most conversations of a batch."""
        return self.sizes["bounds"] - 1

    @cached_property
    def total(self) -> int:
        return sum(self.sizes.values())

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """The parts of a batch's array, which they share memory with."""
        parts = zip(self.sizes, torch.split(flat, list(self.sizes.values())), strict=True)
        return {name: part.view(torch.float32) if name in self.FLOATS else part for name, part in parts}


class Packer:
    """Makes batches' arrays of conversations, with all that can be done on the host."""

    def __init__(self, layout: Layout, sources: Sources, quotes: Quotes) -> None:
        self.layout, self._sources, self._quotes = layout, sources, quotes

    def batches(self, rows: Sequence[Tokens], seed: int) -> Iterator[tuple[int, np.ndarray]]:
        """Full batches in an order drawn from the seed, each with the number of its kind in LENGTHS; what is left over
        is left out."""
        groups = packed_groups(rows, self.layout.width, self.layout.segments, seed)
        for number, group in enumerate(groups):
            lengths = [len(row) for row in group]
            longest = max(*lengths, self.layout.width - sum(lengths))
            kind = next(i for i, most in enumerate(LENGTHS) if longest <= most)
            yield kind, self._array(group, np.random.default_rng(mix64(seed ^ number)))

    def _array(self, group: Sequence[Conversation], draw: np.random.Generator) -> np.ndarray:
        flat = torch.zeros(self.layout.total, dtype=torch.int32)
        part = {name: view.numpy() for name, view in self.layout.views(flat).items()}
        begins = np.cumsum([0, *(len(row) for row in group)])
        width, filled = self.layout.width, int(begins[-1])
        part["bounds"][:] = width
        part["bounds"][: len(begins)] = begins
        part["exact"][: len(group)] = [row.skill in EXACT_SKILLS for row in group]
        weights = np.zeros(width, np.float32)
        sources = [self._sources(row.ids[None], row.learned[None]) for row in group]
        words = np.concatenate([row.ids[~row.learned] for row in group])
        words = words[words >= len(SPECIAL_TOKENS)]
        for number, (row, begin) in enumerate(zip(group, begins, strict=False)):
            here = slice(begin, begin + len(row))
            part["ids"][here] = garbled(row, sources[number].place, words, draw)[:-1]
            part["targets"][here] = row.ids[1:]
            part["position"][here], part["segment"][here] = np.arange(len(row)), number
            weights[here] = row.weights
        part["position"][filled:] = np.arange(width - filled)  # what is left is a conversation of its own,
        part["segment"][filled:] = len(group)  # and counts nothing
        self._draw_places(weights, part, draw)
        self._tell(group, sources, begins, part, draw)
        return flat.numpy()

    def _draw_places(self, weights: np.ndarray, part: dict[str, np.ndarray], draw: np.random.Generator) -> None:
        """As `draws.sampled`, but always as many places; if there are too many, some are left out at random."""
        chosen = np.flatnonzero(draw.random(len(weights)) < weights / PROMPT_SAMPLE_WEIGHT)
        chosen = draw.permutation(chosen)[: len(part["place"])]
        part["place"][: len(chosen)] = chosen
        part["weight"][: len(chosen)] = np.maximum(weights[chosen], PROMPT_SAMPLE_WEIGHT)
        order = draw.permutation(len(part["place"]))
        part["place"][:], part["weight"][:] = part["place"][order], part["weight"][order]

    def _tell(
        self,
        group: Sequence[Conversation],
        copied: Sequence[Places],
        begins: np.ndarray,
        part: dict[str, np.ndarray],
        draw: np.random.Generator,
    ) -> None:
        found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {kind: [] for kind in KINDS}
        for row, sources, begin in zip(group, copied, begins, strict=False):
            ids, learned = row.ids[None], row.learned[None]
            value, beginning, first = self._quotes(ids, learned, sources)
            told = zip(KINDS, (beginning, value, sources, first), (0, 0, 1, 1), strict=True)  # 1: of the next token
            for kind, places, offset in told:
                at, place = _within(places, len(row), offset)
                found[kind].append((at + begin, place + begin))
        for kind in KINDS:
            at, place = (np.concatenate(parts) for parts in zip(*found[kind], strict=True))
            asked, inverse, counts = np.unique(at, return_inverse=True, return_counts=True)
            kept = draw.permutation(len(asked))[: ASKED[kind]]
            kept = np.sort(kept[counts[kept].cumsum() <= PAIRS[kind]])
            number = np.full(len(asked), -1)
            number[kept] = np.arange(len(kept))
            pairs = np.flatnonzero(number[inverse] >= 0)
            part[f"{kind}_asked"][: len(kept)], part[f"{kind}_counts"][: len(kept)] = asked[kept], 1.0
            part[f"{kind}_row"][: len(pairs)] = number[inverse[pairs]]
            part[f"{kind}_place"][: len(pairs)] = place[pairs]
            part[f"{kind}_shares"][: len(pairs)] = 1.0 / counts[inverse[pairs]]


@dataclass(frozen=True)
class Conversation:
    """ids, learned [n + 1]; weights of the loss [n]."""

    ids: np.ndarray
    learned: np.ndarray
    weights: np.ndarray
    skill: str = ""

    def __len__(self) -> int:
        return len(self.weights)

    @staticmethod
    def of(row: Tokens, most: int = LENGTHS[-1]) -> Conversation:
        """A row, or so many tokens of it, its beginning."""
        ids, learned = (np.array(part[: most + 1]) for part in (row.ids, row.learned))
        n, answers = len(ids) - 1, int(learned[1:].sum())
        prompt = min(PROMPT_WEIGHT, PROMPT_SHARE * answers / max(1, n - answers))
        return Conversation(ids, learned, np.where(learned[1:], 1.0, prompt).astype(np.float32), row.skill)


def garbled(row: Conversation, copied: np.ndarray, words: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """The ids of a conversation, in some of GARBLED_SKILLS with some of the prompt's replaced by any of `words`.

    What the answer is copied from (places `copied`), what stands beside it and special tokens stay.
    """
    if row.skill not in GARBLED_SKILLS or draw.random() >= GARBLED_SHARE:
        return row.ids
    may = ~row.learned & (row.ids >= len(SPECIAL_TOKENS))
    for beside in (-1, 0, 1):
        may[np.clip(copied + beside, 0, len(may) - 1)] = False
    chosen = np.flatnonzero(may & (draw.random(len(may)) < MOST_GARBLED * draw.random()))
    ids = row.ids.copy()
    ids[chosen] = draw.choice(words, len(chosen))
    return ids


def packed_groups(rows: Sequence[Tokens], width: int, segments: int, seed: int) -> list[list[Conversation]]:
    """Conversations that fill `width` but for less than the next one, fewer than `segments`, in an order drawn from the
    seed. Long ones come together, and short ones fill what they leave."""
    draw = Random(mix64(seed))
    kinds: list[deque[Conversation]] = [deque() for _ in LENGTHS]
    for row in draw.sample(rows, len(rows)):
        made = Conversation.of(row, min(width, LENGTHS[-1]))
        kinds[next(i for i, most in enumerate(LENGTHS) if len(made) <= most)].append(made)
    groups: list[list[Conversation]] = []
    while any(kinds):
        group: list[Conversation] = []
        room = width
        for kind in reversed(kinds):
            while kind and len(kind[0]) <= room and len(group) < segments - 1:
                group.append(kind.popleft())
                room -= len(group[-1])
        if not any(kinds):
            break  # not full
        groups.append(group)
    draw.shuffle(groups)
    return groups


def _within(places: Places, length: int, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a row one token longer than `length`: tokens are asked for at the position `offset` before their own."""
    at, place = places.at - offset, places.place
    kept = (at >= 0) & (at < length) & (place < length)
    return at[kept], place[kept]
