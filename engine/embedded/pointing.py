"""A loss that teaches a few attention heads where to look.

Most of what the embedded model answers is copied from its prompt. That the right place is the one whose neighbourhood
continues what is being copied is learned from the words alone very late, since a value is a few tokens among hundreds;
told to a head, it is learned at once. The loss is for training alone and leaves no trace in the network's shape.

A line that is looked up by a value at its end and quoted from its beginning takes two steps before: where the line
begins, nothing is known yet of how it goes on. So its tokens are told to look at its beginning, and who quotes it to
look where the value stands first; and what it is told of the few tokens that begin such a quote counts once more.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from engine.embedded.batches import Batch
from engine.embedded.network import Attention, Network, rms_norm, rotate
from engine.embedded.sources import Quotes, Sources

BEGINNING = (3, 1)  # layer and its head that is told how the line that it is in began, if that is quoted;
FINDING = (5, 1)  # that is told where the value stands by which a line was found,
COPYING = ((7, 3), (9, 1))  # and those that are told where copied tokens come from
LONGEST = 4096  # tokens; longer rows learn by themselves: what tells where to look is length × length


class Pointing:
    """What the heads of a network that are told look at, against where they should."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._sources, self._quotes = Sources(tokenizer), Quotes(tokenizer)
        self.last: list[float] = []  # losses of the heads, the last

    def wanted(self, network: Network, inputs: Tensor) -> dict[int, Tensor]:
        """Room for what goes into the sublayers of these heads (`Network.states`); none if rows are too long."""
        if inputs.shape[1] >= LONGEST:
            return {}
        return {layer: inputs for layer, _ in (BEGINNING, FINDING, *COPYING) if layer < network.shape.layers}

    def loss(self, network: Network, batch: Batch, into: dict[int, Tensor]) -> Tensor:
        """The sum over what is told of the mean over the heads that are told it, by what went into their sublayers.

        What nobody is asked in this batch counts nothing and takes nothing from the rest: where copied tokens come from
        counts as much in a batch without quotes as in one of quotes alone.
        """
        device = next(iter(into.values())).device
        ids = torch.cat((batch.inputs[:, :1], batch.targets), dim=1).numpy()
        learned = F.pad(batch.weights >= 1.0, (1, 0)).numpy()
        sources = self._sources(ids, learned)
        value, beginning, first = self._quotes(ids, learned, sources)
        told: list[tuple[tuple[tuple[int, int], ...], np.ndarray]]
        told = [((BEGINNING,), beginning[:, :-1, :-1]), ((FINDING,), value[:, :-1, :-1])]
        told += [(COPYING, places[:, 1:, :-1]) for places in (sources, first)]  # of the next token
        cos, sin = network.rotations(batch.inputs.shape[1], device)
        total, self.last = torch.zeros((), device=device), []
        for heads, places in told:
            allowed = torch.from_numpy(places).to(device)
            for layer, head in heads:
                attention = network.attention[layer] if layer in into else None
                if isinstance(attention, Attention):
                    evenly = heads == (BEGINNING,)
                    loss = pointing_loss(attention, head, into[layer], allowed, cos, sin, evenly=evenly)
                    self.last.append(round(float(loss.detach()), 3))
                    total = total + loss / len(heads)
        return total


def pointing_loss(
    attention: Attention, head: int, x: Tensor, allowed: Tensor, cos: Tensor, sin: Tensor, *, evenly: bool = False
) -> Tensor:
    """Mean -log of what `head` of the sublayer gives to allowed places; 0 if there are none.

    x        [rows, length, hidden], what goes into the sublayer.
    allowed  [rows, length, length] of bool: where each position may look; one with nothing allowed is not asked.
    evenly   allowed places have to get the same each: the mean of -log of what each gets, not -log of their sum.
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
    wanted = allowed[asked]
    if evenly:
        return (seen.logsumexp(-1) - seen.masked_fill(~wanted, 0.0).sum(-1) / wanted.sum(-1)).mean()
    return (seen.logsumexp(-1) - seen.masked_fill(~wanted, float("-inf")).logsumexp(-1)).mean()


def _hidden(length: int, like: Tensor) -> Tensor:
    """[1, length, length]: -inf where a position is later than the one that asks."""
    return torch.full((length, length), float("-inf"), dtype=like.dtype, device=like.device).triu_(1)[None]
