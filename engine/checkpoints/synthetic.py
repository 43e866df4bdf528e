"""Random models in the shapes of well-known checkpoints, for measuring speed without their weights.

`--model synthetic:NAME[,alpha=0.9][,seed=0][,layers=N][,quant=q4_0]`. The text has no meaning, but the model resembles
a trained one:

- Its text does not loop: each token has a usual successor, and attention often leads to another one.
- Early layers do not suffice: an exit after the first layers agrees with the whole model rarely.
- Its sublayers differ in importance: output scales are log-normal, drawn separately for attention and MLP.
- Its confidence varies: the logit of the usual successor stands out by varying amounts.
- Its draft acceptance can be chosen. The weight of usual successors is calibrated until the sub-network without the
  least important sublayers, half of the time, draws the whole model's token with probability `alpha`.

Label every result from such a model as synthetic.
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

_QUANTS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")  # formats that the gguf library writes
_LLAMA3 = RopeSpec("llama3", 5e5, 8.0, 8192)
_IMPORTANCE = 0.8  # standard deviation of the logarithm of a sublayer's output scale
_LOGIT_STD = 6.0  # of the logits: the largest stands out about as far as in trained models
_ATTENTION = 1.7  # factor of attention outputs, which averaging makes smaller
_GATE_MEAN, _GATE_POWER = 0.207, 0.355  # means of silu(g) and of (u·silu(g))² for normal g and u
_QUERY_STD = 2.0  # of attention scores, so that attention is not uniform
_TOKEN_SHARE = 0.5  # norm of the embedding relative to the sum of all sublayers
_STRIDE = 7919  # token 7919·j modulo the vocabulary has the usual successor j
_ROWS = 128  # positions at which α is measured
_CONTEXT = 32  # positions before these


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
    """A shape, the seed of its weights, and the acceptance rate `alpha` of the calibration plan."""

    name: str
    spec: ModelSpec
    alpha: float = 0.9
    seed: int = 0
    quant: str = ""  # GGUF format of the matrices; "": floats

    def linear(self, linear: LinearFactory) -> LinearFactory:
        """Return the factory of this model's matrices."""
        return _QuantisingFactory(linear, self.quant) if self.quant else linear

    def scales(self) -> tuple[float, ...]:
        """Return the relative size of each sublayer's output, [2L]."""
        draw = Random(mix64(self.seed))
        return tuple(math.exp(draw.gauss(0.0, _IMPORTANCE)) for _ in range(self.spec.sublayers))

    def calibration_plan(self, prices: Sequence[float] | None = None) -> Variants:
        """Return the plan that skips the least important sublayers, up to half of the time.

        `prices` are the seconds of the sublayers; by default all cost the same.
        """
        prices = prices or (1.0,) * self.spec.sublayers
        variants, left = [*self.spec.whole], 0.5 * sum(prices)
        scales = self.scales()
        for i in sorted(range(self.spec.sublayers), key=lambda i: scales[i]):
            if prices[i] <= left:
                variants[i], left = SKIP, left - prices[i]
        return tuple(variants)


def parse(text: str) -> SyntheticModel:
    """Parse `synthetic:NAME,alpha=…,seed=…,layers=…,quant=…`. Raises ModelError."""
    name, *options = text.removeprefix(SYNTHETIC).split(",")
    if name not in SHAPES:
        raise ModelError(f"unknown synthetic model '{name}'; available: {', '.join(SHAPES)}")
    model = SyntheticModel(text.removeprefix(SYNTHETIC), shape(name))
    for option in options:
        key, _, value = option.partition("=")
        try:
            if key == "alpha" and 0 < float(value) < 1:
                model = replace(model, alpha=float(value))
            elif key == "seed":
                model = replace(model, seed=int(value))
            elif key == "quant" and value.upper() in _QUANTS:
                model = replace(model, quant=value.upper())
            elif key == "layers" and 0 < int(value) <= model.spec.layers:
                model = replace(model, spec=replace(model.spec, layers=int(value)))
            else:
                raise ValueError
        except ValueError:
            raise ModelError(
                f"synthetic models accept alpha=0..1, seed=N, layers=N and quant=({'|'.join(_QUANTS).lower()}), "
                f"not '{option}'"
            ) from None
    return model


