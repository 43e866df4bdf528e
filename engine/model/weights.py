"""Checkpoints in Hugging Face's layout to a `Decoder`, one tensor at a time: read, cast, put into place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from engine.model.attention import interleave
from engine.model.checkpoint import Checkpoint
from engine.model.decoder import Decoder, LayerWeights
from engine.model.linear import Linear, LinearFactory
from engine.model.spec import ModelSpec

Take = Callable[[str], Tensor]


def load_decoder(
    directory: Path,
    spec: ModelSpec,
    dtype: torch.dtype,
    device: torch.device,
    linear: LinearFactory,
    progress: Callable[[float], None] = lambda share: None,
) -> Decoder:
    """Read the weights, cast to `dtype`, build. Raises ModelError naming missing, unexpected or misshapen tensors.

    Beside the weights it takes memory for two copies of a layer's widest matrix. `progress` gets the share
    done.
    """
    checkpoint = Checkpoint(directory, expected_tensors(spec))

    def take(name: str) -> Tensor:
        """A copy of our own: a mapped tensor would go bad with its file."""
        return checkpoint.mapped(name).to(device=device, dtype=dtype, copy=True)

    layers = []
    for i in range(spec.layers):
        layers.append(layer_weights(spec, i, take, linear))
        progress((i + 1) / (spec.layers + 1))
    embedding = take("model.embed_tokens.weight")
    head = linear(embedding if spec.tied else take("lm_head.weight"), None)
    if spec.tied and not head.shares and device.type == "cpu":
        # The head has a form of its own; of the embedding only the rows that are looked up need be in memory.
        embedding = checkpoint.mapped("model.embed_tokens.weight")
    decoder = Decoder(spec, dtype, embedding, layers, take("model.norm.weight"), head)
    progress(1.0)
    return decoder


def layer_weights(spec: ModelSpec, layer: int, take: Take, linear: LinearFactory) -> LayerWeights:
    """One layer from its tensors; projections that read the same input become one matrix."""
    prefix = f"model.layers.{layer}."
    order = torch.tensor(interleave(spec.head_dim))

    def turned(name: str) -> Tensor:
        """q and k rows in the order that RoPE uses (`attention.rotate`)."""
        part = take(name)
        heads = part.view(-1, spec.head_dim, *part.shape[1:])
        return heads.index_select(1, order.to(part.device)).reshape(part.shape)

    def fused(names: tuple[str, ...], biased: bool, read: tuple[Take, ...]) -> Linear:
        """The matrices stacked."""
        parts = {
            suffix: torch.cat([r(f"{prefix}{name}.{suffix}") for name, r in zip(names, read, strict=True)])
            for suffix in (("weight", "bias") if biased else ("weight",))
        }
        return linear(parts["weight"], parts.get("bias"))

    attention = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    norms = None
    if spec.qk_norm:
        q, k = (turned(f"{prefix}self_attn.{name}_norm.weight") for name in ("q", "k"))
        norms = torch.cat([q.expand(spec.heads, -1), k.expand(spec.kv_heads, -1)])
    return LayerWeights(
        attention_norm=take(prefix + "input_layernorm.weight"),
        qkv=fused(attention, spec.qkv_bias, (turned, turned, take)),
        qk_norm=norms,
        output=fused(("self_attn.o_proj",), spec.output_bias, (take,)),
        mlp_norm=take(prefix + "post_attention_layernorm.weight"),
        gate_up=fused(("mlp.gate_proj", "mlp.up_proj"), spec.mlp_bias, (take, take)),
        down=fused(("mlp.down_proj",), spec.mlp_bias, (take,)),
    )


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
