"""Plans: which variant of each sublayer a pass runs."""

from collections import Counter
from typing import Protocol, TypeAlias

Variants: TypeAlias = tuple[int, ...]  # a plan: the variant of each sublayer, then that of the head
# Skipped, the model's own weights, a copy in fewer bits, and that copy with attention to a window of the cache only.
SKIP, TARGET, LOW_BIT, WINDOW = range(4)
NAMES = ("skip", "target", "low-bit", "window")  # the names of the variants
# First and last tokens of the window. Attention needs the first ones (Xiao et al. 2023, Efficient Streaming Language
# Models with Attention Sinks): four suffice, but kernels read this many at once.
SINKS, RECENT = 64, 1024


class Layered(Protocol):
    """A model's shape, as far as plans depend on it."""

    @property
    def layers(self) -> int:
        """Return the number of layers."""


def count_variants(variants: Variants) -> dict[tuple[str, str], int]:
    """Count the sublayers of a plan by the names of kind (attention, mlp, head) and variant."""
    kinds = (("attention", variants[:-1:2]), ("mlp", variants[1::2]), ("head", variants[-1:]))
    counts = Counter((kind, NAMES[variant]) for kind, part in kinds for variant in part)
    return dict(counts)


def skipped(variants: Variants) -> tuple[int, int]:
    """Return the numbers of attention and MLP sublayers that a plan skips."""
    return variants[:-1:2].count(SKIP), variants[1::2].count(SKIP)


def weights_of(variant: int) -> int:
    """Return the variant whose weights a variant uses."""
    return min(variant, LOW_BIT)


def windows_fit(variants: Variants) -> bool:
    """Return whether no MLP and not the head of a plan has the variant WINDOW."""
    return WINDOW not in (*variants[1::2], variants[-1])


def exit_plan(spec: Layered, depth: int) -> Variants:
    """Return the plan of the first `depth` layers and the head."""
    return (TARGET, TARGET) * depth + (SKIP, SKIP) * (spec.layers - depth) + (TARGET,)
