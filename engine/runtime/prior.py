"""Find, read and write prior plans: the plans that `knapserve tune` found, with their acceptance counts."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.checkpoints.source import Source, SyntheticSource
from engine.config.engine import EngineConfig
from engine.draft.tpt import THRESHOLDS
from engine.draft.tuned_file import parse_tuned, read_tuned
from engine.errors import TunedFileError
from engine.plans import LOW_BIT, Variants, parse_plan
from profiles.schema import ProfileKey

log = logging.getLogger("knapserve.engine")

VERSION = 2
MAX_PLANS = 64
_SHIPPED_NAME = "prior.json"  # in a checkpoint's directory


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Hold the plans of one model by their variants, each with its counts.

    Counts [bins, 2]: rejected and accepted draft tokens, by the bin of their confidence (`THRESHOLDS`).
    """

    model: str  # fingerprint of the checkpoint
    plans: Mapping[Variants, np.ndarray]

    def to_json(self) -> str:
        """Return the text of a prior file."""
        plans = [
            {"plan": "".join(map(str, variants)), "counts": np.round(counts, 3).tolist()}
            for variants, counts in self.plans.items()
        ]
        return json.dumps(
            {"version": VERSION, "model": self.model, "thresholds": list(THRESHOLDS), "plans": plans}, indent=1
        )

    @classmethod
    def from_json(cls, text: str) -> Prior:
        """Parse the text of a prior file. Raises TunedFileError unless it is complete, valid and of this version."""
        return parse_tuned(text, VERSION, cls._checked)

    @classmethod
    def _checked(cls, raw: dict[str, Any]) -> Prior:
        if tuple(raw["thresholds"]) != THRESHOLDS:
            raise TunedFileError(f"thresholds must be {list(THRESHOLDS)}; run `knapserve tune` again")
        plans = {parse_plan(plan["plan"]): _counts(plan["counts"]) for plan in raw["plans"]}
        if not isinstance(raw["model"], str):
            raise TunedFileError(f"'model' must be text, not {raw['model']!r}")
        if not 0 < len(plans) <= MAX_PLANS or len({len(plan) for plan in plans}) > 1:
            raise TunedFileError(f"'plans' must be 1 to {MAX_PLANS} plans of one length")
        return cls(raw["model"], plans)


def _counts(rows: list[list[float]]) -> np.ndarray:
    """Return counts as an array [bins, 2]. Raises ValueError unless they are finite and not negative."""
    counts = np.array(rows, dtype=float)
    if counts.shape != (len(THRESHOLDS), 2) or not all(math.isfinite(x) and x >= 0 for x in counts.flat):
        raise ValueError(f"counts must be {len(THRESHOLDS)} pairs of numbers that are finite and not negative")
    return counts


def path_of(directory: Path, key: ProfileKey, fingerprint: str, kind: str = "prior") -> Path:
    """Return the file for what was tuned for a model on a machine, named as its latency profile is."""
    return directory / f"{key.slug}-{fingerprint[:16]}.{kind}.json"


def load(path: Path) -> Prior:
    """Read a prior file. Raises TunedFileError, which names the file."""
    return read_tuned(path, "prior plans", Prior.from_json)


def find_prior(config: EngineConfig, source: Source, measured: Path, draft_bits: int) -> Prior | None:
    """Return the plans of the file that `--prior` names, else of the file `measured`, else of the checkpoint's own.

    None: there are none, or none that suit. `draft_bits`: bits of the model's copy for drafts, 0 without one. Raises
    TunedFileError if a file is damaged, or if the one that `--prior` names does not suit the model or the settings.
    """
    if config.prior == "none":
        return None
    named = config.prior != "auto"
    paths = [Path(config.prior).expanduser()] if named else [measured]
    if not named and not isinstance(source, SyntheticSource):
        paths.append(source.directory / _SHIPPED_NAME)
    for path in paths:
        if not named and not os.path.exists(path):  # also False in a directory that this user may not read
            continue
        found = load(path)
        reason = _mismatch(found, config, source, draft_bits)
        if reason is None:
            log.info("prior plans loaded: %s", path)
            return found
        if named:
            raise TunedFileError(f"prior plans {path} {reason}")
        log.warning("prior plans %s are not used: they %s", path, reason)
    return None


def _mismatch(prior: Prior, config: EngineConfig, source: Source, draft_bits: int) -> str | None:
    """Return why the plans do not suit this model or the settings; None if they do."""
    if prior.model != source.fingerprint or len(next(iter(prior.plans))) != len(source.spec.whole):
        return f"are of another model than {source.name}"
    copies = any(max(variants) >= LOW_BIT for variants in prior.plans)
    if copies and (not draft_bits or config.knapspec.menu == "skip"):
        return "run a copy in fewer bits, which --draft-bits or --knapspec-menu rules out"
    return None
