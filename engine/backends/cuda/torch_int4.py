"""torch's own 4-bit product, and the choice between it and those of `int4`: which is fastest depends on the GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.backends.cuda.graphs import FusedLinear
from engine.backends.cuda.int4 import Int4Linear
from engine.backends.cuda.launch import Launch
from engine.backends.cuda.products import Prepared, normalise
from engine.model.low_bit import GROUP

log = logging.getLogger("knapserve.engine")

_WARM_UPS, _RUNS = 3, 15
_FLUSHED = 1 << 29  # bytes written before each run: they evict weights from caches and outlast the host's launches


class TorchInt4Linear:
    """A `FusedLinear` of 4-bit weights for bfloat16 inputs on CUDA, of several kernels."""

    most = Int4Linear.most

    def __init__(
        self, codes: Tensor, scale: Tensor, bias: Tensor | None, launch: Launch, *, gated: bool = False
    ) -> None:
        """Repack weights (code − 8) · scale: codes uint8 [out, in], scale [out, in / GROUP]; keep bias [out].

        Raises RuntimeError where torch has no such kernel.
        """
        inner = next(tiles for tiles in (8, 4, 2) if codes.shape[1] % (16 * tiles) == 0)
        pairs = codes[:, ::2] << 4 | codes[:, 1::2]
        self._codes = torch.ops.aten._convert_weight_to_int4pack(pairs, inner)
        self._scales = torch.stack([scale, torch.zeros_like(scale)], -1).transpose(0, 1).bfloat16().contiguous()
        self._bias, self._launch = bias, launch
        self.weights = [self._codes, self._scales]

    def __call__(self, x: Tensor) -> Tensor:
        out: Tensor = torch.ops.aten._weight_int4pack_mm(x, self._codes, GROUP, self._scales)
        return out if self._bias is None else out.add_(self._bias)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)

    def add_before(self, x: Tensor, residual: Tensor, norm: Tensor) -> tuple[Tensor, None]:
        return self.add(x, residual), None

    def normed(
        self, x: Tensor, prepared: Prepared | None, norm: Tensor, epsilon: float, out: Tensor | None = None
    ) -> Tensor:
        found = self(normalise(x, norm, epsilon, self._launch))
        return found if out is None else out.copy_(found)

    def gated(self, x: Tensor, prepared: Prepared | None, norm: Tensor, epsilon: float) -> Tensor:
        gate, up = self.normed(x, prepared, norm, epsilon).chunk(2, 1)
        return F.silu(gate).mul_(up)


class Int4Linears:
    """Make 4-bit layers, each of the kind that is fastest for one row of its shape.

    `timer` returns the seconds that a function takes, and lets its RuntimeError pass. Without a timer, and for float16,
    all are `Int4Linear`s.
    """

    def __init__(self, launch: Launch, timer: Callable[[Callable[[], object]], float] | None) -> None:
        self._launch, self._timer = launch, timer
        self._chosen: dict[tuple[int, int, bool], str] = {}  # the kind, by outputs, inputs, and whether gated

    def __call__(
        self, codes: Tensor, scale: Tensor, bias: Tensor | None, dtype: torch.dtype, *, gated: bool
    ) -> FusedLinear:
        """Make a layer for inputs of `dtype` from codes [out, in], scale [out, in / GROUP] and bias [out]."""
        timer = self._timer
        if dtype != torch.bfloat16 or timer is None:
            return Int4Linear(codes, scale, bias, self._launch, gated=gated)
        kinds: dict[str, Callable[..., FusedLinear]] = {"ours": Int4Linear, "torch's": TorchInt4Linear}
        x, residual = (torch.ones(1, width, dtype=dtype, device=codes.device) for width in codes.shape[::-1])
        prepared = Prepared(x, torch.ones(1, 1, device=codes.device))

        def seconds(kind: str) -> float:
            try:
                linear = kinds[kind](codes, scale, bias, self._launch, gated=gated)
                return timer(lambda: linear.gated(x, prepared, x[0], 1e-5) if gated else linear.add(x, residual))
            except RuntimeError as error:
                log.info("4-bit product, %s: %s", kind, error)
                return float("inf")

        outputs, inputs = codes.shape
        if (outputs, inputs, gated) not in self._chosen:
            times = {kind: seconds(kind) for kind in kinds}
            said = ", ".join(f"{kind} {time * 1e6:.1f} µs" for kind, time in times.items())
            log.info("4-bit product %d × %d: %s", outputs, inputs, said)
            self._chosen[outputs, inputs, gated] = min(times, key=times.__getitem__)
        return kinds[self._chosen[outputs, inputs, gated]](codes, scale, bias, self._launch, gated=gated)


def device_seconds(function: Callable[[], object]) -> float:
    """Return the median of the seconds that the current device takes for a function's kernels, with cold caches."""
    flushed = torch.empty(_FLUSHED, dtype=torch.uint8, device="cuda")
    for _ in range(_WARM_UPS):
        function()
    times = []
    for _ in range(_RUNS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        flushed.zero_()
        start.record()
        function()
        end.record()
        times.append((start, end))
    torch.cuda.synchronize()
    return float(median(start.elapsed_time(end) for start, end in times)) / 1e3
