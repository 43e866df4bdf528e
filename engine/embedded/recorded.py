"""Training steps recorded once and replayed: how a GPU trains the embedded model and its twin, side by side.

At this size a step is hundreds of kernels of a few microseconds, and launching them takes longer than running them. So
all batches have one shape (`packing`), what a step draws is drawn on the device, and the whole step, from the tokens to
the changed weights, is one CUDA graph for each kind of batch. On a CPU the same step runs as it is written.

Preparation for drafting, as in `train`, but by conversations instead of batches: THINNED_SHARE of them leave sublayers
out, attention and MLP apart, at rates that grow with depth up to one that is drawn for each; of the others some tokens
add the loss of an exit after a layer drawn for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.embedded.muon import Muon
from engine.embedded.network import MLP, Attention, Network, rms_norm, rotate
from engine.embedded.packing import KINDS, LENGTHS
from engine.embedded.pointing import BEGINNING, COPYING, FINDING

THINNED_SHARE = 0.4  # of the conversations leave sublayers out
DROP_AT_LAST = (0.2, 0.9)  # between these is the rate at the last sublayer of such a conversation; 0 at the first
EXITS = 4  # one in so many of the places where the loss is computed has an exit
EXIT_WEIGHT = 0.12
POINTING_WEIGHT = 0.3
CLIP = 1.0
HARDNESS = (0.3, 3.0)  # of a conversation, at least and at most: its loss beside that of all
HEADS = dict(zip(KINDS, ((BEGINNING,), (FINDING,), COPYING, COPYING), strict=True))

Batch = dict[str, Tensor]  # the views of `Layout`
Turn = tuple[Tensor, Tensor]


class PackedNetwork:
    """The passes of a network over packed conversations."""

    def __init__(self, network: Network, *, compiled: bool = False) -> None:
        self.network = network

        def made(function: Callable[..., Any]) -> Any:
            return torch.compile(function, dynamic=function is log_shares) if compiled else function

        self._before, self._after, self._mlp = made(before_attention), made(after_attention), made(mlp)
        self._log_shares = made(log_shares)

    def states(self, batch: Batch, longest: int, turn: Turn, keep: Tensor | None = None) -> list[Tensor]:
        """The residual state [width, hidden] before every layer and after the last.

        keep  [2 × layers, width] of 1.0 where a sublayer is taken, 0.0 where it is left out; None: all are taken.
        """
        net, s = self.network, self.network.shape
        x = F.embedding(batch["ids"], net.embedding.weight)
        attend = packed_attention(batch["bounds"], batch["segment"], longest)
        states = [x]
        taken: list[Any] = [None] * (2 * s.layers) if keep is None else list(keep[:, :, None])
        for i, (attention, block) in enumerate(zip(net.attention, net.mlp, strict=True)):
            q, k, v = self._before(attention, x, *turn)
            x = self._after(attention, x, attend(q, k, v), taken[2 * i])
            x = self._mlp(block, x, taken[2 * i + 1])
            states.append(x)
        return states

    def turn(self, batch: Batch) -> Turn:
        """Cosines and sines of the tokens' rotary positions, [width, 1, head_dim / 2] each."""
        cos, sin = self.network.rotations(LENGTHS[-1], batch["ids"].device)
        return cos.index_select(0, batch["position"]), sin.index_select(0, batch["position"])

    def losses(self, batch: Batch, longest: int, *, prepared: bool) -> tuple[Tensor, Tensor]:
        """The loss of the words [] and the one to train on [], which has that of exits and of pointing besides."""
        net, layers = self.network, self.network.shape.layers
        device, segments = batch["ids"].device, len(batch["bounds"])
        thinned = torch.zeros(segments, dtype=torch.bool, device=device)
        keep = None
        if prepared:
            thinned = torch.rand(segments, device=device) < THINNED_SHARE
            least, most = DROP_AT_LAST
            last = least + (most - least) * torch.rand(segments, device=device)
            rates = torch.linspace(0, 1, 2 * layers, device=device)[:, None] * (last * thinned)
            kept = torch.rand(2 * layers, segments, device=device) >= rates
            keep = kept.to(torch.bfloat16).index_select(1, batch["segment"])
        turn = self.turn(batch)
        states = self.states(batch, longest, turn, keep)
        place, weight = batch["place"], batch["weight"]
        logits = net.logits(states[-1].index_select(0, place)).float()
        wanted = batch["targets"].index_select(0, place).long()
        each = F.cross_entropy(logits, wanted, reduction="none")
        loss = (each * weight).sum() / weight.sum()
        counted = (batch["exact"] > 0) & ~thinned
        total = (
            each * by_hardness(each, weight, batch["segment"].index_select(0, place), counted)
        ).sum() / weight.sum()
        whole = ~thinned.index_select(0, batch["segment"])  # tokens of conversations that leave nothing out
        if prepared:
            count = len(place) // EXITS
            total = total + EXIT_WEIGHT * self._exits(states, logits[:count], place[:count], weight[:count], whole)
        return loss.detach(), total + POINTING_WEIGHT * self._pointing(states, batch, turn, whole)

    def _exits(self, states: list[Tensor], logits: Tensor, place: Tensor, weight: Tensor, whole: Tensor) -> Tensor:
        """Of exits at some places, each after a layer of its own, earlier ones more often: the cross-entropy with what
        the whole network says."""
        layers = self.network.shape.layers
        first = max(1, layers // 4)
        drawn = first + (torch.rand(len(place), device=place.device).square() * (layers - first)).long()
        x = torch.zeros(len(place), self.network.shape.hidden, device=place.device)
        for layer in range(first, layers):
            x = x + states[layer].index_select(0, place) * (drawn == layer)[:, None]
        said = self.network.logits(x).float()
        each = F.cross_entropy(said, logits.detach().softmax(-1), reduction="none")
        counted = weight * whole.index_select(0, place)
        return (each * counted).sum() / counted.sum().clamp(min=1.0)

    def _pointing(self, states: list[Tensor], batch: Batch, turn: Turn, whole: Tensor) -> Tensor:
        """As `Pointing.loss`, of what `Layout` holds of it."""
        total = torch.zeros((), device=whole.device)
        for kind, heads in HEADS.items():
            for layer, head in heads:
                if layer < self.network.shape.layers:
                    attention = self.network.attention[layer]
                    assert isinstance(attention, Attention)
                    asked = batch[f"{kind}_asked"]
                    scores = head_scores(attention, head, states[layer], asked, turn)
                    seen = self._log_shares(scores, asked, batch["segment"], attention.shape.head_dim**-0.5)
                    counted = batch[f"{kind}_counts"] * whole.index_select(0, asked)
                    told = log_told(seen, kind, *(batch[f"{kind}_{part}"] for part in ("row", "place", "shares")))
                    total = total - (told * counted).sum() / counted.sum().clamp(min=1.0) / len(heads)
        return total


def by_hardness(each: Tensor, weight: Tensor, segment: Tensor, counted: Tensor) -> Tensor:
    """How much places weigh: as `weight`, but the answers (1.0) of conversations that are `counted` [segments] by how
    hard these are, their mean loss beside that of all counted answers. `each` is the loss of each place.

    What a run knows already takes most of its text, and its batches cannot be chosen by what the network finds hard, as
    `train` does, without reading more than it learns from.
    """
    answers = (weight == 1.0) & counted.index_select(0, segment)
    here = answers.to(each.dtype)
    sums, counts = (each.new_zeros(len(counted)).index_add(0, segment, part) for part in (each.detach() * here, here))
    usual = (sums.sum() / counts.sum().clamp(min=1.0)).clamp(min=1e-6)
    hardness = (sums / counts.clamp(min=1.0) / usual).clamp(*HARDNESS).index_select(0, segment)
    hardness = hardness * here.sum() / (hardness * here).sum().clamp(min=1e-6)  # 1 on average
    return torch.where(answers, hardness * weight, weight)


def before_attention(attention: Attention, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """x [width, hidden] -> queries, keys, values [width, heads, head_dim]."""
    s = attention.shape
    y = rms_norm(x, attention.norm, s.epsilon)
    weight = torch.cat((attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight))
    made = F.linear(y, weight).view(len(x), s.heads + 2 * s.kv_heads, s.head_dim)
    turned = rotate(made[:, : -s.kv_heads], cos, sin)
    return turned[:, : s.heads].contiguous(), turned[:, s.heads :].contiguous(), made[:, -s.kv_heads :].contiguous()


def after_attention(attention: Attention, x: Tensor, seen: Tensor, taken: Tensor | None) -> Tensor:
    """The residual state x [width, hidden] with what attention has seen [width, heads, head_dim], where it is taken."""
    out: Tensor = attention.o_proj(seen.flatten(1))
    return x + (out if taken is None else out * taken)


def mlp(block: MLP, x: Tensor, taken: Tensor | None) -> Tensor:
    """The residual state after an MLP sublayer, where it is taken."""
    y = rms_norm(x, block.norm, block.epsilon)
    gate, up = F.linear(y, torch.cat((block.gate_proj.weight, block.up_proj.weight))).chunk(2, dim=-1)
    out: Tensor = block.down_proj(F.silu(gate) * up)
    return x + (out if taken is None else out * taken)


def packed_attention(bounds: Tensor, segment: Tensor, longest: int) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Causal attention of packed q [width, heads, head_dim] over k, v [width, kv_heads, head_dim], each conversation by
    itself; none is longer than `longest`."""

    def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        made: Tensor = torch.ops.aten._flash_attention_forward(
            q, k, v, bounds, bounds, longest, longest, 0.0, True, False
        )[0]
        return made

    def dense(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        group = q.shape[1] // k.shape[1]
        seen = visible(torch.arange(len(segment), device=segment.device), segment)
        q, k, v = (t.transpose(0, 1)[None] for t in (q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)[0].transpose(0, 1)

    return flash if segment.device.type == "cuda" else dense


def visible(at: Tensor, segment: Tensor) -> Tensor:
    """[n, width] of bool: which tokens those `at` [n] see."""
    every = torch.arange(len(segment), device=segment.device)
    return (segment.index_select(0, at)[:, None] == segment) & (every <= at[:, None])


def head_scores(attention: Attention, head: int, x: Tensor, asked: Tensor, turn: Turn) -> Tensor:
    """[asked, width]: what `head` thinks, from each that is asked, of each token, not scaled yet.

    x  [width, hidden], what goes into the sublayer.
    """
    s = attention.shape
    y = rms_norm(x, attention.norm, s.epsilon)

    def part(states: Tensor, weight: Tensor, index: int, cos: Tensor, sin: Tensor) -> Tensor:
        made = F.linear(states, weight[index * s.head_dim : (index + 1) * s.head_dim])
        return rotate(made[:, None], cos, sin).squeeze(1)

    cos, sin = (t.index_select(0, asked) for t in turn)
    q = part(y.index_select(0, asked), attention.q_proj.weight, head, cos, sin)
    k = part(y, attention.k_proj.weight, head // (s.heads // s.kv_heads), *turn)
    return q @ k.T


def log_shares(scores: Tensor, asked: Tensor, segment: Tensor, scale: float) -> Tensor:
    """Log of what each token gets of attention, by scores [asked, width] of those that are asked."""
    return (scores.float() * scale).masked_fill(~visible(asked, segment), float("-inf")).log_softmax(-1)


def log_told(seen: Tensor, kind: str, row: Tensor, place: Tensor, shares: Tensor) -> Tensor:
    """[asked]: log of how much of `seen` [asked, width], its logarithm, goes to where it should; of the kind
    "beginning" the mean of what each such place gets, of others their sum."""
    each = seen[row, place]
    if kind == "beginning":
        each = torch.where(shares > 0, each, torch.zeros_like(each))
        return seen.new_zeros(len(seen)).index_add(0, row, each * shares)
    each = torch.where(shares > 0, each, torch.full_like(each, float("-inf"))).exp()
    return seen.new_zeros(len(seen)).index_add(0, row, each).clamp(min=1e-20).log()


class Learner:
    """A network that is trained on the batches that are put into `batch`, one after the other."""

    def __init__(self, network: Network, batch: Batch, *, prepared: bool, compiled: bool = False) -> None:
        self.network, self.batch, self.prepared = network, batch, prepared
        self.device = batch["ids"].device
        self.packed = PackedNetwork(network, compiled=compiled)
        self.rate = torch.zeros((), device=self.device)
        self.loss = torch.zeros((), device=self.device)  # of the last step
        hidden = [p for n, p in network.named_parameters() if p.dim() == 2 and "embedding" not in n]
        rest = [p for n, p in network.named_parameters() if p.dim() != 2 or "embedding" in n]
        on_gpu = self.device.type == "cuda"
        self.optimizers: list[torch.optim.Optimizer] = [
            Muon(hidden, self.rate, precision=torch.bfloat16 if on_gpu else torch.float32),
            torch.optim.AdamW(rest, lr=self.rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True, capturable=on_gpu),
        ]
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._stream = torch.cuda.Stream() if on_gpu else None  # type: ignore[no-untyped-call]

    def step(self, kind: int) -> None:
        """One update by the batch, which is of this kind in LENGTHS; on a GPU it is begun, not waited for."""
        if self._stream is None:
            self._compute(kind)
            return
        now = torch.cuda.current_stream()
        self._stream.wait_stream(now)
        with torch.cuda.stream(self._stream):
            if kind in self._graphs:
                self._graphs[kind].replay()
            else:
                self._compute(kind)
        now.wait_stream(self._stream)

    def record(self, kind: int) -> None:
        """Record the step of this kind, with the batch that is there and a rate of 0. The first steps are not
        recorded, since they make what lasts."""
        assert self._stream is not None, "only a GPU records"
        self.rate.zero_()
        for _ in range(2):
            self.step(kind)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self._stream):
            self._compute(kind)
        self._graphs[kind] = graph

    def _compute(self, kind: int) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        on_gpu = self.device.type == "cuda"  # a CPU, which many have without products of bf16, only tests this
        with torch.autocast(self.device.type, torch.bfloat16, enabled=on_gpu, cache_enabled=False):
            loss, total = self.packed.losses(self.batch, LENGTHS[kind], prepared=self.prepared)
        total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        for optimizer in self.optimizers:
            optimizer.step()
        self.loss.copy_(loss)
