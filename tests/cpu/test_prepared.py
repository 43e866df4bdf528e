"""The prepared fixture becomes a checkpoint once, and again when its stored weights change."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from safetensors.torch import load_file

from tests.support import PREPARED
from tests.support.cores import load
from tests.support.prepared import expand


def store(folder: Path, code: int) -> None:
    folder.mkdir(exist_ok=True)
    codes, steps = np.full((2, 3), code, np.int8), np.array([[0.5], [0.25]], np.float32)
    np.savez_compressed(folder / "weights.npz", **{"a": codes, "a.step": steps, "b": np.ones(3, np.float32)})
    (folder / "config.json").write_text(str(code))


def weights(checkpoint: Path) -> dict[str, list[float]]:
    return {name: tensor.tolist() for name, tensor in load_file(checkpoint / "model.safetensors").items()}


def test_it_is_expanded_once_and_again_after_a_change(tmp_path: Path) -> None:
    stored, made = tmp_path / "stored", tmp_path / "made"
    store(stored, -7)
    assert expand(stored, made) == made
    assert sorted(path.name for path in made.iterdir()) == ["config.json", "model.safetensors"]
    assert weights(made) == {"a": [[-3.5] * 3, [-1.75] * 3], "b": [1.0] * 3}
    first = (made / "model.safetensors").stat()
    assert (expand(stored, made) / "model.safetensors").stat() == first
    store(stored, 4)
    expand(stored, made)
    assert weights(made) == {"a": [[2.0] * 3, [1.0] * 3], "b": [1.0] * 3}
    assert (made / "config.json").read_text() == "4"


def test_several_may_expand_it_at_once(tmp_path: Path) -> None:
    stored, made = tmp_path / "stored", tmp_path / "made"
    store(stored, 4)

    def expanded(_: int) -> dict[str, list[float]]:
        return weights(expand(stored, made))

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(expanded, range(8))] == [{"a": [[2.0] * 3, [1.0] * 3], "b": [1.0] * 3}] * 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "stored"]


def test_the_fixtures_plans_are_of_these_weights() -> None:
    assert json.loads((PREPARED / "prior.json").read_text("utf-8"))["model"] == load().source.fingerprint
