"""What a comparison has measured so far, saved after every cell so that a later run can go on."""

import hashlib
import json
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from importlib import metadata
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
from papers.layer_sets import TUNED_POLICIES


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

    column: str  # one of `bench.workloads.WORKLOADS`
    workload: str
    temperature: str  # its name
    value: float | None  # the mix ratio, or the tokens of the context
    prompts: int
    rows: list[Row]  # by policy: `bench.cells.measure_cell`


@dataclass
class Record:
    """A comparison: its settings, facts for the reader, and finished cells. It may have a file."""

    settings: dict[str, Any]
    machine: dict[str, Any] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    path: Path | None = None

    def find(self, column: str, workload: str, temperature: str) -> Cell | None:
        """Return a finished cell."""
        key = (column, workload, temperature)
        return next((cell for cell in self.cells if (cell.column, cell.workload, cell.temperature) == key), None)

    def rows_of(self, policy: str) -> list[Row]:
        """Return a policy's row of each cell."""
        return [row for cell in self.cells for row in cell.rows if row["policy"] == policy]

    def save(self) -> None:
        """Replace the file, in one step: an interruption leaves the old file or the new one."""
        if self.path is not None:
            kept = {"settings": self.settings, "machine": self.machine, "cells": [vars(cell) for cell in self.cells]}
            write(self.path, json.dumps(kept, indent=1) + "\n")

    @property
    def policies(self) -> list[str]:
        return list(self.settings["policies"])


def open_record(path: Path | None, settings: dict[str, Any]) -> Record:
    """Return the record of a file, or a new one. Raises ConfigError for another's or a damaged file."""
    settings = json.loads(json.dumps(settings))  # the settings as they read from a file
    record = Record(settings, path=path)
    if path is None or not path.exists():
        return record
    try:
        found = json.loads(read(path))
        record.cells = [Cell(**cell) for cell in found["cells"]]
        record.machine, before = found["machine"], dict(found["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is damaged ({error!r}); delete it, or choose another --out") from None
    changed = [name for name in {**before, **settings} if before.get(name) != settings.get(name)]
    if changed:
        changes = "; ".join(f"{name} was {before.get(name)}, now {settings.get(name)}" for name in changed)
        raise ConfigError(f"{path} has results of other settings ({changes}); delete it, or choose another --out")
    return record


def settings_of(
    model: LoadedModel, config: EngineConfig, entries: Sequence[Contender], chosen: Selection
) -> dict[str, Any]:
    """Return all that cells depend on, by name: only results of equal settings may be mixed."""
    folders = [Path(package.__path__[0]) for package in (engine, papers)]
    files = (path for folder in folders for path in folder.rglob("*"))
    sources = sorted(path for path in files if path.suffix in {".py", ".h", ".c", ".cpp", ".cu"})
    tuned = [model.tuned_path(config, kind) for kind in ("prior", *TUNED_POLICIES)]
    return {
        **chosen._asdict(),
        "engine": _digest(*(path.read_bytes() for path in sources)),
        "model": f"{model.source.name} {model.source.fingerprint[:16]}",
        "machine": model.key.slug,
        "policies": [each.name for each in entries],
        "texts": _digest(repr(chosen.texts).encode()),
        "context_text": _digest(chosen.context_text.encode()),
        "tuned": _digest(*(path.read_bytes() for path in tuned if path.exists())),
        **{flag(each.name): str(getattr(config, each.name)) for each in fields(config)},
    }


def _digest(*contents: bytes) -> str:
    return hashlib.sha256(b"".join(contents)).hexdigest()[:16]


def machine_facts(model: LoadedModel, config: EngineConfig) -> dict[str, Any]:
    """Return facts about model, machine and program, for the reader."""
    prior = model.prior(config)
    synthetic = " (SYNTHETIC weights: real shape, random text)" if model.source.name.startswith(SYNTHETIC) else ""
    versions = [f"{package} {metadata.version(package)}" for package in ("knapserve", "torch", "numpy")]
    return {
        "model": model.source.name + synthetic,
        "shape": model.key.shape,
        "weights": f"{model.key.dtype}, {model.decoder.weights.nbytes / 1e6:,.0f} MB",
        "copy in fewer bits": f"{model.draft_bits} bits, loaded for all policies" if model.draft_bits else "none",
        "plans from an offline search": f"{len(prior.plans)}, with which knapspec begins" if prior else "none",
        "machine": f"{platform.machine()} {model.key.machine}; {model.key.threads} used",
        "versions": ", ".join([*versions, f"Python {platform.python_version()}"]),
        "command": shlex.join(["knapserve", *sys.argv[1:]]),
    }
