"""Layer sets: what `knapserve tune` finds for self-sd and knn-ssd. `engine.runtime.layer_sets` has their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.plans import Variants


@dataclass(frozen=True, slots=True, eq=False)
class LayerSets:
    """The plans of one model for one policy, by domain, and what tells the domains apart."""

    policy: str
    model: str  # fingerprint of the checkpoint
    sets: Mapping[str, Variants]  # plans by domain; self-sd has one, of the domain ""
    anchors: Mapping[str, np.ndarray] = field(default_factory=dict)  # knn-ssd: domain → [anchors, hidden]
    least_similarity: float = -1.0  # knn-ssd: cosine to the nearest anchor below which no domain matches
    prompts: int = 0  # the number of prompts that the sets were tuned on
    settings: Mapping[str, float] = field(default_factory=dict)  # the settings of the tuning


class Anchors:
    """The anchors of all domains, to find the nearest one to a vector."""

    def __init__(self, anchors: Mapping[str, np.ndarray]) -> None:
        """`anchors`: domain → [anchors, hidden]."""
        self._domains = [domain for domain, vectors in anchors.items() for _ in vectors]
        self._vectors = unit(np.concatenate(list(anchors.values())))

    def nearest(self, vector: np.ndarray) -> tuple[str, float]:
        """Return the domain of the anchor with the largest cosine to a vector [hidden], and the cosine.

        KNN-SSD, eq. 4 and 5.
        """
        similarities = self._vectors @ unit(vector)
        best = int(similarities.argmax())
        return self._domains[best], float(similarities[best])


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors [..., hidden] to length one; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))