def build(
    model: SyntheticModel,
    dtype: torch.dtype,
    device: torch.device,
    backend: Backend,
    progress: Callable[[float], None] = lambda share: None,
) -> Decoder:
    """Build the decoder. It still needs `calibrate`."""
    spec, linear = model.spec, model.linear(backend.linear)
    tensors = _RandomWeights(model, dtype, device)
    place = Placement(spec, tensors, dtype, device, linear)
    layers = []
    for i in range(spec.layers):
        layers.append(place.layer(i))
        progress((i + 1) / (spec.layers + 1))
    # Embedding and head are separate even in tied shapes; the cost is the same.
    head = linear(tensors.mapped("lm_head.weight"), None)
    size = _TOKEN_SHARE * math.sqrt(sum(scale**2 for scale in model.scales()))  # of each element
    embedding = tensors.mapped("model.embed_tokens.weight").mul_(size * math.sqrt(spec.hidden))
    norm = torch.full((spec.hidden,), _LOGIT_STD, dtype=dtype, device=device)
    progress(1.0)
    return backend.decoder(spec, dtype, embedding, layers, norm, head)


class _QuantisingFactory:
    """Make linear layers in a GGUF format: packed if the backend supports the format, otherwise of rounded floats."""

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
        layer = self.packed(parts, bias, gated=gated, dtype=weight.dtype, device=weight.device, release=lambda: None)
        return layer or self._linear(dequantise(packed).to(weight), bias, gated=gated)

    def packed(self, *args: Any, **named: Any) -> Linear | None:
        return self._linear.packed(*args, **named)

    def lower(self, linear: Linear, bits: int, /) -> Linear | None:
        return self._linear.lower(linear, bits)


class _RandomWeights:
    """Weights by name, each drawn from the seed and its name.

    `_order` and `_signs` permute the residual stream, in place of a rotation. MLPs add the permuted token and noise to
    the stream, and the head searches for it there. So the embedding alone predicts nothing, each MLP adds evidence, and
    attention competes with it.
    """

    interleaved = False

    def __init__(self, model: SyntheticModel, dtype: torch.dtype, device: torch.device) -> None:
        self._model, self._dtype, self._device = model, dtype, device
        self._scales = model.scales()
        self._shapes = expected_tensors(replace(model.spec, tied=False))
        self._generator = torch.Generator(device)
        self._seed("turn")
        hidden = model.spec.hidden
        self._order = torch.randperm(hidden, generator=self._generator, device=device)
        self._signs = torch.randint(0, 2, (hidden,), generator=self._generator, device=device).to(dtype) * 2 - 1

    def mapped(self, name: str) -> Tensor:
        shape = self._shapes[name]
        if len(shape) == 1:  # the cost of biases does not depend on their values
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
        """Return None: no tensor is packed."""

    def release(self, name: str) -> None:
        """Do nothing: tensors are not cached."""

    def _down(self, name: str) -> Tensor:
        """Return the permuted transpose of the up projection: the MLP's output is its permuted input plus noise."""
        up = self.mapped(name.replace("down_proj", "up_proj"))
        ratio = up.shape[0] / up.shape[1]
        size = math.sqrt((_GATE_MEAN * ratio) ** 2 + _GATE_POWER * ratio)  # of the output for inputs of size 1
        scale = self._scales[2 * int(name.split(".")[2]) + 1] / size
        return up.t()[self._order] * (self._signs * scale).to(self._dtype)[:, None]

    def successor_rows(self) -> Tensor:
        """Return [vocab, hidden]; row j is the permuted embedding of the token whose usual successor is j."""
        embedding = self.mapped("model.embed_tokens.weight")
        before = torch.arange(len(embedding), device=self._device) * _STRIDE % len(embedding)
        return embedding[before].index_select(1, self._order).mul_(self._signs)

    def _seed(self, name: str) -> None:
        self._generator.manual_seed(mix64(mix64(self._model.seed) ^ zlib.crc32(name.encode())) >> 1)


