"""Models of a few kilobytes in all layouts that the engine reads, for tests that damage them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType, quant_shape_from_byte_shape
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import LlamaConfig, MistralConfig, PreTrainedConfig, Qwen3Config

from tests.support.cores import tiny_model
from tests.support.gguf_files import BYTES, fields_of, tensors_of
from tests.support.quantised_checkpoints import write_quantised

Files = dict[str, bytes]
Field = tuple[str, GGUFValueType, Any]  # key, type and value; a list is (type of its items, items)
TEMPLATE = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}{{ bos_token }}"
SPLIT = r"'s|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
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
    alignment: int = 32

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
            data += tensor.content + bytes(-len(tensor.content) % self.alignment)
        return bytes(header + bytes(-len(header) % self.alignment) + data)


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


def typed(key: str, value: Any) -> Field:
    """A field as llama.cpp's converter would write it."""
    match value:
        case bool():
            return key, GGUFValueType.BOOL, value
        case int():
            return key, GGUFValueType.UINT32, value
        case float():
            return key, GGUFValueType.FLOAT32, value
        case str():
            return key, GGUFValueType.STRING, value
        case _:
            inner = typed("", value[0])[1]
            return key, GGUFValueType.ARRAY, (GGUFValueType.INT32 if inner == GGUFValueType.UINT32 else inner, value)


BYTE_TOKENS = ["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "<|user|>", "<|pad|>"]
PIECES = ["<unk>", "<s>", "</s>", *BYTES, "▁", "a", "b", "ab", "▁a", "abab"]
HEAD = 32  # dimensions of a head


@contextmanager
def written(family: type[PreTrainedConfig], tokens: list[str], **changes: Any) -> Iterator[tuple[Path, Any]]:
    """The directory of a checkpoint of one layer, and its model."""
    sizes = {"hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"num_key_value_heads": 1, "head_dim": HEAD, "max_position_embeddings": 64, "vocab_size": len(tokens)}
    with TemporaryDirectory() as directory:
        yield Path(directory), tiny_model(Path(directory), family, tie_word_embeddings=True, **sizes | changes)


def ggufs() -> dict[str, Gguf]:
    """GGUF files with both kinds of tokenizers."""
    common = {"eos_token_id": 0, "bos_token_id": 0, "add_bos_token": True, "padding_token_id": 0}
    types = [3] + [1] * 257 + [4, 3]
    bytes_ = {"model": "gpt2", "pre": "llama-bpe", "token_type": types, "merges": ["a b"], "eot_token_id": 0} | common
    pieces = {"model": "llama", "scores": [-float(i) for i in range(len(PIECES))], "unknown_token_id": 0} | common
    pieces |= {"token_type": [2, 3, 3] + [6] * 256 + [1] * 6, "add_space_prefix": True, "eos_token_id": 2}
    yarn = {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.scaling.original_context_length": 32}
    found: dict[str, Gguf] = {}
    for name, family, tokens, tokenizer, more, packed in (
        ("gguf-bytes", LlamaConfig, BYTE_TOKENS, bytes_, {}, "F32"),
        ("gguf-pieces", LlamaConfig, PIECES, pieces, yarn, "Q8_0"),
        ("gguf-qwen3", Qwen3Config, BYTE_TOKENS, bytes_ | {"pre": "qwen2"}, {}, "Q4_0"),
    ):
        with written(family, tokens) as (_, model):
            kind, stored = model.config.model_type, tensors_of(model, {"attn_v": "F32", "": packed})
            shape = {"rope.dimension_count": HEAD, "attention.value_length": HEAD, "vocab_size": len(tokens)}
            fields: dict[str, Any] = {"general.architecture": kind, "general.alignment": 32, "general.name": "tiny"}
            fields |= fields_of(model.config, kind)
        fields |= {f"{kind}.{key}": value for key, value in (shape | more).items()}
        fields |= {f"tokenizer.ggml.{key}": value for key, value in ({"tokens": tokens} | tokenizer).items()}
        fields["tokenizer.chat_template"] = TEMPLATE
        tensors = [_tensor(name, content, GGMLQuantizationType[type]) for name, (content, type) in stored.items()]
        found[name] = Gguf([typed(key, value) for key, value in fields.items()], tensors)
    divisors = np.linspace(1, 8, HEAD // 2, dtype=np.float32)
    found["gguf-bytes"].tensors.append(_tensor("rope_freqs.weight", divisors, GGMLQuantizationType.F32))
    return found


def _tensor(name: str, stored: np.ndarray[Any, Any], type: GGMLQuantizationType) -> TensorInfo:
    shape = stored.shape if stored.dtype == np.float32 else quant_shape_from_byte_shape(stored.shape, type)
    return TensorInfo(name, list(shape[::-1]), type, stored.tobytes())


def tokenizers() -> dict[str, bytes]:
    """Contents of tokenizer.json for the three usual algorithms."""
    bytes_ = Tokenizer(models.BPE({token: i for i, token in enumerate(BYTE_TOKENS)}, [("a", "b")]))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytes_.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"), level])
    bytes_.post_processor = TemplateProcessing("<end> $A", "<end> $A $B:1", [("<end>", 0)])
    bytes_.decoder = decoders.ByteLevel()
    bytes_.add_special_tokens(["<end>", "<|pad|>"])
    bytes_.add_tokens(["<|user|>"])
    vocabulary, merges = {piece: i for i, piece in enumerate(PIECES)}, [("a", "b"), ("▁", "a"), ("ab", "ab")]
    pieces = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    spaces = decoders.Replace("▁", " ")
    pieces.decoder = decoders.Sequence([spaces, decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    unigram = Tokenizer(models.Unigram([(piece, -float(i)) for i, piece in enumerate(PIECES)], 0, byte_fallback=True))
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer, unigram.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    unigram.enable_truncation(512)
    unigram.enable_padding(length=8, pad_token="<unk>")
    for made in (pieces, unigram):
        made.add_special_tokens(["<unk>", "<s>", "</s>"])
    return {
        name: made.to_str().encode() for name, made in (("bytes", bytes_), ("pieces", pieces), ("unigram", unigram))
    }


_LLAMA3 = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0, "original_max_position_embeddings": 32, "beta_fast": 32}
_FAMILIES: dict[str, tuple[type[PreTrainedConfig], str, dict[str, Any]]] = {
    "llama": (LlamaConfig, "bytes", {"rope_parameters": _LLAMA3 | {"original_max_position_embeddings": 16}}),
    "mistral": (MistralConfig, "pieces", {"sliding_window": 8}),
    "qwen3": (
        Qwen3Config,
        "unigram",
        {
            "use_sliding_window": True,
            "sliding_window": 8,
            "max_window_layers": 0,
            "layer_types": ["sliding_attention"],
            "rope_parameters": _YARN | {"beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0, "truncate": True},
        },
    ),
}
GENERATION = {
    "temperature": 0.7, "top_p": 0.9, "top_k": 20, "min_p": 0.0, "repetition_penalty": 1.1, "max_new_tokens": 32,
    "eos_token_id": [0, 1], "do_sample": True,
}  # fmt: skip
TOKENIZER_CONFIG = {
    "eos_token": "<end>", "bos_token": {"content": "<end>", "special": True}, "pad_token": None, "unk_token": "<unk>",
    "chat_template": [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": TEMPLATE}],
    "model_max_length": 10**30, "tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True,
    "added_tokens_decoder": {"0": {"content": "<end>", "special": True}},
}  # fmt: skip


def checkpoints() -> dict[str, Files]:
    """Checkpoints in Hugging Face's layout, of three families and tokenizers. One is in several files."""
    found: dict[str, Files] = {}
    for name, (family, kind, changes) in _FAMILIES.items():
        with written(family, BYTE_TOKENS if kind == "bytes" else PIECES, **changes) as (directory, model):
            if name == "mistral":
                (directory / "model.safetensors").unlink()
                model.save_pretrained(directory, max_shard_size="70KB")
            files = {path.name: path.read_bytes() for path in directory.iterdir()}
        config = json.loads(files["config.json"])
        if name == "llama":  # the names of most published checkpoints
            rope = config.pop("rope_parameters")
            config |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope}
        files |= {"tokenizer.json": tokenizers()[kind], "chat_template.jinja": TEMPLATE.encode()}
        texts = {"config": config, "generation_config": GENERATION, "tokenizer_config": TOKENIZER_CONFIG}
        found[name] = files | {f"{file}.json": json.dumps(value).encode() for file, value in texts.items()}
    return found


def quantised_checkpoints(scratch: Path) -> dict[str, Files]:
    """Quantised checkpoints, which are written to `scratch` first."""
    found: dict[str, Files] = {}
    for kind in ("gptq-act-order", "awq", "w4a16-asymmetric", "fp8"):
        directory = scratch / kind
        write_quantised(directory, kind, vocab=len(BYTE_TOKENS), layers=1)
        files = {path.name: path.read_bytes() for path in directory.iterdir()}
        found[kind] = files | {"tokenizer.json": tokenizers()["bytes"]}
    return found
