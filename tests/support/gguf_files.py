"""Tiny GGUF files, written with the `gguf` library as llama.cpp's converter writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from tokenizers.pre_tokenizers import ByteLevel
from torch import Tensor

from engine.quantised.formats import GGUF_FORMATS
from tests.support import PREPARED
from tests.support.packed import HALVES, random_rows

_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.o_proj": "attn_output",
    **{f"self_attn.{name}_proj": f"attn_{name}" for name in "qkv"},
    **{f"self_attn.{name}_norm": f"attn_{name}_norm" for name in "qk"},
    **{f"mlp.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")},
}  # fmt: skip
_CENTRES = {"Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}  # of codes, where blocks have minima

Tensors = dict[str, tuple[np.ndarray[Any, Any], str]]  # by name: bytes or floats, and the type


def gguf_name(name: str) -> str:
    """The GGUF name of a transformers parameter."""
    stem, _, kind = name.rpartition(".")
    if stem in _NAMES:
        return f"{_NAMES[stem]}.{kind}"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{_NAMES[rest]}.{kind}"


def random_blocks(name: str, out: int, inputs: int, seed: int) -> np.ndarray[Any, Any]:
    """Random blocks of a K-quant, with weights of realistic size."""
    rows = random_rows(GGUF_FORMATS[name], out, inputs, seed).rows.numpy()
    blocks, random = rows.reshape(out, -1, GGUF_FORMATS[name].block_bytes), np.random.default_rng(seed)
    for factor in (1.0, 0.08):  # once to learn the size
        size = factor if factor == 1 else factor / dequantize(rows, GGMLQuantizationType[name]).std()
        for i, start in enumerate(HALVES[name]):
            number = random.uniform(0.5, 1, blocks.shape[:2]) * size * (_CENTRES[name] if i else 1)
            blocks[..., start : start + 2] = number.astype(np.float16)[..., None].view(np.uint8)
    return rows


def tensors_of(model: Any, types: Mapping[str, str], heads: Mapping[str, int] | None = None) -> Tensors:
    """Tensors of a transformers model, whose weights are replaced by the stored ones.

    `types` maps parts of names to types; vectors are F32. `heads` maps "attn_q" and "attn_k" to their heads, whose rows
    are reordered as by llama.cpp's converter.
    """
    found: Tensors = {}
    for seed, (name, parameter) in enumerate(model.named_parameters()):
        new = gguf_name(name)
        weight = parameter.detach().float().numpy()
        type = next((t for part, t in types.items() if part in new), "F32") if weight.ndim == 2 else "F32"
        count = next((n for part, n in (heads or {}).items() if f"{part}.weight" in new), 0)
        weight = turned(weight, count) if count else weight
        kind = GGMLQuantizationType[type]
        stored = (
            random_blocks(type, weight.shape[0], weight.shape[1], seed)
            if type.endswith("_K")
            else quantize(weight, kind)
        )
        found[new] = (stored, type)
        back = dequantize(stored, kind)
        back = back.reshape(count, -1, 2, back.shape[1]).swapaxes(1, 2).reshape(back.shape) if count else back
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(back))
    return found


def turned(weight: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Interleave the halves of each head's rows."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def byte_level(pre: str = "smollm") -> dict[str, Any]:
    """Metadata of the prepared fixture's tokenizer."""
    made = json.loads((PREPARED / "tokenizer.json").read_text("utf-8"))
    tokens = {i: token for token, i in made["model"]["vocab"].items()}
    types = dict.fromkeys(tokens, 1)
    for added in made["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = 3 if added["special"] else 4
    fields = {
        "model": "gpt2",
        "pre": pre,
        "tokens": [tokens[i] for i in range(len(tokens))],
        "token_type": [types[i] for i in range(len(tokens))],
        "merges": [" ".join(merge) if isinstance(merge, list) else merge for merge in made["model"]["merges"]],
        "eos_token_id": 0,
        "padding_token_id": 0,
    }
    template = (PREPARED / "chat_template.jinja").read_text("utf-8")
    return {f"tokenizer.ggml.{key}": value for key, value in fields.items()} | {"tokenizer.chat_template": template}


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
PIECES = ["<unk>", "<s>", "</s>", *BYTES, "▁", "a", "b", "c", "ab", "bc", "▁a", "abc"]


def sentence_piece(**scores: float) -> dict[str, Any]:
    """Metadata of a small SentencePiece tokenizer; a piece's score is -100 unless it is given."""
    fields: dict[str, Any] = {
        "model": "llama",
        "tokens": PIECES,
        "scores": [float(scores.get(piece, -100)) for piece in PIECES],
        "token_type": [2, 3, 3, *[6] * 256, *[1] * (len(PIECES) - 259)],
        **{"unknown_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    }
    return {f"tokenizer.ggml.{key}": value for key, value in fields.items()}


def fields_of(config: Any, architecture: str) -> dict[str, Any]:
    """Metadata that llama.cpp's converter writes for a transformers config."""
    fields = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": float(config.rope_parameters["rope_theta"]),
    }
    return {f"{architecture}.{key}": value for key, value in fields.items()}


def write(path: Path, fields: Mapping[str, Any], tensors: Tensors, architecture: str = "llama") -> Path:
    """Write a file; fields of None are left out, ints are uint32, floats float32."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in fields.items():
        match value:
            case None:
                continue
            case bool():
                writer.add_bool(key, value)
            case int():
                writer.add_uint32(key, value)
            case float():
                writer.add_float32(key, value)
            case str():
                writer.add_string(key, value)
            case _:
                writer.add_array(key, value)
    for name, (stored, type) in tensors.items():
        writer.add_tensor(name, stored, raw_dtype=GGMLQuantizationType[type])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def small() -> tuple[dict[str, Any], Tensors]:
    """Fields and tensors of a Llama of one layer with bytes as tokens: a file of a few kilobytes."""
    tokens = ["<end>", *sorted(ByteLevel.alphabet()), "ab"]
    fields: dict[str, Any] = {
        "block_count": 1, "context_length": 64, "embedding_length": 8, "feed_forward_length": 8,
        "attention.head_count": 2, "attention.head_count_kv": 1, "attention.layer_norm_rms_epsilon": 1e-5,
    }  # fmt: skip
    fields = {f"llama.{key}": value for key, value in fields.items()}
    tokenizer = {"model": "gpt2", "pre": "gpt-2", "tokens": tokens, "token_type": [3] + [1] * 257, "merges": ["a b"]}
    fields |= {f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()} | {"tokenizer.ggml.eos_token_id": 0}
    shapes = {"attn_q": (8, 8), "attn_k": (4, 8), "attn_v": (4, 8), "attn_output": (8, 8)}
    shapes |= dict.fromkeys(("ffn_gate", "ffn_up", "ffn_down"), (8, 8))
    numbers = {"token_embd.weight": (258, 8), "output_norm.weight": (8,)}
    numbers |= {f"blk.0.{name}.weight": shape for name, shape in shapes.items()}
    numbers |= {f"blk.0.{name}.weight": (8,) for name in ("attn_norm", "ffn_norm")}
    return fields, {name: (np.full(shape, 0.5, np.float32), "F32") for name, shape in numbers.items()}


def floats(tensor: Tensor) -> tuple[np.ndarray[Any, Any], str]:
    return tensor.float().numpy(), "F32"


_TOKENIZER_KEYS = ("normalizer.lowercase", "escape_whitespaces", "suppress_tokens", "cls_token_id", "of_the_future")
_MODEL_KEYS = ("rope.scale_linear", "attention.value_scale", "hidden_activation", "of_the_future")


def _strings(space: Any) -> Iterator[str]:
    for value in vars(space).values():
        if isinstance(value, type):
            yield from _strings(value)
        elif isinstance(value, str) and "." in value:
            yield value


@cache
def all_keys() -> list[str]:
    """All keys of the `gguf` library, and some older and newer ones, that may matter to a Llama."""
    keys = {key.replace("{arch}", "llama") for key in _strings(gguf.Keys)}
    keys |= {f"llama.{key}" for key in _MODEL_KEYS} | {"tokenizer.ggml." + key for key in _TOKENIZER_KEYS}
    return sorted(
        key for key in keys if key.startswith(("llama.", "tokenizer.", "general.sampling.")) and "{" not in key
    )
