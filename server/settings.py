"""One loader for every settings dataclass: file < environment < flags.

A setting is a field of a frozen dataclass. Its metadata may hold `help` (text), `parse` (one text to the whole value,
ValueError or ConfigError when it cannot) and `choices` (tuple of values). Types understood without `parse`: str, int,
float, bool, Path, those or None, and tuples of those.
"""

from __future__ import annotations

import argparse
import difflib
import math
import tomllib
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from engine.errors import ConfigError

ENV_PREFIX = "KNAPSERVE_"
CONFIG_FLAG = "config"

T = TypeVar("T")

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def flag_of(spec: Field[Any]) -> str:
    """The command-line flag of a field."""
    return "--" + spec.name.replace("_", "-")


def _plain_type(spec: Field[Any], hint: Any) -> tuple[Any, bool]:
    """A hint without `None`, and whether the setting takes several values (then the type of one)."""
    if get_origin(hint) in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member is not type(None)]
        if len(members) == 1:
            return _plain_type(spec, members[0])
        return hint, False
    if spec.metadata.get("parse") is None and get_origin(hint) is tuple:
        return get_args(hint)[0], True
    return hint, False


def add_arguments(parser: argparse.ArgumentParser, kind: type) -> None:
    """Add a flag for every field of `kind`. Values stay text until `Settings.build`; absent flags set nothing."""
    hints = get_type_hints(kind)
    group = parser.add_argument_group(kind.__name__.removesuffix("Config").lower() + " settings")
    for spec in fields(kind):
        plain, several = _plain_type(spec, hints[spec.name])
        choices = spec.metadata.get("choices")
        options: dict[str, Any] = {"dest": spec.name, "default": argparse.SUPPRESS, "help": _help(spec)}
        if plain is bool and not several:
            options["action"] = argparse.BooleanOptionalAction
        else:
            shown = "{" + ",".join(map(str, choices)) + "}" if choices else flag_of(spec)[2:].rsplit("-", 1)[-1].upper()
            options["metavar"] = shown
            if several:
                options |= {"nargs": "+", "action": "extend"}
        group.add_argument(flag_of(spec), **options)


def _help(spec: Field[Any]) -> str:
    shown = "" if spec.default in (None, (), "") else f"default {spec.default}, "
    return f"{spec.metadata.get('help', '')} ({shown}{ENV_PREFIX}{spec.name.upper()})".replace("%", "%%")


@dataclass(frozen=True, slots=True)
class Settings:
    """What file, environment and flags say, before types are checked: field name → (where it was set, raw value)."""

    values: Mapping[str, tuple[str, Any]]

    @classmethod
    def read(cls, kinds: Iterable[type], args: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
        """Merge the sources for the fields of `kinds`. Raises ConfigError on unknown keys and unreadable files."""
        specs = [spec for kind in kinds for spec in fields(kind)]
        names = {spec.name for spec in specs}
        values: dict[str, tuple[str, Any]] = {}
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
        for spec in specs:
            if hasattr(args, spec.name):
                values[spec.name] = (flag_of(spec), getattr(args, spec.name))
        return cls(values)

    def build(self, kind: type[T]) -> T:
        """An instance of `kind`. Raises ConfigError naming the source of a value that does not fit."""
        hints = get_type_hints(kind)
        arguments: dict[str, Any] = {}
        for spec in fields(kind):  # type: ignore[arg-type]
            if spec.name in self.values:
                where, raw = self.values[spec.name]
                try:
                    arguments[spec.name] = _convert(spec, hints[spec.name], raw)
                except (ValueError, ConfigError) as error:
                    raise ConfigError(f"{where}: {error}") from None
        return kind(**arguments)


def _read_file(path: Path) -> dict[str, Any]:
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


def _convert(spec: Field[Any], hint: Any, raw: Any) -> Any:
    """The typed value of a field, from text or from a TOML value. ValueError when it does not fit."""
    plain, several = _plain_type(spec, hint)
    parse: Callable[[str], Any] | None = spec.metadata.get("parse")
    choices = spec.metadata.get("choices")

    def one(value: Any) -> Any:
        if isinstance(value, list) and parse is not None:
            value = ",".join(map(str, value))
        if isinstance(value, (dict, list)):
            raise ValueError("expected a single value")
        converted = parse(str(value)) if parse is not None else _scalar(plain, value)
        if choices is not None and converted not in choices:
            raise ValueError(f"expected one of {', '.join(map(str, choices))}; got {value!r}")
        return converted

    if not several:
        return one(raw)
    items = [item.strip() for item in raw.split(",")] if isinstance(raw, str) else raw
    if not isinstance(items, list):
        raise ValueError("expected a list")
    return tuple(one(item) for item in items)


def _scalar(plain: Any, value: Any) -> Any:
    text = isinstance(value, str)
    if plain is bool:
        if isinstance(value, bool):
            return value
        if text and value.lower() in _TRUE | _FALSE:
            return value.lower() in _TRUE
        raise ValueError(f"expected true or false, got {value!r}")
    if isinstance(value, bool):
        raise ValueError(f"expected {plain.__name__}, got {value!r}")
    if plain is int:
        try:
            return int(value) if text else value.__index__()
        except (ValueError, AttributeError):
            raise ValueError(f"expected an integer, got {value!r}") from None
    if plain is float:
        try:
            number = float(value)
        except (ValueError, TypeError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"expected a number, got {value!r}")
        return number
    if not text:
        raise ValueError(f"expected text, got {value!r}")
    if plain is Path:
        return Path(value)
    assert plain is str, f"a setting of type {plain} needs a `parse`"
    return value
