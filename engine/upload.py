"""Small facts of a round on their way to the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def upload(values: Sequence[Any], device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """`torch.tensor(values)` on `device`, without waiting for what the device still has to do."""
    if device.type != "cuda":
        return torch.tensor(values, dtype=dtype, device=device)
    return torch.tensor(values, dtype=dtype, pin_memory=True).to(device, non_blocking=True)
