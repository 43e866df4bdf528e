"""Hold a model's weights, and define the passes over them. Backends run the sublayers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.model.attention import AttentionOf, Segment
from engine.model.linear import Linear
from engine.plans import LOW_BIT, TARGET, WINDOW, Variants
from engine.quantised.packed import PackedRows
from engine.sampling.sample import Edit, PendingSample, ReadySample, Sample, Sampler
from engine.step import Work
from engine.tensors import to_device
from engine.types import SamplingParams

Batch = TypeVar("Batch")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer. q and k rows are interleaved for `attention.Rope`."""

    attention_norm: Tensor  # [hidden]
    qkv: Linear  # [(heads + 2·kv_heads)·head_dim, hidden]
    qk_norm: Tensor | None  # [heads + kv_heads, head_dim], each head's RMSNorm
    output: Linear  # [hidden, heads·head_dim]
    mlp_norm: Tensor  # [hidden]
    gate_up: Linear  # [2·intermediate, hidden]
    down: Linear  # [hidden, intermediate]


@dataclass(slots=True)
class ModelWeights:
    """A model's weights in the form that its backend reads; layers and heads by their variant.

    The variants are TARGET, and LOW_BIT if there is a copy in fewer bits. WINDOW has the layers of LOW_BIT.
    """

    embedding: Tensor  # [vocab, hidden], perhaps in another dtype than the passes; the rows of a packed embedding
    layers: dict[int, tuple[LayerWeights, ...]]
    norm: Tensor  # [hidden], the final norm
    heads: dict[int, Linear]
    packed_embedding: PackedRows | None = None

    @property
    def linears(self) -> list[Linear]:
        """The linear layers of the whole model, the head last."""
        layers = [linear for w in self.layers[TARGET] for linear in (w.qkv, w.output, w.gate_up, w.down)]
        return [*layers, self.heads[TARGET]]

    @property
    def matrices(self) -> list[Tensor]:
        """The memory of all matrices that a pass of the whole model reads, in the backend's own form."""
        return [matrix for linear in self.linears for matrix in linear.weights]

    @property
    def nbytes(self) -> int:
        """Bytes that a pass of one row reads."""
        return sum(matrix.nbytes for matrix in self.matrices)

    def add_copy(
        self, lower: Callable[[Linear], Linear], progress: Callable[[float], None] = lambda share: None
    ) -> None:
        """Add a copy of all linear layers, each made by `lower`; `progress` gets the share done.

        Native decoders know only a copy that was there when they were made.
        """
        layers = []
        for i, w in enumerate(self.layers[TARGET], 1):
            qkv, output, gate_up, down = (lower(linear) for linear in (w.qkv, w.output, w.gate_up, w.down))
            layers.append(replace(w, qkv=qkv, output=output, gate_up=gate_up, down=down))
            progress(i / (len(self.layers[TARGET]) + 1))
        self.layers[LOW_BIT] = self.layers[WINDOW] = tuple(layers)
        self.heads[LOW_BIT] = lower(self.heads[TARGET])
        progress(1.0)


@dataclass(frozen=True, slots=True)
class Draws:
    """What a pass draws: one token after each of `rows`. The lists that are not empty are as long as `rows`."""

    rows: Sequence[int] = ()  # rows of the pass, ascending
    sampling: Sequence[SamplingParams] = ()
    positions: Sequence[int] = ()  # of the drawn tokens
    edits: Sequence[Edit | None] = ()  # edits of logits [vocab] in place
    noise: Sequence[float] = ()  # factors of the noise, default 1
    confidence: bool = False  # whether to return the confidences
    # The confidence from which a draft goes on. Where no row has it, passes that were started from these tokens may
    # return at once, with any result.
    least: Sequence[float] = ()

    def at(self, indices: Sequence[int]) -> Draws:
        """Return the draws at these indices, for a pass of only their rows; with confidences, and without `least`."""

        def picked(values: Sequence[T]) -> list[T]:
            return [values[i] for i in indices] if values else []

        sampling, positions = picked(self.sampling), picked(self.positions)
        return Draws(range(len(indices)), sampling, positions, picked(self.edits), picked(self.noise), confidence=True)


class Step(NamedTuple):
    """A pass from tokens to draws, which the device may still be computing. Tensors are valid until the next pass."""

    drawn: PendingSample | ReadySample
    hidden: Tensor  # [rows, hidden], after the last sublayer
    logits: Tensor  # [draws, vocab], before any edit


