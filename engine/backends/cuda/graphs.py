"""Record passes from tokens to draws as CUDA graphs, one per layout and sub-network (`_Key`), and replay them.

Launching a small pass kernel by kernel takes the host longer than the pass takes the device. Inputs and draws of a pass
have memory of their own. Other results lie in a memory pool that all recordings share; they are valid until the next
pass.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.backends.cuda.attention import Kernels, Layout, PagedBatch
from engine.model.attention import AttentionBatch
from engine.model.decoder import Draws, ModelWeights, Step
from engine.model.linear import Linear
from engine.model.torch_decoder import TorchDecoder
from engine.plans import SKIP, Variants
from engine.sampling.sample import PendingSample, Sampler
from engine.tensors import to_device

log = logging.getLogger("knapserve.engine")

# Sixteen requests have 71 layouts of verify passes, and five of drafts, with some dozen plans each; the rest is room.
_MAX_RECORDINGS = 256
_MAX_COUNTED = 1024  # passes whose uses are counted before they are recorded
# Passes of up to so many rows draw within their recording, into logits that all recordings share. Full ones always keep
# residual streams, and share one recording.
_FEW_ROWS = 64
_UNRECORDED_RUNS = 2  # a plan that is dropped sooner is not worth recording


@runtime_checkable
class FusedLinear(Linear, Protocol):
    """A linear layer that can fuse the RMSNorm of its input and the gating of its output, for up to `most` rows."""

    most: int

    def add_before(self, x: Tensor, residual: Tensor, norm: Tensor) -> tuple[Tensor, Any]:
        """Do as `add` does, and prepare the RMSNorm by norm [out] that comes next, if that saves time."""

    def normed(self, x: Tensor, prepared: Any, norm: Tensor, epsilon: float, out: Tensor | None = None) -> Tensor:
        """Multiply the RMSNorm of x: x [rows, in], norm [in] -> [rows, out], in `out` if given.

        `prepared`: by a layer before, or None.
        """

    def gated(self, x: Tensor, prepared: Any, norm: Tensor, epsilon: float) -> Tensor:
        """Multiply the RMSNorm of x [rows, in] and return silu(first half) · second half: [rows, out / 2]."""


class _Key(NamedTuple):
    layout: Layout
    variants: Variants  # the variant of each sublayer that runs for any row, and of the head
    masked: bool  # whether some sublayers run for some rows only
    keeps_states: bool  # whether all residual streams are kept
    stops: bool  # whether the kernels do nothing once the draft has ended


@dataclass(slots=True)
class _Pass:
    """A pass over fixed memory. `launch` runs it and leaves results here and in the inputs of its layout."""

    out: Tensor = field(init=False)
    logits: Tensor = field(init=False)
    states: list[Tensor] = field(init=False)
    launch: Callable[[], None] = lambda: None


class GraphedDecoder(TorchDecoder):
    """A decoder that records recurring passes over `PagedBatch`es."""

    def __init__(
        self, kernels: Kernels, spec: ModelSpec, dtype: torch.dtype, weights: ModelWeights, sampler: Sampler
    ) -> None:
        super().__init__(spec, dtype, weights, sampler)
        self._kernels = kernels
        self._passes: OrderedDict[_Key, _Pass] = OrderedDict()
        self._asked: Counter[_Key] = Counter()
        self._masks: dict[Layout, Tensor] = {}
        self._logits: Tensor | None = None  # [_FEW_ROWS, vocab]
        self._record = Recorder(self.device) if self.device.type == "cuda" else repeat
        self._stops = False  # whether the last pass may have ended a draft
        self._divided = False  # whether the log has said that a pass was divided

    def run(
        self, x: Tensor, batch: AttentionBatch, record: list[Tensor] | None = None, *, variants: Variants | None = None
    ) -> Tensor:
        return super().run(x, _portable(batch), record, variants=variants)

    def run_plans(self, x: Tensor, batch: AttentionBatch, plans: Sequence[Variants]) -> Tensor:
        return super().run_plans(x, _portable(batch), plans)

    def step(
        self,
        tokens: Sequence[int] | Tensor,
        batch: AttentionBatch,
        plans: Sequence[Variants],
        draws: Draws,
        record: list[Tensor] | None = None,
    ) -> Step:
        if not isinstance(batch, PagedBatch):
            self._stops = False
            return super().step(tokens, batch, plans, draws, record)
        union, masked = plans[0], len({*plans}) > 1
        if masked:
            run = [{plan[i] for plan in plans} - {SKIP} for i in range(len(union))]
            if any(len(variants) > 1 for variants in run):  # a mask cannot choose between variants
                return self._divide(tokens, batch, plans, draws)
            union = tuple(max(variants, default=SKIP) for variants in run)
        again = [i for i, p in enumerate(draws.sampling) if p.truncates or (draws.edits and draws.edits[i])]
        stops = bool(draws.least) and not again
        batch.load(tokens, draws, fresh=not (isinstance(tokens, Tensor) and self._stops))
        self._stops = stops
        masks = self._masks_of(batch.layout)
        if masked:
            masks[: batch.count] = to_device([plan[:-1] for plan in plans], self.device, torch.bool)
        # One recording of the whole model serves passes with and without residual streams.
        keeps = record is not None or (union == self.spec.whole and batch.layout.rows <= _FEW_ROWS)
        made = self._run(_Key(batch.layout, union, masked, keeps, stops), batch, masks)
        if record is not None:
            record += [state[: batch.count] for state in made.states]
        logits = _rows(made.logits, draws.rows)
        if again:
            self._draw_again(again, logits, batch.inputs.results, draws)
        return Step(PendingSample(_rows(batch.inputs.results, draws.rows, 1)), made.out[: batch.count], logits)

    def _draw_again(self, again: Sequence[int], logits: Tensor, results: Tensor, draws: Draws) -> None:
        """Draw those tokens by torch that are cut or edited: logits [draws, vocab], results [2, rows]."""
        drawn = self.draw(_rows(logits, again), draws.at(again))
        assert isinstance(drawn, PendingSample)
        results.index_copy_(1, to_device([draws.rows[i] for i in again], self.device), drawn.results)

    def _divide(
        self, tokens: Sequence[int] | Tensor, batch: PagedBatch, plans: Sequence[Variants], draws: Draws
    ) -> Step:
        """Run the rows of each plan as a pass of its own, for drafts: every row draws; tokens, plans [rows].

        Nobody reads their hidden states and logits, which are empty.
        """
        if not self._divided:
            log.info("requests that draft with different variants of a sublayer draft one after another")
            self._divided = True
        results = torch.empty(2, len(plans), dtype=torch.float64, device=self.device)
        for plan in dict.fromkeys(plans):
            rows = [row for row, of in enumerate(plans) if of == plan]
            ids = _rows(tokens, rows) if isinstance(tokens, Tensor) else [tokens[row] for row in rows]
            part = batch.attention.prepare([batch.segments[row] for row in rows])
            drawn = self.step(ids, part, (plan,), draws.at(rows)).drawn
            assert isinstance(drawn, PendingSample)
            results.index_copy_(1, to_device(rows, self.device), drawn.results)
        nothing = results.new_empty(0)
        return Step(PendingSample(results), nothing, nothing)

    def _run(self, key: _Key, batch: PagedBatch, masks: Tensor) -> _Pass:
        """Run a pass whose inputs are loaded, and masks [rows, 2·layers]."""
        found = self._passes.get(key)
        if found is None:
            found = self._new(key, batch, masks)
        else:
            self._passes.move_to_end(key)
            found.launch()
        if batch.layout.rows > _FEW_ROWS:
            self._draw(found, None, key, batch)
        return found

    def _new(self, key: _Key, batch: PagedBatch, masks: Tensor) -> _Pass:
        """Make a pass and run it; masks [rows, 2·layers]. Record it if its key recurs."""
        made = _Pass()

        def once() -> None:
            with self._kernels.of_draft(key.stops):
                self._compute(made, key, batch, masks)

        if len(self._asked) > _MAX_COUNTED:
            self._asked.clear()
        self._asked[key] += 1
        if self._asked[key] <= _UNRECORDED_RUNS:
            once()  # not kept as `launch`: `made` would refer to itself and keep its results alive
            return made
        del self._asked[key]
        made.launch = self._record(once)
        self._passes[key] = made
        if len(self._passes) > _MAX_RECORDINGS:
            self._passes.popitem(last=False)
        made.launch()
        return made

    def _compute(self, made: _Pass, key: _Key, batch: PagedBatch, masks: Tensor) -> None:
        """Launch the kernels of a pass, from tokens to draws if its rows are few; masks [rows, 2·layers]."""
        sublayers, after, norms = key.variants[:-1], self._norm, []
        for index in reversed(range(len(sublayers))):  # the norm after each sublayer is that of the next one that runs
            norms.append(after)
            if sublayers[index] != SKIP:
                weights = self._layers[sublayers[index]][index // 2]
                after = weights.mlp_norm if index % 2 else weights.attention_norm
        x, prepared = self._kernels.embed(batch.inputs, self.weights.embedding, self.dtype, after)
        states = [x]
        for index, variant in enumerate(sublayers):
            if variant != SKIP:
                y, prepared = self._fused(index, x, prepared, batch, variant, norms[-1 - index])
                if key.masked:
                    y, prepared = torch.where(masks[:, index, None], y, x), None
                x = y
            states.append(x)
        made.out, made.states = x, states if key.keeps_states else []
        if len(x) <= _FEW_ROWS:
            self._draw(made, prepared, key, batch)

    def _draw(self, made: _Pass, prepared: Any, key: _Key, batch: PagedBatch) -> None:
        """Launch the head and the draws of a pass whose sublayers have been launched."""
        head, rows = self._heads[key.variants[-1]], len(made.out)
        if self._logits is None:
            self._logits = made.out.new_empty(_FEW_ROWS, self.spec.vocab)
        if isinstance(head, FusedLinear) and rows <= min(head.most, _FEW_ROWS):
            made.logits = head.normed(made.out, prepared, self._norm, self.spec.norm_eps, self._logits[:rows])
        else:
            logits = self.head(made.out, key.variants[-1])
            made.logits = self._logits[:rows].copy_(logits) if rows <= _FEW_ROWS else logits
        self._kernels.draw(made.logits, batch.inputs)

    def _fused(
        self, index: int, x: Tensor, prepared: Any, batch: PagedBatch, variant: int, after: Tensor
    ) -> tuple[Tensor, Any]:
        """Run a sublayer on x [rows, hidden], and prepare the norm by `after` [hidden] that comes next.

        `prepared`: what the kernel before left for this sublayer's norm, or None.
        """
        layer, is_mlp = divmod(index, 2)
        weights, epsilon = self._layers[variant][layer], self.spec.norm_eps
        first, last = (weights.gate_up, weights.down) if is_mlp else (weights.qkv, weights.output)
        if not (isinstance(first, FusedLinear) and isinstance(last, FusedLinear)):
            return self.sublayer(index, x, batch, variant), None
        if len(x) > min(first.most, last.most):
            return self.sublayer(index, x, batch, variant), None
        if is_mlp:
            inner = first.gated(x, prepared, weights.mlp_norm, epsilon)
        else:
            qkv = first.normed(x, prepared, weights.attention_norm, epsilon)
            inner = batch.attend(layer, qkv, variant, weights.qk_norm, epsilon)
        return last.add_before(inner, x, after)

    def _masks_of(self, layout: Layout) -> Tensor:
        """Return the memory of a layout's masks [rows, 2·layers]: which sublayers run for each row."""
        if layout not in self._masks:
            shape = layout.rows, self.spec.sublayers
            self._masks[layout] = torch.zeros(shape, dtype=torch.bool, device=self.device)
        return self._masks[layout]


def _portable(batch: AttentionBatch) -> AttentionBatch:
    """Return a batch whose passes need not be padded."""
    return batch.portable() if isinstance(batch, PagedBatch) else batch


def _rows(x: Tensor, rows: Sequence[int], dim: int = 0) -> Tensor:
    """Select rows of x [.., rows, ..] in a dimension: a view if they are the first ones."""
    if list(rows) == [*range(len(rows))]:
        return x.narrow(dim, 0, len(rows))
    return x.index_select(dim, to_device(rows, x.device))


def repeat(function: Callable[[], None]) -> Callable[[], None]:
    """Stand in for `Recorder` on devices without graphs: run the function each time."""
    return function


class Recorder:
    """Record functions as CUDA graphs that share one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Callable[[], None]) -> Callable[[], None]:
        """Record `function`, which must read and write the same memory each time; return its replay."""
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self._stream):
            function()  # so that libraries allocate memory and choose kernels before the recording
            # Not `torch.cuda.graph`, which empties the caches of both allocators each time.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                function()
            finally:
                graph.capture_end()
        current.wait_stream(self._stream)
        return graph.replay
