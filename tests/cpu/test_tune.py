"""`knapserve tune`: the order of its prompts, and its evidence about plans."""

from __future__ import annotations

import pytest

from bench import tune
from bench.prompts import Text
from engine.architecture.spec import exit_plan
from engine.config import EngineConfig
from engine.draft.estimator import Ease
from engine.draft.knapspec import KnapSpec
from engine.draft.tpt import count
from engine.runtime.build import LoadedModel
from tests.support.cores import exact


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


def test_prompts_are_searched_on_in_another_order_than_their_file_has() -> None:
    """A file is in the order of its subjects, and the prompts that are searched on last count for more."""
    texts = [Text(str(i)) for i in range(24)]
    searched, compared = tune.split(texts)
    assert sorted([*searched, *compared], key=lambda text: int(text.prompt)) == texts
    assert set(searched) == set(texts[0::2])
    assert searched != texts[0::2]
    assert compared != texts[1::2]


@pytest.mark.parametrize("searching", [True, False])
def test_while_tuning_old_evidence_counts_as_much_as_new(model: LoadedModel, searching: bool) -> None:
    config = EngineConfig(prior="none")
    policy = model.core(tune.unhurried(config) if searching else config).policy("knapspec")
    assert isinstance(policy, KnapSpec)
    variants, request = exit_plan(model.spec, 2), Ease()
    policy.estimator.add(variants, count((), ()))
    for right in (True, False):
        for _ in range(1000):
            policy.estimator.observe(request, 2, variants, count([0.95] * 2, [right] * 2))
    rejected, agreed = policy.learnt()[variants].sum(axis=0)
    if searching:
        assert (rejected, agreed) == pytest.approx((2000, 2000), rel=1e-3)
    else:
        assert agreed < 0.5 * rejected, "recent evidence counts for more"
