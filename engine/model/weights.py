"""Load a checkpoint in Hugging Face's layout, one tensor at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.model.backend import Backend
from engine.model.decoder import LayerWeights, ModelWeights
from engine.model.linear import Linear
from engine.plans import TARGET
from engine.quantised.packed import PackedRows

log = logging.getLogger("knapserve.engine")

Progress = Callable[[float], None]  # takes the share of the work that is done
_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"


class CheckpointWeights(Protocol):
    """A model's tensors by the names of `expected_tensors`, some of which may be packed. Raises ModelError."""

    interleaved: bool  # whether q and k rows have the order that `attention.Rope` needs

    def mapped(self, name: str) -> Tensor:
        """Return floats [out, in] or [n], which may be the file's own memory."""

    def packed_rows(self, name: str) -> PackedRows | None:
        """Return a matrix in the packed format of the checkpoint; None if it is not packed."""

    def release(self, name: str) -> None:
        """Drop a tensor's pages of the file from memory: it is not read again."""


def load_weights(
    weights: CheckpointWeights,
    spec: ModelSpec,
    dtype: torch.dtype,
    device: torch.device,
    backend: Backend,
    progress: Progress = lambda share: None,
) -> ModelWeights:
    """Read the weights.

    Matrices stay packed if the backend can read them packed; all other tensors are cast to `dtype`. Loading needs extra
    memory for the widest matrix of a layer, or for the head if it is cast. `progress` gets the share done. Raises
    ModelError.
    """
    linear = backend.linear
    loader = _Loader(spec, weights, dtype, device, backend)
    layers = []
    for i in range(spec.layers):
        layers.append(loader.layer(i))
        progress((i + 1) / (spec.layers + 1))
    packed, packed_embedding = weights.packed_rows(_EMBEDDING), None
    # The kernels look up only GGUF's formats.
    if packed is not None and packed.format.block_bytes and backend.looks_up_packed:
        packed_embedding = packed
        embedding, head = packed.rows, loader.linear((_EMBEDDING if spec.tied else _HEAD,))
    elif spec.tied and (packed is not None or not linear.shares):
        # The head is a copy in another form, so only the embedding's rows that are looked up need be in memory.
        embedding, head = weights.mapped(_EMBEDDING), loader.linear((_EMBEDDING,))
        if packed is not None or embedding.dtype not in (torch.bfloat16, torch.float32):  # kernels look up no others
            embedding = loader.tensor(_EMBEDDING)
    else:
        embedding = loader.tensor(_EMBEDDING)
        head = linear(embedding, None) if spec.tied else loader.linear((_HEAD,))
    norm = loader.tensor("model.norm.weight")
    loader.report()
    progress(1.0)
    return ModelWeights(embedding, {TARGET: tuple(layers)}, norm, {TARGET: head}, packed_embedding)


