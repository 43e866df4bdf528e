"""The shapes of synthetic models, their names and their tokenizer. This module imports no torch."""

from dataclasses import dataclass, replace

from tokenizers import Tokenizer as BackendTokenizer
from tokenizers import decoders, models, pre_tokenizers

from engine.architecture.rope import RopeSpec
from engine.architecture.spec import FAMILIES, ModelSpec
from engine.checkpoints.hub import SYNTHETIC
from engine.errors import ModelError

_QUANTS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")  # formats that the gguf library writes
_LLAMA3 = RopeSpec("llama3", 5e5, 8.0, 8192)
_QWEN, _SMOL, _LLAMA32 = RopeSpec(theta=1e6), RopeSpec(theta=1e5), replace(_LLAMA3, factor=32.0)
# name: family, layers, hidden, intermediate, (heads, kv_heads, head_dim), vocabulary, tied, positions, RoPE
SHAPES: dict[str, tuple[str, int, int, int, tuple[int, int, int], int, bool, int, RopeSpec]] = {
    "smollm2-135m": ("Llama", 30, 576, 1536, (9, 3, 64), 49152, True, 8192, _SMOL),
    "smollm2-360m": ("Llama", 32, 960, 2560, (15, 5, 64), 49152, True, 8192, _SMOL),
    "tinyllama-1.1b": ("Llama", 22, 2048, 5632, (32, 4, 64), 32000, False, 2048, RopeSpec()),
    "llama-3.2-1b": ("Llama", 16, 2048, 8192, (32, 8, 64), 128256, True, 131072, _LLAMA32),
    "llama-3.2-3b": ("Llama", 28, 3072, 8192, (24, 8, 128), 128256, True, 131072, _LLAMA32),
    "llama-3.1-8b": ("Llama", 32, 4096, 14336, (32, 8, 128), 128256, False, 131072, _LLAMA3),
    "mistral-7b": ("Mistral", 32, 4096, 14336, (32, 8, 128), 32768, False, 32768, _QWEN),
    "qwen2.5-0.5b": ("Qwen2", 24, 896, 4864, (14, 2, 64), 151936, True, 32768, _QWEN),
    "qwen2.5-1.5b": ("Qwen2", 28, 1536, 8960, (12, 2, 128), 151936, True, 32768, _QWEN),
    "qwen2.5-3b": ("Qwen2", 36, 2048, 11008, (16, 2, 128), 151936, True, 32768, _QWEN),
    "qwen2.5-7b": ("Qwen2", 28, 3584, 18944, (28, 4, 128), 152064, False, 32768, _QWEN),
    "qwen3-0.6b": ("Qwen3", 28, 1024, 3072, (16, 8, 128), 151936, True, 40960, _QWEN),
    "qwen3-1.7b": ("Qwen3", 28, 2048, 6144, (16, 8, 128), 151936, True, 40960, _QWEN),
    "qwen3-4b": ("Qwen3", 36, 2560, 9728, (32, 8, 128), 151936, True, 40960, _QWEN),
    "qwen3-8b": ("Qwen3", 36, 4096, 12288, (32, 8, 128), 151936, False, 40960, _QWEN),
}


def shape(name: str) -> ModelSpec:
    """Return the spec of a shape in the table."""
    family, layers, hidden, inner, (heads, kv_heads, head_dim), vocab, tied, positions, rope = SHAPES[name]
    flags = FAMILIES[f"{family}ForCausalLM"]
    return ModelSpec(
        architecture=f"{family}ForCausalLM",
        layers=layers,
        hidden=hidden,
        intermediate=inner,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=vocab,
        max_positions=positions,
        norm_eps=1e-6,
        tied=tied,
        eos_token_ids=(),
        dtype="bfloat16",
        rope=rope,
        qkv_bias=bool(flags.qkv_bias),
        qk_norm=flags.qk_norm,
    )


@dataclass(frozen=True, slots=True)
class SyntheticModel:
    """A shape and the seed of its weights."""

    spec: ModelSpec
    seed: int = 0
    quant: str = ""  # GGUF format of the matrices; "": floats


def parse(text: str) -> SyntheticModel:
    """Parse `synthetic:NAME,seed=…,layers=…,quant=…`. Raises ModelError."""
    name, *options = text.removeprefix(SYNTHETIC).split(",")
    if name not in SHAPES:
        raise ModelError(f"unknown synthetic model '{name}'; available: {', '.join(SHAPES)}")
    model = SyntheticModel(shape(name))
    for option in options:
        key, _, value = option.partition("=")
        if key == "quant" and value.upper() in _QUANTS:
            model = replace(model, quant=value.upper())
        elif key == "seed" and value.isdecimal():
            model = replace(model, seed=int(value))
        elif key == "layers" and value.isdecimal() and 0 < int(value) <= model.spec.layers:
            model = replace(model, spec=replace(model.spec, layers=int(value)))
        else:
            accepted = f"seed=N, layers=N and quant=({'|'.join(_QUANTS).lower()})"
            raise ModelError(f"synthetic models accept {accepted}, not '{option}'")
    return model


def tokenizer(vocabulary: int) -> BackendTokenizer:
    """Return a tokenizer whose first 256 tokens are bytes and whose others are numbered words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = [*alphabet, *(f"Ġw{i}" for i in range(len(alphabet), vocabulary))]
    backend = BackendTokenizer(models.BPE({text: i for i, text in enumerate(entries)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend
