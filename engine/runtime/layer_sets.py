"""Find, read and write layer sets: what `knapserve tune --policy self-sd` and `--policy knn-ssd` found."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.checkpoints.source import Source
from engine.config.engine import EngineConfig
from engine.config.policies import TUNED_POLICIES
from engine.draft.baselines.layer_sets import LayerSets
from engine.errors import LayerSetsError
from engine.runtime.prior import parse_plan, parse_tuned, read_tuned

log = logging.getLogger("knapserve.engine")

VERSION = 1
# Components of a unit vector of some thousand dimensions are near 0.02; this leaves their cosines exact to 1e-5.
_DECIMALS = 6


class FoundSets(NamedTuple):
    """Layer sets by policy, and the reasons of the policies that have none."""

    sets: dict[str, LayerSets]
    missing: dict[str, str]


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
    """Parse the text of a file. Raises LayerSetsError unless it is complete, valid and of this version."""
    return parse_tuned(text, VERSION, _layer_sets, LayerSetsError)


def _layer_sets(raw: dict[str, Any]) -> LayerSets:
    """Check the parsed text of a file. Raises KeyError, ValueError, TypeError, AttributeError, LayerSetsError."""
    policy, model, domains = raw["policy"], raw["model"], raw["domains"]
    if policy not in TUNED_POLICIES or not isinstance(model, str):
        raise LayerSetsError(f"'policy' must be one of {', '.join(TUNED_POLICIES)}, and 'model' a fingerprint")
    matched = policy == "knn-ssd"
    sets = {domain: parse_plan(entry["set"], "01") for domain, entry in domains.items()}
    if not sets or len({len(variants) for variants in sets.values()}) > 1 or (len(sets) > 1 and not matched):
        raise LayerSetsError("'domains' must have sets of one length, and of self-sd a single one")
    anchors = {domain: np.array(entry["anchors"], dtype=float) for domain, entry in domains.items() if matched}
    if any(vectors.ndim != 2 or not np.isfinite(vectors).all() for vectors in anchors.values()):
        raise LayerSetsError("'anchors' must be lists of vectors of finite numbers")
    if matched and len({vectors.shape[1] for vectors in anchors.values()}) > 1:
        raise LayerSetsError("'anchors' must have one length")
    least = float(raw["least_similarity"])
    if not -1 <= least <= 1:
        raise LayerSetsError(f"'least_similarity' must be a cosine, not {least}")
    settings = {str(name): float(value) for name, value in raw["settings"].items()}
    return LayerSets(policy, model, sets, anchors, least, int(raw["prompts"]), settings)


def load(path: Path) -> LayerSets:
    """Read a file of layer sets. Raises LayerSetsError, which names the file."""
    return read_tuned(path, "layer sets", from_json, LayerSetsError)


def find_layer_sets(config: EngineConfig, source: Source, path_of: Callable[[str], Path]) -> FoundSets:
    """Return the layer sets that the settings name, or else those of the files at `path_of(policy)`.

    A file that is not named, and whose policy is not the default one, is only reported if it cannot be used. Raises
    LayerSetsError for other files that are damaged or of another model.
    """
    found = FoundSets({}, {})
    for policy, named in (("self-sd", config.self_sd.sets), ("knn-ssd", config.knn_ssd.sets)):
        path = path_of(policy) if named in ("auto", "none") else Path(named).expanduser()
        tune = f"run `knapserve tune --policy {policy}`"
        if named == "none":
            found.missing[policy] = f"--{policy}-sets is none"
            continue
        if named == "auto" and not os.path.exists(path):  # also False in a directory that this user may not read
            found.missing[policy] = f"this model has no layer sets for it here; {tune}"
            continue
        try:
            found.sets[policy] = load_for(path, policy, source)
            log.info("layer sets of policy %s loaded: %s", policy, path)
        except LayerSetsError as error:
            if named != "auto" or config.draft_policy == policy:
                raise LayerSetsError(f"{error}; {tune}") from None
            log.warning("policy %s is not available: %s; %s", policy, error, tune)
            found.missing[policy] = f"its layer sets cannot be used, as the log says; {tune}"
    return found


def load_for(path: Path, policy: str, source: Source) -> LayerSets:
    """Read the layer sets of a policy for a model. Raises LayerSetsError, which names the file."""
    found, spec = load(path), source.spec
    if found.policy != policy:
        raise LayerSetsError(f"layer sets {path} are of policy {found.policy}, not {policy}")
    lengths = {len(variants) for variants in found.sets.values()} | {len(spec.whole)}
    widths = {vectors.shape[1] for vectors in found.anchors.values()} | {spec.hidden}
    if found.model != source.fingerprint or len(lengths) > 1 or len(widths) > 1:
        raise LayerSetsError(f"layer sets {path} are of another model than {source.name}")
    return found
