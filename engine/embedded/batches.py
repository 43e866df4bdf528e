"""Batches of whole conversations of similar length: little padding, and nothing seen that does not belong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.embedded.conversation import Tokens, tokenize
from engine.embedded.corpus.base import Draw, Example
from engine.embedded.corpus.mixture import CANDIDATES, example, training_candidates
from engine.embedded.corpus.mixture import weights as mixture_weights
from engine.seeds import mix64

POOL = 4096  # examples sorted by length together
PROBED = 1024  # examples that tell how many tokens a pool has
LENGTH_STEPS = ((512, 16), (2048, 64), (1 << 30, 256))  # lengths up to the first are padded to multiples of the second
PROMPT_WEIGHT = 0.1  # the most a token of the prompt counts in the loss, beside 1 for one of the assistant's
PROMPT_SHARE = 0.5  # the most a whole prompt counts beside its answers


@dataclass(frozen=True)
class Told:
    """Where heads are told to look, of the rows of a batch, kind by kind (`pointing`); on the host.

    indices  of all kinds, one after the other, for one upload: those who are asked, as row × length + position, then
             the places that they may look at, as their number among the asked × length + place. int32.
    counts   of each kind, how many are asked and how many places they have.
    """

    indices: Tensor
    counts: tuple[tuple[int, int], ...]

    def kinds(self, indices: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Asked and places of each kind, from `indices` wherever they have got to."""
        parts = iter(torch.split(indices, [count for pair in self.counts for count in pair]))
        return list(zip(parts, parts, strict=True))


@dataclass(frozen=True)
class Batch:
    """Inputs, targets and weights of the loss: [rows, length] each; `tokens` counts what is not padding; `told` is
    missing until somebody needs it."""

    inputs: Tensor
    targets: Tensor
    weights: Tensor
    tokens: int
    told: Told | None = None

    def packed(self) -> Packed:
        """For the way to another process: few arrays, of small numbers."""
        told = None if self.told is None else (self.told.indices.numpy(), self.told.counts)
        inputs, targets = (t.numpy().astype(np.uint16) for t in (self.inputs, self.targets))
        return inputs, targets, self.weights.numpy(), self.tokens, told

    @staticmethod
    def unpacked(packed: Packed) -> Batch:
        """`inputs` and `targets` are int32 then."""
        inputs, targets, weights, tokens, told = packed
        found = None if told is None else Told(torch.from_numpy(told[0]), told[1])
        ids, wanted = (torch.from_numpy(t.astype(np.int32)) for t in (inputs, targets))
        return Batch(ids, wanted, torch.from_numpy(weights), tokens, found)


Packed = tuple[np.ndarray, np.ndarray, np.ndarray, int, tuple[np.ndarray, tuple[tuple[int, int], ...]] | None]


def padded_length(tokens: int) -> int:
    """The length that rows of up to so many tokens are padded to. Few lengths: what multiplies matrices makes itself
    ready for each shape once, which takes ten times as long as to multiply."""
    step = next(step for most, step in LENGTH_STEPS if tokens <= most)
    return -(-tokens // step) * step


def collate(rows: list[Tokens]) -> Batch:
    length = padded_length(max(len(r.ids) for r in rows) - 1)
    inputs, targets = (np.zeros((len(rows), length), np.int64) for _ in range(2))
    weights = np.zeros((len(rows), length), np.float32)
    for i, row in enumerate(rows):
        n = len(row.ids) - 1
        inputs[i, :n], targets[i, :n] = row.ids[:-1], row.ids[1:]
        learned = np.array(row.learned[1:])
        answers = int(learned.sum())
        weights[i, :n] = np.where(learned, 1.0, min(PROMPT_WEIGHT, PROMPT_SHARE * answers / max(1, n - answers)))
    tokens = sum(len(r.ids) - 1 for r in rows)
    return Batch(torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(weights), tokens)


def grouped(rows: list[Tokens], batch_tokens: int) -> list[list[Tokens]]:
    """Rows sorted by length, from the longest, each group as many as fit `batch_tokens` when padded to its longest."""
    left = sorted(rows, key=lambda r: -len(r.ids))
    groups = []
    while left:
        count = max(1, batch_tokens // padded_length(len(left[0].ids) - 1))
        groups.append(left[:count])
        left = left[count:]
    return groups


def pool_candidates(tokenizer: Tokenizer, seed: int, pool: int, progress: float) -> list[list[Tokens]]:
    """The examples of pool number `pool`, each with those that could stand in its place."""
    made = training_candidates(seed, pool * POOL, POOL, progress)
    return [[tokenize(tokenizer, e) for e in candidates] for candidates in made]


def pool_drawn(tokenizer: Tokenizer, seed: int, pool: int, progress: float) -> list[Tokens]:
    """The examples of pool number `pool`, of each one's candidates the one that the seed draws."""
    made = (drawn_example(seed, index, progress) for index in range(pool * POOL, (pool + 1) * POOL))
    return [tokenize(tokenizer, e) for e in made]


def pool_tokens(tokenizer: Tokenizer, seed: int) -> float:
    """Tokens of a pool that `pool_drawn` makes, about: the progress of a run is reckoned by it where pools are made
    before those before them are learned from."""
    rows = [tokenize(tokenizer, drawn_example(seed, index, 0.5)) for index in range(PROBED)]
    return POOL / PROBED * sum(len(r.ids) - 1 for r in rows)


def drawn_example(seed: int, index: int, progress: float) -> Example:
    """One of what `training_candidates` makes in this place; the others are not made."""
    shares = mixture_weights(progress)
    own = mix64(mix64(seed) ^ index)
    name = Draw(own).random.choices(list(shares), list(shares.values()))[0]
    return example(name, mix64(own + mix64(~own) % CANDIDATES.get(name, 1)), "train")


def pool_batches(rows: list[Tokens], seed: int, pool: int, batch_tokens: int) -> Iterator[Batch]:
    """The batches of a pool's examples, in an order drawn from the seed."""
    groups = grouped(rows, batch_tokens)
    Random(mix64(seed + pool)).shuffle(groups)
    yield from map(collate, groups)
