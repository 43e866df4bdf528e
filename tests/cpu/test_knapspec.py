"""The knapspec policy drafts where drafting pays, stops where it does not, and keeps to its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from engine.config.engine import EngineConfig
from engine.config.policies import KnapSpecConfig
from engine.core.engine import EngineCore
from engine.core.policies import policy_kinds
from engine.draft.base import BatchView
from engine.draft.costs import SETTLING, CostModel
from engine.draft.knapspec import KnapSpec
from engine.plans import exit_plan
from engine.runtime.build import LoadedModel
from engine.step import Plan, StepOutput, StepPlan, Work, WorkOutput
from engine.types import GenerateRequest, RequestRound, SamplingParams
from tests.support.cores import GREEDY, Learning, answer, chat_ids, exact, made_up_profile


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


@pytest.fixture(scope="module")
def ids(model: LoadedModel, prompts: Sequence[str]) -> list[tuple[int, ...]]:
    core = model.core(EngineConfig())
    return [chat_ids(core, text) for text in prompts[::7]]


class FrozenCosts(CostModel):
    """A cost model that ignores measured rounds, so that decisions do not depend on this machine."""

    def observe(self, plan: StepPlan, out: StepOutput, overhead: float) -> None:
        pass


def core_with(
    model: LoadedModel, config: EngineConfig, learning: Learning | None = None, **profile: float
) -> tuple[EngineCore, KnapSpec]:
    """Return a core with frozen costs, and its policy. With `learning`, host and device overlap."""
    skipping = replace(config.knapspec, menu="skip")
    costs = FrozenCosts(model.spec, made_up_profile(**profile))
    config = replace(config, prior="none", lookup="none", knapspec=skipping)
    core = (
        learning.core(model.core, config, overlaps=True, costs=costs) if learning else model.core(config, costs=costs)
    )
    policy = core.policy("knapspec")
    assert isinstance(policy, KnapSpec)
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
    seen = rounds(core, ids[:3], max_tokens=600)
    assert sum(r.emitted for r in seen) / len(seen) > 1.7
    drafting = [r for r in seen if r.drafted]
    assert all(0 < r.skipped_attention + r.skipped_mlp < model.spec.sublayers for r in drafting)
    assert 0 < len(policy.estimator.counts) <= 8


@pytest.mark.nightly
def test_a_costly_head_makes_drafting_dearer(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """Every draft pass runs the head, so its price counts."""
    cheap, _ = core_with(model, EngineConfig())
    dear, _ = core_with(model, EngineConfig(), head=4e-2)
    drafted = [sum(r.drafted for r in rounds(core, ids[:2], max_tokens=600)) for core in (cheap, dear)]
    assert drafted[0] > 10 * drafted[1]


@pytest.mark.slow
def test_searches_keep_to_their_budget_and_a_budget_of_zero_allows_none(
    model: LoadedModel, ids: list[tuple[int, ...]]
) -> None:
    core, policy = core_with(model, EngineConfig(knapspec=KnapSpecConfig(interval=8, budget=0.02)))
    searcher, longest = policy.searcher, max(len(prompt) for prompt in ids[:7]) + 200
    for prompt in ids[:7]:
        started, spent = model.clock.now(), searcher.spent
        rounds(core, [prompt], max_tokens=200)
        own = 0.02 * (model.clock.now() - started)
        assert searcher.spent - spent <= own + searcher.predicted_seconds(longest), (
            "no answer pays for another's search"
        )
    assert searcher.searches > 0
    core, policy = core_with(model, EngineConfig(knapspec=KnapSpecConfig(budget=0.0)))
    assert all(r.drafted == 0 for r in rounds(core, ids[:2]))
    assert policy.searcher.spent == 0


def test_where_drafting_cannot_pay_nothing_is_drafted_and_searches_become_rare(
    model: LoadedModel, ids: list[tuple[int, ...]]
) -> None:
    """Verifying several rows costs many times a single row, and no search finds a plan that pays.

    The interval is max(T, price ÷ (budget · p)), and p = (1 + found) / (1 + searches).
    """
    core, policy = core_with(model, EngineConfig(knapspec=KnapSpecConfig(budget=0.5)), verify_slope=3.0)
    searcher = policy.searcher
    first = searcher.interval(100)
    seen = rounds(core, ids[:3], max_tokens=300)
    assert not any(r.drafted for r in seen)
    assert (searcher.found, searcher.searches > 0) == (0, True)
    price = searcher.predicted_seconds(100) / core.costs.verify_pass(1, [100])
    assert searcher.interval(100) == pytest.approx(price / 0.5 * (1 + searcher.searches), rel=0.1)
    assert searcher.interval(100) > 1.5 * first
    assert next(r.search_interval for r in reversed(seen) if r.search_interval) > 1.5 * first
    _, cheap = core_with(model, EngineConfig(knapspec=KnapSpecConfig(interval=500, budget=1.0)))
    assert cheap.searcher.interval(100) == 500


def test_a_search_is_spread_over_rounds(
    model: LoadedModel, ids: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    core, policy = core_with(model, EngineConfig(knapspec=KnapSpecConfig(interval=8, budget=1.0)))
    slices, search = [0.0], policy.searcher.search

    def watched(*args: Any) -> Any:
        before = policy.searcher.spent
        found = search(*args)
        slices.append(policy.searcher.spent - before)
        return found

    monkeypatch.setattr(policy.searcher, "search", watched)
    answer(core, ids[:4], replace(GREEDY, ignore_eos=True), ["knapspec"], concurrency=4)
    worked = [seconds for seconds in slices if seconds > 0]
    assert len(worked) > 3 * policy.searcher.searches > 0
    assert max(worked) < core.costs.verify_pass(1, [200])


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, *(pytest.param(i, marks=pytest.mark.nightly) for i in range(1, 6))])
def test_a_good_plan_that_skips_is_found_within_300_tokens(
    model: LoadedModel, ids: list[tuple[int, ...]], which: int
) -> None:
    """Without the plans that `knapserve tune` found, a request reaches nine tenths of the speed with them."""

    def speed(prior: str) -> float:
        """Tokens per second after the first 300."""
        core = model.core(EngineConfig(prior=prior, lookup="none"))
        prompt = ids[which]
        core.add(
            GenerateRequest("a", prompt, SamplingParams(900, temperature=0.8, seed=1, ignore_eos=True), "knapspec")
        )
        tokens, at, since = 0, 0, 0.0
        while not core.scheduler.idle:
            tokens += sum(r.emitted for r in core.step().rounds)
            if not at and tokens >= 300:
                at, since = tokens, model.clock.now()
        return (tokens - at) / (model.clock.now() - since)

    with_plans, without, plain = speed("auto"), speed("none"), 1 / made_up_profile_pass(model)
    assert with_plans > 1.1 * plain, "skipping pays"
    assert without >= 0.9 * with_plans


def made_up_profile_pass(model: LoadedModel) -> float:
    """Seconds of a plain pass in the middle of these answers."""
    return CostModel(model.spec, made_up_profile()).verify_pass(1, [700])


@pytest.fixture
def costs(model: LoadedModel) -> CostModel:
    return CostModel(model.spec, made_up_profile())


@pytest.fixture
def plan(model: LoadedModel) -> Plan:
    return Plan(exit_plan(model.spec.layers, 3), 3)


def drafts(costs: CostModel, plan: Plan, draft: float, verify: float, rounds: int = 1) -> None:
    """Observe rounds of three draft tokens, all accepted. `draft`: seconds of a pass."""
    step = StepPlan((Work("a", 0, 50, (1,), True, GREEDY, plan),))
    accepted = WorkOutput((1, 2, 3, 4), drafted=3, confidences=(0.9,) * 3)
    for _ in range(rounds):
        costs.observe(step, StepOutput((accepted,), 3 * draft, verify), 1e-4)


def plain(costs: CostModel, seconds: float, rounds: int = 1, requests: int = 1) -> None:
    """Observe rounds without drafts."""
    step = StepPlan(tuple(Work(str(i), i, 50, (1,), True, GREEDY) for i in range(requests)))
    for _ in range(rounds):
        costs.observe(step, StepOutput((WorkOutput((1,)),) * requests, 0.0, seconds), 1e-4)


def test_observed_times_correct_the_profile_within_bounds(costs: CostModel, plan: Plan) -> None:
    draft, verify = costs.draft_pass(plan.variants, [50]), costs.verify_pass(4, [50])
    drafts(costs, plan, 1.5 * draft, 0.8 * verify, rounds=200)
    assert costs.draft_pass(plan.variants, [50]) == pytest.approx(1.5 * draft, rel=0.05)
    assert costs.verify_pass(4, [50]) == pytest.approx(0.8 * verify, rel=0.05)
    drafts(costs, plan, 300, 1e3)
    assert costs.draft_pass(plan.variants, [50]) < 1.7 * draft, "one stall does not count for much"
    drafts(costs, plan, 300, 1e3, rounds=2000)
    assert costs.draft_pass(plan.variants, [50]) <= 2.5 * draft * 1.001
    costs.reset()
    assert costs.draft_pass(plan.variants, [50]) == draft


def test_reading_prompts_does_not_change_the_price_of_drafting(costs: CostModel) -> None:
    before = [costs.verify_pass(rows, [50] * 8) for rows in (1, 8, 24, 32)]
    works = Work("a", 0, 50, (1,), True, GREEDY), Work("b", 1, 100, (1,) * 200, False, GREEDY)
    for _ in range(50):
        costs.observe(StepPlan(works), StepOutput((WorkOutput((1,)), WorkOutput(())), 0.0, 9.0), 1e-4)
    assert [costs.verify_pass(rows, [50] * 8) for rows in (1, 8, 24, 32)] == before


def test_the_price_of_a_draft_is_learnt_for_its_plan(model: LoadedModel, costs: CostModel) -> None:
    """Other plans are corrected by the average of all drafts."""
    plans = [Plan(exit_plan(model.spec.layers, depth), 3) for depth in (2, 4, 6)]
    before = [costs.draft_pass(plan.variants, [50]) for plan in plans]
    verify = costs.verify_pass(4, [50])
    for _ in range(300):
        drafts(costs, plans[0], 0.5 * before[0], verify)
        drafts(costs, plans[1], 1.5 * before[1], verify)
    after = [costs.draft_pass(plan.variants, [50]) / price for plan, price in zip(plans, before, strict=True)]
    assert after == [pytest.approx(0.5, rel=0.05), pytest.approx(1.5, rel=0.05), pytest.approx(1.0, rel=0.1)]


def test_an_unseen_pass_is_priced_like_similar_ones(costs: CostModel, plan: Plan) -> None:
    """A pass of an unseen width is corrected like the nearest seen one; a short slow-down fades."""

    def prices() -> list[float]:
        return [costs.verify_pass(1, [50]), costs.verify_pass(12, [50]), costs.draft_pass(plan.variants, [50])]

    before = prices()
    plain(costs, 1.4 * before[0], rounds=300)
    after = prices()
    assert [a / b for a, b in zip(after, before, strict=True)] == pytest.approx([1.4] * 3, rel=0.05)
    plain(costs, 2.0 * before[0], rounds=5)
    narrow, wide, _ = prices()
    assert narrow / wide == pytest.approx(after[0] / after[1], rel=0.2), "a slow moment raises all prices"
    assert narrow > 1.1 * after[0]


def test_verify_passes_after_drafts_and_plain_passes_are_priced_apart(costs: CostModel, plan: Plan) -> None:
    """Four rows: one request with three drafts, or four plain requests. Once seen, neither corrects the other."""

    def prices() -> tuple[float, float]:
        return costs.verify_pass(4, [50] * 4), costs.verify_pass(4, [50])

    together, alone = prices()
    draft = costs.draft_pass(plan.variants, [50])
    drafts(costs, plan, draft, 0.7 * alone, rounds=300)
    found = prices()
    assert found[0] / together == pytest.approx(found[1] / alone), "the other pass has no evidence of its own yet"
    for _ in range(30):
        drafts(costs, plan, draft, 0.7 * alone, rounds=10)
        plain(costs, 1.3 * together, rounds=10, requests=4)
    found = prices()
    assert (found[0] / together) / (found[1] / alone) == pytest.approx(1.3 / 0.7, rel=0.1)


def test_a_slow_moment_does_not_raise_the_price_of_plain_decoding(costs: CostModel, plan: Plan) -> None:
    """While drafting goes on, plain rounds are rare, so a wrong price would stay and drafting lose."""
    usual, draft, verify = costs.verify_pass(1, [50]), costs.draft_pass(plan.variants, [50]), costs.verify_pass(4, [50])
    plain(costs, usual, rounds=600)
    plain(costs, 1.5 * usual, rounds=8)
    assert costs.verify_pass(1, [50]) > 1.2 * usual, "the price follows the slow-down"
    drafts(costs, plan, draft, verify, rounds=200)
    assert costs.verify_pass(1, [50]) == pytest.approx(usual, rel=0.1)
    plain(costs, 2.0 * usual, rounds=SETTLING[False])  # they find the caches that drafting left
    assert costs.verify_pass(1, [50]) == pytest.approx(usual, rel=0.1)
    plain(costs, 2.0 * usual, rounds=20)
    assert costs.verify_pass(1, [50]) > 1.5 * usual


def test_a_policy_that_may_not_draft_never_searches(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    core, policy = core_with(model, EngineConfig(knapspec=KnapSpecConfig(gamma=0)))
    assert not any(r.drafted for r in rounds(core, ids[:6]))
    assert policy.searcher.searches == 0


def test_requests_in_a_batch_share_one_plan(
    model: LoadedModel, ids: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int, int]] = []

    class WatchedPolicy(KnapSpec):
        def propose(self, batch: BatchView[Any]) -> Sequence[Plan]:
            plans = super().propose(batch)
            asked.append((len(batch.views), len(batch.contexts) - len(batch.views), len(set(plans))))
            return plans

    monkeypatch.setitem(policy_kinds(), "knapspec", WatchedPolicy)
    core, _ = core_with(model, EngineConfig())
    answer(core, ids[:6], replace(GREEDY, ignore_eos=True), ["knapspec", "knapspec", "layerskip"], concurrency=6)
    assert all(plans == 1 for _, _, plans in asked)
    assert (4, 2, 1) in asked


def test_a_sublayer_that_others_run_costs_little_more(model: LoadedModel, costs: CostModel) -> None:
    """A sublayer that others skip costs as much as alone."""
    alone = costs.sublayers(100, 1, None)
    union = (*((1, 1, 0, 0) * model.spec.layers)[: model.spec.sublayers], 1)
    for i, (price, ran) in enumerate(zip(costs.sublayers(100, 4, union), union, strict=False)):
        scan = costs.profile.scan(100, 1) if i % 2 == 0 else 0.0
        assert price < 0.1 * alone[i] + scan if ran else price == alone[i]


@pytest.mark.slow
def test_a_plan_is_reused_for_many_rounds_but_not_for_ever(model: LoadedModel, ids: list[tuple[int, ...]]) -> None:
    """Where host and device overlap, rounds without a proposal count towards the next decision all the same."""
    learning = Learning("knapspec")
    core, _ = core_with(model, EngineConfig(knapspec=KnapSpecConfig(gamma=0)), learning)
    for index, prompt in enumerate(ids[:4]):
        proposed, ran = len(learning.proposed), len(learning.ran)
        sampling = replace(GREEDY, ignore_eos=True, max_tokens=300)
        core.add(GenerateRequest(str(index), prompt, sampling, "knapspec"))
        while not core.scheduler.idle:
            core.run_round(lambda report: None)
        assert 2 <= len(learning.proposed) - proposed < 0.3 * (len(learning.ran) - ran)
