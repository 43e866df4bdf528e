"""Derive seeds from seeds by splitmix64, without torch."""

from __future__ import annotations

_MASK = (1 << 64) - 1


def mix64(x: int) -> int:
    """Return one step of splitmix64 from state x, an unsigned 64-bit integer. Neighbours get unrelated results."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
