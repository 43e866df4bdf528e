"""The fixed plans that knapspec is compared with."""

from __future__ import annotations

from random import Random

from engine.draft.fixed import exit_variants
from engine.sweep import fixed_plans


def test_plans_are_distinct_sub_networks_of_every_origin() -> None:
    found = [(1, 0, 0, 1) * 3, exit_variants(6, 2)]
    plans = list(fixed_plans(6, found, 200, Random(0)))
    assert 190 <= len(plans) <= 210
    assert len({(p.variants, p.gamma, p.confidence) for p in plans}) == len(plans)
    assert all(0 < sum(p.variants) < len(p.variants) == 12 for p in plans)
    origins = {p.origin.partition(" ")[0] for p in plans}
    assert origins == {"exit", "25%", "50%", "75%", "found", "random:"}
    assert sum(p.variants == found[1] for p in plans) == 6, "an early exit that was found as well counts once"
    assert {p.variants for p in fixed_plans(6, found, 200, Random(1))} != {p.variants for p in plans}


def test_a_tiny_model_has_fewer_plans_than_asked_for() -> None:
    plans = list(fixed_plans(1, [], 200, Random(0)))
    assert {p.variants for p in plans} == {(1, 0), (0, 1)}
