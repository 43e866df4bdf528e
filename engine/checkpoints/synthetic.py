"""Random checkpoints of the shapes that people run, made in place: for speed, where no weights can be had.

`--model synthetic:NAME[,alpha=0.9][,seed=0][,layers=N][,quant=q4_0]`. What such a model says means nothing, but it
behaves like one:

- Its text does not loop: each token has a usual successor, and what attention reads often calls for another.
- It takes the sublayers to know it: an exit after the first layers says little.
- Its sublayers matter to different degrees: output scales are log-normal, attention and MLP drawn apart.
- Its confidence varies: the usual successor stands out, sometimes much, sometimes little; the others are close.
- It can be drafted for as well as asked: how much usual successors stand out is calibrated until the sub-network
  without the least important sublayers, half of the time left out, draws the whole model's token with probability
  `alpha`.

Every figure taken with one must be labelled synthetic.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer as BackendTokenizer
from tokenizers import decoders, models, pre_tokenizers
from torch import Tensor

from engine.architecture.rope import RopeSpec
from engine.architecture.spec import FAMILIES, SKIP, ModelSpec, Variants
from engine.checkpoints.hub import SYNTHETIC
from engine.errors import ConfigError, ModelError
from engine.model.attention import Attention, Segment
from engine.model.backend import Backend
from engine.model.decoder import Decoder
from engine.model.linear import Linear, LinearFactory
from engine.model.weights import Placement, expected_tensors
from engine.quantised.formats import GGUF_FORMATS
from engine.quantised.packed import PackedRows, dequantise
from engine.sampling.seeds import mix64

_QUANTS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")  # that the gguf library writes
_LLAMA3 = RopeSpec("llama3", 5e5, 8.0, 8192)
_IMPORTANCE = 0.8  # standard deviation of the logarithm of a sublayer's output scale
_LOGIT_STD = 6.0  # of a vocabulary's logits: the largest stands out about as far as trained models' do
_ATTENTION = 1.7  # attention averages, which shrinks: its outputs are drawn this much larger
_GATE_MEAN, _GATE_POWER = 0.207, 0.355  # of silu(g) and of (u·silu(g))², g and u normal
_QUERY_STD = 2.0  # of attention scores: some of what is cached is read, not all alike
_TOKEN_SHARE = 0.5  # size of what the embedding gives beside all that the sublayers add
_STRIDE = 7919  # that successor j of token i: i = 7919·j modulo the vocabulary
_ROWS = 128  # positions that α is measured at
_CONTEXT = 32  # positions before them


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
    """The spec of a shape in the table."""
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
class Synthetic:
    """A shape, the seed of its weights, and how often half of it draws the same token as all of it."""

    name: str
    spec: ModelSpec
    alpha: float = 0.9
    seed: int = 0
    quant: str = ""  # the GGUF format that matrices are rounded to, if any

    def linear(self, linear: LinearFactory) -> LinearFactory:
        """What makes the matrices of such a model."""
        return _Quantising(linear, self.quant) if self.quant else linear

    def scales(self) -> tuple[float, ...]:
        """How large each sublayer's output is beside the others', [2L]."""
        draw = Random(mix64(self.seed))
        return tuple(math.exp(draw.gauss(0.0, _IMPORTANCE)) for _ in range(self.spec.sublayers))

    def half(self, prices: Sequence[float] | None = None) -> Variants:
        """The plan that α is calibrated for: the least important sublayers left out, up to half of the time.

        `prices` are the sublayers' seconds; without them all cost the same.
        """
        prices = prices or (1.0,) * self.spec.sublayers
        variants, left = [*self.spec.whole], 0.5 * sum(prices)
        scales = self.scales()
        for i in sorted(range(self.spec.sublayers), key=lambda i: scales[i]):
            if prices[i] <= left:
                variants[i], left = SKIP, left - prices[i]
        return tuple(variants)


def parse(model: str) -> Synthetic:
    """From `synthetic:NAME,alpha=…,seed=…,layers=…`. Raises ModelError."""
    name, *options = model.removeprefix(SYNTHETIC).split(",")
    if name not in SHAPES:
        raise ModelError(f"there is no synthetic model '{name}'; there are {', '.join(SHAPES)}")
    made = Synthetic(model.removeprefix(SYNTHETIC), shape(name))
    for option in options:
        key, _, text = option.partition("=")
        try:
            if key == "alpha" and 0 < float(text) < 1:
                made = replace(made, alpha=float(text))
            elif key == "seed":
                made = replace(made, seed=int(text))
            elif key == "quant" and text.upper() in _QUANTS:
                made = replace(made, quant=text.upper())
            elif key == "layers" and 0 < int(text) <= made.spec.layers:
                made = replace(made, spec=replace(made.spec, layers=int(text)))
            else:
                raise ValueError
        except ValueError:
            raise ModelError(
                f"synthetic models take alpha=0..1, seed=N, layers=N and quant=({'|'.join(_QUANTS).lower()}), "
                f"not '{option}'"
            ) from None
    return made


def build(
    made: Synthetic,
    dtype: torch.dtype,
    device: torch.device,
    backend: Backend,
    progress: Callable[[float], None] = lambda share: None,
) -> Decoder:
    """The decoder, not calibrated yet."""
    spec, linear = made.spec, made.linear(backend.linear)
    tensors = _Tensors(made, dtype, device)
    place = Placement(spec, tensors, dtype, device, linear)
    layers = []
    for i in range(spec.layers):
        layers.append(place.layer(i))
        progress((i + 1) / (spec.layers + 1))
    # Two matrices, also where the shape ties them (the head is read all the same).
    head = linear(tensors.mapped("lm_head.weight"), None)
    size = _TOKEN_SHARE * math.sqrt(sum(scale**2 for scale in made.scales()))  # of each element
    embedding = tensors.mapped("model.embed_tokens.weight").mul_(size * math.sqrt(spec.hidden))
    norm = torch.full((spec.hidden,), _LOGIT_STD, dtype=dtype, device=device)
    progress(1.0)
    return backend.decoder(spec, dtype, embedding, layers, norm, head)


class _Quantising:
    """A factory of linear layers whose weights are rounded to a GGUF format, and packed where the backend can."""

    shares = False

    def __init__(self, linear: LinearFactory, quant: str) -> None:
        self._linear, self._quant = linear, quant

    def __call__(self, weight: Tensor, bias: Tensor | None, /, *, gated: bool = False) -> Linear:
        from gguf import GGMLQuantizationType
        from gguf.quants import quantize

        rows = torch.from_numpy(quantize(weight.float().cpu().numpy(), GGMLQuantizationType[self._quant]))
        packed = PackedRows(GGUF_FORMATS[self._quant], rows, weight.shape[1])
        parts = (
            [packed.select(slice(0, len(rows) // 2)), packed.select(slice(len(rows) // 2, None))] if gated else [packed]
        )
        made = self.packed(parts, bias, gated=gated, dtype=weight.dtype, device=weight.device, release=lambda: None)
        return made or self._linear(dequantise(packed).to(weight), bias, gated=gated)

    def packed(self, *args: Any, **named: Any) -> Linear | None:
        return self._linear.packed(*args, **named)

    def lower(self, linear: Linear, bits: int, /) -> Linear | None:
        return self._linear.lower(linear, bits)


class _Tensors:
    """Tensors by name, each drawn from the seed and its name.

    `_turn` is a signed permutation of the residual stream, as good as any rotation. MLPs add the turned token to the
    stream, with their own noise; the head looks for it there. So the embedding alone says nothing, every MLP that runs
    says more, and what attention adds competes with it.
    """

    interleaved = False

    def __init__(self, made: Synthetic, dtype: torch.dtype, device: torch.device) -> None:
        self._made, self._dtype, self._device = made, dtype, device
        self._scales = made.scales()
        self._shapes = expected_tensors(replace(made.spec, tied=False))
        self._generator = torch.Generator(device)
        self._seed("turn")
        hidden = made.spec.hidden
        self._order = torch.randperm(hidden, generator=self._generator, device=device)
        self._signs = torch.randint(0, 2, (hidden,), generator=self._generator, device=device).to(dtype) * 2 - 1

    def mapped(self, name: str) -> Tensor:
        shape = self._shapes[name]
        if len(shape) == 1:  # biases cost the same whatever they are
            value = _QUERY_STD if "q_norm" in name else 1.0 if "norm" in name else 0.0
            return torch.full(shape, value, dtype=self._dtype, device=self._device)
        if name.endswith("down_proj.weight"):
            return self._down(name)
        std = 1 / math.sqrt(shape[1])
        if name.endswith("q_proj.weight"):
            std *= _QUERY_STD
        elif name.endswith("o_proj.weight"):
            std *= _ATTENTION * self._scales[2 * int(name.split(".")[2])]
        self._seed(name)
        return torch.empty(shape, dtype=self._dtype, device=self._device).normal_(0.0, std, generator=self._generator)

    def packed(self, name: str) -> None:
        """None is."""

    def release(self, name: str) -> None:
        """None is kept."""

    def _down(self, name: str) -> Tensor:
        """The turned transpose of the up projection: the MLP's output is then its input, turned, and noise."""
        up = self.mapped(name.replace("down_proj", "up_proj"))
        ratio = up.shape[0] / up.shape[1]
        size = math.sqrt((_GATE_MEAN * ratio) ** 2 + _GATE_POWER * ratio)  # of the output, for inputs of size 1
        scale = self._scales[2 * int(name.split(".")[2]) + 1] / size
        return up.t()[self._order] * (self._signs * scale).to(self._dtype)[:, None]

    def habits(self) -> Tensor:
        """Row j: the turned embedding of the token whose usual successor j is, [vocab, hidden]."""
        embedding = self.mapped("model.embed_tokens.weight")
        before = torch.arange(len(embedding), device=self._device) * _STRIDE % len(embedding)
        return embedding[before].index_select(1, self._order).mul_(self._signs)

    def _seed(self, name: str) -> None:
        self._generator.manual_seed(mix64(mix64(self._made.seed) ^ zlib.crc32(name.encode())) >> 1)


