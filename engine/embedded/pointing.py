"""A loss that teaches a few attention heads where to look.

Most of what the embedded model answers is copied from its prompt. That the right place is the one whose neighbourhood
continues what is being copied is learned from the words alone very late, since a value is a few tokens among hundreds;
told to a head, it is learned at once. The loss is for training alone and leaves no trace in the network's shape.

A line that is looked up by a value at its end and quoted from its beginning takes two steps before: where the line
begins, nothing is known yet of how it goes on. So its tokens are told to look at its beginning, and who quotes it to
look where the value stands first; and what it is told of the few tokens that begin such a quote counts once more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from engine.embedded.batches import Batch, Told
from engine.embedded.network import Attention, Network, rms_norm, rotate
from engine.embedded.process import uploaded
from engine.embedded.sources import Places, Quotes, Sources

BEGINNING = (3, 1)  # layer and its head that is told how the line that it is in began, if that is quoted;
FINDING = (5, 1)  # that is told where the value stands by which a line was found,
COPYING = ((7, 3), (9, 1))  # and those that are told where copied tokens come from
KINDS = ((BEGINNING,), (FINDING,), COPYING, COPYING)  # who is told what `Pointing.told` finds, kind by kind
LONGEST = 4096  # tokens; longer rows learn by themselves: scores of all pairs are length × length


class Pointing:
    """What the heads of a network that are told look at, against where they should."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._sources, self._quotes = Sources(tokenizer), Quotes(tokenizer)
        self._last: list[Tensor] = []

    @property
    def last(self) -> list[float]:
        """Losses of the heads, the last; waits for the device."""
        return [round(loss, 3) for loss in torch.stack(self._last).tolist()] if self._last else []

    def told(self, batch: Batch) -> Told | None:
        """Where heads are told to look in a batch; None if its rows are too long."""
        length = batch.inputs.shape[1]
        if length >= LONGEST:
            return None
        ids = torch.cat((batch.inputs[:, :1], batch.targets), dim=1).numpy()
        learned = F.pad(batch.weights >= 1.0, (1, 0)).numpy()
        sources = self._sources(ids, learned)
        value, beginning, first = self._quotes(ids, learned, sources)
        kinds = [_asked(places, 0) for places in (beginning, value)]
        kinds += [_asked(places, 1) for places in (sources, first)]  # of the next token
        indices = np.concatenate([part for kind in kinds for part in kind])
        return Told(torch.from_numpy(indices.astype(np.int32)), tuple((len(asked), len(at)) for asked, at in kinds))

    def with_told(self, batch: Batch) -> Batch:
        return batch if batch.told else replace(batch, told=self.told(batch))

    def wanted(self, network: Network, inputs: Tensor) -> dict[int, Tensor]:
        """Room for what goes into the sublayers of these heads (`Network.states`); none if rows are too long."""
        if inputs.shape[1] >= LONGEST:
            return {}
        return {layer: inputs for layer, _ in (BEGINNING, FINDING, *COPYING) if layer < network.shape.layers}

    def loss(self, network: Network, batch: Batch, into: dict[int, Tensor]) -> Tensor:
        """The sum over what is told of the mean over the heads that are told it, by what went into their sublayers.

        What nobody is asked in this batch counts nothing and takes nothing from the rest: where copied tokens come from
        counts as much in a batch without quotes as in one of quotes alone. Nothing here waits for the device.
        """
        device = next(iter(into.values())).device
        told = self.with_told(batch).told
        assert told is not None, "rows are too long"
        kinds = told.kinds(uploaded(told.indices, device).long())
        cos, sin = network.rotations(batch.inputs.shape[1], device)
        scores: dict[tuple[int, int], Tensor] = {}
        total, self._last = torch.zeros((), device=device), []
        for heads, (asked, places) in zip(KINDS, kinds, strict=True):
            for layer, head in heads:
                attention = network.attention[layer] if layer in into else None
                if not isinstance(attention, Attention):
                    continue
                loss = torch.zeros((), device=device)
                if len(asked):
                    if (layer, head) not in scores:
                        scores[layer, head] = head_scores(attention, head, into[layer], cos, sin)
                    loss = pointing_loss(scores[layer, head], asked, places, evenly=heads == (BEGINNING,))
                    total = total + loss / len(heads)
                self._last.append(loss.detach())
        return total


def _asked(found: Places, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """One kind of `Told`, of places among rows one token longer than a batch's: tokens are asked for at the position
    `offset` before their own, and what is said of a last position is left out."""
    row, t = np.divmod(found.at, found.length)
    kept = (t >= offset) & (t - offset < found.length - 1)
    at, place = (row * (found.length - 1) + t - offset)[kept], found.place[kept]
    new = np.diff(at, prepend=-1) != 0
    return at[new], (new.cumsum() - 1) * (found.length - 1) + place


def head_scores(attention: Attention, head: int, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """[rows × length, length]: what `head` of the sublayer thinks of each place of its row, -inf of later ones.

    x  [rows, length, hidden], what goes into the sublayer.
    """
    s = attention.shape
    rows, length, _ = x.shape
    group = s.heads // s.kv_heads
    y = rms_norm(x, attention.norm, s.epsilon)

    def part(weight: Tensor, index: int) -> Tensor:
        made = y @ weight[index * s.head_dim : (index + 1) * s.head_dim].T
        return rotate(made.view(rows, length, 1, s.head_dim), cos, sin).squeeze(2)

    q, k = part(attention.q_proj.weight, head), part(attention.k_proj.weight, head // group)
    later = torch.full((length, length), float("-inf"), dtype=q.dtype, device=q.device).triu_(1)[None]
    return torch.baddbmm(later, q, k.transpose(1, 2), alpha=s.head_dim**-0.5).flatten(0, 1)


def pointing_loss(scores: Tensor, asked: Tensor, places: Tensor, *, evenly: bool = False) -> Tensor:
    """Mean -log of what a head gives to allowed places.

    scores  [rows × length, length] of `head_scores`.
    asked   [n], which of these, and
    places  [m], where they may look: each one's number among the asked × length + place.
    evenly  allowed places have to get the same each: the mean of -log of what each gets, not -log of their sum.
    """
    seen = scores.index_select(0, asked).float()
    wanted = torch.zeros(seen.numel(), dtype=torch.bool, device=seen.device).index_fill_(0, places, True).view_as(seen)
    if evenly:
        return (seen.logsumexp(-1) - seen.masked_fill(~wanted, 0.0).sum(-1) / wanted.sum(-1)).mean()
    return (seen.logsumexp(-1) - seen.masked_fill(~wanted, float("-inf")).logsumexp(-1)).mean()
