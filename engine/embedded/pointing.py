"""Where a copied token comes from, and a loss that teaches an attention head to look there.

Most of what the embedded model answers is copied from its prompt. That the right place is the one whose neighbourhood
continues what is being copied is learned from the words alone very late, since a value is a few tokens among hundreds;
told to a head, it is learned at once. The loss is for training alone and leaves no trace in the network's shape.
"""

from __future__ import annotations

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.embedded.network import Attention, rms_norm, rotate

_SPACE = "Ġ"  # how byte-level BPE writes it
LONGEST = 2048  # tokens; longer rows are left to learn by themselves: tables below are length × length


def alike(tokenizer: Tokenizer) -> np.ndarray:
    """One id for all tokens [vocabulary] that are the same but for a space before them: a value that begins a JSON
    string has none, its source in the text does, and that first token is the one that decides which value is copied."""
    first: dict[str, int] = {}
    names = (tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size()))
    return np.array([first.setdefault(name.removeprefix(_SPACE) or name, i) for i, name in enumerate(names)])


def sources(ids: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """Which earlier tokens each learned one may be copied from: ids, learned [rows, length] -> [rows, length, length].

    `out[r, t, s]`: token s < t is the same as token t, and no other such s shares a longer run of equal neighbours,
    before and after, with t. A token alone, without an equal neighbour, counts if it is the only one of its kind.
    """
    length = ids.shape[1]
    same = (ids[:, :, None] == ids[:, None, :]) & np.tri(length, k=-1, dtype=bool)
    before = same.astype(np.int16)
    for t in range(1, length):
        before[:, t, 1:] *= 1 + before[:, t - 1, :-1]
    after = same.astype(np.int16)
    for t in range(length - 2, -1, -1):
        after[:, t, :-1] *= 1 + after[:, t + 1, 1:]
    runs = before + after  # one more than the run's length
    longest = runs.max(axis=2, keepdims=True)
    best: np.ndarray = same & (runs == longest) & learned[:, :, None]
    alone = (longest[:, :, 0] == 2) & (best.sum(axis=2) > 1)
    best[alone] = False
    return best


def pointing_loss(attention: Attention, head: int, x: Tensor, allowed: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Mean -log of what `head` of the sublayer gives to allowed places; 0 if there are none.

    x        [rows, length, hidden], what goes into the sublayer.
    allowed  [rows, length, length] of bool: where the *next* token of each position may be copied from.
    """
    s = attention.shape
    rows, length, _ = x.shape
    group = s.heads // s.kv_heads
    asked = allowed.any(-1)
    if not bool(asked.any()):
        return x.new_zeros((), dtype=torch.float32)
    y = rms_norm(x, attention.norm, s.epsilon)

    def part(weight: Tensor, index: int) -> Tensor:
        made = y @ weight[index * s.head_dim : (index + 1) * s.head_dim].T
        return rotate(made.view(rows, length, 1, s.head_dim), cos, sin).squeeze(2)

    q, k = part(attention.q_proj.weight, head), part(attention.k_proj.weight, head // group)
    scores = torch.baddbmm(_hidden(length, q), q, k.transpose(1, 2), alpha=s.head_dim**-0.5).float()
    seen = scores[asked]
    wanted = seen.masked_fill(~allowed[asked], float("-inf"))
    return (seen.logsumexp(-1) - wanted.logsumexp(-1)).mean()


def _hidden(length: int, like: Tensor) -> Tensor:
    """[1, length, length]: -inf where a position is later than the one that asks."""
    return torch.full((length, length), float("-inf"), dtype=like.dtype, device=like.device).triu_(1)[None]
