"""`knapserve profile --all-shapes`: which models it measures, and which it leaves out."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import bench.profile
from engine.checkpoints.shapes import shape
from engine.config.engine import EngineConfig
from engine.errors import ConfigError
from engine.runtime.machine import hardware
from engine.runtime.measure import THOROUGH
from profiles import store
from profiles.schema import LatencyProfile, ProfileKey
from tests.support.cores import made_up_profile

HERE = hardware(torch.device("cpu"))
MODELS = [None, "synthetic:qwen2.5-0.5b", "synthetic:llama-3.1-8b", "synthetic:qwen3-8b"]  # by size


def run(config: EngineConfig, *flags: str) -> None:
    parser = argparse.ArgumentParser()
    bench.profile.add_arguments(parser)
    assert bench.profile.run(parser.parse_args(["--all-shapes", *flags]), config) == 0


def profile(name: str, draft_bits: int = 4, rows: tuple[int, ...] = THOROUGH["cpu"].rows) -> LatencyProfile:
    """A profile of this machine, for unpacked weights of a named shape."""
    key = ProfileKey(HERE, 2, shape(name).shape_key, "bfloat16", "native", draft_bits)
    costs = ((1e-3,) * len(rows),)
    return replace(
        made_up_profile(), key=key, rows=rows, projection_at=costs, mlp_at=costs, head_at=costs, scan_at=costs
    )


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str | None]:
    """The models of measurements, which save nothing; one of them does not fit. Three shapes are shipped."""
    for name in ("qwen3-8b", "llama-3.1-8b", "qwen2.5-0.5b"):
        store.save(profile(name), tmp_path / "shipped")
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    models: list[str | None] = []

    def measure(repetitions: int, config: EngineConfig) -> dict[str, Any]:
        models.append(config.model)
        if config.model == "synthetic:qwen3-8b":
            raise ConfigError("the weights take 16.5 GiB")
        return {"model": config.model}

    monkeypatch.setattr("bench.profile._measure", measure)
    return models


def test_the_default_model_and_every_shipped_shape_are_measured(
    measured: list[str | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(EngineConfig(device="cpu", profile_dir=tmp_path))
    assert measured == MODELS
    *lines, result = capsys.readouterr().out.splitlines()
    assert [each["model"] for each in json.loads(result)] == MODELS[:-1]
    assert lines[-2:] == ["4 of 4: synthetic:qwen3-8b", "Skipped: the weights take 16.5 GiB"]


def test_shapes_with_a_thorough_profile_are_left_out(measured: list[str | None], tmp_path: Path) -> None:
    """A profile of few row counts is one that a start measured. One without the copy serves --draft-bits none only."""
    store.save(profile("qwen2.5-0.5b"), tmp_path)
    store.save(profile("llama-3.1-8b", draft_bits=0), tmp_path)
    store.save(profile("qwen3-8b", rows=(1, 2, 4)), tmp_path)
    config = EngineConfig(device="cpu", profile_dir=tmp_path)
    run(config)
    assert measured == [model for model in MODELS if model != "synthetic:qwen2.5-0.5b"]
    measured.clear()
    run(config, "--again")
    assert measured == MODELS
    measured.clear()
    run(replace(config, draft_bits="none"))
    assert measured == [None, "synthetic:qwen3-8b"]


def test_a_damaged_file_and_a_model_are_refused_before_any_measurement(
    measured: list[str | None], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="--model"):
        run(EngineConfig(device="cpu", profile_dir=tmp_path, model="synthetic:qwen3-8b"))
    path = store.path_of(HERE, tmp_path)
    path.write_text("{}", "utf-8")
    with pytest.raises(ConfigError, match=path.name):
        run(EngineConfig(device="cpu", profile_dir=tmp_path))
    assert not measured
