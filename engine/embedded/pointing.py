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
_ADDED = 1 << 21  # beyond all characters
LONGEST = 4096  # tokens; longer rows are left to learn by themselves: tables below are length × length


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
