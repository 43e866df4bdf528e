"""What `bench compare` has measured so far, saved after every cell so that a later run can go on."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench.files import write
from engine.errors import ConfigError

_FILE = "results.json"  # the file of `bench compare`


class Temperature(NamedTuple):
    """How tokens are drawn."""

    name: str
    temperature: float
    top_p: float


GREEDY = Temperature("greedy", 0.0, 1.0)
SAMPLED = Temperature("T = 0.6, top-p 0.95", 0.6, 0.95)
TEMPERATURES = (GREEDY, SAMPLED)


@dataclass(frozen=True)
class Cell:
    """Measurements of all policies on one workload at one temperature."""

    column: str
    workload: str
    temperature: str  # its name
    value: float | None  # the mix ratio, or the tokens of the context
    prompts: int
    switches: float | None  # in mixed streams: share of prompts of another domain than the one before
    # By policy: `bench.results.summarise`; `total`, the sum of each prompt's median repeat; `repeats`, sums by repeat.
    rows: list[dict[str, Any]]


@dataclass
class Record:
    """A comparison: its settings, its finished cells, and the memory of each policy. Kept in a file, if it has one."""

    settings: dict[str, Any]
    machine: dict[str, Any] = field(default_factory=dict)  # facts for the reader
    cells: list[Cell] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)  # `bench.compare.memory`, by policy
    directory: Path | None = None
    file: str = _FILE  # in the directory

    def find(self, column: str, workload: str, temperature: str) -> Cell | None:
        """Return a finished cell."""
        wanted = (column, workload, temperature)
        return next((c for c in self.cells if (c.column, c.workload, c.temperature) == wanted), None)

    def save(self) -> None:
        """Replace the file, in one step: an interruption leaves the old file or the new one."""
        if self.directory is not None:
            write(self.directory / self.file, self.as_json())

    def as_json(self) -> str:
        kept = {"settings": self.settings, "machine": self.machine, "cells": [asdict(cell) for cell in self.cells]}
        return json.dumps(kept | {"memory": self.memory}, indent=1) + "\n"

    @property
    def policies(self) -> list[str]:
        return list(self.settings["policies"])


def open_record(directory: Path | None, settings: dict[str, Any], restart: bool, file: str = _FILE) -> Record:
    """Return the record in a directory, or a new one. Raises ConfigError if it is damaged or of other settings."""
    settings = json.loads(json.dumps(settings))  # the settings as they read from a file
    record = Record(settings, directory=directory, file=file)
    if directory is None or restart or not (directory / file).exists():
        return record
    path = directory / file
    try:
        found = json.loads(path.read_text("utf-8"))
        record.cells = [Cell(**cell) for cell in found["cells"]]
        record.machine, record.memory, before = found["machine"], found["memory"], dict(found["settings"])
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is damaged ({error!r}); --restart discards it") from None
    changed = [name for name in {**before, **settings} if before.get(name) != settings.get(name)]
    if changed:
        changes = "; ".join(f"{name} was {before.get(name)}, now {settings.get(name)}" for name in changed)
        raise ConfigError(f"{path} has results of other settings ({changes}); choose another --out, or --restart")
    return record
