"""The shape of a checkpoint, normalised from its config.json. Model families differ by flags."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.architecture.rope import RopeSpec, number, parse_rope
from engine.errors import ModelError
from engine.plans import RECENT, SINKS, SKIP, TARGET, WINDOW, Variants


@dataclass(frozen=True, slots=True)
class Family:
    """Properties of an architecture, and transformers' defaults for optional keys of its configurations."""

    qkv_bias: bool | None = None  # None: from `attention_bias`, which then includes the output projection
    mlp_bias: bool = False  # `mlp_bias` is used
    qk_norm: bool = False
    windows: bool = False  # sliding windows are used
    switch: bool = False  # windows require `use_sliding_window` and differ by layer
    kv_heads: int | None = None
    head_dim: int | None = None
    positions: int = 32768


FAMILIES = {
    "LlamaForCausalLM": Family(mlp_bias=True, positions=2048),
    "MistralForCausalLM": Family(qkv_bias=False, windows=True, kv_heads=8, positions=131072),
    "Qwen2ForCausalLM": Family(qkv_bias=True, windows=True, switch=True, kv_heads=32),
    "Qwen3ForCausalLM": Family(qk_norm=True, windows=True, switch=True, kv_heads=32, head_dim=128),
}
DTYPES = ("float64", "float32", "bfloat16", "float16")
_DEFAULT_WINDOW = 4096
_MAX_LAYERS = 2000
_MOST_JSON_BYTES = 32 << 20  # values may take twenty times as much memory
_ACTIVATIONS = ("silu", "swish")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The shape of a decoder. Sublayer 2i is the attention of layer i, sublayer 2i+1 its MLP."""

    architecture: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_positions: int
    norm_eps: float
    tied: bool
    eos_token_ids: tuple[int, ...]
    dtype: str  # the checkpoint's dtype
    rope: RopeSpec = field(default_factory=RopeSpec)
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    windows: tuple[int, ...] = ()  # each layer's visible positions, the own one included; 0: all

    @property
    def whole(self) -> Variants:
        """The plan of the full model."""
        return (TARGET,) * (self.sublayers + 1)

    @property
    def sublayers(self) -> int:
        return 2 * self.layers

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer's matrices."""
        return self.hidden * (2 * self.head_dim * (self.heads + self.kv_heads) + 3 * self.intermediate)

    @property
    def parameters(self) -> int:
        """Weights of all matrices."""
        return self.layers * self.layer_parameters + (1 if self.tied else 2) * self.vocab * self.hidden

    @property
    def shape_key(self) -> str:
        """The name of the shape in profile keys. It contains everything that the cost of a pass depends on."""
        extras = [name for name in ("qkv_bias", "output_bias", "mlp_bias", "qk_norm") if getattr(self, name)]
        if any(self.windows):
            extras.append("w" + "_".join(str(w) for w in sorted(set(self.windows))))
        heads = f"h{self.heads}x{self.head_dim}-kv{self.kv_heads}"
        return "-".join([f"L{self.layers}-d{self.hidden}-f{self.intermediate}", heads, f"v{self.vocab}", *extras])

    def attention_window(self, layer: int, variant: int) -> tuple[int, int]:
        """Return how many of the last tokens (its own included) and of the first tokens a row sees; (0, 0): all."""
        own = self.windows[layer] if self.windows else 0
        return (RECENT, SINKS) if variant == WINDOW and not 0 < own <= RECENT else (own, 0)

    def spans(self, variants: Variants, context: int) -> list[tuple[int, int]]:
        """Return (attention sublayers of a plan, cached tokens that each of them reads for a row at `context`)."""
        run = variants[0 : self.sublayers : 2]
        if not self.windows and WINDOW not in run:
            return [(self.layers - run.count(SKIP), context)]
        windows = (self.attention_window(layer, variant) for layer, variant in enumerate(run) if variant != SKIP)
        counts = Counter(min(context, recent + sinks or context) for recent, sinks in windows)
        return [(count, tokens) for tokens, count in counts.items()]


def load_spec(directory: Path) -> ModelSpec:
    """Read config.json (and generation_config.json for EOS ids). Raises ModelError."""
    config, generation = read_json(directory / "config.json"), read_generation_config(directory)
    with naming(directory / "config.json"):
        return parse_spec(config, generation)


def read_generation_config(directory: Path) -> dict[str, Any]:
    """Read generation_config.json; {} if it does not exist. Raises ModelError."""
    path = directory / "generation_config.json"
    return read_json(path) if path.exists() else {}


def parse_spec(config: dict[str, Any], generation: dict[str, Any] | None = None) -> ModelSpec:
    """Normalise a Hugging Face configuration. Raises ModelError if it is not supported."""
    try:
        spec = _spec(config, generation or {})
    except KeyError as missing:
        raise ModelError(f"it lacks {missing}") from None
    except (TypeError, ValueError, OverflowError, AttributeError) as wrong:
        raise ModelError(f"a value is invalid: {wrong}") from None
    sizes = (spec.layers, spec.hidden, spec.intermediate, spec.heads, spec.kv_heads, spec.head_dim, spec.vocab)
    if min(sizes) < 1 or spec.heads % spec.kv_heads or spec.head_dim % 2 or spec.max_positions < 2:
        raise ModelError(
            f"the shape {spec.shape_key} is impossible: sizes must be at least 1, num_attention_heads a "
            "multiple of num_key_value_heads, head_dim even, and max_position_embeddings at least 2"
        )
    if not 0 <= spec.norm_eps < 1:
        raise ModelError(f"rms_norm_eps is {spec.norm_eps}; it must be at least 0 and below 1")
    if spec.dtype not in DTYPES:
        raise ModelError(f"checkpoints in {spec.dtype} are not supported; supported: {', '.join(DTYPES)}")
    return spec


def _family(config: dict[str, Any]) -> tuple[str, Family]:
    named = config.get("architectures")
    architecture = str(named[0]) if isinstance(named, list) and named else "(none named)"
    supported = f"supported: {', '.join(FAMILIES)}"
    if any(config.get(name) for name in _EXPERTS):
        raise ModelError(f"mixture-of-experts models are not supported (this one: {architecture}); {supported}")
    family = FAMILIES.get(architecture)
    if family is None:
        raise ModelError(f"architecture {architecture} is not supported; {supported}")
    activation = config.get("hidden_act") or "silu"
    if activation not in _ACTIVATIONS:
        raise ModelError(f"activation {activation} is not supported; supported: silu")
    return architecture, family


def _spec(config: dict[str, Any], generation: dict[str, Any]) -> ModelSpec:
    architecture, family = _family(config)
    layers, heads = _count(config, "num_hidden_layers"), _count(config, "num_attention_heads")
    hidden = _count(config, "hidden_size")
    if heads == 0:
        raise ModelError("num_attention_heads is 0; it must be at least 1")
    kv_heads = config.get("num_key_value_heads", family.kv_heads)
    attention_bias = bool(config.get("attention_bias", False))
    positions = _count(config, "max_position_embeddings", family.positions)
    rope = parse_rope(config | {"max_position_embeddings": positions})
    if layers > _MAX_LAYERS:
        raise ModelError(f"num_hidden_layers is {layers}; the limit is {_MAX_LAYERS}")
    return ModelSpec(
        architecture=architecture,
        layers=layers,
        hidden=hidden,
        intermediate=_count(config, "intermediate_size"),
        heads=heads,
        kv_heads=heads if kv_heads is None else _count(config, "num_key_value_heads", kv_heads),
        head_dim=_count(config, "head_dim") if config.get("head_dim") else family.head_dim or hidden // heads,
        vocab=_count(config, "vocab_size"),
        max_positions=max(positions, rope.reach),
        norm_eps=number(config, "rms_norm_eps", 1e-6),
        tied=bool(config.get("tie_word_embeddings", False)),
        eos_token_ids=_eos_ids(config, generation),
        dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32").removeprefix("torch."),
        rope=rope,
        qkv_bias=attention_bias if family.qkv_bias is None else family.qkv_bias,
        output_bias=attention_bias if family.qkv_bias is None else False,
        mlp_bias=family.mlp_bias and bool(config.get("mlp_bias", False)),
        qk_norm=family.qk_norm,
        windows=_windows(family, config, layers),
    )


def _windows(family: Family, config: dict[str, Any], layers: int) -> tuple[int, ...]:
    """Return the sliding window of each layer as in transformers, or () if no layer has one."""
    window = config.get("sliding_window", _DEFAULT_WINDOW)
    if not family.windows or window is None or (family.switch and not config.get("use_sliding_window", False)):
        return ()
    size = _count(config, "sliding_window", window)
    if size < 1:
        raise ModelError(f"sliding_window is {size}; it must be at least 1")
    if not family.switch:
        return (size,) * layers
    kinds = config.get("layer_types")
    if kinds is None:
        first = _count(config, "max_window_layers", 28)
        kinds = ["sliding_attention" if layer >= first else "full_attention" for layer in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise ModelError(f"layer_types must have {layers} entries, one per layer")
    unknown = sorted({str(kind) for kind in kinds} - {"sliding_attention", "full_attention"})
    if unknown:
        raise ModelError(f"layers of type {unknown[0]} are not supported; supported: full_attention, sliding_attention")
    windows = tuple(size if kind == "sliding_attention" else 0 for kind in kinds)
    return windows if any(windows) else ()


def _count(config: dict[str, Any], key: str, default: int | None = None) -> int:
    """Return a non-negative whole number. Raises KeyError if there is none, and ModelError for anything else."""
    value = config.get(key, default)
    if value is None:
        raise KeyError(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**31 or value % 1:
        raise ModelError(f"{key} is {value!r}; it must be a whole number from 0 to 2147483647")
    return int(value)


def _eos_ids(config: dict[str, Any], generation: dict[str, Any]) -> tuple[int, ...]:
    key = "eos_token_id"
    ids = config.get(key)
    if generation.get(key) is not None:
        ids, key = generation[key], f"generation_config.json's {key}"
    if ids is None:
        return ()
    return tuple(_count({key: id}, key) for id in (ids if isinstance(ids, list) else [ids]))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of a file before the message of a ModelError."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a checkpoint's file. Raises ModelError naming the file."""
    try:
        if path.stat().st_size > _MOST_JSON_BYTES:
            raise ValueError(f"it has more than {_MOST_JSON_BYTES} bytes")
        # Integers beyond 64 bits become floats, infinity at most, as in other readers.
        value = json.loads(
            path.read_text(encoding="utf-8"),
            parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits),
        )
        json.dumps(value, ensure_ascii=False).encode()  # raises ValueError for text that is not Unicode
    except (FileNotFoundError, NotADirectoryError):
        raise ModelError(f"{path.parent} is not a checkpoint: it has no {path.name}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"cannot read {path}: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} must contain a JSON object")
    return value
