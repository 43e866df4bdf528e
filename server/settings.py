"""Load settings dataclasses from a file, the environment and flags, in increasing precedence.

A setting is a field of a frozen dataclass, or of a dataclass nested in it. Its metadata may hold `help` (text), `parse`
(a function from text to the whole value, which raises ValueError or ConfigError) and `choices` (allowed values).
Without `parse`, a setting may be a str, int, float, bool or Path, one of these or None, or a tuple of one of these.
"""

from __future__ import annotations

import argparse
import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from engine.config.fields import flag
from engine.config.policies import BASELINES
from engine.errors import ConfigError

ENV_PREFIX = "KNAPSERVE_"
CONFIG_FLAG = "config"

T = TypeVar("T")

_BOOLEANS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of a settings dataclass, under the name that files, variables and flags share."""

    name: str
    spec: Field[Any]
    hint: Any  # the field's type

    @property
    def is_list(self) -> bool:
        return self.spec.metadata["parse"] is None and get_origin(self.hint) is tuple

    @property
    def item_type(self) -> Any:
        """The type of one value, without `None`."""
        hint = get_args(self.hint)[0] if self.is_list else self.hint
        members = [member for member in get_args(hint) if member is not type(None)]
        return members[0] if len(members) == 1 else hint


def settings_of(kind: type, prefix: str = "") -> Iterator[Setting]:
    """Yield the settings of a dataclass. A field `inner` that is a dataclass has settings `inner_…`."""
    hints = get_type_hints(kind)
    for spec in fields(kind):
        hint = hints[spec.name]
        if isinstance(hint, type) and is_dataclass(hint):
            yield from settings_of(hint, f"{prefix}{spec.name}_")
        elif added := spec.metadata["added"]:
            for each in added().values():
                yield from settings_of(each, each.prefix())
        else:
            yield Setting(prefix + spec.name, spec, hint)


def add_arguments(parser: argparse.ArgumentParser, kind: type, *, baselines: bool = False) -> None:
    """Add a flag for every setting of `kind`. Values stay text until `Settings.build`; absent flags set nothing.

    Help shows the settings of the baseline policies only with `baselines`, and then no others.
    """
    title, group = "", parser.add_argument_group("settings")
    for setting in settings_of(kind):
        if begun := setting.spec.metadata["group"]:
            title, group = begun, parser.add_argument_group(begun)
        shown = _help(setting) if (title == BASELINES) == baselines else argparse.SUPPRESS
        options: dict[str, Any] = {"dest": setting.name, "default": argparse.SUPPRESS, "help": shown}
        if setting.item_type is bool:
            options["action"] = argparse.BooleanOptionalAction
        else:
            choices = setting.spec.metadata["choices"]
            options["metavar"] = "{" + ",".join(choices) + "}" if choices else setting.name.rsplit("_", 1)[-1].upper()
            if setting.is_list:
                options |= {"nargs": "+", "action": "extend"}
        group.add_argument(flag(setting.name), **options)


def _help(setting: Setting) -> str:
    default = setting.spec.default
    shown_default = "" if default in (None, (), "") else f"default {default}, "
    return f"{setting.spec.metadata['help']} ({shown_default}{ENV_PREFIX}{setting.name.upper()})".replace("%", "%%")


@dataclass(frozen=True, slots=True)
class Settings:
    """Raw values from file, environment and flags: name of a setting → (its source, value)."""

    values: Mapping[str, tuple[str, object]]

    @classmethod
    def read(cls, kinds: Iterable[type], args: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
        """Merge the sources for the settings of `kinds`. Raises ConfigError on unknown keys and unreadable files."""
        settings = [setting for kind in kinds for setting in settings_of(kind)]
        names = {setting.name for setting in settings}
        values: dict[str, tuple[str, object]] = {}
        path = getattr(args, CONFIG_FLAG, None) or environ.get(ENV_PREFIX + CONFIG_FLAG.upper())
        if path:
            for key, value in _read_file(Path(path)).items():
                name = key.replace("-", "_")
                if name not in names:
                    raise ConfigError(f"{path}: unknown setting '{key}'{_suggest(name, names)}")
                values[name] = (f"{path}: {key}", value)
        for variable, text in environ.items():
            if not variable.startswith(ENV_PREFIX) or variable == ENV_PREFIX + CONFIG_FLAG.upper():
                continue
            name = variable.removeprefix(ENV_PREFIX).lower()
            if name not in names or text.startswith("tcp://"):
                raise ConfigError(_unknown_variable(variable, name, names))
            if text:  # an empty variable counts as unset, as compose files produce them
                values[name] = (variable, text)
        for setting in settings:
            if hasattr(args, setting.name):
                values[setting.name] = (flag(setting.name), getattr(args, setting.name))
        return cls(values)

    def build(self, kind: type[T], prefix: str = "") -> T:
        """Make an instance of `kind`. Raises ConfigError naming the source of a value that does not fit."""
        hints = get_type_hints(kind)
        arguments: dict[str, Any] = {}
        for spec in fields(kind):  # type: ignore[arg-type]
            setting = Setting(prefix + spec.name, spec, hints[spec.name])
            if isinstance(setting.hint, type) and is_dataclass(setting.hint):
                arguments[spec.name] = self.build(setting.hint, setting.name + "_")
            elif added := spec.metadata["added"]:
                arguments[spec.name] = tuple(self.build(each, each.prefix()) for each in added().values())
            elif setting.name in self.values:
                source, raw = self.values[setting.name]
                try:
                    arguments[spec.name] = _convert(setting, raw)
                except (ValueError, ConfigError) as error:
                    raise ConfigError(f"{source}: {error}") from None
        return kind(**arguments)


def _read_file(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the config file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def _suggest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def _unknown_variable(variable: str, name: str, names: Iterable[str]) -> str:
    if name.startswith(("service_", "port")):
        # Kubernetes injects these into every pod of a namespace that has a Service named "knapserve".
        return (
            f"unknown setting in the environment: {variable}. Kubernetes sets it for a Service named 'knapserve'; "
            "give the pod `enableServiceLinks: false`, or the Service another name."
        )
    return f"unknown setting in the environment: {variable}{_suggest(name, names)}"


def _convert(setting: Setting, raw: object) -> object:
    """Return the typed value of a setting, from text or a TOML value. Raises ValueError."""
    if not setting.is_list:
        return _convert_one(setting, raw)
    items = [item.strip() for item in raw.split(",")] if isinstance(raw, str) else raw
    if not isinstance(items, list):
        raise ValueError("expected a list")
    return tuple(_convert_one(setting, item) for item in items)


def _convert_one(setting: Setting, value: object) -> object:
    parse, choices = setting.spec.metadata["parse"], setting.spec.metadata["choices"]
    if isinstance(value, list) and parse is not None:
        value = ",".join(map(str, value))
    if isinstance(value, (dict, list)):
        raise ValueError("expected a single value")
    converted = parse(str(value)) if parse is not None else _scalar(setting.item_type, value)
    if choices is not None and converted not in choices:
        raise ValueError(f"expected one of {', '.join(choices)}; got {value!r}")
    return converted


def _scalar(kind: Any, value: Any) -> Any:
    expected, read = _TYPES[kind]
    try:
        if isinstance(value, str):
            return read(value)
        if type(value) is kind or (kind is float and type(value) is int):
            return _finite(value) if kind is float else value
    except (KeyError, ValueError):
        pass
    raise ValueError(f"expected {expected}, got {value!r}")


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


# Types of settings without `parse`: what is expected, and how text is read.
_TYPES: dict[type, tuple[str, Callable[[str], object]]] = {
    bool: ("true or false", lambda text: _BOOLEANS[text.lower()]),
    int: ("an integer", int),
    float: ("a number", _finite),
    str: ("text", str),
    Path: ("text", lambda text: Path(text).expanduser()),
}
