"""Run a model's attention and MLP sublayers one by one in torch's operations, so that any sub-network can run.

`attend(i, x)` and `mlp(i, x)` include their input norm and the residual add: a layer is `mlp(i, attend(i, x))`, and
skipping a sublayer is the identity.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.attention import AttentionBatch
from engine.model.decoder import DecoderOf
from engine.plans import SKIP, TARGET, Variants
from engine.tensors import to_device


class TorchDecoder(DecoderOf[AttentionBatch]):
    """A decoder for every device and dtype."""

    def attend(self, layer: int, x: Tensor, batch: AttentionBatch, variant: int = TARGET) -> Tensor:
        """Run attention sublayer 2·layer: x [rows, hidden] -> [rows, hidden]."""
        weights = self._layers[variant][layer]
        h = torch.rms_norm(x, self._shape, weights.attention_norm, self.spec.norm_eps)
        qkv = weights.qkv(h)
        if weights.qk_norm is not None:  # RMSNorm of each q and k head, in place
            heads, width = weights.qk_norm.shape
            qk = qkv[:, : heads * width].view(-1, heads, width)
            qk.copy_(torch.rms_norm(qk, (width,), None, self.spec.norm_eps).mul_(weights.qk_norm))
        return weights.output.add(batch.attend(layer, qkv, variant), x)

    def mlp(self, layer: int, x: Tensor, variant: int = TARGET) -> Tensor:
        """Run MLP sublayer 2·layer + 1: x [rows, hidden] -> [rows, hidden]."""
        weights = self._layers[variant][layer]
        h = torch.rms_norm(x, self._shape, weights.mlp_norm, self.spec.norm_eps)
        gate, up = weights.gate_up(h).chunk(2, dim=-1)
        return weights.down.add(F.silu(gate).mul_(up), x)

    def sublayer(self, index: int, x: Tensor, batch: AttentionBatch, variant: int = TARGET) -> Tensor:
        layer, is_mlp = divmod(index, 2)
        return self.mlp(layer, x, variant) if is_mlp else self.attend(layer, x, batch, variant)

    def run(
        self, x: Tensor, batch: AttentionBatch, record: list[Tensor] | None = None, *, variants: Variants | None = None
    ) -> Tensor:
        if record is not None:
            record.append(x)
        for index, variant in enumerate((variants or self.spec.whole)[: self.spec.sublayers]):
            if variant != SKIP:
                x = self.sublayer(index, x, batch, variant)
            if record is not None:
                record.append(x)
        return x

    def run_plans(self, x: Tensor, batch: AttentionBatch, plans: Sequence[Variants]) -> Tensor:
        """Run row r through the sublayers of plans[r]. Rows with the same variant of a sublayer run together."""
        if all(plan == plans[0] for plan in plans):
            return self.run(x, batch, variants=plans[0])
        for index in range(self.spec.sublayers):
            for variant in sorted({plan[index] for plan in plans} - {SKIP}):
                rows = tuple(r for r, plan in enumerate(plans) if plan[index] == variant)
                if len(rows) == len(plans):
                    x = self.sublayer(index, x, batch, variant)
                elif rows:
                    where = to_device(rows, x.device)
                    part = self.sublayer(index, x.index_select(0, where), batch.select(rows), variant)
                    x = x.index_copy(0, where, part)
        return x
