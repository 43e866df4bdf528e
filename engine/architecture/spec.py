"""What a checkpoint is, normalised once from its config.json. A family is flags here, not a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.architecture.rope import RopeSpec, parse_rope
from engine.errors import ModelError


@dataclass(frozen=True, slots=True)
class Family:
    """What an architecture fixes, and transformers' defaults for keys that its configs may leave out."""

    qkv_bias: bool | None = None  # None: as `attention_bias` says, which then also gives the output projection one
    mlp_bias: bool = False  # whether `mlp_bias` is heeded
    qk_norm: bool = False
    windows: bool = False  # whether sliding windows are heeded
    switch: bool = False  # windows only with `use_sliding_window`, and by layer
    kv_heads: int | None = None
    head_dim: int | None = None
    positions: int = 32768


FAMILIES = {
    "LlamaForCausalLM": Family(mlp_bias=True, positions=2048),
    "MistralForCausalLM": Family(qkv_bias=False, windows=True, kv_heads=8, positions=131072),
    "Qwen2ForCausalLM": Family(qkv_bias=True, windows=True, switch=True, kv_heads=32),
    "Qwen3ForCausalLM": Family(qk_norm=True, windows=True, switch=True, kv_heads=32, head_dim=128),
}
Variants = tuple[int, ...]  # a plan: what it runs of each sublayer, then of the head.
# Nothing, the model's own, a copy in fewer bits, or that copy of an attention, which sees only a window of the cache:
SKIP, TARGET, LOW_BIT, WINDOW = range(4)
# its first tokens, on which attention leans, and the last (Xiao et al. 2023, Efficient Streaming Language Models with
# Attention Sinks: four of the first will do; kernels read this many at once).
SINKS, RECENT = 64, 1024
DTYPES = ("float64", "float32", "bfloat16", "float16")
_DEFAULT_WINDOW = 4096
_MOST_LAYERS = 2000
_ACTIVATIONS = ("silu", "swish")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Shape of a decoder. Sublayer 2i is the attention of layer i, sublayer 2i+1 its MLP."""

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
    dtype: str  # of the checkpoint
    rope: RopeSpec = field(default_factory=RopeSpec)
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    windows: tuple[int, ...] = ()  # by layer: how many positions are seen, the own one included; 0 = all

    @property
    def whole(self) -> Variants:
        """The plan that is the model itself: the variant of each sublayer, then that of the head."""
        return (TARGET,) * (self.sublayers + 1)

    @property
    def sublayers(self) -> int:
        return 2 * self.layers

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer's matrices."""
        return sum(self.sublayer_parameters)

    @property
    def sublayer_parameters(self) -> tuple[int, int]:
        """Of an attention and an MLP."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return attention, 3 * self.hidden * self.intermediate

    @property
    def parameters(self) -> int:
        """Weights of all matrices."""
        return self.layers * self.layer_parameters + (1 if self.tied else 2) * self.vocab * self.hidden

    @property
    def shape_key(self) -> str:
        """Names the shape in profile keys: what a pass costs depends on nothing else of the model."""
        extras = [name for name in ("qkv_bias", "output_bias", "mlp_bias", "qk_norm") if getattr(self, name)]
        if any(self.windows):
            extras.append("w" + "_".join(str(w) for w in sorted(set(self.windows))))
        return "-".join(
            (
                f"L{self.layers}-d{self.hidden}-f{self.intermediate}-h{self.heads}x{self.head_dim}",
                f"kv{self.kv_heads}-v{self.vocab}",
                *extras,
            )
        )

    def sight(self, layer: int, variant: int) -> tuple[int, int]:
        """How many of the last cached tokens a row of this attention sublayer sees, its own included, and how many of
        the first beside these; (0, 0): all."""
        own = self.windows[layer] if self.windows else 0
        return (RECENT, SINKS) if variant == WINDOW and not 0 < own <= RECENT else (own, 0)

    def spans(self, variants: Variants, context: int) -> list[tuple[int, int]]:
        """Of a sub-network: how many attention sublayers read how many cached tokens for a row at `context`."""
        run = variants[0 : self.sublayers : 2]
        if not self.windows and WINDOW not in run:
            return [(self.layers - run.count(SKIP), context)]
        sights = (self.sight(layer, variant) for layer, variant in enumerate(run) if variant != SKIP)
        seen = Counter(min(context, recent + sinks or context) for recent, sinks in sights)
        return [(count, tokens) for tokens, count in seen.items()]

    def scanned(self, variants: Variants, context: int) -> int:
        """Cached tokens that the attention sublayers of a sub-network read for a row at position `context`."""
        return sum(count * tokens for count, tokens in self.spans(variants, context))


NAMES = ("skip", "target", "low-bit", "window")  # of the variants


def count_variants(variants: Variants) -> dict[tuple[str, str], int]:
    """How many sublayers of each kind (attention, mlp, head) a plan runs in each variant, by name."""
    kinds = (("attention", variants[:-1:2]), ("mlp", variants[1::2]), ("head", variants[-1:]))
    found = Counter((kind, NAMES[variant]) for kind, part in kinds for variant in part)
    return dict(found)


def skipped(variants: Variants) -> tuple[int, int]:
    """How many attention and MLP sublayers a plan leaves out."""
    return variants[:-1:2].count(SKIP), variants[1::2].count(SKIP)


def weights_of(variant: int) -> int:
    """The variant whose weights a variant of a sublayer runs."""
    return min(variant, LOW_BIT)


def windows_fit(variants: Variants) -> bool:
    """Whether only attention sublayers of a plan have the variant WINDOW."""
    return WINDOW not in (*variants[1::2], variants[-1])


def exit_plan(spec: ModelSpec, depth: int) -> Variants:
    """Run the first `depth` layers only, then the head."""
    return (TARGET, TARGET) * depth + (SKIP, SKIP) * (spec.layers - depth) + (TARGET,)


def load_spec(directory: Path) -> ModelSpec:
    """Read config.json (and generation_config.json for EOS ids). Raises ModelError."""
    return parse_spec(read_json(directory / "config.json"), read_generation_config(directory))


def read_generation_config(directory: Path) -> dict[str, Any]:
    """generation_config.json, or {} where there is none. Raises ModelError."""
    path = directory / "generation_config.json"
    return read_json(path) if path.exists() else {}


def parse_spec(config: dict[str, Any], generation: dict[str, Any] | None = None) -> ModelSpec:
    """Normalise a Hugging Face config. Raises ModelError for what is not supported, saying what is."""
    architecture, family = _family(config)
    try:
        spec = _spec(architecture, family, config, generation or {})
    except KeyError as missing:
        raise ModelError(f"config.json lacks {missing}") from None
    except (TypeError, ValueError, OverflowError, AttributeError) as wrong:
        raise ModelError(f"config.json has a value of the wrong kind: {wrong}") from None
    sizes = (spec.layers, spec.hidden, spec.intermediate, spec.heads, spec.kv_heads, spec.head_dim, spec.vocab)
    if min(sizes) < 1 or spec.heads % spec.kv_heads or spec.head_dim % 2 or spec.max_positions < 2:
        raise ModelError(f"config.json describes an impossible shape: {spec.shape_key}")
    if not 0 <= spec.norm_eps < 1:
        raise ModelError(f"rms_norm_eps {spec.norm_eps} makes no sense")
    if spec.dtype not in DTYPES:
        raise ModelError(f"a checkpoint in {spec.dtype} is not supported; supported: {', '.join(DTYPES)}")
    return spec


def _family(config: dict[str, Any]) -> tuple[str, Family]:
    """The architecture's name and flags; what is not supported is refused, naming it."""
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


def _spec(architecture: str, family: Family, config: dict[str, Any], generation: dict[str, Any]) -> ModelSpec:
    layers, heads = _count(config["num_hidden_layers"]), _count(config["num_attention_heads"])
    hidden = _count(config["hidden_size"])
    if heads == 0:
        raise ModelError("config.json says num_attention_heads 0")
    kv_heads = config.get("num_key_value_heads", family.kv_heads)
    attention_bias = bool(config.get("attention_bias", False))
    positions = _count(config.get("max_position_embeddings", family.positions))
    rope = parse_rope(config | {"max_position_embeddings": positions})
    if layers > _MOST_LAYERS:
        raise ModelError(f"config.json says {layers} layers")
    return ModelSpec(
        architecture=architecture,
        layers=layers,
        hidden=hidden,
        intermediate=_count(config["intermediate_size"]),
        heads=heads,
        kv_heads=heads if kv_heads is None else _count(kv_heads),
        head_dim=_count(config.get("head_dim") or family.head_dim or hidden // heads),
        vocab=_count(config["vocab_size"]),
        max_positions=max(positions, rope.reach),
        norm_eps=float(config.get("rms_norm_eps", 1e-6)),
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
    """The sliding window of each layer as transformers' configs define it, () where no layer has one."""
    window = config.get("sliding_window", _DEFAULT_WINDOW)
    if not family.windows or window is None or (family.switch and not config.get("use_sliding_window", False)):
        return ()
    size = _count(window)
    if size < 1:
        raise ModelError(f"sliding_window {size} makes no sense")
    if not family.switch:
        return (size,) * layers
    kinds = config.get("layer_types")
    if kinds is None:
        first = _count(config.get("max_window_layers", 28))
        kinds = ["sliding_attention" if layer >= first else "full_attention" for layer in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise ModelError(f"layer_types must name the type of each of the {layers} layers")
    unknown = sorted({str(kind) for kind in kinds} - {"sliding_attention", "full_attention"})
    if unknown:
        raise ModelError(f"layers of type {unknown[0]} are not supported")
    windows = tuple(size if kind == "sliding_attention" else 0 for kind in kinds)
    return windows if any(windows) else ()


def _count(value: Any) -> int:
    """A whole number of things; floats that are whole pass, booleans and text do not."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value) or not 0 <= value < 2**31:
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def _eos_ids(config: dict[str, Any], generation: dict[str, Any]) -> tuple[int, ...]:
    ids = generation.get("eos_token_id")
    if ids is None:
        ids = config.get("eos_token_id")
    if ids is None:
        return ()
    return tuple(_count(i) for i in ids) if isinstance(ids, list) else (_count(ids),)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a checkpoint's file. Raises ModelError naming the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ModelError(f"{path.parent} is not a checkpoint: it has no {path.name}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"cannot read {path}: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} is not a JSON object")
    return value
