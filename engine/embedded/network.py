"""The network as it is trained: Llama's equations, with sublayers that may be left out and exits on the way.

The engine has its own decoder for serving; this one exists for its gradients. `export` writes the names that
Hugging Face's `LlamaForCausalLM` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.embedded.copying import Strengths, write_copying
from engine.embedded.process import uploaded

_SHORT = 2048  # tokens; on a CPU, where scores of all pairs take 0.2 GB a layer then, in batches of 4,096

# The induction circuit that a network begins with.
_CONSTANT = 0.3  # in dimension 0 of every embedding, beside 0.02 of the others
_COPYING = Strengths(look=9.0, note=2.0, find=2.0, say=12.0)


@dataclass(frozen=True)
class Shape:
    """The sizes of a Llama network; `heads` × `head_dim` need not be `hidden`."""

    vocabulary: int = 3072
    layers: int = 12
    hidden: int = 256
    intermediate: int = 512
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    rope_theta: float = 100_000.0
    positions: int = 8192
    epsilon: float = 1e-6

    def config(self, end_token: int) -> dict[str, object]:
        """The `config.json` of the exported checkpoint."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "dtype": "bfloat16",
            "vocab_size": self.vocabulary,
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "rms_norm_eps": self.epsilon,
            "max_position_embeddings": self.positions,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.rope_theta},
            "tie_word_embeddings": True,
            "attention_bias": False,
            "mlp_bias": False,
            "bos_token_id": None,
            "eos_token_id": end_token,
            "pad_token_id": end_token,
        }


class Attention(nn.Module):
    """Causal attention with rotary positions over grouped keys and values, with its norm and residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.norm = nn.Parameter(torch.ones(shape.hidden))
        self.q_proj = nn.Linear(shape.hidden, shape.heads * shape.head_dim, bias=False)
        self.k_proj = nn.Linear(shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.v_proj = nn.Linear(shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.o_proj = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x: [rows, length, hidden]; cos, sin: [length, 1, head_dim / 2]."""
        s = self.shape
        rows, length, _ = x.shape
        y = rms_norm(x, self.norm, s.epsilon)
        made = F.linear(y, torch.cat((self.q_proj.weight, self.k_proj.weight, self.v_proj.weight)))
        made = made.view(rows, length, s.heads + 2 * s.kv_heads, s.head_dim)
        turned, v = rotate(made[:, :, : -s.kv_heads], cos, sin), made[:, :, -s.kv_heads :]
        q, k = turned[:, :, : s.heads], turned[:, :, s.heads :]
        attend = short_attention if x.device.type == "cpu" and length <= _SHORT else long_attention
        out: Tensor = self.o_proj(attend(q, k, v).reshape(rows, length, s.heads * s.head_dim))
        return x + out


