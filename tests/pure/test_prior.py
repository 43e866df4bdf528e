"""Files of prior plans are complete, or refused by name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.draft.tpt import THRESHOLDS
from engine.errors import TunedFileError
from engine.runtime import prior as priors
from engine.runtime.prior import Prior
from profiles.schema import ProfileKey
from profiles.store import write_atomically

BINS = len(THRESHOLDS)
PLANS = {(1, 1, 0, 1): np.arange(2.0 * BINS).reshape(BINS, 2), (1, 0, 0, 1): np.full((BINS, 2), 0.5)}
PRIOR = Prior("f" * 64, PLANS)


def test_plans_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "plans.json"
    write_atomically(PRIOR.to_json(), path)
    found = priors.load(path)
    assert found.model == PRIOR.model
    assert found.plans.keys() == PLANS.keys()
    for variants, counts in PLANS.items():
        np.testing.assert_allclose(found.plans[variants], counts)


def test_every_model_and_machine_has_its_own_file(tmp_path: Path) -> None:
    keys = [ProfileKey("CPU", threads, "L2", "bfloat16", "native", 4) for threads in (1, 2)]
    assert len({priors.path_of(tmp_path, key, model * 64) for key in keys for model in "ab"}) == 4


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "not an object": lambda raw: [raw],
    "another version": lambda raw: raw | {"version": 0},
    "other thresholds": lambda raw: raw | {"thresholds": [0.0]},
    "no plans": lambda raw: raw | {"plans": []},
    "no model": lambda raw: raw | {"model": None},
    "a plan of fours": lambda raw: raw | {"plans": [raw["plans"][0] | {"plan": "14000"}]},
    "a window of an MLP": lambda raw: raw | {"plans": [raw["plans"][0] | {"plan": "13001"}]},
    "a plan without a head": lambda raw: raw | {"plans": [raw["plans"][0] | {"plan": "1110"}]},
    "an empty plan": lambda raw: raw | {"plans": [raw["plans"][0] | {"plan": ""}]},
    "a plan that is a list": lambda raw: raw | {"plans": [raw["plans"][0] | {"plan": [1, 1, 0, 0]}]},
    "plans of two lengths": lambda raw: raw | {"plans": [*raw["plans"], raw["plans"][0] | {"plan": "11"}]},
    "counts too few": lambda raw: raw | {"plans": [raw["plans"][0] | {"counts": [[1, 2]]}]},
    "counts below nothing": lambda raw: raw | {"plans": [raw["plans"][0] | {"counts": [[-1, 2]] * BINS}]},
    "counts without end": lambda raw: raw | {"plans": [raw["plans"][0] | {"counts": [[math.inf, 2]] * BINS}]},
    "counts in text": lambda raw: raw | {"plans": [raw["plans"][0] | {"counts": "many"}]},
    "a plan without counts": lambda raw: raw | {"plans": [{"plan": "1100"}]},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused_by_name(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "plans.json"
    path.write_text(json.dumps(DAMAGE[damage](json.loads(PRIOR.to_json()))))
    with pytest.raises(TunedFileError, match=r"plans\.json"):
        priors.load(path)


def test_missing_and_truncated_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TunedFileError, match=r"nothing\.json"):
        priors.load(tmp_path / "nothing.json")
    (tmp_path / "cut.json").write_bytes(PRIOR.to_json().encode()[:40] + b"\xff")
    with pytest.raises(TunedFileError, match=r"cut\.json"):
        priors.load(tmp_path / "cut.json")