@torch.inference_mode()
def calibrate(made: Synthetic, decoder: Decoder, attention: Attention, linear: LinearFactory, plan: Variants) -> float:
    """Let usual successors stand out until `plan` draws the whole model's token at a share α; the share reached.

    The head is random rows plus `habit` times what it looks for. Without a habit, tokens are won by chance and hardly
    ever by the same one; with a strong one, whatever runs says the usual. Candidate rows see the cache as drafts do.
    """
    length = min(_CONTEXT + _ROWS, attention.cache.length)
    if length < _CONTEXT + _ROWS // 4:
        raise ConfigError(f"{made.name} is calibrated on {_CONTEXT + _ROWS // 4} positions: raise --max-model-len")
    draw = Random(mix64(made.seed ^ 2))
    tokens = [draw.randrange(made.spec.vocab) for _ in range(length)]
    tensors, linear = _Tensors(made, decoder.dtype, decoder.device), made.linear(linear)
    habits, share = tensors.habits(), 0.0
    for _ in range(2):  # on random tokens, then on what the model says after the first few of them
        head = tensors.mapped("lm_head.weight")
        states = torch.cat(
            [decoder.normalise(y) for y in _whole_and_part(decoder, attention, decoder.embed(tokens), plan)]
        )
        chance, usual = (F.linear(states.to(matrix.dtype), matrix).float() for matrix in (head, habits))
        habit, share = _habit(made.alpha, chance, usual)
        decoder.replace_head(linear(head.add_(habits, alpha=habit), None))
        tokens = _text(decoder, attention, tokens[:8], length)
    return share


