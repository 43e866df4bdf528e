"""`knapserve tune` from inside: in which order prompts are searched on, and what is known of plans in the end."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from bench import tune
from engine.architecture.spec import exit_plan
from engine.config import EngineConfig
from engine.draft.estimator import AgreementShift
from engine.draft.knapspec import KnapSpec
from engine.draft.tpt import count
from engine.runtime.build import LoadedModel
from tests.support import PREPARED
from tests.support.cores import exact


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


def test_prompts_are_not_searched_on_in_the_order_of_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are in order of their subjects; what is searched on last would count for more."""
    file, seen = tmp_path / "prompts.jsonl", []
    file.write_text("".join(json.dumps({"prompt": f"What is {i} + 1?"}) + "\n" for i in range(24)))

    def searched(*args: Any) -> None:
        seen.append([prompt.text for prompt in args[3]])

    monkeypatch.setattr(tune, "search", searched)
    args = argparse.Namespace(prompts=file, limit=0, max_tokens=8, temperature=0.0)
    assert tune.run(args, EngineConfig(model=str(PREPARED))) == 0
    as_they_came = sorted(seen[0], key=lambda text: int(text.split(" + ")[0].split()[-1]))
    assert len(as_they_came) == 12
    assert len(seen) == 1
    assert sorted(seen[0]) == sorted(as_they_came)
    assert seen[0] != as_they_came


@pytest.mark.parametrize("searching", [True, False])
def test_what_is_known_of_a_plan_is_what_all_prompts_saw(model: LoadedModel, searching: bool) -> None:
    config = EngineConfig(prior="none")
    policy = model.core(tune.thorough_search(config) if searching else config).policy("knapspec")
    assert isinstance(policy, KnapSpec)
    variants, request = exit_plan(model.spec, 2), AgreementShift()
    policy.estimator.add(variants, count((), ()))
    for right in (True, False):
        for _ in range(1000):
            policy.estimator.observe(request, 2, variants, count([0.95] * 2, [right] * 2))
    rejected, agreed = policy.tested_plans()[variants].sum(axis=0)
    if searching:
        assert (rejected, agreed) == pytest.approx((2000, 2000), rel=1e-3)
    else:
        assert agreed < 0.5 * rejected, "what came last counts for more"
