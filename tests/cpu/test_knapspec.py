"""The knapspec policy: it drafts where that pays, stops where it does not, and keeps to its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.build import LoadedModel
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.draft.base import Plan, RoundOutcome, View
from engine.draft.costs import SETTLING, CostModel
from engine.draft.knapspec import KnapSpec
from engine.draft.library import MOST_PLANS, Choice, Library
from engine.draft.prior import Prior
from engine.draft.regime import TRIAL_EVERY, Regime
from engine.draft.scout import Trail
from engine.draft.search import Budget, Rows
from engine.draft.tpt import THRESHOLDS, AcceptanceCounts
from engine.errors import ConfigError
from engine.model.spec import exit_plan
from engine.step import StepOutput, StepPlan, Work, WorkOutput
from engine.types import GenerateRequest, RequestRound
from tests.support.cores import GREEDY, ManualClock, TickingClock, answer, chat_ids, exact, made_up_profile


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


@pytest.fixture(scope="module")
def ids(model: LoadedModel, prompts: Sequence[str]) -> list[tuple[int, ...]]:
    core = model.core(EngineConfig())
    return [chat_ids(core, text) for text in prompts[::7]]


class FrozenCosts(CostModel):
    """Trusts the profile whatever rounds take, so that decisions do not depend on this machine."""

    def observe(self, plan: StepPlan, out: StepOutput, overhead: float) -> None:
        pass


class CredulousPolicy(KnapSpec):
    """Does not compare its promises with this machine's clock, for the same reason."""

    def observe(self, views: Sequence[View], round: RoundOutcome) -> None:
        super().observe(views, replace(round, decode_seconds=None))


def core_with(model: LoadedModel, config: EngineConfig, **profile: float) -> tuple[EngineCore, KnapSpec]:
    core = model.core(replace(config, prior="none", lookup="none"))
    context = replace(core._policies, costs=FrozenCosts(model.spec, made_up_profile(**profile)))
    policy = CredulousPolicy(context)
    core._made["knapspec"] = policy
    return core, policy


def rounds(core: EngineCore, prompts: Sequence[tuple[int, ...]], **sampling: int) -> list[RequestRound]:
    seen: list[RequestRound] = []
    for index, prompt in enumerate(prompts):
        core.add(GenerateRequest(str(index), prompt, replace(GREEDY, ignore_eos=True, **sampling), "knapspec"))
        while not core.scheduler.idle:
            seen += core.step().rounds
    return seen


def test_it_drafts_with_part_of_the_model_where_that_pays(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig())
    seen = rounds(core, ids[:10])
    assert sum(r.emitted for r in seen) / len(seen) > 1.7
    drafting = [r for r in seen if r.drafted]
    assert all(0 < r.skipped_attention + r.skipped_mlp < model.spec.sublayers for r in drafting)
    assert 0 < len(policy.library) <= 8