def _habit(alpha: float, chance: Tensor, usual: Tensor) -> tuple[float, float]:
    """How much of `usual` to add to the logits `chance` [2·rows, vocab] so that both halves agree at a share α."""

    def share(habit: float) -> float:
        whole, part = chance.add(usual, alpha=habit).argmax(-1).chunk(2)
        return float((whole == part).float().mean())

    low, high = 0.0, 4.0
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < alpha else (low, middle)
    return high, share(high)


def _text(decoder: Decoder, attention: Attention, prompt: list[int], length: int) -> list[int]:
    """What the model says after `prompt`, greedily, both together `length` tokens."""
    tokens = list(prompt)
    x = decoder.run(decoder.embed(tokens), attention.prepare([Segment(0, 0, len(tokens))]))
    while len(tokens) < length:
        tokens.append(int(decoder.head(x[-1:]).argmax()))
        x = decoder.run(decoder.embed(tokens[-1:]), attention.prepare([Segment(0, len(tokens) - 1, 1)]))
    return tokens


def _whole_and_part(decoder: Decoder, attention: Attention, x: Tensor, plan: Variants) -> tuple[Tensor, Tensor]:
    """Final states of the last rows of `x`: the whole model's, and the plan's over the whole model's cache."""
    whole = decoder.run(x, attention.prepare([Segment(0, 0, len(x))]))[_CONTEXT:]
    rows = attention.candidates(0, range(_CONTEXT, len(x)), 1)
    return whole, decoder.run_plan(x[_CONTEXT:], rows, plan)


def tokenizer(vocabulary: int) -> BackendTokenizer:
    """Bytes are the first 256 tokens, so that any text can be read; the others are written as numbered words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = [*alphabet, *(f"Ġw{i}" for i in range(len(alphabet), vocabulary))]
    backend = BackendTokenizer(models.BPE({text: i for i, text in enumerate(entries)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend
