"""What a checkpoint is, normalised once from its config.json. A family is flags here, not a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError

SUPPORTED = ("LlamaForCausalLM",)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Shape of a decoder. Sublayer 2i is the attention of layer i, sublayer 2i+1 its MLP."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_positions: int
    rope_theta: float
    norm_eps: float
    tied: bool
    eos_token_ids: tuple[int, ...]
    dtype: str  # of the checkpoint

    @property
    def sublayers(self) -> int:
        return 2 * self.layers

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer's matrices."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate

    @property
    def shape_key(self) -> str:
        """Names the shape in profile keys: what a pass costs depends on nothing else of the model."""
        return (
            f"L{self.layers}-d{self.hidden}-f{self.intermediate}-h{self.heads}x{self.head_dim}"
            f"-kv{self.kv_heads}-v{self.vocab}"
        )


def load_spec(directory: Path) -> ModelSpec:
    """Read config.json (and generation_config.json for EOS ids). Raises ModelError."""
    config = _read_json(directory / "config.json")
    generation: dict[str, Any] = {}
    if (directory / "generation_config.json").exists():
        generation = _read_json(directory / "generation_config.json")
    return parse_spec(config, generation)


def parse_spec(config: dict[str, Any], generation: dict[str, Any] | None = None) -> ModelSpec:
    """Normalise a Hugging Face config of the Llama family. Raises ModelError for anything else."""
    architecture = (config.get("architectures") or ["(none named)"])[0]
    if architecture not in SUPPORTED:
        raise ModelError(f"architecture {architecture} is not supported; supported: {', '.join(SUPPORTED)}")
    for name in ("attention_bias", "mlp_bias"):
        if config.get(name):
            raise ModelError(f"{name} is not supported")
    if config.get("hidden_act", "silu") != "silu":
        raise ModelError(f"activation {config['hidden_act']} is not supported; supported: silu")
    if config.get("quantization_config"):
        raise ModelError("quantised checkpoints are not supported")
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    rope_type = rope.get("rope_type", rope.get("type", "default"))
    if rope_type != "default":
        raise ModelError(f"RoPE of type '{rope_type}' is not supported; supported: default")
    try:
        heads = int(config["num_attention_heads"])
        spec = ModelSpec(
            layers=int(config["num_hidden_layers"]),
            hidden=int(config["hidden_size"]),
            intermediate=int(config["intermediate_size"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or config["hidden_size"] // heads),
            vocab=int(config["vocab_size"]),
            max_positions=int(config["max_position_embeddings"]),
            rope_theta=float(rope.get("rope_theta", config.get("rope_theta", 10000.0))),
            norm_eps=float(config.get("rms_norm_eps", 1e-6)),
            tied=bool(config.get("tie_word_embeddings", False)),
            eos_token_ids=_eos_ids(config, generation or {}),
            dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32"),
        )
    except KeyError as missing:
        raise ModelError(f"config.json lacks {missing}") from None
    except (TypeError, ValueError) as wrong:
        raise ModelError(f"config.json has a value of the wrong type: {wrong}") from None
    sizes = (spec.layers, spec.hidden, spec.intermediate, spec.heads, spec.kv_heads, spec.head_dim, spec.vocab)
    if min(sizes) < 1 or spec.heads % spec.kv_heads or spec.head_dim % 2:
        raise ModelError(f"config.json describes an impossible shape: {spec.shape_key}")
    return spec


def _eos_ids(config: dict[str, Any], generation: dict[str, Any]) -> tuple[int, ...]:
    ids = generation.get("eos_token_id", config.get("eos_token_id"))
    if ids is None:
        return ()
    return tuple(int(i) for i in ids) if isinstance(ids, list) else (int(ids),)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path.parent} is not a checkpoint: it has no {path.name}") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {path}: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{path} is not a JSON object")
    return value
