"""What a comparison has measured so far, saved after every cell so that a later run can go on."""

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import engine
import papers
from bench.contenders import Contender
from bench.files import read, write
from bench.results import Row
from bench.workloads import Selection
from engine.checkpoints.hub import SYNTHETIC
from engine.config.engine import EngineConfig
from engine.config.fields import flag
from engine.errors import ConfigError
from engine.runtime.build import LoadedModel
from papers.layer_sets import to_json


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
    rows: list[Row]  # by policy: `bench.cells.measure_cell`


@dataclass
class Record:
    """A comparison: its settings, its finished cells, and the memory of each policy. Kept in a file, if it has one."""

    settings: dict[str, Any]
    machine: dict[str, Any] = field(default_factory=dict)  # facts for the reader
    cells: list[Cell] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)  # `bench.memory`, by policy
    path: Path | None = None

    def find(self, column: str, workload: str, temperature: str) -> Cell | None:
        """Return a finished cell."""
        return next((cell for cell in self.select(column, temperature) if cell.workload == workload), None)

    def select(self, column: str, temperature: str) -> list[Cell]:
        """Return the finished cells of a column at a temperature."""
        return [cell for cell in self.cells if (cell.column, cell.temperature) == (column, temperature)]

    def rows_of(self, policy: str) -> list[Row]:
        """Return a policy's row of each cell."""
        return [row for cell in self.cells for row in cell.rows if row["policy"] == policy]

    def save(self) -> None:
        """Replace the file, in one step: an interruption leaves the old file or the new one."""
        if self.path is not None:
            write(self.path, self.as_json())

    def as_json(self) -> str:
        kept = {"settings": self.settings, "machine": self.machine, "cells": [asdict(cell) for cell in self.cells]}
        return json.dumps(kept | {"memory": self.memory}, indent=1) + "\n"

    @property
    def policies(self) -> list[str]:
        return list(self.settings["policies"])


def open_record(path: Path | None, settings: dict[str, Any], restart: bool) -> Record:
    """Return the record of a file, or a new one. Raises ConfigError if it is damaged or of other settings."""
    settings = json.loads(json.dumps(settings))  # the settings as they read from a file
    record = Record(settings, path=path)
    if path is None or restart or not path.exists():
        return record
    try:
        found = json.loads(read(path))
        record.cells = [Cell(**cell) for cell in found["cells"]]
        record.machine, record.memory, before = found["machine"], found["memory"], dict(found["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is damaged ({error!r}); --restart discards it") from None
    changed = [name for name in {**before, **settings} if before.get(name) != settings.get(name)]
    if changed:
        changes = "; ".join(f"{name} was {before.get(name)}, now {settings.get(name)}" for name in changed)
        raise ConfigError(f"{path} has results of other settings ({changes}); choose another --out, or --restart")
    return record


def settings_of(
    model: LoadedModel, config: EngineConfig, entries: Sequence[Contender], chosen: Selection
) -> dict[str, Any]:
    """Return all that cells depend on, by name. Results of other settings must not stand beside each other."""
    prior = model.prior(config)
    folders = [Path(package.__path__[0]) for package in (engine, papers)]
    files = (path for folder in folders for path in folder.rglob("*"))
    sources = sorted(path for path in files if path.suffix in {".py", ".h", ".c", ".cpp", ".cu"})
    return {
        **chosen._asdict(),
        "engine": _digest(*(path.read_bytes() for path in sources)),
        "model": f"{model.source.name} {model.source.fingerprint[:16]}",
        "machine": model.key.slug,
        "policies": [each.name for each in entries],
        "texts": _digest(repr(chosen.texts).encode()),
        "context_text": _digest(chosen.context_text.encode()),
        "layer_sets": _layer_sets(model, entries),
        "prior_plans": _digest(prior.to_json().encode()) if prior else "none",
        **_flags(config),
    }


def _digest(*contents: bytes) -> str:
    return hashlib.sha256(b"".join(contents)).hexdigest()[:16]


def _layer_sets(model: LoadedModel, entries: Sequence[Contender]) -> dict[str, str]:
    """Return digests of layer sets, by contender that has some. Raises UnknownPolicyError for one that has none."""
    found = {}
    for name, policy, config in entries:
        sets = getattr(model.core(config).policy(policy), "layer_sets", None)
        if sets is not None:
            found[name] = _digest(to_json(sets).encode())
    return found


def _flags(config: object, prefix: str = "") -> dict[str, str]:
    """Return settings as text, by flag, nested ones too."""
    assert is_dataclass(config)
    found: dict[str, str] = {}
    for each in fields(config):
        value = getattr(config, each.name)
        if each.name == "policies":
            for own in value:
                found |= _flags(own, own.prefix())
        elif is_dataclass(value):
            found |= _flags(value, f"{each.name}_")
        else:
            found[flag(prefix + each.name)] = str(value)
    return found


def machine_facts(model: LoadedModel, config: EngineConfig) -> dict[str, Any]:
    """Return facts about model and machine, for the reader."""
    prior = model.prior(config)
    synthetic = " (SYNTHETIC weights: real shape, random text)" if model.source.name.startswith(SYNTHETIC) else ""
    return {
        "model": model.source.name + synthetic,
        "shape": model.key.shape,
        "weights": f"{model.key.dtype}, {model.decoder.weights.nbytes / 1e6:,.0f} MB",
        "copy in fewer bits": f"{model.draft_bits} bits, loaded for all policies" if model.draft_bits else "none",
        "plans from an offline search": f"{len(prior.plans)}, with which knapspec begins" if prior else "none",
        "machine": f"{platform.machine()} {model.key.machine}; {model.key.threads} used",
    }
