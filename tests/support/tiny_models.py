"""Models of a few kilobytes in all layouts that the engine reads, for tests that damage them."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from gguf import GGUFReader, GGUFValueType
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import LlamaConfig, MistralConfig, PreTrainedConfig, Qwen3Config

from tests.support.cores import tiny_model
from tests.support.gguf_files import BYTES, PIECES, fields_of, sentence_piece, small, tensors_of, write
from tests.support.quantised_checkpoints import write_quantised

Files = dict[str, bytes]
Field = tuple[str, GGUFValueType, Any]  # key, type and value; a list is (type of its items, items)
TEMPLATE = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}{{ bos_token }}"
LETTERS = {
    GGUFValueType.UINT8: "B", GGUFValueType.INT8: "b", GGUFValueType.UINT16: "H", GGUFValueType.INT16: "h",
    GGUFValueType.UINT32: "I", GGUFValueType.INT32: "i", GGUFValueType.FLOAT32: "f", GGUFValueType.BOOL: "?",
    GGUFValueType.UINT64: "Q", GGUFValueType.INT64: "q", GGUFValueType.FLOAT64: "d",
}  # fmt: skip


@dataclass
class TensorInfo:
    """A tensor's header in a GGUF file, and its bytes."""

    name: str
    shape: list[int]  # inputs first
    type: int
    content: bytes
    offset: int | None = None  # None: the right one


@dataclass
class Gguf:
    """What a GGUF file says, right or wrong."""

    fields: list[Field]
    tensors: list[TensorInfo]
    counts: tuple[int, int] = (0, 0)  # added to the numbers of tensors and fields

    def copy(self) -> Gguf:
        return replace(self, fields=list(self.fields), tensors=[replace(t, shape=[*t.shape]) for t in self.tensors])

    def content(self) -> bytes:
        header, data = bytearray(b"GGUF"), bytearray()
        header += struct.pack("<IQQ", 3, len(self.tensors) + self.counts[0], len(self.fields) + self.counts[1])
        for key, kind, value in self.fields:
            header += _text(key) + struct.pack("<I", kind) + _value(kind, value)
        for tensor in self.tensors:
            offset = len(data) if tensor.offset is None else tensor.offset
            header += _text(tensor.name) + struct.pack("<I", len(tensor.shape))
            header += struct.pack(f"<{len(tensor.shape)}QIQ", *tensor.shape, tensor.type, offset)
            data += tensor.content + bytes(-len(tensor.content) % 32)
        return bytes(header + bytes(-len(header) % 32) + data)


def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(raw)) + raw


def _value(kind: GGUFValueType, value: Any) -> bytes:
    if kind == GGUFValueType.STRING:
        return _text(value)
    if kind != GGUFValueType.ARRAY:
        return struct.pack("<" + LETTERS[kind], value)
    inner, items = value
    return struct.pack("<IQ", inner, len(items)) + b"".join(_value(inner, item) for item in items)


def _read(path: Path) -> Gguf:
    """Read a whole file with the `gguf` library."""
    reader = GGUFReader(path)
    fields: list[Field] = []
    for name, found in reader.fields.items():
        if not name.startswith("GGUF."):
            kind, *inner = found.types
            fields.append((name, kind, (inner[0], found.contents()) if inner else found.contents()))
    tensors = [TensorInfo(t.name, [*map(int, t.shape)], t.tensor_type, t.data.tobytes()) for t in reader.tensors]
    return Gguf(fields, tensors)


