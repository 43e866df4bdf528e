"""The repository stays in proportion: sizes of packages, declared dependencies, subjects of commits."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest

from tests.support import REPOSITORY as ROOT

PACKAGES = ("engine", "server", "papers", "bench", "profiles")
LIMITS: dict[str, int] = tomllib.loads((ROOT / ".ci" / "lines.toml").read_text("utf-8"))
# Distributions whose modules have other names, or that nothing imports.
MODULES = {"pydantic": "pydantic pydantic_core", "bayesian-optimization": "bayes_opt", "scikit-learn": "sklearn"}
CHOSEN_BY_OTHERS = {
    "uvloop": "uvicorn runs its event loop",
    "jinja2": "transformers renders chat templates with it",
}
OF_TORCH = {"triton"}  # its builds for NVIDIA GPUs bring it
SUBJECTS_SINCE = "99d9cfd"  # later ones have at most 72 characters


def lines(folder: str) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", LIMITS)
def test_no_package_outgrows_its_limit(folder: str) -> None:
    """Limits only fall. A package that has shrunk by a hundred lines gets a lower one."""
    found = lines(folder)
    assert found <= LIMITS[folder], f"{folder} has {found} lines of Python; .ci/lines.toml says what to do"
    assert found > LIMITS[folder] - 100, f"{folder} has {found} lines of Python: lower its limit in .ci/lines.toml"


def imported() -> Iterator[str]:
    """The top-level names of all modules that the packages import, from outside the repository."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names = [node.module]
                yield from (name.split(".")[0] for name in names)


def test_the_declared_dependencies_are_those_that_are_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [line for name in ("papers", "llamacpp") for line in project["optional-dependencies"][name]]
    declared = {line.split(">")[0].split("=")[0].split("[")[0].strip() for line in project["dependencies"] + extras}
    modules = {module for name in declared for module in MODULES.get(name, name.replace("-", "_")).split()}
    used = {*imported()} - {*sys.stdlib_module_names} - {*PACKAGES} - OF_TORCH - {"_typeshed"}
    assert used - modules == set(), "imported and not declared"
    assert modules - used == {*CHOSEN_BY_OTHERS}, "declared and not imported"


def test_subjects_of_commits_are_short() -> None:
    command = ["git", "log", "--format=%s", f"{SUBJECTS_SINCE}..HEAD"]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if log.returncode:
        pytest.skip("no clone with the whole history")
    assert [subject for subject in log.stdout.splitlines() if len(subject) > 72] == []


def test_a_checkout_is_small() -> None:
    command = ["git", "ls-files", "-z"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if files.returncode:
        pytest.skip("no clone")
    present = [name for name in files.stdout.split("\0") if (ROOT / name).is_file()]
    sizes = {name: (ROOT / name).stat().st_size for name in present}
    largest = sorted(sizes, key=sizes.__getitem__)[-3:]
    assert sum(sizes.values()) <= 15_000_000, f"the largest files are {largest}"