class _Loader:
    """Reads tensors into their place, in the engine's dtype, without copies in between.

    Packed matrices stay packed where the backend can read them. If it makes layers in another form, all other matrices
    are read into the same scratch memory. Pages of the files are dropped after use.
    """

    def __init__(
        self, spec: ModelSpec, weights: CheckpointWeights, dtype: torch.dtype, device: torch.device, backend: Backend
    ) -> None:
        self._spec, self._weights, self._linear, self._packing = spec, weights, backend.linear, backend.packing
        self._dtype, self._device = dtype, device
        self._shapes = expected_tensors(spec)
        self._scratch = self._empty((0,))
        self._expanded: list[tuple[str, int, int]] = []  # each matrix: its name, its bytes packed and unpacked

    def tensor(self, *names: str) -> Tensor:
        """Copy tensors, stacked to [all rows, …]: a mapped tensor would become invalid with its file."""
        return self._fill(self._empty(self._stacked(names)), names)

    def linear(self, names: tuple[str, ...], biases: tuple[str, ...] = (), *, gated: bool = False) -> Linear:
        """Make one linear layer of projections that read the same input."""
        bias = self.tensor(*biases) if biases else None
        packing, parts = self._packing, self._packed_parts(names)
        if packing is not None and len(parts) == len(names) and packing.packs(parts, gated=gated):
            made = packing.from_packed(parts, bias, gated=gated, release=partial(self._release, names))
        else:
            if parts:
                expanded = prod(self._stacked(names)) * self._dtype.itemsize
                self._expanded.append((names[0], sum(part.rows.nbytes for part in parts), expanded))
            parts.clear()  # frees their memory before the matrices are unpacked
            weight = self.tensor(*names) if self._linear.shares else self._scratch_or_mapped(names)
            made = self._linear(weight, bias, gated=gated)
        self._release(names)
        return made

    def _needs_interleaving(self, name: str) -> bool:
        """Whether the rows of a tensor belong to q or k heads and are not in RoPE's order yet."""
        heads = any(part in name for part in ("q_proj", "k_proj", "q_norm", "k_norm"))
        return heads and not (self._weights.interleaved and "proj" in name)

    def _scratch_or_mapped(self, names: tuple[str, ...]) -> Tensor:
        """Return stacked tensors [all rows, …], valid until the next call, in scratch memory or in their file."""
        if len(names) == 1 and not self._needs_interleaving(names[0]):
            source = self._weights.mapped(names[0])
            if (source.dtype, source.device) == (self._dtype, self._device):
                return source
        shape = self._stacked(names)
        if self._scratch.numel() < prod(shape):
            self._scratch = self._empty((0,))
            self._scratch = self._empty((prod(shape),))
        return self._fill(self._scratch[: prod(shape)].view(shape), names)

    def _empty(self, shape: tuple[int, ...]) -> Tensor:  # [*shape]
        return torch.empty(shape, dtype=self._dtype, device=self._device)

    def layer(self, layer: int) -> LayerWeights:
        """Read the weights of one layer."""
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
        """Return the shape of the tensors, one below the other."""
        return (sum(self._shapes[name][0] for name in names), *self._shapes[names[0]][1:])

    def _fill(self, target: Tensor, names: tuple[str, ...]) -> Tensor:
        """Stack tensors in target [all rows, …], with q and k rows interleaved (`attention.Rope`)."""
        row = 0
        for name in names:
            source = self._weights.mapped(name)
            place = target[row : row + source.shape[0]]
            row += source.shape[0]
            if self._needs_interleaving(name):
                half, rest = self._spec.head_dim // 2, source.shape[1:]
                place.view(-1, half, 2, *rest).copy_(source.view(-1, 2, half, *rest).transpose(1, 2))
            else:
                place.copy_(source)
        return target

    def _release(self, names: tuple[str, ...]) -> None:
        for name in names:
            self._weights.release(name)

    def _packed_parts(self, names: tuple[str, ...]) -> list[PackedRows]:
        found = [(name, self._weights.packed_rows(name)) for name in names]
        return [self._ordered(name, part) for name, part in found if part is not None]

    def _ordered(self, name: str, packed: PackedRows) -> PackedRows:
        if not self._needs_interleaving(name):
            return packed
        order = torch.arange(packed.shape[0]).view(-1, 2, self._spec.head_dim // 2).transpose(1, 2).reshape(-1)
        return packed.select(order)

    def report(self) -> None:
        """Log a warning if packed matrices had to be unpacked."""
        if not self._expanded:
            return
        log.warning(
            "%d packed matrices (first %s) are expanded to %s: no kernel here reads them packed; %.0f MB, not %.0f",
            len(self._expanded),
            self._expanded[0][0],
            str(self._dtype).removeprefix("torch."),
            sum(expanded for *_, expanded in self._expanded) / 1e6,
            sum(packed for _, packed, _ in self._expanded) / 1e6,
        )


def expected_tensors(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor that the checkpoint must have."""
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
