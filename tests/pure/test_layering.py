"""Imports point from server to engine to profiles, and pure modules import no torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import REPOSITORY as ROOT

WEB = {"fastapi", "pydantic", "starlette", "uvicorn", "prometheus_client"}
FORBIDDEN = {
    "engine": {"server", *WEB},
    "profiles": {"engine", "server", "torch"},
    "server": {"tests"},
}
WITHOUT_TORCH = (
    "engine.core.engine",
    "engine.core.loop",
    "engine.core.scheduler",
    "engine.kv.blocks",
    "engine.config",
    "engine.types",
    "engine.step",
    "engine.api",
    "engine.sampling.seeds",
    "engine.text.detokenize",
    "engine.draft.base",
    "engine.draft.costs",
    "engine.draft.estimator",
    "engine.draft.fixed",
    "engine.draft.knapspec",
    "engine.draft.lookup",
    "engine.draft.tpt",
    "profiles.fit",
    "profiles.schema",
    "profiles.store",
)


def imported(path: Path) -> Iterator[str]:
    """Yield absolute names of all imports of a file, including those in functions and under TYPE_CHECKING."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_one_way(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imported(path)
        if name.partition(".")[0] in FORBIDDEN[package]
    ]
    assert not wrong


def test_tests_import_helpers_from_support_only() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    names = {(path, name) for path in files for name in imported(path) if name.startswith("tests.")}
    assert len(names) > 100
    assert not [f"{path}: {name}" for path, name in names if not name.startswith("tests.support")]


def test_relative_and_nested_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "engine" / "kv" / "file.py"
    path.parent.mkdir(parents=True)
    path.write_text("from .. import types\nfrom . import blocks\ndef f():\n    import server.cli as cli\n", "utf-8")
    assert list(imported(path)) == ["engine.types", "engine.kv.blocks", "server.cli"]


def test_pure_modules_import_no_torch() -> None:
    """The child process cannot import torch; modules that need it indirectly fail too."""
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        f"for name in {WITHOUT_TORCH!r}: __import__(name)\n"
        "assert not [name for name in sys.modules if name.startswith('torch.')]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports in functions and under TYPE_CHECKING count too."""
    files = {path for package in (*FORBIDDEN, "bench") for path in (ROOT / package).rglob("*.py")}
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files}
    left = {
        name: {base for found in imported(path) for base in (found, found.rpartition(".")[0]) if base in modules}
        for name, path in modules.items()
    }
    while leaves := {name for name, needs in left.items() if not needs & left.keys() - {name}}:
        left = {name: needs for name, needs in left.items() if name not in leaves}
    assert sorted(left) == []
