"""Batches of whole conversations of similar length: little padding, and nothing seen that does not belong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.embedded.conversation import Tokens, tokenize
from engine.embedded.corpus.mixture import training_candidates
from engine.seeds import mix64

POOL = 4096  # examples sorted by length together
LENGTH_STEPS = ((512, 16), (2048, 64), (1 << 30, 256))  # lengths up to the first are padded to multiples of the second
PROMPT_WEIGHT = 0.1  # the most a token of the prompt counts in the loss, beside 1 for one of the assistant's
PROMPT_SHARE = 0.5  # the most a whole prompt counts beside its answers


@dataclass(frozen=True)
class Batch:
    """Inputs, targets and weights of the loss: [rows, length] each; `tokens` counts what is not padding."""

    inputs: Tensor
    targets: Tensor
    weights: Tensor
    tokens: int


def padded_length(tokens: int) -> int:
    """The length that rows of up to so many tokens are padded to. Few lengths: what multiplies matrices makes itself
    ready for each shape once, which takes ten times as long as to multiply."""
    step = next(step for most, step in LENGTH_STEPS if tokens <= most)
    return -(-tokens // step) * step


def collate(rows: list[Tokens]) -> Batch:
    length = padded_length(max(len(r.ids) for r in rows) - 1)
    inputs = torch.zeros(len(rows), length, dtype=torch.long)
    targets = torch.zeros(len(rows), length, dtype=torch.long)
    weights = torch.zeros(len(rows), length)
    for i, row in enumerate(rows):
        n = len(row.ids) - 1
        ids = torch.tensor(row.ids)
        inputs[i, :n], targets[i, :n] = ids[:-1], ids[1:]
        learned = torch.tensor(row.learned[1:])
        answers = int(learned.sum())
        weights[i, :n] = torch.where(learned, 1.0, min(PROMPT_WEIGHT, PROMPT_SHARE * answers / max(1, n - answers)))
    return Batch(inputs, targets, weights, sum(len(r.ids) - 1 for r in rows))


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


def pool_batches(rows: list[Tokens], seed: int, pool: int, batch_tokens: int) -> Iterator[Batch]:
    """The batches of a pool's examples, in an order drawn from the seed."""
    groups = grouped(rows, batch_tokens)
    Random(mix64(seed + pool)).shuffle(groups)
    yield from map(collate, groups)
