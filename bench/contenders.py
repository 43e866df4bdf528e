"""What takes part in a benchmark: policies, and policies with settings of their own."""

from collections.abc import Collection
from dataclasses import fields, replace
from typing import NamedTuple

from engine.config.engine import EngineConfig
from engine.config.fields import PolicySettings
from engine.config.policies import added_policies, draft_policies
from engine.errors import ConfigError


class Contender(NamedTuple):
    """A draft policy with its settings; `name` is what tables call it."""

    name: str
    policy: str
    config: EngineConfig


def contenders(text: str, config: EngineConfig) -> list[Contender]:
    """Parse names with commas between them: `layerskip,layerskip:length=adaptive`. None comes first.

    Settings are those of the policy, without its name. Raises ConfigError.
    """
    found = []
    for name in dict.fromkeys(["none", *text.split(",")]):
        policy, *changes = name.split(":")
        if policy not in (known := draft_policies()):
            raise ConfigError(f"--policies: unknown: {policy}; known: {', '.join(known)}")
        found.append(Contender(name, policy, _changed(config, name, policy, changes)))
    return found


def _changed(config: EngineConfig, name: str, policy: str, changes: Collection[str]) -> EngineConfig:
    """Return the settings with changes `setting=value` to those of a policy."""
    if not changes:
        return config
    field = "prompt_lookup" if policy == "lookup" else policy
    added = added_policies()
    own = config.of(added[policy]) if policy in added else getattr(config, field, None)
    own_types = {each.name: type(getattr(own, each.name)) for each in fields(own)} if own is not None else {}
    values = {}
    for change in changes:
        setting, _, value = change.partition("=")
        if own_types.get(setting) not in (int, float, str):
            raise ConfigError(
                f"--policies {name}: no setting {setting!r}; {policy} has {', '.join(own_types) or 'none'}"
            )
        try:
            values[setting] = own_types[setting](value)
        except ValueError:
            raise ConfigError(f"--policies {name}: {value!r} is not a number") from None
    assert own is not None
    changed = replace(own, **values)
    if isinstance(changed, PolicySettings):
        return replace(config, policies=(changed, *config.policies))
    return replace(config, **{field: changed})
