"""Tests share code through tests.support, and pure modules import no torch. import-linter checks the other layers."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support import REPOSITORY as ROOT

WITHOUT_TORCH = [  # folders and files
    *("engine/config", "engine/core", "engine/draft", "papers", "profiles", "engine/checkpoints/shapes.py"),
    *("engine/types.py", "engine/step.py", "engine/api.py", "engine/sampling/seeds.py", "engine/text/detokenize.py"),
]
WITH_TORCH = {"papers.bayesian", "papers.layer_sets", "papers.offline"}


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported(path: Path) -> Iterator[str]:
    """Yield the names of all imports of a file, including those in functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_tests_import_helpers_from_support_only() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    names = {(path, name) for path in files for name in imported(path) if name.startswith("tests.")}
    assert len(names) > 100
    assert not [f"{path}: {name}" for path, name in names if not name.startswith("tests.support")]


def test_pure_modules_import_no_torch() -> None:
    """The child process cannot import torch; modules that need it indirectly fail too. The default policy is made."""
    places = [ROOT / place for place in WITHOUT_TORCH]
    files = [path for place in places for path in (place.rglob("*.py") if place.is_dir() else [place])]
    names = {module(path) for path in files} - WITH_TORCH
    assert len(names) > 40
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        f"for name in {sorted(names)!r}: __import__(name)\n"
        "from engine.draft.base import PolicyContext\n"
        "spec = sys.modules['engine.checkpoints.shapes'].shape('smollm2-135m')\n"
        "store = sys.modules['profiles.store']\n"
        "costs = sys.modules['engine.draft.costs'].CostModel(spec, store.load(next(store.SHIPPED.glob('*.json')))[0])\n"
        "context = PolicyContext(spec, sys.modules['engine.config.engine'].EngineConfig(), costs, None)\n"
        "sys.modules['engine.draft.knapspec'].KnapSpec(context)\n"
        "assert not [name for name in sys.modules if name.startswith('torch.')]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports in functions and under TYPE_CHECKING count too."""
    packages = ("bench", "engine", "papers", "profiles", "server")
    files = {path for package in packages for path in (ROOT / package).rglob("*.py")}
    modules = {module(path): path for path in files}
    left = {
        name: {base for found in imported(path) for base in (found, found.rpartition(".")[0]) if base in modules}
        for name, path in modules.items()
    }
    while leaves := {name for name, needs in left.items() if not needs & left.keys() - {name}}:
        left = {name: needs for name, needs in left.items() if name not in leaves}
    assert sorted(left) == []
