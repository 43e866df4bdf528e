"""Random checkpoints of the shapes that people run, made in place: for speed, where no weights can be had.

`--model synthetic:NAME[,alpha=0.9][,seed=0][,layers=N]`. What such a model says means nothing, but it behaves like one:

- Its text does not loop: each token has a usual successor, and what attention reads often calls for another.
- Its sublayers matter to different degrees: output scales are log-normal, attention and MLP drawn apart.
- Its confidence varies: the usual successor stands out, sometimes much, sometimes little; the others are close.
- It can be drafted for as well as asked: the residual stream's share that comes from the embedding is calibrated until
  the sub-network without the least important sublayers, half of the time left out, draws the same token as the whole
  model with probability `alpha`.

Every figure taken with one must be labelled synthetic.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import torch
from tokenizers import Tokenizer as BackendTokenizer
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor

from engine.errors import ModelError
from engine.model.attention import CandidateBatch, SdpaAttention, Segment
from engine.model.decoder import Decoder
from engine.model.linear import LinearFactory
from engine.model.rope import RopeSpec
from engine.model.spec import FAMILIES, ModelSpec
from engine.model.weights import Placement, expected_tensors
from engine.seeds import mix64

PREFIX = "synthetic:"
_LLAMA3 = RopeSpec("llama3", 5e5, 8.0, 8192)
_IMPORTANCE = 0.8  # standard deviation of the logarithm of a sublayer's output scale
_LOGIT_STD = 6.0  # of a vocabulary's logits: the largest stands out about as far as trained models' do
_QUERY_STD = 2.0  # of attention scores: some of what is cached is read, not all alike
_HABIT = 8.0  # standard deviations by which a token's usual successor stands out, were there no context
_STRIDE = 7919  # that successor j of token i: i = 7919·j modulo the vocabulary
_ROWS = 96  # positions that α is measured at
_CONTEXT = 32  # positions before them


_QWEN, _SMOL, _LLAMA32 = RopeSpec(theta=1e6), RopeSpec(theta=1e5), replace(_LLAMA3, factor=32.0)
# name: family, layers, hidden, intermediate, (heads, kv_heads, head_dim), vocabulary, tied, positions, RoPE
_TABLE: dict[str, tuple[str, int, int, int, tuple[int, int, int], int, bool, int, RopeSpec]] = {
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
    """The spec of a shape in the table."""
    family, layers, hidden, inner, (heads, kv_heads, head_dim), vocab, tied, positions, rope = _TABLE[name]
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
class Synthetic:
    """A shape, the seed of its weights, and how often half of it draws the same token as all of it."""

    name: str
    spec: ModelSpec
    alpha: float = 0.9
    seed: int = 0

    def scales(self) -> tuple[float, ...]:
        """How large each sublayer's output is beside the others', [2L]."""
        draw = Random(mix64(self.seed))
        return tuple(math.exp(draw.gauss(0.0, _IMPORTANCE)) for _ in range(self.spec.sublayers))

    def half(self, prices: Sequence[float] | None = None) -> tuple[int, ...]:
        """The plan that α is calibrated for: the least important sublayers left out, up to half of the time.

        `prices` are the sublayers' seconds; without them all cost the same.
        """
        prices = prices or (1.0,) * self.spec.sublayers
        variants, left = [1] * self.spec.sublayers, 0.5 * sum(prices)
        scales = self.scales()
        for i in sorted(range(self.spec.sublayers), key=lambda i: scales[i]):
            if prices[i] <= left:
                variants[i], left = 0, left - prices[i]
        return tuple(variants)


def parse(model: str) -> Synthetic:
    """From `synthetic:NAME,alpha=…,seed=…,layers=…`. Raises ModelError."""
    name, *options = model.removeprefix(PREFIX).split(",")
    if name not in _TABLE:
        raise ModelError(f"there is no synthetic model '{name}'; there are {', '.join(_TABLE)}")
    made = Synthetic(model.removeprefix(PREFIX), shape(name))
    for option in options:
        key, _, text = option.partition("=")
        try:
            if key == "alpha" and 0 < float(text) < 1:
                made = replace(made, alpha=float(text))
            elif key == "seed":
                made = replace(made, seed=int(text))
            elif key == "layers" and 0 < int(text) <= made.spec.layers:
                made = replace(made, spec=replace(made.spec, layers=int(text)))
            else:
                raise ValueError
        except ValueError:
            raise ModelError(f"synthetic models take alpha=0..1, seed=N and layers=N, not '{option}'") from None
    return made


def build(
    made: Synthetic,
    dtype: torch.dtype,
    device: torch.device,
    linear: LinearFactory,
    progress: Callable[[float], None] = lambda share: None,
) -> Decoder:
    """The decoder, not calibrated yet."""
    spec, scales = made.spec, made.scales()
    shapes = expected_tensors(replace(spec, tied=False))
    generator = torch.Generator(device)

    def take(name: str) -> Tensor:
        """A tensor drawn from the seed and its name."""
        shape = shapes[name]
        generator.manual_seed(mix64(mix64(made.seed) ^ zlib.crc32(name.encode())) >> 1)
        if len(shape) == 1 and name.endswith("norm.weight"):
            return torch.ones(shape, dtype=dtype, device=device)
        if len(shape) == 1:
            return torch.zeros(shape, dtype=dtype, device=device)  # biases cost the same whatever they are
        return torch.empty(shape, dtype=dtype, device=device).normal_(
            0.0, _std(name, shape, scales), generator=generator
        )

    place = Placement(spec, take, dtype, device, linear)
    layers = []
    for i in range(spec.layers):
        layers.append(place.layer(i))
        progress((i + 1) / (spec.layers + 1))
    # Two matrices, also where the shape ties them (the head is read all the same): with one, a token's best successor
    # would have that token for its own.
    embedding, rows = take("model.embed_tokens.weight"), take("lm_head.weight")
    rows.add_(
        embedding[torch.arange(spec.vocab, device=device) * _STRIDE % spec.vocab], alpha=_HABIT / spec.hidden**0.5
    )
    head = linear(rows, None)
    progress(1.0)
    return Decoder(
        spec, dtype, embedding, layers, torch.full((spec.hidden,), _LOGIT_STD, dtype=dtype, device=device), head
    )


def _std(name: str, shape: tuple[int, ...], scales: tuple[float, ...]) -> float:
    """Outputs of standard deviation about 1 from inputs of 1; queries wider, sublayer outputs by their scale."""
    base = 1 / math.sqrt(shape[1])
    if name.endswith(("embed_tokens.weight", "lm_head.weight")):
        return base
    layer = int(name.split(".")[2])
    if name.endswith("q_proj.weight"):
        return _QUERY_STD * base
    if name.endswith("o_proj.weight"):
        return 2.0 * scales[2 * layer] * base  # attention averages, which shrinks
    if name.endswith("down_proj.weight"):
        return 1.7 * scales[2 * layer + 1] * base  # so does the gate
    return base


@torch.inference_mode()
def calibrate(made: Synthetic, decoder: Decoder, attention: SdpaAttention, plan: tuple[int, ...]) -> float:
    """Scale the embedding until `plan` draws the whole model's token at a share α of the positions; the share reached.

    Sublayers read a normalised stream, so what they add is (nearly) the same whatever comes from the embedding: the
    larger that is, the less it matters which of them run. Candidate rows see the cache as drafted rows do.
    """
    draw = Random(mix64(made.seed ^ 2))
    tokens = [draw.randrange(made.spec.vocab) for _ in range(_CONTEXT + _ROWS)]
    embedded = decoder.embed(tokens)
    low, high, share = -6.0, 12.0, 0.0
    for _ in range(12):
        exponent = (low + high) / 2
        share = agreement(decoder, attention, embedded * 2.0**exponent, plan)
        low, high = (exponent, high) if share < made.alpha else (low, exponent)
    decoder.scale_embedding(2.0 ** ((low + high) / 2))
    return share


def agreement(decoder: Decoder, attention: SdpaAttention, x: Tensor, plan: tuple[int, ...]) -> float:
    """Share of the last rows of `x` at which the plan, over the whole model's cache, draws the same token."""
    whole = decoder.head(decoder.run(x, attention.prepare([Segment(0, 0, len(x))]))[_CONTEXT:]).argmax(-1)
    rows = CandidateBatch(attention, 0, range(_CONTEXT, len(x)), 1)
    part = decoder.head(decoder.run_plan(x[_CONTEXT:], rows, plan)).argmax(-1)
    return float((whole == part).float().mean())


def tokenizer(vocabulary: int) -> BackendTokenizer:
    """Bytes are the first 256 tokens, so that any text can be read; the others are written as numbered words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = [*alphabet, *(f"Ġw{i}" for i in range(len(alphabet), vocabulary))]
    backend = BackendTokenizer(models.BPE({text: i for i, text in enumerate(entries)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend
