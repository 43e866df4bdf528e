"""Tiny quantised Llama checkpoints in published formats, with their dequantised weights.

Packers and formulas are written out here, independently of the engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.support.cores import tiny_model

AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)  # that bits 0-3, 4-7, ... of a word hold


@dataclass(frozen=True)
class Kind:
    """A format: its quantization_config, and the parameters for writing it."""

    layout: str  # awq, gptq, packed, int8 or fp8
    config: dict[str, Any]
    block: tuple[int, int] = (1, 64)  # outputs and inputs that share a scale; 0: all
    bits: int = 4
    symmetric: bool = True
    act_order: bool = False
    suffix: str = "weight_scale"
    scales: torch.dtype = torch.bfloat16
    input_scale: bool = False  # whether activations have a scale in the checkpoint


def _compressed(format: str, **weights: Any) -> dict[str, Any]:
    """Tensors as llm-compressor writes them."""
    kind = "float" if format.startswith("float") else "int"
    arguments = {"num_bits": 8, "type": kind, "symmetric": True, "dynamic": False, "actorder": None} | weights
    activations = None
    if not format.startswith("pack"):
        activations = {"num_bits": 8, "type": kind, "symmetric": True, "strategy": "token", "dynamic": True}
    group = {"targets": ["Linear"], "weights": arguments, "input_activations": activations, "output_activations": None}
    return {
        "quant_method": "compressed-tensors",
        "format": format,
        "quantization_status": "compressed",
        "global_compression_ratio": None,
        "kv_cache_scheme": None,
        "ignore": ["lm_head"],
        "config_groups": {"group_0": group},
    }


def _gptq(**settings: Any) -> dict[str, Any]:
    return {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": False, "sym": True} | settings


_AWQ = {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"}
_FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"}
_PACK, _HALF = "pack-quantized", torch.float16
_GROUP = {"strategy": "group", "group_size": 64}

KINDS: dict[str, Kind] = {
    "w4a16": Kind("packed", _compressed(_PACK, num_bits=4, **_GROUP)),
    "w4a16-asymmetric": Kind("packed", _compressed(_PACK, num_bits=4, symmetric=False, **_GROUP), symmetric=False),
    "w4a16-act-order": Kind("packed", _compressed(_PACK, num_bits=4, **_GROUP | {"actorder": "group"}), act_order=True),
    "w4a16-channel": Kind("packed", _compressed(_PACK, num_bits=4, strategy="channel"), (1, 0)),
    "w4a16-tensor-asymmetric": Kind(
        "packed", _compressed(_PACK, num_bits=4, strategy="tensor", symmetric=False), (0, 0), symmetric=False
    ),
    "w8a16": Kind("packed", _compressed(_PACK, strategy="channel"), (1, 0), 8),
    "w8a16-asymmetric": Kind("packed", _compressed(_PACK, symmetric=False, **_GROUP), bits=8, symmetric=False),
    "w8a8": Kind("int8", _compressed("int-quantized", strategy="channel"), (1, 0), 8),
    "w8a8-asymmetric": Kind(
        "int8", _compressed("int-quantized", strategy="channel", symmetric=False), (1, 0), 8, symmetric=False
    ),
    "w4a8": Kind("int8", _compressed("int-quantized", num_bits=4, **_GROUP)),
    "naive-int8": Kind("int8", _compressed("naive-quantized", strategy="tensor"), (0, 0), 8),
    "compressed-fp8": Kind("fp8", _compressed("float-quantized", strategy="channel"), (1, 0), 8),
    "compressed-fp8-tensor": Kind(
        "fp8", _compressed("float-quantized", strategy="tensor"), (0, 0), 8, input_scale=True
    ),
    "compressed-fp8-block": Kind(
        "fp8", _compressed("float-quantized", strategy="block", block_structure=[128, 128]), (128, 128), 8
    ),
    "awq": Kind("awq", _AWQ, symmetric=False, scales=_HALF),
    "gptq": Kind("gptq", _gptq(), scales=_HALF),
    "gptq-v2-asymmetric": Kind("gptq", _gptq(checkpoint_format="gptq_v2", sym=False), symmetric=False, scales=_HALF),
    "gptq-asymmetric": Kind("gptq", _gptq(sym=False), symmetric=False, scales=_HALF),
    "gptq-act-order": Kind("gptq", _gptq(desc_act=True), act_order=True, scales=_HALF),
    "gptq-8bit": Kind("gptq", _gptq(bits=8, group_size=-1), (1, 0), 8, scales=_HALF),
    "fp8": Kind("fp8", _FP8 | {"weight_block_size": [128, 128]}, (128, 128), 8, True, False, "weight_scale_inv"),
    "fp8-tensor": Kind("fp8", _FP8, (0, 0), 8, scales=torch.float32),
}


def packed_words(codes: Tensor, bits: int) -> Tensor:
    """int32 [rows, ceil(n·bits/32)] of codes [rows, n], the first in the lowest bits."""
    each = 32 // bits
    codes = torch.nn.functional.pad(codes.long(), (0, -codes.shape[1] % each))
    words = sum(codes[:, i::each] << bits * i for i in range(each))
    assert isinstance(words, Tensor)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).int()


def act_order(inputs: int, size: int) -> Tensor:
    """The group of each input, as if a calibration had sorted inputs: groups of equal size, no neighbours."""
    shuffled = torch.randperm(inputs, generator=torch.Generator().manual_seed(inputs))
    group = torch.empty(inputs, dtype=torch.int32)
    group[shuffled] = (torch.arange(inputs) // size).int()
    return group


def quantised(kind: Kind, weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The tensors stored for a weight [out, in], and its value scale · (code − zero), float32 [out, in]."""
    out, inputs = weight.shape
    rows, columns = kind.block[0] or out, kind.block[1] or inputs
    row, column = torch.arange(out) // rows, torch.arange(inputs) // columns
    if kind.act_order:
        column = act_order(inputs, columns).long()
    shape = (int(row.max()) + 1, int(column.max()) + 1)

    def extreme(values: Tensor, which: str) -> Tensor:
        """The extreme of each block and 0."""
        by_row = torch.zeros(shape[0], inputs).scatter_reduce(0, row[:, None].expand(out, inputs), values, which)
        return torch.zeros(shape).scatter_reduce(1, column.expand(shape[0], inputs), by_row, which)

    def spread(numbers: Tensor) -> Tensor:
        return numbers.float()[row][:, column]

    if kind.layout == "fp8":
        scale = (extreme(weight.abs(), "amax") / 448).to(kind.scales)
        numbers = (weight / spread(scale)).to(torch.float8_e4m3fn)
        stored = {"weight": numbers, kind.suffix: scale.view(1) if shape == (1, 1) else scale}
        if kind.input_scale:
            stored["input_scale"] = torch.ones(1)
        return stored, numbers.float() * spread(scale)
    half, most = 1 << kind.bits - 1, (1 << kind.bits) - 1
    if kind.symmetric:
        scale, zero = (extreme(weight.abs(), "amax") / (half - 1)).to(kind.scales), torch.full(shape, half)
    else:
        low, high = extreme(weight, "amin"), extreme(weight, "amax")
        scale = ((high - low) / most).to(kind.scales)
        zero = (-low / scale.float()).round().clamp(1, most).long()
    codes = (weight / spread(scale) + spread(zero)).round().clamp(0, most)
    meant = spread(scale) * (codes - spread(zero))
    return _stored(kind, codes.long(), scale, zero, column), meant


