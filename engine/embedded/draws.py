"""What a training step draws, on the host, and the loss of what it has drawn."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.embedded.answers import CHOSEN_STEP

KEPT_PARTS = 4  # a sublayer left out for some rows is computed for about so many quarters of them
PROMPT_SAMPLE_WEIGHT = 0.5  # of a prompt's token in the loss, where it is drawn to be in it at all


def left_out(rates: Tensor, rows: int, draw: torch.Generator) -> Tensor:
    """[sublayers, rows] of bool: which rows leave out which sublayer, by the sublayers' rates.

    How many a sublayer is left with is one of few numbers, so that shapes of products recur; on average it is what its
    rate says.
    """
    step = -(-rows // KEPT_PARTS)
    wanted = (1 - rates) * rows
    fewer = (wanted / step).floor() * step
    more = (fewer + step).clamp(max=rows)
    kept = torch.where(torch.rand(len(rates), generator=draw) * (more - fewer) < wanted - fewer, more, fewer)
    order = torch.rand(len(rates), rows, generator=draw).argsort(1)
    return order >= kept[:, None]


def sampled(weights: Tensor, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Where of [rows × length] to compute the loss, and how much each place weighs there: all places that are learned,
    and of the prompts' so many that each may weigh PROMPT_SAMPLE_WEIGHT: the same loss on average, with a fraction of
    the logits. Their number is filled up to a multiple of CHOSEN_STEP with places of no weight. All on the host.
    """
    weights = weights.flatten()
    chosen = (torch.rand(weights.shape, generator=draw) < weights / PROMPT_SAMPLE_WEIGHT).nonzero().squeeze(1)
    filling = (0, -len(chosen) % CHOSEN_STEP)
    return F.pad(chosen, filling), F.pad(weights[chosen].clamp(min=PROMPT_SAMPLE_WEIGHT), filling)


def weighted_loss(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Mean cross-entropy of logits [n, vocabulary] by weights [n]; targets are tokens [n] or shares [n, vocabulary]."""
    each = F.cross_entropy(logits.float(), targets, reduction="none")
    return (each * weights).sum() / weights.sum()
