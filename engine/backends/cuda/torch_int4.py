"""torch's own 4-bit product, and the choice between it and those of `int4`: which is fastest depends on the GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.backends.cuda.graphs import FusedLinear
from engine.backends.cuda.int4 import Int4Linear
from engine.backends.cuda.products import normalise
from engine.model.low_bit import GROUP

log = logging.getLogger("knapserve.engine")

_WARM_UPS, _RUNS = 3, 15
_FLUSHED = 1 << 29  # bytes written before each run: they evict weights from caches and outlast the host's launches


class TorchInt4Linear:
    """A `FusedLinear` of 4-bit weights for bfloat16 inputs on CUDA, of several kernels."""

    most = Int4Linear.most

    def __init__(self, codes: Tensor, scale: Tensor, bias: Tensor | None = None, *, gated: bool = False) -> None:
        """Repack weights (code − 8) · scale: codes uint8 [out, in], scale [out, in / GROUP]; keep bias [out].

        Raises RuntimeError where torch has no such kernel.
        """
        inner = next(tiles for tiles in (8, 4, 2) if codes.shape[1] % (16 * tiles) == 0)
        pairs = codes[:, ::2] << 4 | codes[:, 1::2]
        self._codes = torch.ops.aten._convert_weight_to_int4pack(pairs, inner)
        self._scales = torch.stack([scale, torch.zeros_like(scale)], -1).transpose(0, 1).bfloat16().contiguous()
        self._bias = bias
        self.weights = [self._codes, self._scales]

    def __call__(self, x: Tensor) -> Tensor:
        out: Tensor = torch.ops.aten._weight_int4pack_mm(x, self._codes, GROUP, self._scales)
        return out if self._bias is None else out.add_(self._bias)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        return self(x).add_(residual)

    def normed(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        return self(normalise(x, norm[None], epsilon, torch.empty_like(x)))

    def gated(self, x: Tensor, norm: Tensor, epsilon: float) -> Tensor:
        gate, up = self.normed(x, norm, epsilon).chunk(2, 1)
        return F.silu(gate).mul_(up)

    def normalise_heads(self, qkv: Tensor, weight: Tensor, epsilon: float) -> None:
        normalise(qkv, weight, epsilon, qkv)


class Int4Linears:
    """Make 4-bit layers of the kind that takes a row of a layer's shape the least time, by `timer`.

    `timer` returns the seconds that a function takes, or raises RuntimeError if the function does.
    """

    def __init__(self, timer: Callable[[Callable[[], object]], float]) -> None:
        self._timer = timer
        self._chosen: dict[tuple[int, int, bool], str] = {}  # the kind, by outputs, inputs, and whether gated

    def __call__(
        self, codes: Tensor, scale: Tensor, bias: Tensor | None, dtype: torch.dtype, *, gated: bool
    ) -> FusedLinear:
        """Make a layer for inputs of `dtype` from codes and scales as `Int4Linear` does."""
        if dtype != torch.bfloat16:
            return Int4Linear(codes, scale, bias, gated=gated)
        kinds: dict[str, Callable[..., FusedLinear]] = {
            "norm within": Int4Linear,
            "norm before": partial(Int4Linear, fused=False),
            "torch": TorchInt4Linear,
        }
        x, norm = (
            torch.ones(*shape, dtype=dtype, device=codes.device) for shape in ((1, codes.shape[1]), codes.shape[1:])
        )

        def seconds(kind: str) -> float:
            try:
                linear = kinds[kind](codes, scale, bias, gated=gated)
                return self._timer(lambda: (linear.gated if gated else linear.normed)(x, norm, 1e-5))
            except RuntimeError as error:
                log.info("4-bit product, %s: %s", kind, error)
                return float("inf")

        outputs, inputs = codes.shape
        if (outputs, inputs, gated) not in self._chosen:
            times = {kind: seconds(kind) for kind in kinds}
            said = ", ".join(f"{kind} {time * 1e6:.1f} µs" for kind, time in times.items())
            log.info("4-bit product %d × %d: %s", outputs, inputs, said)
            self._chosen[outputs, inputs, gated] = min(times, key=times.__getitem__)
        return kinds[self._chosen[outputs, inputs, gated]](codes, scale, bias, gated=gated)


def device_seconds(function: Callable[[], object]) -> float:
    """Return the median of the seconds that the current device takes for a function's kernels, reading memory."""
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