class MLP(nn.Module):
    """Gated MLP, with its norm and residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.epsilon = shape.epsilon
        self.norm = nn.Parameter(torch.ones(shape.hidden))
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = rms_norm(x, self.norm, self.epsilon)
        gate, up = F.linear(y, torch.cat((self.gate_proj.weight, self.up_proj.weight))).chunk(2, dim=-1)
        out: Tensor = self.down_proj(F.silu(gate) * up)
        return x + out


class Network(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.attention = nn.ModuleList(Attention(shape) for _ in range(shape.layers))
        self.mlp = nn.ModuleList(MLP(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.hidden))
        self._passes: tuple[Callable[..., Tensor], ...] = (Attention.forward, MLP.forward)
        self._initialise()

    def compile_sublayers(self) -> None:
        """Fuses what lies between the matrix products; a minute at the first batches, then a quarter faster on a CPU.

        On an H200 it took longer: there a step is launching kernels, and compiled parts take Python longer to launch.
        """
        self._passes = tuple(torch.compile(forward, dynamic=True) for forward in self._passes)

    def _initialise(self) -> None:
        """Normal weights; what writes into the residual stream is smaller by its depth."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                writes = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * self.shape.layers) ** 0.5 if writes else 0.02)
        if self.shape.layers > 1:
            with torch.no_grad():
                self.embedding.weight[:, 0] = _CONSTANT
            look, find = self.attention[0], self.attention[1]
            assert isinstance(look, Attention)
            assert isinstance(find, Attention)
            write_copying(look, find, self.embedding.weight, _COPYING)

    @torch.no_grad()
    def grown(self, layers: int, intermediate: int) -> Network:
        """This network before new layers, so that there are `layers`, and with wider MLPs: all of it adds nothing at
        first."""
        network = Network(replace(self.shape, layers=layers, intermediate=intermediate))
        own, width = self.shape.layers, self.shape.intermediate
        network.embedding.load_state_dict(self.embedding.state_dict())
        network.norm.copy_(self.norm)
        for i, (attention, mlp) in enumerate(zip(network.attention, network.mlp, strict=True)):
            assert isinstance(attention, Attention)
            assert isinstance(mlp, MLP)
            if i >= own:
                attention.o_proj.weight.zero_()
                mlp.down_proj.weight.zero_()
                continue
            before = self.mlp[i]
            assert isinstance(before, MLP)
            attention.load_state_dict(self.attention[i].state_dict())
            mlp.norm.copy_(before.norm)
            mlp.gate_proj.weight[:width] = before.gate_proj.weight
            mlp.up_proj.weight[:width] = before.up_proj.weight
            mlp.down_proj.weight[:, :width] = before.down_proj.weight
            mlp.down_proj.weight[:, width:] = 0.0
        return network

    def sublayers(self) -> list[nn.Module]:
        return [m for pair in zip(self.attention, self.mlp, strict=True) for m in pair]

    def states(
        self,
        tokens: Tensor,
        drop: Tensor | None = None,
        exit_after: int | None = None,
        into: dict[int, Tensor] | None = None,
    ) -> tuple[Tensor, ...]:
        """The last residual state, and the one after layer `exit_after` (1-based) if given.

        tokens  [rows, length].
        drop    [2 × layers, rows] of bool, on the host: which rows leave out which sublayer.
        into    for the layers that are its keys, receives what goes into their attention.
        """
        cos, sin = self.rotations(tokens.shape[1], tokens.device)
        kept = None if drop is None else kept_rows(drop, tokens.device)
        x = self.embedding(tokens)
        early: list[Tensor] = []
        for i, sublayer in enumerate(self.sublayers()):
            extra = (cos, sin) if i % 2 == 0 else ()
            run = self._passes[i % 2]
            if into is not None and i % 2 == 0 and i // 2 in into:
                into[i // 2] = x
            if kept is None or len(kept[i]) == len(tokens):
                x = run(sublayer, x, *extra)
            elif len(kept[i]):
                x = x.index_copy(0, kept[i], run(sublayer, x.index_select(0, kept[i]), *extra))
            if exit_after is not None and i == 2 * exit_after - 1:
                early.append(x)
        return (x, *early)

    def logits(self, x: Tensor) -> Tensor:
        return F.linear(rms_norm(x, self.norm, self.shape.epsilon), self.embedding.weight)

    def rotations(self, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the rotary positions, [length, 1, head_dim / 2] each."""
        half = torch.arange(0, self.shape.head_dim, 2, device=device) / self.shape.head_dim
        angles = torch.arange(length, device=device)[:, None] * self.shape.rope_theta**-half
        return angles.cos()[:, None], angles.sin()[:, None]

    def named_checkpoint(self) -> dict[str, Tensor]:
        """The parameters under the names of `LlamaForCausalLM`."""
        tensors: dict[str, Tensor] = {
            "model.embed_tokens.weight": self.embedding.weight,
            "model.norm.weight": self.norm,
        }
        for i, (attention, mlp) in enumerate(zip(self.attention, self.mlp, strict=True)):
            prefix = f"model.layers.{i}."
            blocks = (("input_layernorm", "self_attn", attention), ("post_attention_layernorm", "mlp", mlp))
            for norm, block, module in blocks:
                for name, parameter in module.named_parameters():
                    tensors[prefix + (f"{norm}.weight" if name == "norm" else f"{block}.{name}")] = parameter
        return tensors

    @torch.no_grad()
    def read(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over a checkpoint's tensors; ValueError if they are not of this shape."""
        named = self.named_checkpoint()
        if named.keys() != tensors.keys() or any(named[name].shape != t.shape for name, t in tensors.items()):
            raise ValueError("the checkpoint is of another shape")
        for name, parameter in named.items():
            parameter.copy_(tensors[name])

    def exported(self) -> dict[str, Tensor]:
        """bf16 copies of the weights for a checkpoint."""
        named = self.named_checkpoint().items()
        return {name: t.detach().to("cpu", torch.bfloat16).contiguous() for name, t in named}


def kept_rows(drop: Tensor, device: torch.device) -> tuple[Tensor, ...]:
    """For each sublayer the rows that `drop` [sublayers, rows] does not leave out; their numbers known on the host."""
    counts = (~drop).sum(1).tolist()
    return torch.split(uploaded((~drop).nonzero()[:, 1].contiguous(), device), counts)


def short_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of q [rows, length, heads, width] over k, v [rows, length, kv_heads, width], like q.

    Plain matrix products, the heads of a group folded into one: on a CPU the fused kernel takes four times as long
    after 150 tokens, forward and back, 2.3 times after 680, 1.4 times after 2,000.
    """
    rows, length, heads, width = q.shape
    kv_heads, group = k.shape[2], heads // k.shape[2]
    folded = q.reshape(rows, length, kv_heads, group, width).permute(0, 2, 3, 1, 4).reshape(-1, group * length, width)
    keys = k.permute(0, 2, 3, 1).reshape(-1, width, length)
    values = v.transpose(1, 2).reshape(-1, length, width)
    hidden = torch.full((length, length), float("-inf"), dtype=q.dtype, device=q.device).triu_(1)
    scores = torch.baddbmm(hidden.repeat(group, 1), folded, keys, alpha=width**-0.5)
    out = torch.bmm(scores.softmax(-1).to(values.dtype), values)
    return out.view(rows, kv_heads, group, length, width).permute(0, 3, 1, 2, 4).reshape(rows, length, heads, width)


def long_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same by the fused kernel, whose memory grows with the length only."""
    if q.device.type == "cuda" and q.dtype != torch.float32:  # flash attention, which knows groups
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)
    group = q.shape[2] // k.shape[2]
    q, k, v = (t.transpose(1, 2) for t in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """RMSNorm in float32: x / sqrt(mean(x²) + ε) · weight."""
    y = x.float()
    if y.device.type == "cuda":  # in one kernel
        return F.rms_norm(y, weight.shape, weight, epsilon)
    return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + epsilon) * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions over the two halves of the last dimension."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