def _stored(kind: Kind, codes: Tensor, scale: Tensor, zero: Tensor, column: Tensor) -> dict[str, Tensor]:
    bits, half, group = kind.bits, 1 << kind.bits - 1, column.int()
    if kind.layout == "gptq":
        stored_zero = zero if kind.config.get("checkpoint_format") == "gptq_v2" else zero - 1
        return {
            "qweight": packed_words(codes, bits).T.contiguous(),
            "qzeros": packed_words(stored_zero.T, bits),
            "scales": scale.T.contiguous(),
            "g_idx": group,
        }
    if kind.layout == "awq":

        def interleaved(values: Tensor) -> Tensor:
            return values.reshape(len(values), -1, 8)[:, :, list(AWQ_COLUMNS)].flatten(1)

        return {
            "qweight": packed_words(interleaved(codes.T), 4),
            "qzeros": packed_words(interleaved(zero.T), 4),
            "scales": scale.T.contiguous(),
        }
    stored = {"weight_scale": scale.view(1) if scale.numel() == 1 else scale}
    if kind.layout == "int8":
        stored["weight"] = (codes - half).to(torch.int8)
    else:
        stored |= {"weight_packed": packed_words(codes, bits), "weight_shape": torch.tensor(codes.shape)}
        if kind.act_order:
            stored["weight_g_idx"] = group
    if not kind.symmetric:
        packs = kind.layout == "packed" and scale.numel() > 1
        stored["weight_zero_point"] = (
            packed_words(zero.T, bits).T.contiguous() if packs else (zero - half).to(torch.int8)
        )
    return stored


def write_quantised(
    directory: Path, kind: str, *, vocab: int = 512, layers: int = 2, seed: int = 0
) -> dict[str, Tensor]:
    """Write a tiny Llama checkpoint: hidden 256, intermediate 512, 4 heads of 64.

    Returns the weights by the names of a checkpoint that is not quantised, matrices dequantised to float32.
    """
    directory.mkdir(parents=True, exist_ok=True)
    sizes: dict[str, Any] = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64, "num_hidden_layers": layers}
    model = tiny_model(directory, seed=seed, scale=0.5, vocab_size=vocab, **sizes)
    tensors: dict[str, Tensor] = {}
    meant: dict[str, Tensor] = {}
    for name, weight in model.state_dict().items():
        if name.endswith("proj.weight"):
            stored, meant[name] = quantised(KINDS[kind], weight)
            tensors |= {name.removesuffix("weight") + key: tensor.contiguous() for key, tensor in stored.items()}
        else:
            tensors[name] = meant[name] = weight.bfloat16()
    save_file(tensors, directory / "model.safetensors")
    config = json.loads((directory / "config.json").read_text("utf-8"))
    config |= {"dtype": "bfloat16", "quantization_config": KINDS[kind].config}
    (directory / "config.json").write_text(json.dumps(config), "utf-8")
    return meant