@torch.inference_mode()
def calibrate(
    model: SyntheticModel, decoder: Decoder, attention: Attention, linear: LinearFactory, plan: Variants
) -> float:
    """Calibrate the head until `plan` draws the whole model's token with probability α. Returns the share reached.

    The head is a random matrix plus `weight` times the rows of usual successors. With weight 0, whole model and plan
    rarely agree; with a large weight, both always draw the usual successor. Candidate rows read the cache as drafts do.
    """
    length = min(_CONTEXT + _ROWS, attention.cache.length)
    if length < _CONTEXT + _ROWS // 4:
        raise ConfigError(f"{model.name} requires a context of {_CONTEXT + _ROWS // 4} tokens: raise --max-model-len")
    draw = Random(mix64(model.seed ^ 2))
    tokens = [draw.randrange(model.spec.vocab) for _ in range(length)]
    tensors, linear = _RandomWeights(model, decoder.dtype, decoder.device), model.linear(linear)
    successor_rows, share = tensors.successor_rows(), 0.0
    for _ in range(2):  # on random tokens, then on text of the model
        head = tensors.mapped("lm_head.weight")
        states = torch.cat(
            [decoder.normalise(y) for y in _final_states(decoder, attention, decoder.embed(tokens), plan)]
        )
        chance, usual = (F.linear(states.to(matrix.dtype), matrix).float() for matrix in (head, successor_rows))
        weight, share = _solve_weight(model.alpha, chance, usual)
        decoder.replace_head(linear(head.add_(successor_rows, alpha=weight), None))
        tokens = _generate(decoder, attention, tokens[:8], length)
    return share


def _solve_weight(alpha: float, chance: Tensor, usual: Tensor) -> tuple[float, float]:
    """Return the weight of `usual` in the logits `chance` [2·rows, vocab] at which both halves agree with share α."""

    def share(weight: float) -> float:
        whole, part = chance.add(usual, alpha=weight).argmax(-1).chunk(2)
        return float((whole == part).float().mean())

    low, high = 0.0, 4.0
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < alpha else (low, middle)
    return high, share(high)


def _generate(decoder: Decoder, attention: Attention, prompt: list[int], length: int) -> list[int]:
    """Continue `prompt` greedily to `length` tokens."""
    tokens = list(prompt)
    x = decoder.run(decoder.embed(tokens), attention.prepare([Segment(0, 0, len(tokens))]))
    while len(tokens) < length:
        tokens.append(int(decoder.head(x[-1:]).argmax()))
        x = decoder.run(decoder.embed(tokens[-1:]), attention.prepare([Segment(0, len(tokens) - 1, 1)]))
    return tokens


def _final_states(decoder: Decoder, attention: Attention, x: Tensor, plan: Variants) -> tuple[Tensor, Tensor]:
    """Return the final states of the last rows of `x`: the whole model's and the plan's, over the same cache."""
    whole = decoder.run(x, attention.prepare([Segment(0, 0, len(x))]))[_CONTEXT:]
    rows = attention.candidates(0, range(_CONTEXT, len(x)), 1)
    return whole, decoder.run_plan(x[_CONTEXT:], rows, plan)


def tokenizer(vocabulary: int) -> BackendTokenizer:
    """Return a tokenizer whose first 256 tokens are bytes and whose others are numbered words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = [*alphabet, *(f"Ġw{i}" for i in range(len(alphabet), vocabulary))]
    backend = BackendTokenizer(models.BPE({text: i for i, text in enumerate(entries)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend
