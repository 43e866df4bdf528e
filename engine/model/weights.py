"""Checkpoints in Hugging Face's Llama layout (config.json, safetensors) to a `Decoder`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import ModelError
from engine.model.attention import interleave
from engine.model.decoder import Decoder, LayerWeights
from engine.model.linear import LinearFactory
from engine.model.spec import ModelSpec

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


def load_decoder(
    directory: Path, spec: ModelSpec, dtype: torch.dtype, device: torch.device, linear: LinearFactory
) -> Decoder:
    """Read the weights, cast to `dtype`, build. Raises ModelError naming missing, unexpected or misshapen tensors."""
    reader = _Reader(directory, _expected(spec))
    order = torch.tensor(interleave(spec.head_dim), device=device)

    def take(name: str) -> Tensor:
        return reader.take(name).to(device=device, dtype=dtype)

    def rotated(name: str) -> Tensor:
        weight = take(name).view(-1, spec.head_dim, spec.hidden)
        return weight.index_select(1, order).reshape(-1, spec.hidden)

    layers = []
    for i in range(spec.layers):
        prefix = f"model.layers.{i}."
        q, k = rotated(prefix + "self_attn.q_proj.weight"), rotated(prefix + "self_attn.k_proj.weight")
        qkv = torch.cat([q, k, take(prefix + "self_attn.v_proj.weight")])
        gate_up = torch.cat([take(prefix + "mlp.gate_proj.weight"), take(prefix + "mlp.up_proj.weight")])
        layers.append(
            LayerWeights(
                attention_norm=take(prefix + "input_layernorm.weight"),
                qkv=linear(qkv),
                output=linear(take(prefix + "self_attn.o_proj.weight")),
                mlp_norm=take(prefix + "post_attention_layernorm.weight"),
                gate_up=linear(gate_up),
                down=linear(take(prefix + "mlp.down_proj.weight")),
            )
        )
    embedding = take("model.embed_tokens.weight")
    head = linear(embedding if spec.tied else take("lm_head.weight"))
    return Decoder(spec, embedding, layers, take("model.norm.weight"), head)


def _expected(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor the checkpoint must hold."""
    hidden, width, inner = spec.hidden, spec.head_dim, spec.intermediate
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (spec.vocab, hidden),
        "model.norm.weight": (hidden,),
    }
    if not spec.tied:
        shapes["lm_head.weight"] = (spec.vocab, hidden)
    for i in range(spec.layers):
        prefix = f"model.layers.{i}."
        shapes |= {
            prefix + "input_layernorm.weight": (hidden,),
            prefix + "self_attn.q_proj.weight": (spec.heads * width, hidden),
            prefix + "self_attn.k_proj.weight": (spec.kv_heads * width, hidden),
            prefix + "self_attn.v_proj.weight": (spec.kv_heads * width, hidden),
            prefix + "self_attn.o_proj.weight": (hidden, spec.heads * width),
            prefix + "post_attention_layernorm.weight": (hidden,),
            prefix + "mlp.gate_proj.weight": (inner, hidden),
            prefix + "mlp.up_proj.weight": (inner, hidden),
            prefix + "mlp.down_proj.weight": (hidden, inner),
        }
    return shapes


class _Reader:
    """Maps tensor names to files and checks them against what is expected."""

    def __init__(self, directory: Path, expected: dict[str, tuple[int, ...]]) -> None:
        self._expected = expected
        self._where = dict(self._locate(directory))
        missing = sorted(set(expected) - set(self._where))
        # Tied checkpoints may still carry the head, and old ones carry RoPE buffers: both are recomputed.
        ignored = {"lm_head.weight"} | {name for name in self._where if name.endswith("rotary_emb.inv_freq")}
        unexpected = sorted(set(self._where) - set(expected) - ignored)
        for kind, names in (("lacks", missing), ("has unexpected", unexpected)):
            if names:
                raise ModelError(f"{directory} {kind} {len(names)} tensors, first {names[0]}")

    def take(self, name: str) -> Tensor:
        path = self._where[name]
        try:
            with safe_open(path, framework="pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ModelError(f"cannot read {name} from {path}: {error}") from None
        if tuple(tensor.shape) != self._expected[name]:
            raise ModelError(f"{name} in {path.name} is {list(tensor.shape)}, not {list(self._expected[name])}")
        if not tensor.is_floating_point():
            raise ModelError(f"{name} in {path.name} is {tensor.dtype}; only floating-point checkpoints are supported")
        return tensor

    @staticmethod
    def _locate(directory: Path) -> Iterator[tuple[str, Path]]:
        files = [directory / _SINGLE]
        if (directory / _INDEX).exists():
            try:
                index = json.loads((directory / _INDEX).read_text(encoding="utf-8"))["weight_map"]
                files = sorted({directory / name for name in index.values()})
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise ModelError(f"cannot read {directory / _INDEX}: {error!r}") from None
        for path in files:
            if not path.exists():
                raise ModelError(f"{directory} has no {path.name}")
            try:
                with safe_open(path, framework="pt") as file:
                    for name in file.keys():  # noqa: SIM118 - not a mapping
                        yield name, path
            except (SafetensorError, OSError) as error:
                raise ModelError(f"cannot read {path}: {error}") from None
