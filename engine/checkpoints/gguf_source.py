"""Models in GGUF files, with configuration and tensor names converted to those of Hugging Face checkpoints."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from gguf import MODEL_ARCH, get_tensor_name_map
from torch import Tensor

from engine.architecture.spec import ModelSpec, naming, parse_spec
from engine.checkpoints.generation import check_defaults
from engine.checkpoints.gguf_file import ARCHITECTURES, GgufFile, GgufTensor
from engine.checkpoints.gguf_metadata import check_unread
from engine.checkpoints.gguf_tokenizer import end_ids, read_tokenizer
from engine.checkpoints.hub import SAMPLE
from engine.errors import ModelError
from engine.model.backend import Backend
from engine.model.decoder import ModelWeights
from engine.model.weights import Progress, expected_tensors, load_weights
from engine.quantised.formats import GGUF_FORMATS
from engine.quantised.packed import PackedRows, dequantise

_LAYER = re.compile(r"\.(\d+)\.")
_LAYER_0 = get_tensor_name_map(MODEL_ARCH.QWEN3, 1)  # has all names of the other architectures too
_FREQUENCIES = "rope_freqs.weight"  # divisors of RoPE frequencies
_FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}


class GgufSource:
    """`Source` of a GGUF file, or of a split model by its first file. Raises ModelError."""

    def __init__(self, path: Path, name: str, *, defaults: bool = True) -> None:
        """`defaults`: use the sampling parameters of the metadata."""
        self.directory = path.parent
        self.gguf_path: Path | None = path
        self.name = name
        self._gguf = GgufFile(path)
        with naming(path):
            self.spec = spec_of(self._gguf)
        self.tokenizer = read_tokenizer(self._gguf)
        self.eos_token_ids = tuple(i for i in end_ids(self._gguf) if i < self.spec.vocab)
        values = partial(self._gguf.field, kind=object)
        self.sampling_defaults = check_defaults(path.name, 1, values) if defaults else ()
        check_unread(self._gguf, sampling=defaults)
        self.packed_bytes = sum(tensor.size for tensor in self._gguf.tensors.values())
        self._weights = GgufWeights(self._gguf, self.spec)
        self._gguf.fields.clear()  # frees the vocabulary and merges: 40 MB for 150,000 tokens

    @property
    def packing(self) -> str:
        """The formats of packed matrices, in decreasing order of bytes."""
        sizes: Counter[str] = Counter()
        for tensor in self._gguf.tensors.values():
            if tensor.is_packed:
                sizes[tensor.type] += tensor.size
        return "+".join(name for name, _ in sizes.most_common())

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for tensor in self._gguf.tensors.values():
            digest.update(f"{tensor.name} {tensor.type} {tensor.shape}".encode())
        memory = next(iter(self._gguf.tensors.values())).memory
        digest.update(memory[:SAMPLE])
        digest.update(memory[-SAMPLE:])
        return digest.hexdigest()

    def load(self, dtype: torch.dtype, device: torch.device, backend: Backend, progress: Progress) -> ModelWeights:
        return load_weights(self._weights, self.spec, dtype, device, backend, progress)


class GgufWeights:
    """`CheckpointWeights` of a GGUF file. Raises ModelError for missing, unexpected and misshapen tensors."""

    def __init__(self, gguf: GgufFile, spec: ModelSpec) -> None:
        self.interleaved = spec.architecture == "LlamaForCausalLM"  # llama.cpp's converter reorders q and k
        self._tensors = {}
        for name, shape in expected_tensors(spec).items():
            own = _gguf_name(name)
            tensor = gguf.tensors.get(own)
            if tensor is None:
                raise ModelError(f"{gguf.path} lacks {own}")
            if tensor.shape != shape:
                raise ModelError(f"{own} in {gguf.path.name} is {list(tensor.shape)}, not {list(shape)}")
            self._tensors[name] = tensor
        known = {tensor.name for tensor in self._tensors.values()} | {_FREQUENCIES}
        unexpected = sorted(set(gguf.tensors) - known)
        if unexpected:
            raise ModelError(f"{gguf.path} has {len(unexpected)} unexpected tensors, first {unexpected[0]}")

    def mapped(self, name: str) -> Tensor:
        packed = self.packed_rows(name)
        return _floats(self._tensors[name]) if packed is None else dequantise(packed)

    def packed_rows(self, name: str) -> PackedRows | None:
        tensor = self._tensors[name]
        if not tensor.is_packed:
            return None
        return PackedRows(GGUF_FORMATS[tensor.type], _bytes(tensor).view(tensor.shape[0], -1), tensor.shape[1])

    def release(self, name: str) -> None:
        self._tensors[name].release()


def _gguf_name(name: str) -> str:
    """Convert the name of a tensor in Hugging Face checkpoints to its GGUF name."""
    in_layer = _LAYER.search(name)
    layer = in_layer[1] if in_layer else "0"
    own = _LAYER_0.get_name(name.replace(f".{layer}.", ".0.", 1), (".weight", ".bias"))
    return str(own).replace(".0.", f".{layer}.", 1)


def spec_of(gguf: GgufFile) -> ModelSpec:
    """Convert the metadata and the divisors of RoPE frequencies to a model's shape. Raises ModelError."""
    kind = gguf.field("general.architecture", str, "")
    if kind not in ARCHITECTURES:
        raise ModelError(f"architecture {kind or '(none)'} is not supported; supported: {', '.join(ARCHITECTURES)}")

    def value(key: str, default: Any = None, types: tuple[type, ...] = (int, float, str)) -> Any:
        return gguf.field(f"{kind}.{key}", types, default)

    spec, number = parse_spec(_config(gguf, kind, value)), partial(value, types=(int, float))
    width, factor = spec.head_dim, number("rope.scaling.attn_factor", 1.0)
    if (rotated := number("rope.dimension_count", width)) != width:
        raise ModelError(f"RoPE rotates {rotated} of {width} dimensions; only whole heads are supported")
    for key, only in (("attention.value_length", width), ("attention.scale", width**-0.5)):
        if not math.isclose(found := number(key, only) or only, only, rel_tol=1e-3):
            raise ModelError(f"{kind}.{key} is {found}; only {only:.4g} is supported with keys of {width} dimensions")
    if 0 < (window := number("attention.sliding_window", 0)) < spec.max_positions:
        raise ModelError(f"{kind}.attention.sliding_window is {window}; only the whole context is supported")
    tensor = gguf.tensors.get(_FREQUENCIES)
    if tensor is not None and tensor.shape != (width // 2,):
        raise ModelError(f"{_FREQUENCIES} is {tensor.type} {list(tensor.shape)}; it must be {width // 2} floats")
    divisors = () if tensor is None else tuple(_floats(tensor).tolist())
    for name, factors in ((f"{kind}.rope.scaling.attn_factor", (factor,)), (_FREQUENCIES, divisors)):
        if wrong := [number for number in factors if not 0 < number < math.inf]:
            raise ModelError(f"RoPE scaling has the factor {wrong[0]} in {name}; it must be positive and finite")
    return replace(spec, rope=replace(spec.rope, magnitude=spec.rope.magnitude * factor, divisors=divisors))


def _config(gguf: GgufFile, kind: str, value: Callable[..., Any]) -> dict[str, Any]:
    """Convert the metadata of an architecture to the contents of a config.json. Raises ModelError."""
    embedding, heads = gguf.tensors.get("token_embd.weight"), value("attention.head_count")
    needed = ("attention.head_count", "attention.layer_norm_rms_epsilon")  # fields whose defaults differ
    missing = [f"{kind}.{key}" for key in needed if value(key) is None]
    if embedding is None or missing:
        raise ModelError(f"it lacks {missing[0] if missing else 'token_embd.weight'}")
    config = {
        "architectures": [ARCHITECTURES[kind]],
        "num_hidden_layers": value("block_count"),
        "hidden_size": value("embedding_length"),
        "intermediate_size": value("feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": value("attention.head_count_kv", heads),
        "head_dim": value("attention.key_length"),
        "rms_norm_eps": value("attention.layer_norm_rms_epsilon"),
        "vocab_size": embedding.shape[0],
        "max_position_embeddings": value("context_length"),
        "rope_theta": value("rope.freq_base", 10000.0),
        "rope_scaling": _rope_scaling(value),
        "tie_word_embeddings": "output.weight" not in gguf.tensors,
        "attention_bias": "blk.0.attn_q.bias" in gguf.tensors,
        "mlp_bias": "blk.0.ffn_gate.bias" in gguf.tensors,
        "num_experts": value("expert_count"),
        "dtype": "float32",
    }
    return {key: value for key, value in config.items() if value is not None}


def _rope_scaling(value: Callable[..., Any]) -> dict[str, Any] | None:
    """Convert the scaling of RoPE. As in llama.cpp, a factor without a type is linear."""
    scaling = {
        "rope_type": value("rope.scaling.type", "linear"),
        "factor": value("rope.scaling.factor", value("rope.scale_linear")) or 1.0,  # the second is the older name
        "original_max_position_embeddings": value("rope.scaling.original_context_length"),
        "beta_fast": value("rope.scaling.yarn_beta_fast"),
        "beta_slow": value("rope.scaling.yarn_beta_slow"),
        "mscale": 1.0,
        "mscale_all_dim": value("rope.scaling.yarn_log_multiplier"),
    }
    plain = scaling["rope_type"] == "none" or (scaling["rope_type"], scaling["factor"]) == ("linear", 1)
    return None if plain else scaling


def _bytes(tensor: GgufTensor) -> Tensor:
    """Return the tensor's bytes in the mapped file, uint8 [size]."""
    return torch.frombuffer(tensor.memory, dtype=torch.uint8, count=tensor.size, offset=tensor.begin)


def _floats(tensor: GgufTensor) -> Tensor:
    """View floats [*tensor.shape] in the mapped file."""
    return _bytes(tensor).view(_FLOATS[tensor.type]).view(tensor.shape)
