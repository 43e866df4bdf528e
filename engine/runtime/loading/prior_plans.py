"""Choose the prior plans to start a core with."""

from __future__ import annotations

import logging
from pathlib import Path

from engine.architecture.spec import LOW_BIT
from engine.checkpoints.source import Source, SyntheticSource
from engine.config import EngineConfig
from engine.errors import PriorError
from engine.runtime import prior as priors
from engine.runtime.prior import Prior

log = logging.getLogger("knapserve.engine")

_SHIPPED_NAME = "prior.json"  # in a checkpoint's directory


def find_prior(config: EngineConfig, source: Source, measured: Path, draft_bits: int) -> Prior | None:
    """Return the plans of the file that `--prior` names, else of the file `measured`, else of the checkpoint's own.

    None: there are none, or none that suit. `draft_bits`: bits of the model's copy for drafts, 0 without one. Raises
    PriorError if a file is damaged, or if the one that `--prior` names does not suit the model or the settings.
    """
    if config.prior == "none":
        return None
    named = config.prior != "auto"
    paths = [Path(config.prior).expanduser()] if named else [measured]
    if not named and not isinstance(source, SyntheticSource):
        paths.append(source.directory / _SHIPPED_NAME)
    for path in paths:
        if not named and not _exists(path):
            continue
        found = priors.load(path)
        reason = _mismatch(found, config, source, draft_bits)
        if reason is None:
            log.info("prior plans loaded: %s", path)
            return found
        if named:
            raise PriorError(f"prior plans {path} {reason}")
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


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a directory that this user may not read
        return False