class DecoderOf(ABC, Generic[Batch]):
    """Runs a model's sublayers. `x` is the residual stream, [rows, hidden] in `dtype`.

    A `Batch` comes from the backend's `Attention`; nobody else looks into it. Drafts and verify passes, which use the
    decoder, are in `engine.model.passes`.
    """

    def __init__(self, spec: ModelSpec, dtype: torch.dtype, weights: ModelWeights, sampler: Sampler) -> None:
        self.spec, self.dtype, self.weights, self.sampler = spec, dtype, weights, sampler
        self._layers, self._heads, self._norm = weights.layers, weights.heads, weights.norm
        self._shape = (spec.hidden,)

    @property
    def device(self) -> torch.device:
        return self.weights.embedding.device

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Look token ids up: -> [rows, hidden]."""
        return self.embed_ids(to_device(tokens, self.device))

    def embed_ids(self, tokens: Tensor) -> Tensor:
        """Look token ids [rows] on the device up: -> [rows, hidden]."""
        return self.weights.embedding.index_select(0, tokens.long().clamp(min=0)).to(self.dtype)

    def step(
        self,
        tokens: Sequence[int] | Tensor,
        batch: Batch,
        plans: Sequence[Variants],
        draws: Draws,
        record: list[Tensor] | None = None,
    ) -> Step:
        """Run a pass from tokens to draws, and do not wait for the device.

        `tokens` [rows]: ids, or on the device what the last pass drew. `plans`: one for each row, or one for all of
        them. With one, `record` receives residual streams, as in `run`.
        """
        x = self.embed_ids(tokens) if isinstance(tokens, Tensor) else self.embed(tokens)
        x = self.run(x, batch, record, variants=plans[0]) if len(plans) == 1 else self.run_plans(x, batch, plans)
        if not draws.rows:
            return Step(ReadySample(Sample([], [])), x, x.new_empty(0, self.spec.vocab))
        picked = x if len(draws.rows) == len(x) else x.index_select(0, to_device(draws.rows, x.device))
        logits = self.heads(picked, plans if len(plans) == 1 else [plans[row] for row in draws.rows])
        return Step(self.draw(logits, draws), x, logits)

    def draw(self, logits: Tensor, draws: Draws) -> PendingSample | ReadySample:
        """Draw from logits [draws, vocab], and do not wait for the device."""
        sampling, positions, edits, noise = draws.sampling, draws.positions, draws.edits, draws.noise
        return self.sampler.sample(logits, sampling, positions, confidence=draws.confidence, edits=edits, noise=noise)

    def heads(self, x: Tensor, plans: Sequence[Variants]) -> Tensor:
        """Return the logits [rows, vocab] of x [rows, hidden], each row's by the head of its plan; as in `step`."""
        first = plans[0][-1]
        logits = self.head(x, first)
        for variant in {plan[-1] for plan in plans} - {first}:
            where = to_device([r for r, plan in enumerate(plans) if plan[-1] == variant], x.device)
            logits = logits.index_copy(0, where, self.head(x.index_select(0, where), variant))
        return logits

    @abstractmethod
    def sublayer(self, index: int, x: Tensor, batch: Batch, variant: int = TARGET) -> Tensor:
        """Run sublayer `index` of 0 .. 2L-1: x [rows, hidden] -> [rows, hidden]."""

    @abstractmethod
    def run(
        self, x: Tensor, batch: Batch, record: list[Tensor] | None = None, *, variants: Variants | None = None
    ) -> Tensor:
        """Run the sublayers of the whole model, or of the sub-network `variants`: x [rows, hidden] -> [rows, hidden].

        `record` receives the 2L+1 residual streams [rows, hidden], X^(0) first, without copies.
        """

    @abstractmethod
    def run_plans(self, x: Tensor, batch: Batch, plans: Sequence[Variants]) -> Tensor:
        """Run row r of x [rows, hidden] through the sublayers of plans[r]: -> [rows, hidden]."""

    def head(self, x: Tensor, variant: int = TARGET) -> Tensor:
        """Apply final norm and output head: x [rows, hidden] -> logits [rows, vocab]."""
        return self._heads[variant](torch.rms_norm(x, self._shape, self._norm, self.spec.norm_eps))


Decoder = DecoderOf[Any]  # the type for code that passes the batches of its `Attention` on


@dataclass(slots=True)
class Draft:
    """Tokens drafted for one request, with the confidence in each."""

    tokens: Sequence[int] = ()
    confidences: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class VerifyPass:
    """Rows through the model, or through the sub-network `variants`, and the draws after some of them."""

    segments: Sequence[Segment]
    tokens: Sequence[int]  # the token of each row
    draw_rows: Sequence[int]  # the rows after which a token is drawn, ascending
    sampling: Sequence[SamplingParams]  # one for each draw
    edits: Sequence[Edit | None] = ()  # an edit of logits [vocab] in place for each draw, or none at all
    record: bool = False  # whether to keep residual streams
    keep_logits: bool = False  # whether to set `Verified.hidden` and `Verified.logits`
    variants: Variants | None = None


class Verified(NamedTuple):
    """The target's tokens [draws], and the states and logits that the caller asked for."""

    tokens: list[int]
    states: list[Tensor] | None  # residual streams X^(0) … X^(2L), each [rows, hidden]
    redraw: Callable[[int, Edit], int]  # (draw, edit) -> new token; valid until the next pass
    hidden: Tensor | None = None  # [rows, hidden], after the last sublayer
    logits: Tensor | None = None  # [draws, vocab], before any edit


class OneCallDecoder(DecoderOf[Batch]):
    """A decoder that also makes a whole draft, and a verify pass from tokens to draws, in one call of its library."""

    @abstractmethod
    def draft(self, attention: AttentionOf[Batch], work: Sequence[Work]) -> list[Draft]:
        """Draft as `passes.draft` does. The call takes less time than its passes would take one by one."""

    @abstractmethod
    def verify(self, attention: AttentionOf[Batch], rows: VerifyPass) -> Verified:
        """Verify as `passes.verify` does, but keep neither hidden states nor logits."""
