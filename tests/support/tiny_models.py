"""Models of a few kilobytes in all layouts that the engine reads, for tests that damage them."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFValueType
from gguf.quants import quantize
from safetensors.numpy import save
from tokenizers.pre_tokenizers import ByteLevel

from tests.support.gguf_files import gguf_name
from tests.support.quantised_checkpoints import write_quantised

Files = dict[str, bytes]
Field = tuple[str, GGUFValueType, Any]  # key, type and value; a list is (type of its items, items)
TEMPLATE = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}{{ bos_token }}"
SPLIT = r"'s|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
HIDDEN, INNER, HEADS, KV_HEADS, HEAD = 64, 32, 2, 1, 32
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
    alignment: int = field(default=32)

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


BYTE_TOKENS = ["<end>", *sorted(ByteLevel.alphabet()), "ab", "<|user|>", "<|pad|>"]
PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), "▁", "a", "b", "ab", "▁a", "abab"]


def weights(vocab: int, *, qk_norm: bool = False, tied: bool = True) -> dict[str, np.ndarray[Any, Any]]:
    """Tensors of one layer by the names of a checkpoint."""
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (HEADS * HEAD, HIDDEN), "self_attn.k_proj": (KV_HEADS * HEAD, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * HEAD, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * HEAD),
        "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER),
        "input_layernorm": (HIDDEN,), "post_attention_layernorm": (HIDDEN,),
    }  # fmt: skip
    if qk_norm:
        shapes |= dict.fromkeys(("self_attn.q_norm", "self_attn.k_norm"), (HEAD,))
    shapes = {f"model.layers.0.{name}.weight": shape for name, shape in shapes.items()}
    shapes |= {"model.embed_tokens.weight": (vocab, HIDDEN), "model.norm.weight": (HIDDEN,)}
    if not tied:
        shapes["lm_head.weight"] = (vocab, HIDDEN)
    return {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def ggufs() -> dict[str, Gguf]:
    """GGUF files with both kinds of tokenizers."""

    def made(kind: str, tokens: list[str], tokenizer: dict[str, Any], more: dict[str, Any], packed: str) -> Gguf:
        shape = {
            "block_count": 1, "context_length": 64, "embedding_length": HIDDEN, "feed_forward_length": INNER,
            "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "attention.key_length": HEAD,
            "attention.value_length": HEAD, "rope.dimension_count": HEAD, "rope.freq_base": 10000.0,
            "attention.layer_norm_rms_epsilon": 1e-5, "vocab_size": len(tokens),
        }  # fmt: skip
        fields: dict[str, Any] = {"general.architecture": kind, "general.alignment": 32, "general.name": "tiny"}
        fields |= {f"{kind}.{key}": value for key, value in (shape | more).items()}
        fields |= {f"tokenizer.ggml.{key}": value for key, value in ({"tokens": tokens} | tokenizer).items()}
        fields["tokenizer.chat_template"] = TEMPLATE
        tensors = []
        for name, weight in weights(len(tokens), qk_norm=kind == "qwen3").items():
            type = GGMLQuantizationType[packed if weight.ndim == 2 and "v_proj" not in name else "F32"]
            content = quantize(weight, type).tobytes()
            tensors.append(TensorInfo(gguf_name(name), list(weight.shape[::-1]), type, content))
        return Gguf([typed(key, value) for key, value in fields.items()], tensors)

    common = {"eos_token_id": 0, "bos_token_id": 0, "add_bos_token": True, "padding_token_id": 0}
    types = [3] + [1] * 257 + [4, 3]
    bytes_ = {"model": "gpt2", "pre": "llama-bpe", "token_type": types, "merges": ["a b"], "eot_token_id": 0} | common
    pieces = {"model": "llama", "scores": [-float(i) for i in range(len(PIECES))], "unknown_token_id": 0} | common
    pieces |= {"token_type": [2, 3, 3] + [6] * 256 + [1] * 6, "add_space_prefix": True, "eos_token_id": 2}
    yarn = {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.scaling.original_context_length": 32}
    found = {
        "gguf-bytes": made("llama", BYTE_TOKENS, bytes_, {}, "F32"),
        "gguf-pieces": made("llama", PIECES, pieces, yarn, "Q8_0"),
        "gguf-qwen3": made("qwen3", BYTE_TOKENS, bytes_ | {"pre": "qwen2"}, {}, "Q4_0"),
    }
    divisors = np.linspace(1, 8, HEAD // 2, dtype=np.float32)
    tensor = TensorInfo("rope_freqs.weight", [HEAD // 2], GGMLQuantizationType.F32, divisors.tobytes())
    found["gguf-bytes"].tensors.append(tensor)
    return found


def _added(*tokens: tuple[int, str]) -> list[dict[str, Any]]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [{"id": i, "content": text, "special": i == 0 or "pad" in text} | flags for i, text in tokens]


def tokenizers() -> dict[str, dict[str, Any]]:
    """Contents of tokenizer.json for the three usual algorithms."""
    bytes_ = {token: i for i, token in enumerate(BYTE_TOKENS)}
    pieces = {token: i for i, token in enumerate(PIECES)}
    base = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None}
    bpe = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "fuse_unk": False,
        "end_of_word_suffix": None, "byte_fallback": False, "ignore_merges": False,
    }  # fmt: skip
    split = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    special = {"id": "<end>", "ids": [0], "tokens": ["<end>"]}
    begin, text = {"SpecialToken": {"id": "<end>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    pair = [begin, text, {"Sequence": {"id": "B", "type_id": 1}}]
    template = {
        "type": "TemplateProcessing",
        "single": [begin, text],
        "pair": pair,
        "special_tokens": {"<end>": special},
    }
    last = len(BYTE_TOKENS) - 1
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    steps = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    return {
        "bytes": base | {
            "added_tokens": _added((0, "<end>"), (last - 1, "<|user|>"), (last, "<|pad|>")),
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "post_processor": template, "decoder": level,
            "model": bpe | {"vocab": bytes_, "merges": [["a", "b"]]},
        },
        "pieces": base | {
            "added_tokens": _added((0, "<unk>"), (1, "<s>"), (2, "</s>")),
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, space]},
            "pre_tokenizer": None,
            "decoder": {"type": "Sequence", "decoders": [*steps, strip]},
            "model": bpe | {"unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "vocab": pieces,
                            "merges": ["a b", "▁ a", "ab ab"]},
        },
        "unigram": base | {
            "added_tokens": _added((0, "<unk>"), (1, "<s>"), (2, "</s>")),
            "normalizer": {"type": "NFKC"},
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "truncation": {"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0},
            "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                        "pad_type_id": 0, "pad_token": "<unk>"},
            "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                      "vocab": [[piece, -float(i)] for i, piece in enumerate(PIECES)]},
        },
    }  # fmt: skip


_SHAPE: dict[str, Any] = {
    "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "float32", "eos_token_id": 0,
    "attention_bias": False, "mlp_bias": False,
}  # fmt: skip
_LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("bytes", {"rope_theta": 1e4, "rope_scaling": _LLAMA3 | {"original_max_position_embeddings": 16}}),
    "mistral": ("pieces", {"sliding_window": 8, "rope_theta": 1e4}),
    "qwen3": ("unigram", {
        "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0, "layer_types": ["sliding_attention"],
        "rope_parameters": {
            "rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32, "beta_fast": 32,
            "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0, "truncate": True, "rope_theta": 1e4,
        },
    }),
}  # fmt: skip
_FAMILIES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen3": "Qwen3ForCausalLM"}
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


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def checkpoints() -> dict[str, Files]:
    """Checkpoints in Hugging Face's layout, of three families and tokenizers. One is in two files."""
    found: dict[str, Files] = {}
    for family, (kind, own) in _CONFIGS.items():
        vocab = len(BYTE_TOKENS if kind == "bytes" else PIECES)
        config = {"architectures": [_FAMILIES[family]], "model_type": family, "vocab_size": vocab, **_SHAPE, **own}
        tensors = weights(vocab, qk_norm=family == "qwen3")
        files = {"config.json": _json(config), "tokenizer.json": _json(tokenizers()[kind])}
        if family == "mistral":
            parts = [dict(list(tensors.items())[i::2]) for i in range(2)]
            names = [f"model-{i + 1:05d}-of-00002.safetensors" for i in range(2)]
            places = {tensor: name for name, part in zip(names, parts, strict=True) for tensor in part}
            index = {"metadata": {"total_size": 1}, "weight_map": places}
            files |= {name: save(part) for name, part in zip(names, parts, strict=True)}
            files["model.safetensors.index.json"] = _json(index)
        else:
            files["model.safetensors"] = save(tensors)
        files |= {"generation_config.json": _json(GENERATION), "tokenizer_config.json": _json(TOKENIZER_CONFIG)}
        files["chat_template.jinja"] = TEMPLATE.encode()
        found[family] = files
    return found


def quantised_checkpoints(scratch: Path) -> dict[str, Files]:
    """Quantised checkpoints, which are written to `scratch` first."""
    found: dict[str, Files] = {}
    for kind in ("gptq-act-order", "awq", "w4a16-asymmetric", "fp8"):
        directory = scratch / kind
        write_quantised(directory, kind, vocab=len(BYTE_TOKENS), layers=1)
        found[kind] = {path.name: path.read_bytes() for path in directory.iterdir()}
        found[kind]["tokenizer.json"] = _json(tokenizers()["bytes"])
    return found
