"""The induction circuit that a network is given: "after these tokens came that one, so it comes again".

Small networks find it late, if at all, and nearly every skill here copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from engine.embedded.network import Attention

_FAST = 4  # pairs of dimensions that tell neighbours apart


@dataclass(frozen=True)
class Strengths:
    """What the circuit's parts weigh: `look`, `find` in attention's scores; `note`, `say` beside the embeddings."""

    look: float
    note: float
    find: float
    say: float


@torch.no_grad()
def write_copying(look: Attention, find: Attention, embedding: Tensor, strengths: Strengths) -> None:
    """Makes two attention sublayers, the first to run, an induction circuit.

    look       Each head looks one, two, … tokens back and notes what it sees in a subspace of its own, which the
               embeddings leave: of all, those in which they differ least.
    find       The first head of each group looks for a place where two neighbouring tokens were what they are here: the
               first group compares the last two, the next the two before the last, and so on; each adds what followed
               to what is to be said, so that longer matches win. The other heads are left as they are.
    embedding  [vocabulary, hidden]; what lies in the subspaces of the notes is taken out.
    """
    s, width = look.shape, look.shape.head_dim
    half, group = width // 2, s.heads // s.kv_heads
    angles = s.rope_theta ** -(torch.arange(half) / half)  # a token further, each pair of dimensions turns by these
    fast, slow = torch.arange(_FAST), torch.arange(half // 2, half)
    lasting = torch.cat((slow, half + slow)).view(2, -1)  # dimensions that turn little within a text
    count = lasting.shape[1]
    notes, seen, said = _subspaces(embedding, s.heads, count, min(width, s.hidden - (s.heads + 1) * count - 1))
    embedding -= embedding @ notes.flatten(0, 1).T @ notes.flatten(0, 1)
    same = _alike(embedding)
    unit = embedding.square().mean().sqrt()

    for linear in (look.q_proj, look.k_proj, look.v_proj, look.o_proj):
        linear.weight.zero_()
    for kv in range(s.kv_heads):
        look.k_proj.weight[kv * width + fast] = strengths.look * same
        look.v_proj.weight[kv * width : kv * width + count] = seen
    for head in range(s.heads):
        back = ((head + 1) * angles[fast])[:, None]
        look.q_proj.weight[head * width + fast] = strengths.look * back.cos() * same
        look.q_proj.weight[head * width + half + fast] = -strengths.look * back.sin() * same
        look.o_proj.weight[:, head * width : head * width + count] = strengths.note * unit * notes[head].T

    here = (seen, *notes)  # what a position knows of the tokens at and before it
    for kv in range(min(s.kv_heads, s.heads - 1)):
        first = kv * group * width
        q, k, v = find.q_proj.weight[first:], find.k_proj.weight[kv * width :], find.v_proj.weight[kv * width :]
        q[:width], k[:width], v[:width] = 0, 0, 0
        for part, offset in enumerate((kv, kv + 1)):
            q[lasting[part]] = strengths.find * here[offset]
            k[lasting[part]] = strengths.find * here[offset + 1]
        v[: len(said)] = said
        find.o_proj.weight[:, first : first + width] = 0
        find.o_proj.weight[:, first : first + len(said)] = strengths.say * unit * said.T


def _subspaces(embedding: Tensor, heads: int, count: int, spoken: int) -> tuple[Tensor, Tensor, Tensor]:
    """Where to note [heads, count, hidden], what to tell tokens apart by [count, hidden], what to say [spoken, hidden].

    Notes take the directions in which embeddings differ least. The others are drawn at random from the rest, and what
    tells tokens apart is evened out: a few directions hold most of how trained embeddings differ.
    """
    common = F.normalize(embedding.mean(0), dim=0)
    _, spread, directions = torch.linalg.svd(embedding - torch.outer(embedding @ common, common), full_matrices=False)
    spread, directions = spread[:-1], directions[:-1]  # the last is `common`
    least = heads * count
    rest, spread = directions[:-least], spread[:-least]
    turn = nn.init.orthogonal_(torch.empty(len(rest), len(rest)))
    even = spread.median() / spread.clamp(min=1e-3 * spread.median())
    return directions[-least:].view(heads, count, -1), (turn @ (even[:, None] * rest))[:count], turn[-spoken:] @ rest


def _alike(embedding: Tensor) -> Tensor:
    """The direction [hidden] along which every normalised embedding is about 1, by least squares."""
    normal = embedding / embedding.square().mean(1, keepdim=True).sqrt()
    found: Tensor = torch.linalg.lstsq(normal, normal.new_ones(len(normal), 1), driver="gelsd").solution
    return found[:, 0]