def test_it_decodes_plainly_where_drafting_cannot_pay(
    model: LoadedModel, ids: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wide verification at many times the price of a single row: γ = 0. Where it is nearly worth it, now and then a
    trial keeps acceptance known."""
    monkeypatch.setattr(model, "clock", TickingClock(1e-4))  # a busy machine's decisions stand longer, trials' as well
    hopeless, _ = core_with(model, EngineConfig(), verify_slope=3.0)
    assert not any(r.drafted for r in rounds(hopeless, ids[:3]))
    core, _ = core_with(model, EngineConfig(), verify_slope=0.5)
    seen = rounds(core, ids[:9])
    assert 0 < sum(r.drafted > 0 for r in seen) <= 0.2 * len(seen)


@pytest.mark.nightly
def test_a_costly_head_makes_drafting_dearer(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """The head runs in every draft pass: the cost must count it."""
    cheap, _ = core_with(model, EngineConfig())
    dear, _ = core_with(model, EngineConfig(), head=4e-2)
    assert sum(r.drafted for r in rounds(cheap, ids[:4])) > 10 * sum(r.drafted for r in rounds(dear, ids[:4]))


@pytest.mark.nightly
def test_every_request_reselects_on_its_own(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """Soon after it began; the more rarely the longer nothing changes, but always within 64 rounds."""
    core, policy = core_with(model, EngineConfig(knapspec_redecide=4))
    policy._clock = ManualClock()  # decisions cost nothing, so nothing puts them off
    rounds(core, ids[:4])
    seen = rounds(core, ids[:4], max_tokens=500)
    for request in {r.request_id for r in seen}:
        own = [r for r in seen if r.request_id == request]
        decided = [i for i, r in enumerate(own) if r.reselected is not None]
        gaps = [b - a for a, b in pairwise([0, *decided, len(own)])]
        assert gaps[0] <= 24
        assert 16 <= max(gaps) <= 64


def test_search_keeps_to_its_budget_and_none_means_none(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig(knapspec_interval=8, knapspec_budget=0.02))
    rounds(core, ids[:7])
    budget = policy.searcher.budget
    assert budget.searches > 0
    assert budget.spent <= 0.02 * budget.busy + 3 * budget.cost  # the first is free, the last was earned by others
    core, policy = core_with(model, EngineConfig(knapspec_budget=0.0))
    assert all(r.drafted == 0 for r in rounds(core, ids[:2]))
    assert policy.searcher.budget.spent == 0


def test_a_search_beside_other_streams_is_spread_over_rounds(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig(knapspec_interval=8, knapspec_budget=1.0))
    answer(core, ids[:4], replace(GREEDY, ignore_eos=True), ["knapspec"], concurrency=4)
    assert policy.searcher.slices > 2 * policy.searcher.budget.searches > 0


def test_protected_layers_are_never_skipped(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig(knapspec_protect=(0, -1), knapspec_budget=1.0, knapspec_interval=8))
    rounds(core, ids[:3])
    assert policy.library
    for variants in policy.library:
        assert variants[:2] == variants[-3:-1] == (1, 1)


def test_a_protected_layer_that_is_not_there_is_an_error(model: LoadedModel) -> None:
    layers = model.spec.layers
    for layer in (layers, -layers - 1):
        with pytest.raises(ConfigError, match=f"has {layers}"):
            model.core(EngineConfig(knapspec_protect=(0, layer)))


def test_observed_times_correct_the_profile_within_bounds(model: LoadedModel) -> None:
    costs = CostModel(model.spec, made_up_profile())
    plan = Plan(exit_plan(model.spec, 3), 3)
    work = Work("a", 0, 50, (1,), True, GREEDY, plan)
    out = WorkOutput((1, 2, 3, 4), drafted=3, confidences=(0.9,) * 3)
    before = costs.draft_pass(plan.variants, [50]), costs.verify_pass(4, [50])
    for _ in range(200):
        costs.observe(StepPlan((work,)), StepOutput((out,), 3, 3 * 1.5 * before[0], 0.8 * before[1]), 1e-4)
    assert costs.draft_pass(plan.variants, [50]) == pytest.approx(1.5 * before[0], rel=0.05)
    assert costs.verify_pass(4, [50]) == pytest.approx(0.8 * before[1], rel=0.05)
    costs.observe(StepPlan((work,)), StepOutput((out,), 3, 1e3, 1e3), 1e3)
    assert costs.draft_pass(plan.variants, [50]) < 1.7 * before[0], "one stall does not count for much"
    for _ in range(2000):
        costs.observe(StepPlan((work,)), StepOutput((out,), 3, 1e3, 1e3), 1e3)
    assert costs.draft_pass(plan.variants, [50]) <= 2.5 * before[0] * 1.001
    costs.reset()
    assert costs.draft_pass(plan.variants, [50]) == before[0]


def test_reading_prompts_does_not_change_the_price_of_drafting(model: LoadedModel) -> None:
    costs = CostModel(model.spec, made_up_profile())
    before = [costs.verify_pass(rows, [50] * 8) for rows in (1, 8, 24, 32)]
    works = Work("a", 0, 50, (1,), True, GREEDY), Work("b", 1, 100, (1,) * 200, False, GREEDY)
    for _ in range(50):
        costs.observe(StepPlan(works), StepOutput((WorkOutput((1,)), WorkOutput(())), 0, 0.0, 9.0), 1e-4)
    assert [costs.verify_pass(rows, [50] * 8) for rows in (1, 8, 24, 32)] == before


def test_a_search_is_priced_at_the_context_that_it_reads(model: LoadedModel) -> None:
    _, policy = core_with(model, EngineConfig())
    searcher, near, far = policy.searcher, SimpleNamespace(context=50), SimpleNamespace(context=20_000)
    assert searcher.cost(near) == pytest.approx(searcher.budget.cost, rel=0.1)
    assert searcher.cost(far) > 2.0 * searcher.cost(near)
    searcher._priced = searcher._price(20_000)  # where that is what the last one read
    assert searcher.least_cost <= searcher.cost(near) < 0.5 * searcher.cost(far)


def test_a_search_after_a_long_context_is_known_to_take_as_long(model: LoadedModel) -> None:
    """Searches that take 2.5 times what the profile says, whatever they read."""
    _, policy = core_with(model, EngineConfig())
    searcher = policy.searcher
    for context in (50, 20_000, 20_000, 50, 20_000):
        view = SimpleNamespace(context=context)
        for _ in range(1 + (context == 50)):  # a price may double at a time
            search = SimpleNamespace(done=True, owed=False, seconds=2.5 * searcher._price(context))
            searcher.advance(view, search, alone=True)  # type: ignore[arg-type]
            searcher.done(search, useful=True)  # type: ignore[arg-type]
        assert searcher.cost(view) == pytest.approx(search.seconds)  # type: ignore[arg-type]
        assert searcher._costs.search_factor == pytest.approx(2.5, rel=0.01)


def test_a_search_stands_still_no_longer_for_a_long_context(model: LoadedModel) -> None:
    """Rows of the knapsack are asked for by what they cost at the context that they read."""
    _, policy = core_with(model, EngineConfig())
    searcher, asked = policy.searcher, []
    searcher.budget.cost = 1.0  # seconds, many times what one call may take

    def begin(context: int) -> int:
        table = SimpleNamespace(done=False, weights=(1,) * 400)

        def fill(_: object, most: int) -> bool:
            asked.append(most)
            table.done = search.done = True
            return True

        search = SimpleNamespace(table=table, passes=SimpleNamespace(fill=fill), done=False, owed=False, seconds=0.0)
        assert searcher.advance(SimpleNamespace(context=context), search, alone=True)
        return asked[-1]

    near, far = begin(50), begin(20_000)
    assert 1 <= far < 0.5 * near < near < 400


def test_the_price_of_a_draft_is_learnt_for_its_plan(model: LoadedModel) -> None:
    """Others are corrected by what drafts take in general."""
    costs = CostModel(model.spec, made_up_profile())
    plans = [Plan(exit_plan(model.spec, depth), 3) for depth in (2, 4, 6)]
    before = [costs.draft_pass(plan.variants, [50]) for plan in plans]
    verify = costs.verify_pass(4, [50])
    out = WorkOutput((1, 2, 3, 4), drafted=3, confidences=(0.9,) * 3)
    for _ in range(300):
        for plan, price, factor in zip(plans, before, (0.5, 1.5), strict=False):
            work = Work("a", 0, 50, (1,), True, GREEDY, plan)
            costs.observe(StepPlan((work,)), StepOutput((out,), 3, 3 * factor * price, verify), 1e-4)
    after = [costs.draft_pass(plan.variants, [50]) / price for plan, price in zip(plans, before, strict=True)]
    assert after == [pytest.approx(0.5, rel=0.05), pytest.approx(1.5, rel=0.05), pytest.approx(1.0, rel=0.1)]


def test_what_is_not_known_yet_costs_what_is_like_it(model: LoadedModel) -> None:
    """Passes of a width that was not seen are corrected like those of the nearest; a moment's slowness passes."""
    costs = CostModel(model.spec, made_up_profile())
    work = Work("a", 0, 50, (1,), True, GREEDY)
    plain, wide, draft = (lambda: costs.verify_pass(1, [50])), (lambda: costs.verify_pass(12, [50])), costs.draft_pass
    variants = exit_plan(model.spec, 3)
    before = plain(), wide(), draft(variants, [50])
    for _ in range(300):
        costs.observe(StepPlan((work,)), StepOutput((WorkOutput((1,)),), 0, 0.0, 1.4 * before[0]), 1e-4)
    after = plain(), wide(), draft(variants, [50])
    assert [a / b for a, b in zip(after, before, strict=True)] == pytest.approx([1.4] * 3, rel=0.05)
    for _ in range(5):
        costs.observe(StepPlan((work,)), StepOutput((WorkOutput((1,)),), 0, 0.0, 2.0 * before[0]), 1e-4)
    assert plain() / wide() == pytest.approx(after[0] / after[1], rel=0.2), "a slow moment slows all"
    assert plain() > 1.1 * after[0]


def test_passes_behind_drafts_and_plain_ones_are_priced_apart(model: LoadedModel) -> None:
    """Four rows of one request that drafted three, and of four that drafted nothing: what is seen of the one says
    nothing of the other once that was seen."""
    costs = CostModel(model.spec, made_up_profile())
    together, alone = (lambda: costs.verify_pass(4, [50] * 4)), (lambda: costs.verify_pass(4, [50]))
    before = together(), alone()
    plan = Plan(exit_plan(model.spec, 3), 3)
    drafting = StepPlan((Work("a", 0, 50, (1,), True, GREEDY, plan),))
    drafted = WorkOutput((1, 2, 3, 4), drafted=3, confidences=(0.9,) * 3)
    price = costs.draft_pass(plan.variants, [50])
    plain = StepPlan(tuple(Work(str(i), i, 50, (1,), True, GREEDY) for i in range(4)))
    for _ in range(300):
        costs.observe(drafting, StepOutput((drafted,), 3, 3 * price, 0.7 * before[1]), 1e-4)
    assert together() / before[0] == pytest.approx(alone() / before[1]), "nothing else is known of it yet"
    for turn in range(600):
        if turn % 20 < 10:
            costs.observe(drafting, StepOutput((drafted,), 3, 3 * price, 0.7 * before[1]), 1e-4)
        else:
            costs.observe(plain, StepOutput((WorkOutput((1,)),) * 4, 0, 0.0, 1.3 * before[0]), 1e-4)
    ratio = (together() / before[0]) / (alone() / before[1])
    assert ratio == pytest.approx(1.3 / 0.7, rel=0.1)


def test_after_the_first_search_each_looks_at_every_other_early_exit(
    model: LoadedModel, ids: list[tuple[int, ...]]
) -> None:
    core, policy = core_with(model, EngineConfig(knapspec_budget=1.0, knapspec_interval=8, knapspec_max_skip=1.0))
    layers = model.spec.layers
    seen: list[set[int]] = []
    replay = policy.searcher._replay

    def spy(*args: Any) -> Any:
        made = replay(*args)
        seen.append({depth for depth in range(1, layers) if exit_plan(model.spec, depth) in made.counts})
        return made

    policy.searcher._replay = spy  # type: ignore[method-assign]
    rounds(core, ids[:4])
    first, *later = seen
    assert first == set(range(1, layers))
    assert len(later) >= 2
    for number, depths in enumerate(later, 1):
        assert depths >= set(range(1 + number % 2, layers, 2))
    assert any(depths < first for depths in later)


def test_decisions_leave_less_of_the_budget_to_searches() -> None:
    budget = Budget(0.02, 0.01)
    budget.busy, budget.searches = 10.0, 1
    before = budget.earned(ignorant=False, plain=False)
    budget.decided = 0.15
    assert budget.earned(ignorant=False, plain=False) == pytest.approx(0.25 * before)
    budget.decided = 0.3
    assert budget.earned(ignorant=False, plain=False) < 0.0
    assert budget.left == pytest.approx(0.2), "but to long answers one is owed"
    budget.charge(0.15, owed=False)
    assert budget.left == pytest.approx(0.05)


def test_what_was_accepted_corrects_what_is_said_of_acceptance_alone(model: LoadedModel) -> None:
    library = Library(CostModel(model.spec, made_up_profile()), 8)
    counts = AcceptanceCounts()
    counts.add([0.95] * 60 + [0.4] * 20, [True] * 60 + [False] * 20)
    library.add(exit_plan(model.spec, 2), counts)
    before = library.best([50], (), 1)
    assert before.credit == 1.0
    for round in range(200):
        library.credit(1, round, expected=4.0, accepted=3.0)
    after, other = library.best([50], (), 200), library.best([50] * 4, (), 200)
    assert after.credit == pytest.approx(0.75, rel=0.05)
    assert after.plan.predicted_acceptance == pytest.approx(after.credit * (before.plan.predicted_acceptance or 0.0))
    assert replace(after.plan, predicted_acceptance=None) == replace(before.plan, predicted_acceptance=None)
    assert other.credit == 1.0, "four in flight are another matter"


def test_a_slow_moment_does_not_make_plain_decoding_dear(model: LoadedModel) -> None:
    """Its price is hardly seen again while drafting goes on, which would go on at a loss."""
    costs = CostModel(model.spec, made_up_profile())
    usual, plan = costs.verify_pass(1, [50]), Plan(exit_plan(model.spec, 3), 3)
    price, verify = costs.draft_pass(plan.variants, [50]), costs.verify_pass(4, [50])

    def plain(seconds: float) -> None:
        work = Work("a", 0, 50, (1,), True, GREEDY)
        costs.observe(StepPlan((work,)), StepOutput((WorkOutput((1,)),), 0, 0.0, seconds), 1e-4)

    def drafting() -> None:
        work = Work("a", 0, 50, (1,), True, GREEDY, plan)
        out = WorkOutput((1, 2, 3, 4), drafted=3, confidences=(0.9,) * 3)
        costs.observe(StepPlan((work,)), StepOutput((out,), 3, 3 * price, verify), 1e-4)

    for _ in range(600):
        plain(usual)
    for _ in range(8):
        plain(1.5 * usual)
    assert costs.verify_pass(1, [50]) > 1.2 * usual, "it is slow now"
    for _ in range(200):
        drafting()
    assert costs.verify_pass(1, [50]) == pytest.approx(usual, rel=0.1)
    for _ in range(SETTLING[False]):  # they find the caches that drafting left
        plain(2.0 * usual)
    assert costs.verify_pass(1, [50]) == pytest.approx(usual, rel=0.1)
    for _ in range(20):
        plain(2.0 * usual)
    assert costs.verify_pass(1, [50]) > 1.5 * usual


def test_tokens_and_requests_cost_outside_the_passes(model: LoadedModel) -> None:
    costs = CostModel(model.spec, made_up_profile())
    costs.observe(StepPlan(()), StepOutput((), 0, 0.0, 0.0), 1e-4)  # a round in which nobody ran says nothing
    assert costs.overhead(1) == 0.0
    plan = Plan(exit_plan(model.spec, 3), 3)
    for i in range(600):
        for requests in (1, 16):
            for drafted in (0, 0, 2, 2, 2):  # the first of each kind is passed over
                accepted = drafted * (i % 2)
                works = tuple(Work(str(n), n, 50, (1,), True, GREEDY, plan) for n in range(requests))
                outs = tuple(WorkOutput((1,) * (accepted + 1), drafted=drafted) for _ in works)
                seconds = requests * (2e-5 + (3e-5 if drafted else 0.0) + 1e-5 * accepted)
                costs.observe(StepPlan(works), StepOutput(outs, drafted, 1e-3, 1e-3), seconds)
    for requests in (1, 16):
        assert costs.overhead(requests) == pytest.approx(2e-5 * requests, rel=0.02)
        for accepted in (0, 2 * requests):
            assert costs.overhead(requests, accepted) == pytest.approx(5e-5 * requests + 1e-5 * accepted, rel=0.02)


def test_what_a_draft_takes_beside_its_passes_is_learnt(model: LoadedModel) -> None:
    """Short drafts would make passes look dear, and long ones cheap."""
    costs = CostModel(model.spec, made_up_profile())
    plan = Plan(exit_plan(model.spec, 3), 8)
    price, setup = costs.draft_pass(plan.variants, [50]), {1: 1e-4, 4: 3e-4}
    assert costs.draft_setup(1) == 0.0
    for i in range(1500):
        for requests in (1, 4):
            drafted = (1, 1, 2, 8)[i % 4]
            works = tuple(Work(str(n), n, 50, (1,), True, GREEDY, plan) for n in range(requests))
            outs = tuple(WorkOutput((1,), drafted=drafted) for _ in works)
            passes = drafted * costs._draft_price(plan.variants, [50] * requests)
            verify = costs._price(costs._all, requests * (1 + drafted), [50] * requests, 1 + drafted)
            costs.observe(StepPlan(works), StepOutput(outs, drafted, setup[requests] + passes, verify), 1e-4)
    for requests, seconds in setup.items():
        assert costs.draft_setup(requests) == pytest.approx(seconds, rel=0.1)
    assert costs.draft_pass(plan.variants, [50]) == pytest.approx(price, rel=0.05)
    costs.reset()
    assert costs.draft_setup(1) == 0.0


def test_without_drafts_nothing_is_searched_for(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig(knapspec_gamma=0))
    assert not any(r.drafted for r in rounds(core, ids[:6]))
    assert policy.searcher.budget.searches == 0


@pytest.mark.nightly
def test_new_requests_decode_plainly_where_others_do(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """Without being looked at one by one: for short answers that would be much of the policy's time."""
    core, policy = core_with(model, EngineConfig(knapspec_gamma=0))
    looked: list[int] = []
    choice = policy._choice
    policy._choice = lambda company: [looked.append(company.size), choice(company)][1]  # type: ignore[method-assign]
    answer(core, (ids * 4)[:45], replace(GREEDY, max_tokens=6, ignore_eos=True), ["knapspec"])
    assert 0 < len(looked) < 23, "of 225 rounds, 45 of them the first of their request"


def test_requests_together_are_asked_once_and_draft_alike(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig())
    asked: list[tuple[int, int, int]] = []
    propose = policy.propose

    def spy(views: Sequence[View], others: Sequence[tuple[int, Plan]]) -> Sequence[Plan]:
        plans = propose(views, others)
        asked.append((len(views), len(others), len(set(plans))))
        return plans

    policy.propose = spy  # type: ignore[method-assign]
    answer(core, ids[:6], replace(GREEDY, ignore_eos=True), ["knapspec", "knapspec", "layerskip"], concurrency=6)
    assert all(plans == 1 for _, _, plans in asked)
    assert (4, 2, 1) in asked


def test_marginal_prices(model: LoadedModel) -> None:
    """Beside others, a sublayer that they run costs little more; one that they skip costs what it costs alone."""
    costs = CostModel(model.spec, made_up_profile())
    alone = costs.sublayers(100, 1, None)
    union = (*((1, 1, 0, 0) * model.spec.layers)[: model.spec.sublayers], 1)
    beside = costs.sublayers(100, 4, union)
    for i, ran in enumerate(union[:-1]):
        if ran:
            scan = costs.profile.scan(100, 1) if i % 2 == 0 else 0.0
            assert beside[i] < 0.1 * alone[i] + scan, "its own scan stays at full price"
        else:
            assert beside[i] == alone[i]


@pytest.mark.nightly
def test_a_trial_is_decided_once(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig(), verify_slope=0.5)
    asked: list[int] = []  # rounds
    trials: list[tuple[int, int]] = []  # rounds, and how often was asked before they began
    best, begin = policy.library.best, policy._begin_trial

    def counted(*arguments: Any) -> Choice:
        asked.append(policy._round)
        return best(*arguments)

    def begun(company: Any, regime: Any) -> Choice | None:
        choice = begin(company, regime)
        if choice is not None:
            trials.append((policy._round, len(asked)))
        return choice

    policy.library.best = counted  # type: ignore[method-assign]
    policy._begin_trial = begun  # type: ignore[method-assign]
    rounds(core, ids)
    assert trials
    assert not any(round in asked[before:] for round, before in trials)


@pytest.mark.nightly
def test_what_was_decided_stands_while_rows_are_kept(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig(knapspec_budget=1.0))
    keeping: list[bool] = []  # in rounds that keep rows, whether all was looked at
    choice, propose = policy._choice, policy.propose
    looked: list[int] = []

    def proposed(views: Sequence[View], others: Sequence[tuple[int, Plan]]) -> Sequence[Plan]:
        kept = policy._scout.recorder is not None and policy._scout.recorder in views
        plans = propose(views, others)
        if kept:
            keeping.append(looked[-1:] == [policy._round])
        return plans

    policy._choice = lambda company: [looked.append(policy._round), choice(company)][1]  # type: ignore[method-assign]
    policy.propose = proposed  # type: ignore[method-assign]
    rounds(core, ids[:9])
    assert policy.searcher.budget.searches > 1
    assert len(keeping) > 10
    assert sum(keeping) < 0.7 * len(keeping)


def test_broken_promises_end_drafting(
    model: LoadedModel, ids: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rounds take far longer than the profile says, and only those that draft, the request falls back."""
    monkeypatch.setattr(model, "clock", TickingClock(1e-4))  # what may be lost is some decisions' time
    core, _ = core_with(model, EngineConfig())
    policy = KnapSpec(replace(core._policies, costs=FrozenCosts(model.spec, made_up_profile())))
    core._made["knapspec"] = policy
    kept = policy.observe

    def slow_drafts(views: Sequence[View], round: RoundOutcome) -> None:
        plain = 1.0 / (policy.library.plain([views[0].context]).plan.predicted_tpt or 0.0)
        seconds = 10 * plain if round.outcomes[0].drafted else plain
        kept(views, replace(round, decode_seconds=seconds))

    policy.observe = slow_drafts  # type: ignore[method-assign]
    seen = rounds(core, ids[:8])
    assert any(r.drafted for r in seen[:40])
    assert sum(r.drafted > 0 for r in seen[-200:]) <= 10


@pytest.mark.nightly
def test_drafting_that_loses_is_tried_ever_more_rarely(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """It promises a gain, round by round, and brings 0.8 of plain decoding; a few rounds of a trial may look better."""
    core, _ = core_with(model, EngineConfig())
    policy = KnapSpec(replace(core._policies, costs=FrozenCosts(model.spec, made_up_profile())))
    core._made["knapspec"] = policy
    kept = policy.observe

    def losing(views: Sequence[View], round: RoundOutcome) -> None:
        plain = 1.0 / (policy.library.plain([views[0].context]).plan.predicted_tpt or 0.0)
        (outcome,) = round.outcomes
        kept(views, replace(round, decode_seconds=outcome.emitted * plain / 0.8 if outcome.drafted else plain))

    policy.observe = losing  # type: ignore[method-assign]
    drafted = [r.drafted > 0 for r in rounds(core, (ids * 4)[:50])]
    assert len(drafted) > 2000
    assert any(drafted[:200])
    assert sum(drafted[-1500:]) < 0.12 * 1500  # 0.05 to 0.07, by what is found when


def test_what_a_trial_loses_is_no_debt_of_the_rounds_after_it() -> None:
    regime = Regime()
    assert regime.lost(2.0, 1.0), "all decide anew"
    for _ in range(9):
        regime.begin_trial(10)
        assert not any(regime.lost(5.0, 1.0) for _ in range(6))
        regime.end_trial()
    assert not regime.lost(1.9, 1.0), "it is asked half as often"
    assert regime.lost(0.2, 1.0)
    regime.begin_trial(20)
    assert not regime.lost(-9.0, 1.0)
    regime.end_trial()
    assert regime.losses.known, "what it gains may be luck"
    assert not regime.lost(-0.1, 1.0)
    assert not regime.losses.known


def test_verdicts_by_prices_that_were_reset_are_forgotten(model: LoadedModel) -> None:
    core, policy = core_with(model, EngineConfig())
    regime = policy._regimes[1]
    assert regime.lost(1.0, 0.1)
    regime.plain_rounds = regime.trial_every
    assert regime.trial_due()
    core.reset_calibration()
    assert not regime.losses.known
    assert regime.trial_every == TRIAL_EVERY[0]


@pytest.mark.nightly
def test_what_pays_for_one_does_not_have_two_try_again_and_again(
    model: LoadedModel, ids: list[tuple[int, ...]]
) -> None:
    """Drafting loses with two in flight and gains alone, by turns."""
    core, _ = core_with(model, EngineConfig())
    policy = KnapSpec(replace(core._policies, costs=FrozenCosts(model.spec, made_up_profile())))
    core._made["knapspec"] = policy
    kept = policy.observe

    def lonely(views: Sequence[View], round: RoundOutcome) -> None:
        contexts = [view.context for view in views]
        plain = 1.0 / (policy.library.plain(contexts).plan.predicted_tpt or 0.0)
        drafted = any(outcome.drafted for outcome in round.outcomes)
        seconds = 10 * plain if drafted and len(views) > 1 else plain
        kept(views, replace(round, decode_seconds=seconds))

    policy.observe = lonely  # type: ignore[method-assign]
    together: list[bool] = []
    alone: list[bool] = []
    for turn in range(24):
        for index, prompt in enumerate(ids[:2]):
            limits = replace(GREEDY, ignore_eos=True, max_tokens=160 if index else 80)
            core.add(GenerateRequest(f"{turn} {index}", prompt, limits, "knapspec"))
        while not core.scheduler.idle:
            seen = core.step().rounds
            (together if len(seen) > 1 else alone).append(any(r.drafted for r in seen))
    assert sum(alone[-300:]) > 150
    assert sum(together[-800:]) < 0.03 * 800  # 0.003 to 0.014, by what is found when


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [0.02, pytest.param(0.0, marks=pytest.mark.nightly)])
def test_a_long_answer_is_searched_for_even_if_searches_find_nothing(
    model: LoadedModel, ids: list[tuple[int, ...]], budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "clock", TickingClock(1e-4))  # budgets are time, which a busy machine stretches
    core, policy = core_with(model, EngineConfig(knapspec_budget=budget))
    limits = policy.searcher.budget
    limits.busy, limits.searches, limits._barren = 100.0, 9, 5  # seconds in which nothing was found
    limits._earned_then = budget * limits.busy
    owed: list[bool] = []
    begin = policy.searcher.begin

    def spy(*args: Any, **options: Any) -> Any:
        search = begin(*args, **options)
        owed.append(search.owed)
        assert len(search.references.positions) == core._policies.config.knapspec_rows
        return search

    policy.searcher.begin = spy  # type: ignore[method-assign]
    answer(core, ids[:2], replace(GREEDY, max_tokens=500, ignore_eos=True), ["knapspec"])
    assert owed == ([True, True] if budget else []), "one for each answer"
    answer(core, ids[:2], replace(GREEDY, max_tokens=100, ignore_eos=True), ["knapspec"])
    assert len(owed) == (2 if budget else 0), "and none for short ones"


@pytest.mark.nightly
def test_answers_of_a_thousand_tokens_are_searched_for_on_credit(
    model: LoadedModel, ids: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is earned, but for two searches of debt at most."""
    monkeypatch.setattr(model, "clock", TickingClock(1e-4))
    core, policy = core_with(model, EngineConfig(knapspec_budget=1e-9))
    limits = policy.searcher.budget
    limits.searches = 9
    ended: list[int] = []
    for prompt in ids[:4]:
        answer(core, [prompt], replace(GREEDY, max_tokens=300, ignore_eos=True), ["knapspec"])
        assert limits.searches == max([9, *ended]), "short"
        answer(core, [prompt], replace(GREEDY, max_tokens=1000, ignore_eos=True), ["knapspec"])
        ended.append(limits.searches)
    assert ended[0] == 10
    assert ended[-1] in (10, 11)


def test_when_searches_were_found_too_dear_is_forgotten_with_what_they_took(
    model: LoadedModel, ids: list[tuple[int, ...]]
) -> None:
    core, policy = core_with(model, EngineConfig(knapspec_interval=8))
    limits = policy.searcher.budget
    limits.busy, limits.searches, limits.cost = 100.0, 9, 1000.0  # seconds
    rounds(core, ids[:2])
    assert limits.searches == 9
    core.reset_calibration()
    rounds(core, ids[:2])
    assert limits.searches > 9


def test_long_answers_are_owed_their_first_search_sooner_than_further_ones() -> None:
    first, later = (Trail(Rows(8), 100, again=again) for again in (False, True))
    assert [first.owed(n) for n in (499, 500, 1100)] == [False, True, True]
    assert [later.owed(n) for n in (499, 500, 1100)] == [False, False, True]


def test_all_candidates_of_a_search_may_be_many(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """More than are remembered from search to search."""
    config = EngineConfig(knapspec_beam=0, knapspec_tau=-1.0, knapspec_resolution=32, knapspec_budget=1.0)
    core, policy = core_with(model, replace(config, knapspec_max_skip=1.0, knapspec_rows=8))
    sizes: list[int] = []
    replay = policy.searcher._replay
    policy.searcher._replay = lambda *a: [r := replay(*a), sizes.append(len(r.counts))][0]  # type: ignore
    rounds(core, ids[:2])
    assert max(sizes) > 128


@pytest.mark.nightly
def test_nothing_to_be_found_is_not_searched_for_without_end(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig(knapspec_max_skip=0.0, knapspec_tau=1.0, knapspec_interval=4))
    assert rounds(core, ids[:6])
    assert policy.searcher.budget.searches <= 2


def test_a_plan_that_may_be_better_is_to_be_tried(model: LoadedModel) -> None:
    """Little known and cheap: hopeful. Seen to be bad, or dear: not."""
    layers = model.spec.layers
    known, other = exit_plan(model.spec, layers // 2), exit_plan(model.spec, 3)

    def hopeful(variants: tuple[int, ...], tokens: int, *, agreed: bool) -> Any:
        library = Library(CostModel(model.spec, made_up_profile()), 8)
        for plan, count, right in ((known, 100, True), (variants, tokens, agreed)):
            counts = AcceptanceCounts()
            counts.add([0.95] * count, [right] * count)
            library.add(plan, counts)
        choice = library.best([100], [], 0)
        assert choice.plan.variants == known
        return choice.hopeful.plan.variants if choice.hopeful else None

    assert hopeful(other, 2, agreed=False) == other
    assert hopeful(other, 200, agreed=False) is None
    assert hopeful(exit_plan(model.spec, layers - 1), 2, agreed=True) is None


def test_who_is_not_asked_is_counted_all_the_same(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """Where what was decided stands, the policy is not asked; rounds and their time are known to it afterwards."""
    core, policy = core_with(model, EngineConfig(knapspec_gamma=0))
    asked: list[int] = []
    propose = policy.propose
    policy.propose = lambda *a: [asked.append(policy._round), propose(*a)][1]  # type: ignore[method-assign]
    seen = rounds(core, ids[:4])
    assert len(asked) < 0.3 * len(seen)
    assert policy._round == pytest.approx(len(seen), abs=len(ids[:4]))
    assert policy.searcher.budget.busy > 0


@pytest.mark.parametrize("gamma", [10, 0])
def test_of_many_tuned_plans_the_best_stay(model: LoadedModel, gamma: int) -> None:
    layers = model.spec.layers
    counts = np.zeros((len(THRESHOLDS), 2))
    counts[-1] = 5.0, 45.0
    plans = dict.fromkeys(((1,) * i + (0,) + (1,) * (2 * layers - i) for i in range(2 * layers)), counts)
    assert len(plans) > 16
    core = model.core(EngineConfig(prior="none", knapspec_gamma=gamma))
    policy = KnapSpec(replace(core._policies, prior=Prior("model", plans)))
    assert 1 <= len(policy.library) <= MOST_PLANS
