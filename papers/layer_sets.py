"""Layer sets: what `knapserve tune` finds for self-sd and knn-ssd, and its files."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from engine.architecture.spec import ModelSpec
from engine.draft.base import PolicyContext
from engine.draft.tuned_file import parse_tuned, read_tuned
from engine.errors import PolicyUnavailableError, TunedFileError
from engine.plans import Variants, parse_plan

log = logging.getLogger("knapserve.engine")

TUNED_POLICIES = ("knn-ssd", "self-sd")
VERSION = 1
# Components of a unit vector of some thousand dimensions are near 0.02; this leaves their cosines exact to 1e-5.
_DECIMALS = 6


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


def to_json(found: LayerSets) -> str:
    """Return the text of a file of layer sets."""
    domains = {
        domain: {
            "set": "".join(map(str, variants)),
            "anchors": np.round(found.anchors[domain], _DECIMALS).tolist() if found.anchors else [],
        }
        for domain, variants in found.sets.items()
    }
    return json.dumps(
        {
            "version": VERSION,
            "policy": found.policy,
            "model": found.model,
            "prompts": found.prompts,
            "settings": dict(found.settings),
            "least_similarity": found.least_similarity,
            "domains": domains,
        }
    )


def from_json(text: str) -> LayerSets:
    """Parse the text of a file. Raises TunedFileError unless it is complete, valid and of this version."""
    return parse_tuned(text, VERSION, _layer_sets)


def _layer_sets(raw: dict[str, Any]) -> LayerSets:
    """Check the parsed text of a file. Raises KeyError, ValueError, TypeError, AttributeError, TunedFileError."""
    policy, model, domains = raw["policy"], raw["model"], raw["domains"]
    if policy not in TUNED_POLICIES or not isinstance(model, str):
        raise TunedFileError(f"'policy' must be one of {', '.join(TUNED_POLICIES)}, and 'model' a fingerprint")
    matched = policy == "knn-ssd"
    sets = {domain: parse_plan(entry["set"], "01") for domain, entry in domains.items()}
    if not sets or len({len(variants) for variants in sets.values()}) > 1 or (len(sets) > 1 and not matched):
        raise TunedFileError("'domains' must have sets of one length, and of self-sd a single one")
    anchors = {domain: np.array(entry["anchors"], dtype=float) for domain, entry in domains.items() if matched}
    if any(vectors.ndim != 2 or not np.isfinite(vectors).all() for vectors in anchors.values()):
        raise TunedFileError("'anchors' must be lists of vectors of finite numbers")
    if matched and len({vectors.shape[1] for vectors in anchors.values()}) > 1:
        raise TunedFileError("'anchors' must have one length")
    least = float(raw["least_similarity"])
    if not -1 <= least <= 1:
        raise TunedFileError(f"'least_similarity' must be a cosine, not {least}")
    settings = {str(name): float(value) for name, value in raw["settings"].items()}
    return LayerSets(policy, model, sets, anchors, least, int(raw["prompts"]), settings)


def load(path: Path) -> LayerSets:
    """Read a file of layer sets. Raises TunedFileError, which names the file."""
    return read_tuned(path, "layer sets", from_json)


def find(context: PolicyContext, policy: str, named: str) -> LayerSets:
    """Return the layer sets of a policy: those of the file `named`, or with `auto` of this model's file, if any.

    Raises PolicyUnavailableError where there are none, and TunedFileError if they are damaged or of another model: in
    a file that is named, or that the default policy needs. The damage of other files is logged.
    """
    tune = f"run `knapserve tune --policy {policy}`"
    if named == "none":
        raise PolicyUnavailableError(f"--{policy}-sets is none")
    path = context.tuned_path(policy) if named == "auto" else Path(named).expanduser()
    if named == "auto" and not os.path.exists(path):  # also False in a directory that this user may not read
        raise PolicyUnavailableError(f"this model has no layer sets for it here; {tune}")
    try:
        found = load_for(path, policy, context.spec, context.fingerprint)
    except TunedFileError as error:
        if named != "auto" or context.config.draft_policy == policy:
            raise TunedFileError(f"{error}; {tune}") from None
        log.warning("policy %s is not available: %s; %s", policy, error, tune)
        raise PolicyUnavailableError(f"its layer sets cannot be used, as the log says; {tune}") from None
    log.info("layer sets of policy %s loaded: %s", policy, path)
    return found


def load_for(path: Path, policy: str, spec: ModelSpec, fingerprint: str) -> LayerSets:
    """Read the layer sets of a policy for a model. Raises TunedFileError, which names the file."""
    found = load(path)
    if found.policy != policy:
        raise TunedFileError(f"layer sets {path} are of policy {found.policy}, not {policy}")
    lengths = {len(variants) for variants in found.sets.values()} | {len(spec.whole)}
    widths = {vectors.shape[1] for vectors in found.anchors.values()} | {spec.hidden}
    if found.model != fingerprint or len(lengths) > 1 or len(widths) > 1:
        raise TunedFileError(f"layer sets {path} are of another model")
    return found


def require_extra(what: str) -> None:
    """Raise PolicyUnavailableError unless `what` finds the extra installed. Imports nothing of it."""
    if any(find_spec(name) is None for name in ("bayes_opt", "sklearn", "threadpoolctl")):
        raise PolicyUnavailableError(
            f"{what} needs bayesian-optimization and scikit-learn: pip install 'knapserve[papers]'"
        )
