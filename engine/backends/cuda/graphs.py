"""A decoder that replays passes: a recorded pass per layout and sub-network, launched in one go.

Launching a pass kernel by kernel takes the host longer than a small pass takes the device. What crosses from pass to
pass (the batch's numbers, the residual stream that goes in, the masks) has memory of its own; what a pass makes lies in
a pool that all recordings share, and is good until the next pass.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from engine.architecture.spec import SKIP, TARGET, Variants
from engine.backends.cuda.attention import Layout, StaticBatch
from engine.model.attention import AttentionBatch
from engine.model.decoder import Decoder
from engine.model.linear import Linear
from engine.upload import upload

_KEPT = 64  # recorded passes
_COUNTED = 1024  # passes not recorded yet
_KEEPING = 64  # rows of a layout whose whole passes always keep their residual streams
_EAGER = 2  # times that a pass runs unrecorded first: a plan that does not last is not worth recording


@runtime_checkable
class FusedLinear(Linear, Protocol):
    """A linear layer that norms its input and gates its output by the way, for up to `most` rows."""

    most: int

    def normed(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        """x [rows, in], norm [in] -> of x's RMSNorm, [rows, out]."""

    def gated(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        """The same, silu of the first half of the outputs times the second: [rows, out / 2]."""

    def normalise_heads(self, qkv: Tensor, weight: Tensor, epsilon: float) -> None:
        """RMSNorm of each of the first heads of qkv [rows, out] by weight [heads, head_dim], in place."""


class _Key(NamedTuple):
    layout: Layout
    variants: Variants  # what runs of each sublayer for any of the rows, and of the head
    masked: bool  # whether some run for some rows only
    recorded: bool  # whether all residual streams are kept


@dataclass(slots=True)
class _Pass:
    """A pass over memory of its own. `launch` runs it; `out` and `states` are what it left."""

    x: Tensor
    masks: Tensor | None
    out: Tensor
    states: list[Tensor] = field(default_factory=list)
    launch: Callable[[], None] = lambda: None


class GraphedDecoder(Decoder):
    """A `Decoder` whose passes over `StaticBatch`es are recorded when they recur."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._passes: OrderedDict[_Key, _Pass] = OrderedDict()
        self._asked: Counter[_Key] = Counter()
        self._inputs: dict[Layout, tuple[Tensor, Tensor]] = {}
        self._record = Recorder(self.device) if self.device.type == "cuda" else repeat

    @property
    def recorded(self) -> int:
        """Passes that are recorded at present."""
        return len(self._passes)

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

    def run(self, x: Tensor, batch: AttentionBatch, record: list[Tensor] | None = None) -> Tensor:
        if not isinstance(batch, StaticBatch):
            return super().run(x, batch, record)
        keeps = record is not None or batch.layout.rows <= _KEEPING  # the same recording, asked for or not
        return self._run(x, batch, _Key(batch.layout, self.spec.whole, False, keeps), None, record)

    def run_plan(self, x: Tensor, batch: AttentionBatch, variants: Variants) -> Tensor:
        if not isinstance(batch, StaticBatch):
            return super().run_plan(x, batch, variants)
        return self._run(x, batch, _Key(batch.layout, variants, False, False))

    def run_plans(self, x: Tensor, batch: AttentionBatch, plans: Sequence[Variants]) -> Tensor:
        if not isinstance(batch, StaticBatch) or all(plan == plans[0] for plan in plans):
            return super().run_plans(x, batch, plans)
        run = [{plan[i] for plan in plans} - {SKIP} for i in range(len(plans[0]))]
        if any(len(variants) > 1 for variants in run[:-1]):  # a mask does not tell which of them
            return super().run_plans(x, batch.portable(), plans)
        union = tuple(max(variants, default=SKIP) for variants in run)
        return self._run(x, batch, _Key(batch.layout, union, True, False), plans)

    def _run(
        self,
        x: Tensor,
        batch: StaticBatch,
        key: _Key,
        plans: Sequence[Variants] | None = None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        found = self._passes.get(key)
        inputs, masks = self._inputs_of(batch.layout, x)
        batch.spread(x, inputs)
        if plans is not None:
            batch.spread(upload([plan[:-1] for plan in plans], x.device, torch.bool), masks)
        if found is None:
            found = self._new(key, batch, inputs, masks)
        else:
            self._passes.move_to_end(key)
        found.launch()
        if record is not None:
            record += [batch.gather(state) for state in found.states]
        return batch.gather(found.out)

    def _inputs_of(self, layout: Layout, x: Tensor) -> tuple[Tensor, Tensor]:
        """The residual stream [rows, hidden] that goes in, and the masks [rows, 2·layers], of a layout's passes."""
        if layout not in self._inputs:
            masks = torch.zeros(layout.rows, self.spec.sublayers, dtype=torch.bool, device=x.device)
            self._inputs[layout] = x.new_zeros(layout.rows, x.shape[1]), masks
        return self._inputs[layout]

    def _new(self, key: _Key, batch: StaticBatch, inputs: Tensor, masks: Tensor) -> _Pass:
        made = _Pass(inputs, masks if key.masked else None, inputs)

        def once() -> None:
            self._sublayers(made, key, batch)

        if len(self._asked) > _COUNTED:
            self._asked.clear()
        self._asked[key] += 1
        if self._asked[key] <= _EAGER or not any(key.variants[:-1]):  # an empty graph is a warning
            once()  # here, so that what it made goes with it: `made` does not refer to itself
            return made
        del self._asked[key]
        made.launch = self._record(once)
        self._passes[key] = made
        if len(self._passes) > _KEPT:
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
    """What recording is where there are no graphs."""
    return function


class Recorder:
    """Records functions as CUDA graphs over one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Callable[[], None]) -> Callable[[], None]:
        """The launch of what `function` does; it must read and write the same memory each time."""
        torch.cuda.synchronize()
        with torch.cuda.stream(self._stream):
            function()  # libraries allocate and choose kernels now, not while recording
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            function()
        return graph.replay