def ggufs() -> dict[str, Gguf]:
    """GGUF files with both kinds of tokenizers, one in packed weights, one with YaRN and divisors of RoPE."""
    fields, tensors = small()
    floats = {"rope_freqs.weight": (np.linspace(1, 8, 2, dtype=np.float32), "F32")}
    yarn = {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.scaling.original_context_length": 32}
    rows = {"token_embd.weight": (np.full((len(PIECES), 8), 0.5, np.float32), "F32")}
    tokenizer = {key: value for key, value in fields.items() if key.startswith("tokenizer")}
    with TemporaryDirectory() as scratch:
        path = Path(scratch)
        model = tiny_model(path, Qwen3Config, vocab_size=258, num_hidden_layers=1, head_dim=32)
        packed = tensors_of(model, {"attn_v": "F32", "ffn_up": "Q8_0", "": "Q4_0"})
        return {
            "gguf-bytes": _read(write(path / "a", fields | {"tokenizer.chat_template": TEMPLATE}, tensors)),
            "gguf-pieces": _read(
                write(
                    path / "b",
                    fields | sentence_piece(ab=-1.0) | {f"llama.{key}": value for key, value in yarn.items()},
                    tensors | rows | floats,
                )
            ),
            "gguf-qwen3": _read(write(path / "c", fields_of(model.config, "qwen3") | tokenizer, packed, "qwen3")),
        }


def unigram() -> bytes:
    """A tokenizer.json of another algorithm than that of the prepared fixture."""
    pieces = ["<unk>", "<s>", "</s>", *BYTES, "▁", "a", "b", "ab", "▁a", "abab"]
    made = Tokenizer(models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], 0, byte_fallback=True))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.enable_truncation(512)
    made.enable_padding(length=8, pad_token="<unk>")
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    return made.to_str().encode()


_LLAMA3 = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0, "original_max_position_embeddings": 32, "beta_fast": 32}
_WINDOWS = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0}
_FAMILIES: dict[str, tuple[type[PreTrainedConfig], dict[str, Any]]] = {
    "llama": (LlamaConfig, {"rope_parameters": _LLAMA3 | {"original_max_position_embeddings": 16}}),
    "mistral": (MistralConfig, {"sliding_window": 8}),
    "qwen3": (
        Qwen3Config,
        _WINDOWS
        | {"rope_parameters": _YARN | {"beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0, "truncate": True}},
    ),
}
GENERATION = {
    "temperature": 0.7, "top_p": 0.9, "top_k": 20, "min_p": 0.0, "repetition_penalty": 1.1, "max_new_tokens": 32,
    "eos_token_id": [0, 1], "do_sample": True,
}  # fmt: skip
TOKENIZER_CONFIG = {
    "eos_token": "<|end|>", "bos_token": {"content": "<|end|>", "special": True}, "pad_token": None,
    "chat_template": [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": TEMPLATE}],
    "model_max_length": 10**30, "tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True,
    "added_tokens_decoder": {"0": {"content": "<|end|>", "special": True}},
}  # fmt: skip


def checkpoints() -> dict[str, Files]:
    """Checkpoints in Hugging Face's layout, of three families and two tokenizers. One is in several files."""
    found: dict[str, Files] = {}
    sizes = {"hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"num_key_value_heads": 1, "head_dim": 32, "max_position_embeddings": 64, "vocab_size": 268}
    for name, (family, changes) in _FAMILIES.items():
        with TemporaryDirectory() as scratch:
            directory = Path(scratch)
            model = tiny_model(directory, family, tie_word_embeddings=True, **sizes | changes)
            if name == "mistral":
                (directory / "model.safetensors").unlink()
                model.save_pretrained(directory, max_shard_size="70KB")
            files = {path.name: path.read_bytes() for path in directory.iterdir()}
        config = json.loads(files["config.json"])
        if name == "llama":  # the names of most published checkpoints
            rope = config.pop("rope_parameters")
            config |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope}
        if name == "qwen3":
            files["tokenizer.json"] = unigram()
        files["chat_template.jinja"] = TEMPLATE.encode()
        texts = {"config": config, "generation_config": GENERATION, "tokenizer_config": TOKENIZER_CONFIG}
        found[name] = files | {f"{file}.json": json.dumps(value).encode() for file, value in texts.items()}
    return found


def quantised_checkpoints(scratch: Path) -> dict[str, Files]:
    """Quantised checkpoints, which are written to `scratch` first."""
    found: dict[str, Files] = {}
    for kind in ("gptq-act-order", "awq", "w4a16-asymmetric", "fp8"):
        write_quantised(scratch / kind, kind, vocab=256, layers=1)
        found[kind] = {path.name: path.read_bytes() for path in (scratch / kind).iterdir()}
    return found
