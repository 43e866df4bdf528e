"""`knapserve tune` from inside: in which order prompts are searched on, and what is known of plans in the end."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import tune
from engine.build import LoadedModel
from engine.config import EngineConfig
from engine.draft.fixed import exit_variants
from engine.draft.knapspec import KnapSpec
from engine.draft.prior import MOST_PLANS, Prior
from engine.draft.tpt import MEMORY, AcceptanceCounts, cells
from tests.support import PREPARED
from tests.support.cores import exact


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


def test_searches_take_prompts_in_orders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are in order of their subjects; what is searched on last would count for more."""
    file, seen = tmp_path / "prompts.jsonl", []
    file.write_text("".join(json.dumps({"prompt": f"What is {i} + 1?"}) + "\n" for i in range(24)))

    def searched(*args: Any) -> None:
        seen.append([prompt.text for prompt in args[3]])

    monkeypatch.setattr(tune, "search", searched)
    args = argparse.Namespace(
        prompts=file, limit=0, searches=3, max_tokens=8, temperature=0.0, output=tmp_path / "prior"
    )
    assert tune.run(args, EngineConfig(model=str(PREPARED))) == 0
    as_they_came = sorted(seen[0], key=lambda text: int(text.split(" + ")[0].split()[-1]))
    assert len(as_they_came) == 12
    assert all(sorted(order) == sorted(as_they_came) for order in seen)
    assert len({tuple(order) for order in (*seen, as_they_came)}) == 4


def test_together_are_the_plans_that_searches_drafted_with_most() -> None:
    def prior(**tokens: float) -> Prior:
        return Prior("model", {tuple(map(int, plan[1:])): np.full((7, 2), n / 14) for plan, n in tokens.items()})

    found = tune.together([prior(p1010=3 * MEMORY, p1000=MEMORY / 2), prior(p1100=2 * MEMORY, p1010=4 * MEMORY)])
    assert found is not None
    assert {plan: counts.sum() / MEMORY for plan, counts in found.plans.items()} == {
        (1, 0, 1, 0): pytest.approx(7),
        (1, 1, 0, 0): pytest.approx(2),
    }
    assert tune.together([prior(p1010=3 * MEMORY, p1000=2 * MEMORY)]) is None, "one search has them already"
    assert tune.together([prior(p1010=3 * MEMORY), prior(p1010=3 * MEMORY)]) is None, "one plan is no choice"
    many = [prior(**{f"p{i:08b}": (i + 1) * 2 * MEMORY}) for i in range(2 * MOST_PLANS)]
    kept = tune.together(many)
    assert kept is not None
    assert len(kept.plans) == MOST_PLANS
    assert min(counts.sum() for counts in kept.plans.values()) > 2 * MOST_PLANS * MEMORY


@pytest.mark.parametrize("searching", [True, False])
def test_what_is_known_of_a_plan_is_what_all_prompts_saw(model: LoadedModel, searching: bool) -> None:
    config = EngineConfig(prior="none")
    policy = model.core(tune.unhurried(config) if searching else config).policy("knapspec")
    assert isinstance(policy, KnapSpec)
    variants, seen = exit_variants(model.spec.layers, 2), 10 * int(MEMORY)
    policy.library.add(variants, AcceptanceCounts())
    for right in (True, False):
        policy.library.tested(variants, 1, cells([0.95] * seen, [right] * seen))
    learnt = policy.learnt("model")
    assert learnt is not None
    rejected, agreed = learnt.plans[variants].sum(axis=0)
    assert rejected + agreed == pytest.approx(2 * seen if searching else MEMORY)
    assert bool(rejected == agreed) is searching, "else what came last counts for more"
