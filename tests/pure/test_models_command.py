"""`knapserve models`: what is on this machine, and whether it would be served."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.checkpoints.default import NAME
from server.cli import main
from tests.support import PREPARED
from tests.support.gguf_files import small, write

COMMIT = "0123456789abcdef0123456789abcdef01234567"
Models = Callable[..., dict[str, str]]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub."""
    folder = tmp_path / "hub"
    folder.mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture
def models(hub: Path, capsys: pytest.CaptureFixture[str]) -> Models:
    """Verdicts by argument of --model; the default model, which need not be installed here, is left out."""

    def run(*arguments: str) -> dict[str, str]:
        assert main(["models", *arguments]) == 0
        found = [line.split(" MB  ", 1)[1].split(": ", 1) for line in capsys.readouterr().out.splitlines()]
        return {argument: verdict for argument, verdict in found if NAME not in argument}

    return run


def snapshot(hub: Path, name: str, reference: str = "main") -> Path:
    repository = hub / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / reference).write_text(COMMIT)
    folder = repository / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    return folder


def checkpoint(folder: Path, **changes: object) -> None:
    """Write the description of a checkpoint, with changes, and some weights."""
    config = json.loads((PREPARED / "config.json").read_text("utf-8"))
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config | changes))
    shutil.copy(PREPARED / "generation_config.json", folder)
    (folder / "model.safetensors").write_bytes(bytes(3_000_000))


def gguf(path: Path, kind: str = "llama") -> None:
    fields, tensors = small()
    write(path, fields, tensors, kind)


def test_cached_models_are_named_as_the_flag_takes_them(hub: Path, models: Models) -> None:
    checkpoint(snapshot(hub, "owner/whole"))
    checkpoint(snapshot(hub, "owner/older", "v1"))
    files = snapshot(hub, "owner/files-GGUF")
    for name in ("tiny-Q4_0", "tiny-Q8_0", "mmproj-tiny"):
        gguf(files / f"{name}.gguf")
    (snapshot(hub, "owner/described") / "config.json").write_text("{}")  # its weights are not here
    names = {"owner/whole", f"owner/older@{COMMIT}", "owner/files-GGUF:tiny-Q4_0", "owner/files-GGUF:tiny-Q8_0"}
    assert models() == dict.fromkeys(names, "supported")


def test_models_of_a_folder_are_named_by_their_paths(tmp_path: Path, models: Models) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    checkpoint(folder / "one")
    gguf(folder / "two.gguf")
    assert models(str(folder)) == {str(folder / "one"): "supported", str(folder / "two.gguf"): "supported"}


def test_what_is_not_supported_says_why(tmp_path: Path, models: Models) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    checkpoint(folder / "other", architectures=["GPT2LMHeadModel"])
    checkpoint(folder / "quantised", quantization_config={"quant_method": "bitsandbytes"})
    checkpoint(folder / "damaged")
    (folder / "damaged" / "config.json").write_text("{")
    gguf(folder / "gemma.gguf", "gemma3")
    (folder / "empty.gguf").touch()
    reasons = {Path(argument).name: verdict for argument, verdict in models(str(folder)).items()}
    assert all(reason.startswith("not supported: ") for reason in reasons.values())
    assert "GPT2LMHeadModel" in reasons["other"]
    assert "bitsandbytes" in reasons["quantised"]
    assert "config.json" in reasons["damaged"]
    assert "gemma3" in reasons["gemma.gguf"]
    assert "empty.gguf" in reasons["empty.gguf"]


def test_sizes_count_all_files_of_a_split_model(tmp_path: Path, hub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields, tensors = small()
    half = dict(list(tensors.items())[5:])
    write(tmp_path / "x-00001-of-00002.gguf", fields, dict(list(tensors.items())[:5]))
    write(tmp_path / "x-00002-of-00002.gguf", {}, half)
    with (tmp_path / "x-00002-of-00002.gguf").open("ab") as file:
        file.write(bytes(7_000_000))
    assert main(["models", str(tmp_path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "00001" in line]
    assert line.split()[0] == "7"


def test_a_folder_that_does_not_exist_is_refused(hub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "/nowhere"]) == 2
    assert capsys.readouterr().err == "knapserve: error: /nowhere is not a folder\n"
