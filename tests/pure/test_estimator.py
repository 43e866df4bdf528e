"""The estimator finds the best plan in simulated worlds, at little cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from engine.checkpoints.shapes import shape
from engine.draft.costs import CostModel
from engine.draft.estimator import MAX_PLANS, Estimator, union
from engine.draft.tpt import count
from engine.plans import Variants, exit_plan
from engine.step import Plan, StepOutput, StepPlan, Work, WorkOutput
from engine.types import SamplingParams
from tests.support.cores import made_up_profile

SPEC = shape("smollm2-135m")
COPY = (2,) * len(SPEC.whole)
EXITS = [exit_plan(SPEC.layers, depth) for depth in (4, 8, 12, 16, 20)]
GREEDY = SamplingParams(temperature=0.0)
CONTEXT = 50


@dataclass
class World:
    """Requests of 128 tokens in turn; drafts of a plan agree with probability `alpha[plan]`.

    Drafts take `slow` times the profile's price, and every pass varies by a few per cent.
    """

    alpha: dict[Variants, float]
    slow: float = 1.0
    profile: CostModel = field(default_factory=lambda: CostModel(SPEC, made_up_profile(low_bit=0.3)))
    seconds: float = 0.0
    tokens: int = 0

    def __post_init__(self) -> None:
        self.random = Random(0)
        self.truth = CostModel(SPEC, self.profile.profile)
        self.estimator = Estimator(self.profile, 8, 2000)
        for variants in self.alpha:
            self.estimator.add(variants, count((), ()))

    @property
    def plain(self) -> float:
        """Tokens per second of plain decoding."""
        return 1.0 / self.truth.verify_pass(1, [CONTEXT])

    def best(self, plan: Variants) -> float:
        """Tokens per second of drafting with a plan at its best length."""
        alpha, draft = self.alpha[plan], self.slow * self.truth.draft_pass(plan, [CONTEXT])
        return max(
            sum(alpha**k for k in range(gamma + 1)) / (gamma * draft + self.truth.verify_pass(1 + gamma, [CONTEXT]))
            for gamma in range(1, 9)
        )

    def run(self, rounds: int) -> float:
        """Tokens per second, as a share of plain decoding's."""
        left, plan, until = 128, Plan(SPEC.whole, 0), 0
        for number in range(rounds):
            if number >= until:
                plan = self.estimator.choose([CONTEXT], [], number)
                until = number + (8 if plan.pays else 3)
            accepted = 0
            while accepted < plan.gamma and self.random.random() < self.alpha[plan.variants]:
                accepted += 1
            self._pass(plan, accepted)
            tested = count([0.95] * plan.gamma, [True] * accepted + [False] * (accepted < plan.gamma))
            self.estimator.observe(accepted + 1, plan.variants if plan.gamma else None, tested)
            self.tokens += accepted + 1
            left -= accepted + 1
            if left <= 0:
                left, until = 128, 0
        return self.tokens / self.seconds / self.plain

    def _pass(self, plan: Plan, accepted: int) -> None:
        gamma = plan.gamma
        draft = gamma * self.slow * self.truth.draft_pass(plan.variants, [CONTEXT]) * self.random.gauss(1.0, 0.03)
        verify = self.truth.verify_pass(1 + gamma, [CONTEXT]) * self.random.gauss(1.0, 0.03)
        work = Work("a", 0, CONTEXT, (1,), True, GREEDY, plan)
        out = WorkOutput((1,) * (accepted + 1), drafted=gamma, confidences=(0.95,) * gamma)
        self.profile.observe(StepPlan((work,)), StepOutput((out,), draft, verify), 0.0)
        self.seconds += draft + verify


HOPELESS = {
    "a copy that never agrees": World({COPY: 0.1}),
    "early exits that hardly agree": World(dict.fromkeys(EXITS[2:], 0.3)),
    "drafts that take twice as long as the profile says": World({COPY: 0.6, EXITS[0]: 0.1}, slow=2.2),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_drafting_that_never_pays_costs_at_most_one_per_cent(name: str) -> None:
    world = HOPELESS[name]
    assert max(world.best(plan) for plan in world.alpha) < world.plain, "no plan pays"
    assert world.run(4000) > 0.99


@pytest.mark.parametrize("slow", [1.0, 1.3])
def test_the_best_plan_is_found(slow: float) -> None:
    world = World({COPY: 0.9} | dict.fromkeys(EXITS, 0.4), slow=slow)
    assert world.run(2000) > 0.95 * world.best(COPY) / world.plain


def test_a_plan_that_becomes_good_later_is_found() -> None:
    world = World({COPY: 0.2})
    world.run(1000)
    world.alpha[COPY] = 0.9
    world.tokens, world.seconds = 0, 0.0
    assert world.run(6000) > 0.9 * world.best(COPY) / world.plain


def test_only_the_best_of_many_plans_are_kept() -> None:
    estimator = Estimator(CostModel(SPEC, made_up_profile()), 8, 2000)
    plans = [exit_plan(SPEC.layers, depth) for depth in range(1, SPEC.layers)]
    for plan in plans:
        estimator.add(plan, count([0.95] * 50, [plan == EXITS[1]] * 50), CONTEXT)
    assert len(estimator.counts) == MAX_PLANS
    assert next(iter(estimator.predicted_gains(estimator.counts, CONTEXT))) == EXITS[1]


def test_plans_that_skip_have_a_prior_of_their_own() -> None:
    """A new plan that skips is judged by its own tokens and by what other skipping plans showed, not by the copy's."""
    estimator = Estimator(CostModel(SPEC, made_up_profile(low_bit=0.3)), 8, 2000)

    def believed(tested: np.ndarray) -> float:
        (found,) = estimator.evidence([EXITS[0]], {EXITS[0]: tested})
        return float(found[:, 1].sum() / found.sum())

    poor, good = count([0.95] * 6, [False] * 6), count([0.95] * 6, [True] * 6)
    before = believed(poor), believed(good)
    assert before[0] < 0.3
    assert before[1] > 0.85
    estimator.add(COPY, count([0.95] * 500, [True] * 500))
    assert (believed(poor), believed(good)) == before
    estimator.add(EXITS[1], count([0.95] * 500, [False] * 500))
    assert believed(good) < 0.6


def test_old_evidence_fades() -> None:
    estimator = Estimator(CostModel(SPEC, made_up_profile(low_bit=0.3)), 8, 100)
    estimator.add(COPY, count([0.95] * 500, [True] * 500))
    assert estimator.counts[COPY].sum() == pytest.approx(100), "evidence is capped by the memory"
    for _ in range(100):
        estimator.observe(1, None, None)
    assert estimator.counts[COPY].sum() == pytest.approx(100 * np.exp(-1.0))


def test_the_union_of_plans_has_the_dearest_variant_of_each_sublayer() -> None:
    """The order is target (1), copy (2), its window (3), skipped (0)."""
    assert union([(0, 2, 3, 1), (0, 1, 2, 2), (0, 0, 0, 1)]) == (0, 1, 2, 1)


def test_a_plan_added_without_a_context_evicts_no_other() -> None:
    """The copy stays beside eight prior plans of higher predicted speed."""
    estimator = Estimator(CostModel(SPEC, made_up_profile(low_bit=0.3)), 8, 2000)
    for depth in range(1, MAX_PLANS + 1):
        estimator.add(exit_plan(SPEC.layers, depth), count([0.95] * 500, [True] * 500), CONTEXT)
    estimator.add(COPY, count([0.95] * 16, [False] * 16))
    assert COPY in estimator.counts
    assert len(estimator.counts) == MAX_PLANS + 1
