"""Record passes as CUDA graphs, one per layout and sub-network, and replay them.

Launching a small pass kernel by kernel takes the host longer than the pass takes the device. Inputs of a pass (batch,
residual stream, masks) have memory of their own. Results lie in a memory pool that all recordings share; they are valid
until the next pass.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from engine.architecture.spec import ModelSpec
from engine.backends.cuda.attention import Layout, StaticBatch
from engine.model.attention import AttentionBatch
from engine.model.decoder import ModelWeights
from engine.model.linear import Linear
from engine.model.torch_decoder import TorchDecoder
from engine.plans import SKIP, TARGET, Variants
from engine.sampling.sample import Sampler
from engine.tensors import to_device

_MAX_RECORDINGS = 64
_MAX_COUNTED = 1024  # passes whose uses are counted before they are recorded
_ALWAYS_STATES_ROWS = 64  # full passes of up to so many rows always keep residual streams, and share one recording
_UNRECORDED_RUNS = 2  # a plan that is dropped sooner is not worth recording


@runtime_checkable
class FusedLinear(Linear, Protocol):
    """A linear layer that can fuse the RMSNorm of its input and the gating of its output, for up to `most` rows."""

    most: int

    def normed(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        """Multiply the RMSNorm of x: x [rows, in], norm [in] -> [rows, out]."""

    def gated(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        """Do the same and return silu(first half of the outputs) · second half: [rows, out / 2]."""

    def normalise_heads(self, qkv: Tensor, weight: Tensor, epsilon: float) -> None:
        """Apply RMSNorm to each of the first heads of qkv [rows, out] by weight [heads, head_dim], in place."""


class _Key(NamedTuple):
    layout: Layout
    variants: Variants  # the variant of each sublayer that runs for any row, and of the head
    masked: bool  # whether some sublayers run for some rows only
    recorded: bool  # whether all residual streams are kept


@dataclass(slots=True)
class _Pass:
    """A pass over fixed memory. `launch` runs it and leaves its results in `out` and `states`."""

    x: Tensor
    masks: Tensor | None
    out: Tensor
    states: list[Tensor] = field(default_factory=list)
    launch: Callable[[], None] = lambda: None


class GraphedDecoder(TorchDecoder):
    """A decoder that records recurring passes over `StaticBatch`es."""

    def __init__(self, spec: ModelSpec, dtype: torch.dtype, weights: ModelWeights, sampler: Sampler) -> None:
        super().__init__(spec, dtype, weights, sampler)
        self._passes: OrderedDict[_Key, _Pass] = OrderedDict()
        self._asked: Counter[_Key] = Counter()
        self._inputs: dict[Layout, tuple[Tensor, Tensor]] = {}
        self._record = Recorder(self.device) if self.device.type == "cuda" else repeat

    def attend(self, layer: int, x: Tensor, batch: AttentionBatch, variant: int = TARGET) -> Tensor:
        weights, epsilon = self._layers[variant][layer], self.spec.norm_eps
        product = weights.qkv
        if not isinstance(product, FusedLinear) or len(x) > product.most:
            return super().attend(layer, x, batch, variant)
        qkv = product.normed(x, weights.attention_norm, epsilon)
        if weights.qk_norm is not None:
            product.normalise_heads(qkv, weights.qk_norm, epsilon)
        return weights.output.add(batch.attend(layer, qkv, variant), x)

    def mlp(self, layer: int, x: Tensor, variant: int = TARGET) -> Tensor:
        weights = self._layers[variant][layer]
        product = weights.gate_up
        if not isinstance(product, FusedLinear) or len(x) > product.most:
            return super().mlp(layer, x, variant)
        return weights.down.add(product.gated(x, weights.mlp_norm, self.spec.norm_eps), x)

    def head(self, x: Tensor, variant: int = TARGET) -> Tensor:
        product = self._heads[variant]
        if not isinstance(product, FusedLinear) or len(x) > product.most:
            return super().head(x, variant)
        return product.normed(x, self._norm, self.spec.norm_eps)

    def run(
        self, x: Tensor, batch: AttentionBatch, record: list[Tensor] | None = None, *, variants: Variants | None = None
    ) -> Tensor:
        if not isinstance(batch, StaticBatch):
            return super().run(x, batch, record, variants=variants)
        shared = variants is None and batch.layout.rows <= _ALWAYS_STATES_ROWS  # one recording serves both
        key = _Key(batch.layout, variants or self.spec.whole, False, record is not None or shared)
        return self._run(x, batch, key, None, record)

    def run_plans(self, x: Tensor, batch: AttentionBatch, plans: Sequence[Variants]) -> Tensor:
        if not isinstance(batch, StaticBatch) or all(plan == plans[0] for plan in plans):
            return super().run_plans(x, batch, plans)
        run = [{plan[i] for plan in plans} - {SKIP} for i in range(len(plans[0]))]
        if any(len(variants) > 1 for variants in run[:-1]):  # a mask cannot choose between variants
            return super().run_plans(x, batch.portable(), plans)
        union = tuple(max(variants, default=SKIP) for variants in run)
        return self._run(x, batch, _Key(batch.layout, union, True, False), plans, None)

    def _run(
        self, x: Tensor, batch: StaticBatch, key: _Key, plans: Sequence[Variants] | None, record: list[Tensor] | None
    ) -> Tensor:
        """Run a pass: x [real rows, hidden] -> [real rows, hidden]. `record` receives streams of the same shape."""
        found = self._passes.get(key)
        inputs, masks = self._inputs_of(batch.layout, x)
        batch.spread(x, inputs)
        if plans is not None:
            batch.spread(to_device([plan[:-1] for plan in plans], x.device, torch.bool), masks)
        if found is None:
            found = self._new(key, batch, inputs, masks)
        else:
            self._passes.move_to_end(key)
        found.launch()
        if record is not None:
            record += [batch.gather(state) for state in found.states]
        return batch.gather(found.out)

    def _inputs_of(self, layout: Layout, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory of a layout's inputs: residual stream [rows, hidden] and masks [rows, 2·layers]."""
        if layout not in self._inputs:
            masks = torch.zeros(layout.rows, self.spec.sublayers, dtype=torch.bool, device=x.device)
            self._inputs[layout] = x.new_zeros(layout.rows, x.shape[1]), masks
        return self._inputs[layout]

    def _new(self, key: _Key, batch: StaticBatch, inputs: Tensor, masks: Tensor) -> _Pass:
        """Make a pass over inputs [rows, hidden] and masks [rows, 2·layers]; record it if its key recurs."""
        made = _Pass(inputs, masks if key.masked else None, inputs)

        def once() -> None:
            self._sublayers(made, key, batch)

        if len(self._asked) > _MAX_COUNTED:
            self._asked.clear()
        self._asked[key] += 1
        if self._asked[key] <= _UNRECORDED_RUNS or not any(key.variants[:-1]):  # torch warns of empty graphs
            once()  # not kept as `launch`: `made` would refer to itself and keep its results alive
            return made
        del self._asked[key]
        made.launch = self._record(once)
        self._passes[key] = made
        if len(self._passes) > _MAX_RECORDINGS:
            self._passes.popitem(last=False)
        return made

    def _sublayers(self, made: _Pass, key: _Key, batch: StaticBatch) -> None:
        x = made.x
        states = [x]
        for index in range(self.spec.sublayers):
            if key.variants[index] != SKIP:
                y = self.sublayer(index, x, batch, key.variants[index])
                x = y if made.masks is None else torch.where(made.masks[:, index, None], y, x)
            states.append(x)
        made.out = x
        made.states = states if key.recorded else []


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
        torch.cuda.synchronize()
        with torch.cuda.stream(self._stream):
            function()  # so that libraries allocate memory and choose kernels before the recording
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            function()
        return graph.replay
