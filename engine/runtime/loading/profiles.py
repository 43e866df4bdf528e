"""Find the latency profile of this machine and model, or measure one."""

from __future__ import annotations

import logging

from engine.config import EngineConfig
from engine.errors import ProfileMismatchError
from engine.runtime.loading.progress import progress_bar
from engine.runtime.measure import Measurement
from profiles import store
from profiles.schema import LatencyProfile, ProfileError, ProfileKey

log = logging.getLogger("knapserve.engine")

_HIGH_RESIDUAL = 0.15  # relative error of a fit that deserves a warning


def find_or_measure(config: EngineConfig, key: ProfileKey, measurement: Measurement) -> tuple[LatencyProfile, str]:
    """Return the profile for `key` and its file, or "measured, not saved".

    `--profile` comes first, then a stored profile for `key`, then a measurement of a few seconds, which is stored.
    Raises ProfileMismatchError if `--profile` is for another key, or if a file is not a valid profile.
    """
    try:
        if config.profile is not None:
            profile = store.load(config.profile)
            if profile.key != key:
                raise ProfileMismatchError(
                    f"profile {config.profile} is for {profile.key.slug}, this machine and model are {key.slug}"
                )
            log.info("latency profile loaded, as named: %s", config.profile)
            return profile, str(config.profile)
        found = store.find(key, config.profile_dir)
        if found is not None:
            log.info("latency profile loaded: %s", found[1])
            return found[0], str(found[1])
    except ProfileError as error:
        raise ProfileMismatchError(str(error)) from None
    log.info("no latency profile of this machine and model: measuring for some seconds")
    profile = measurement.run(key, progress=progress_bar("measuring this machine"))
    if profile.residual > _HIGH_RESIDUAL:
        log.warning("the latency profile fits badly: median error %.0f %%", 100 * profile.residual)
    try:
        path = store.save(profile, config.profile_dir or store.default_directory())
        log.info("latency profile measured and saved: %s", path)
        return profile, str(path)
    except OSError as error:
        log.warning("cannot save the latency profile: %s", error)
        return profile, "measured, not saved"
