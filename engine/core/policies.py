"""The draft policies by name."""

from collections.abc import Callable
from functools import cache
from pkgutil import resolve_name
from typing import Any

from engine.config.policies import added_policies
from engine.draft.base import DraftPolicy, PolicyContext
from engine.draft.fixed import NoDraft, PromptLookup, UniformSkip
from engine.draft.knapspec import KnapSpec
from engine.errors import ConfigError, PolicyUnavailableError


@cache
def policy_kinds() -> dict[str, Callable[[PolicyContext], DraftPolicy[Any]]]:
    """Return the class of each draft policy by name; classes of other packages are imported at the first call."""
    added = [resolve_name(settings.policy) for settings in added_policies().values()]
    return {kind.name: kind for kind in (KnapSpec, UniformSkip, PromptLookup, *added, NoDraft)}


def make_policies(context: PolicyContext) -> tuple[dict[str, DraftPolicy[Any]], dict[str, str]]:
    """Make all policies that have what they need; return the others too, each with the reason.

    Raises ConfigError for settings that do not fit the model, and if the default policy is not available; policies
    raise TunedFileError for files that the settings name.
    """
    made: dict[str, DraftPolicy[Any]] = {}
    unavailable: dict[str, str] = {}
    for name, make in policy_kinds().items():
        try:
            made[name] = make(context)
        except PolicyUnavailableError as error:
            if name == context.config.draft_policy:
                raise ConfigError(f"--draft-policy {name} is not available: {error}") from None
            unavailable[name] = str(error)
    return made, unavailable
