"""Plans: which variant of each sublayer a pass runs."""

from collections import Counter
from typing import TypeAlias

Variants: TypeAlias = tuple[int, ...]  # a plan: the variant of each sublayer, then that of the head
# Skipped, the model's own weights, a copy in fewer bits, and that copy with attention to a window of the cache only.
SKIP, TARGET, LOW_BIT, WINDOW = range(4)
NAMES = ("skip", "target", "low-bit", "window")  # the names of the variants
# First and last tokens of the window. Attention needs the first ones (Xiao et al. 2023, Efficient Streaming Language
# Models with Attention Sinks): four suffice, but kernels read this many at once.
SINKS, RECENT = 64, 1024


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


def parse_plan(text: str, digits: str = "0123") -> Variants:
    """Parse a plan: one digit per sublayer and one for the head. Raises ValueError."""
    if not text or set(text) - set(digits):
        raise ValueError(f"a plan must consist of the digits {', '.join(digits)}")
    variants = tuple(map(int, text))
    if variants[-1] == SKIP:
        raise ValueError(f"plan {text} must not end with 0, as drafts need the head")
    if WINDOW in (*variants[1::2], variants[-1]):
        raise ValueError(f"plan {text} has a 3, a window of the cache, where there is no attention")
    return variants


def exit_plan(layers: int, depth: int) -> Variants:
    """Return the plan of the first `depth` of a model's layers, and the head."""
    return (TARGET, TARGET) * depth + (SKIP, SKIP) * (layers - depth) + (TARGET,)
