"""Checkpoints in Hugging Face's layout to a `Decoder`, one tensor at a time: read, cast, put into place."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from engine.model.backend import Backend
from engine.model.checkpoint import Checkpoint
from engine.model.decoder import Decoder, LayerWeights
from engine.model.linear import Linear, LinearFactory
from engine.model.spec import ModelSpec

Read = Callable[[str], Tensor]


def load_decoder(
    directory: Path,
    spec: ModelSpec,
    dtype: torch.dtype,
    device: torch.device,
    backend: Backend,
    progress: Callable[[float], None] = lambda share: None,
) -> Decoder:
    """Read the weights, cast to `dtype`, build. Raises ModelError naming missing, unexpected or misshapen tensors.

    Beside the weights it takes memory for a layer's widest matrix, or for the head if that has to be cast. `progress`
    gets the share done.
    """
    linear = backend.linear
    checkpoint = Checkpoint(directory, expected_tensors(spec))
    place = Placement(spec, checkpoint.mapped, dtype, device, linear)
    layers = []
    for i in range(spec.layers):
        layers.append(place.layer(i))
        progress((i + 1) / (spec.layers + 1))
    name = "model.embed_tokens.weight"
    if spec.tied and not linear.shares:
        # The head has a form of its own; of the embedding only the rows that are looked up need be in memory.
        embedding, head = checkpoint.mapped(name), place.linear((name,))
        if embedding.dtype == torch.float16:  # which kernels do not look up
            embedding = place.tensor(name)
    else:
        embedding = place.tensor(name)
        head = linear(embedding, None) if spec.tied else place.linear(("lm_head.weight",))
    decoder = backend.decoder(spec, dtype, embedding, layers, place.tensor("model.norm.weight"), head)
    progress(1.0)
    return decoder


class Placement:
    """Puts tensors where they belong, in the engine's dtype: read straight into place, no copies in between.

    Where the backend makes a form of its own, all matrices are read into the same scratch memory.
    """

    def __init__(
        self, spec: ModelSpec, read: Read, dtype: torch.dtype, device: torch.device, linear: LinearFactory
    ) -> None:
        self._spec, self._read, self._linear = spec, read, linear
        self._dtype, self._device = dtype, device
        self._shapes = expected_tensors(spec)
        self._scratch = self._empty((0,))

    def tensor(self, *names: str) -> Tensor:
        """A copy of our own, several stacked: a mapped tensor would go bad with its file."""
        return self._fill(self._empty(self._stacked(names)), names)

    def linear(self, weights: tuple[str, ...], biases: tuple[str, ...] = (), *, gated: bool = False) -> Linear:
        """Projections that read the same input become one matrix."""
        weight = self.tensor(*weights) if self._linear.shares else self._lend(weights)
        return self._linear(weight, self.tensor(*biases) if biases else None, gated=gated)

    def _lend(self, names: tuple[str, ...]) -> Tensor:
        """The stacked tensors until the next call: in scratch memory, or, where one is fit as it is, in its file."""
        if len(names) == 1 and not _turned(names[0]):
            source = self._read(names[0])
            if (source.dtype, source.device) == (self._dtype, self._device):
                return source
        shape = self._stacked(names)
        if self._scratch.numel() < prod(shape):
            self._scratch = self._empty((0,))
            self._scratch = self._empty((prod(shape),))
        return self._fill(self._scratch[: prod(shape)].view(shape), names)

    def _empty(self, shape: tuple[int, ...]) -> Tensor:
        return torch.empty(shape, dtype=self._dtype, device=self._device)

    def layer(self, layer: int) -> LayerWeights:
        spec, prefix = self._spec, f"model.layers.{layer}."

        def projections(biased: bool, *names: str, gated: bool = False) -> Linear:
            biases = tuple(f"{prefix}{name}.bias" for name in names) if biased else ()
            return self.linear(tuple(f"{prefix}{name}.weight" for name in names), biases, gated=gated)

        norms = None
        if spec.qk_norm:
            q, k = (f"{prefix}self_attn.{name}_norm.weight" for name in ("q", "k"))
            norms = self.tensor(*(q,) * spec.heads, *(k,) * spec.kv_heads).view(-1, spec.head_dim)
        return LayerWeights(
            attention_norm=self.tensor(prefix + "input_layernorm.weight"),
            qkv=projections(spec.qkv_bias, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            qk_norm=norms,
            output=projections(spec.output_bias, "self_attn.o_proj"),
            mlp_norm=self.tensor(prefix + "post_attention_layernorm.weight"),
            gate_up=projections(spec.mlp_bias, "mlp.gate_proj", "mlp.up_proj", gated=True),
            down=projections(spec.mlp_bias, "mlp.down_proj"),
        )

    def _stacked(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Shape of these tensors one below the other."""
        return (sum(self._shapes[name][0] for name in names), *self._shapes[names[0]][1:])

    def _fill(self, target: Tensor, names: tuple[str, ...]) -> Tensor:
        """Each tensor below the one before; q and k rows in the order that RoPE turns them in (`attention.Rope`)."""
        row = 0
        for name in names:
            source = self._read(name)
            place = target[row : row + source.shape[0]]
            row += source.shape[0]
            if _turned(name):
                half, rest = self._spec.head_dim // 2, source.shape[1:]
                place.view(-1, half, 2, *rest).copy_(source.view(-1, 2, half, *rest).transpose(1, 2))
            else:
                place.copy_(source)
        return target


def _turned(name: str) -> bool:
    """Whether the rows of a tensor are those of q or k heads."""
    return any(part in name for part in ("q_proj", "k_proj", "q_norm", "k_norm"))


def expected_tensors(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor the checkpoint must hold."""
    hidden, inner = spec.hidden, spec.intermediate
    heads, kv_heads = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (spec.vocab, hidden),
        "model.norm.weight": (hidden,),
    }
    if not spec.tied:
        shapes["lm_head.weight"] = (spec.vocab, hidden)
    for i in range(spec.layers):
        prefix = f"model.layers.{i}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{prefix}{norm}.weight"] = (hidden,)
        if spec.qk_norm:
            for norm in ("q_norm", "k_norm"):
                shapes[f"{prefix}self_attn.{norm}.weight"] = (spec.head_dim,)
        for name, out, into, biased in (
            ("self_attn.q_proj", heads, hidden, spec.qkv_bias),
            ("self_attn.k_proj", kv_heads, hidden, spec.qkv_bias),
            ("self_attn.v_proj", kv_heads, hidden, spec.qkv_bias),
            ("self_attn.o_proj", hidden, heads, spec.output_bias),
            ("mlp.gate_proj", inner, hidden, spec.mlp_bias),
            ("mlp.up_proj", inner, hidden, spec.mlp_bias),
            ("mlp.down_proj", hidden, inner, spec.mlp_bias),
        ):
            shapes[f"{prefix}{name}.weight"] = (out, into)
            if biased:
                shapes[f"{prefix}{name}.bias"] = (out,)
    return shapes
