"""Declare and check settings: fields of dataclasses, loaded by `server.settings`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from engine.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

# Limits of settings.
COUNT = (1, math.inf)
AMOUNT = (0, math.inf)
SHARE = (0, 1)

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_bytes(text: str) -> int:
    """Parse a size such as "4GiB", "512MB" or "1000000" into bytes. Raises ConfigError."""
    raw = text.strip().lower()
    digits = raw.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        size = int(float(digits) * _UNITS[raw[len(digits) :].strip()])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size <= 0:
        raise ConfigError(f"'{text}' is not a size; valid sizes: 16MiB, 512MB, 1000000")
    return size


def parse_memory(text: str) -> int | float:
    """Parse a size ("4GiB") into int bytes, or a share of free memory ("0.4", "40%") into float. Raises ConfigError."""
    raw = text.strip().lower()
    try:
        if raw.endswith("%"):
            share = float(raw[:-1]) / 100
        elif "." in raw and raw.replace(".", "", 1).isdigit():
            share = float(raw)
        else:
            return parse_bytes(text)
    except (ValueError, ConfigError):
        raise ConfigError(f"'{text}' is neither a size (4GiB, 512MB) nor a share of free memory (0.4, 40%)") from None
    if not 0 < share <= 1:
        raise ConfigError(f"a share of memory must be above 0 and at most 1, not {text}")
    return share


def parse_file(text: str) -> Path:
    """Parse the path of a file that can be read. Raises ConfigError."""
    path = Path(text).expanduser()
    if path.is_dir() or not os.access(path, os.R_OK):
        raise ConfigError(f"there is no file {path} that can be read")
    return path


def setting(
    default: T,
    help: str,
    *,
    choices: tuple[str, ...] | None = None,
    limits: tuple[float, float] | None = None,
    parse: Callable[[str], T] | None = None,
    group: str = "",
    added: Callable[[], Mapping[str, type[PolicySettings]]] | None = None,
) -> T:
    """Declare a field of a settings dataclass, for `check` and `server.settings`.

    `choices` are the allowed values, `limits` the lowest and the highest. `parse` turns text into the value.
    `group` is a title in the help, for this setting and those after it. A field with `added` holds a tuple of settings
    of the classes that this returns, in place of a value.
    """
    metadata = {"help": help, "choices": choices, "limits": limits, "parse": parse, "group": group, "added": added}
    return field(default=default, metadata=metadata)


def flag(name: str) -> str:
    """Return the command line's flag for a setting."""
    return "--" + name.replace("_", "-")


def check(config: DataclassInstance, prefix: str = "") -> None:
    """Raise ConfigError if a field, nested or not, is outside its `choices` or `limits`. `prefix` is of the names."""
    for spec in fields(config):
        name, value = flag(prefix + spec.name), getattr(config, spec.name)
        if is_dataclass(value) and not isinstance(value, type):
            check(value, f"{prefix}{spec.name}_")
            continue
        choices, limits = spec.metadata["choices"], spec.metadata["limits"]
        if choices and value not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value}")
        if limits and value is not None and not limits[0] <= value <= limits[1]:
            low, high = limits
            allowed = f"at least {low:.12g}" if high == math.inf else f"between {low:.12g} and {high:.12g}"
            raise ConfigError(f"{name} must be {allowed}, not {value}")


@dataclass(frozen=True)
class PolicySettings:
    """Settings of a draft policy that an installed package adds; all of them have defaults.

    A subclass is an entry point of the group `knapserve.policies`, under the policy's name. That name, with `_` for
    `-`, precedes the names of the settings in flags, variables and files. Raises ConfigError for values out of range.
    """

    name: ClassVar[str]
    policy: ClassVar[str]  # "module:class" of the `DraftPolicy`, which the engine imports

    @classmethod
    def prefix(cls) -> str:
        """Return what precedes the names of the settings."""
        return cls.name.replace("-", "_") + "_"

    def __post_init__(self) -> None:
        check(self, self.prefix())
