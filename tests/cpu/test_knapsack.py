"""The dynamic program equals its naive loop, is optimal where it can be, and close on real models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine.draft.search import menus
from engine.model.attention import Segment
from engine.model.knapsack import Candidate, Knapsack, Menu, cosines, directions, skipping, solve
from engine.plans import LOW_BIT, SKIP, TARGET, WINDOW
from tests.support.cores import copy_context, load, tiny_model
from tests.support.examples import examples

Transition = Callable[[int, Tensor, int], Tensor]


def naive(references: Tensor, menus: Sequence[Menu], run: Transition, capacity: int, tau: float) -> list[Candidate]:
    """The same recurrence, one state at a time, carrying the choice forward instead of back-pointers."""
    table: dict[int, tuple[Tensor, tuple[int, ...], float]] = {0: (references[0], (), 1.0)}
    for i, menu in enumerate(menus):
        nxt: dict[int, tuple[Tensor, tuple[int, ...], float]] = {}
        for variant, saves in menu.items():
            for j, (state, chosen, _) in table.items():
                reached = run(i, state[None], variant)[0] if variant else state
                score, saved = float(cosines(reached[None], directions(references[i + 1]))[0]), j + saves
                if score < tau and (variant != 1 or j):
                    continue
                if saved <= capacity and (saved not in nxt or score > nxt[saved][2]):
                    nxt[saved] = (reached, (*chosen, variant), score)
        table = nxt
    return [Candidate(table[j][1], j, table[j][2], table[j][0]) for j in sorted(table)]


def toy(sublayers: int, seed: int, rows: int = 3, hidden: int = 8) -> tuple[Tensor, Transition]:
    """Nonlinear residual sublayers, their inexact copies, and the full model's states."""
    generator = torch.Generator().manual_seed(seed)
    matrices = torch.randn(sublayers, hidden, hidden, generator=generator, dtype=torch.float64) * 0.4
    copies = matrices * 1.1

    def run(i: int, states: Tensor, variant: int = 1) -> Tensor:
        return states + torch.tanh(states @ (matrices if variant == 1 else copies)[i])

    states = [torch.randn(rows, hidden, generator=generator, dtype=torch.float64)]
    for i in range(sublayers):
        states.append(run(i, states[-1][None])[0])
    return torch.stack(states), run


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    offered=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5) | st.none(), st.booleans()), min_size=1, max_size=9
    ),
    tau=st.sampled_from([-1.0, 0.5, 0.9]),
    share=st.sampled_from([0.3, 0.5, 1.0]),
)
def test_the_batched_table_equals_the_naive_loop(
    seed: int, offered: list[tuple[int, int | None, bool]], tau: float, share: float
) -> None:
    """Menus vary: weights of sublayers, savings of copies, and which may be skipped."""
    references, run = toy(len(offered), seed)
    menus: list[dict[int, int]] = [
        {TARGET: 0} | ({} if copy is None else {LOW_BIT: copy}) | ({SKIP: weight} if skips else {})
        for weight, copy, skips in offered
    ]
    capacity = int(share * sum(max(menu.values()) for menu in menus))
    got = solve(references, menus, run, capacity=capacity, tau=tau)
    want = naive(references, menus, run, capacity, tau)
    assert [(c.variants, c.saved) for c in got] == [(c.variants, c.saved) for c in want]
    for a, b in zip(got, want, strict=True):
        assert a.cosine == pytest.approx(b.cosine)
        torch.testing.assert_close(a.state, b.state)
    for c in got:
        assert c.saved == sum(menu[v] for menu, v in zip(menus, c.variants, strict=True)) <= capacity


@examples(40)
@given(values=st.lists(st.tuples(st.integers(1, 6), st.floats(0.05, 1.0)), min_size=2, max_size=8))
def test_the_table_is_optimal_for_additive_sublayers(values: list[tuple[int, float]]) -> None:
    """Brute force finds nothing better where the cosine depends only on a sum over skipped sublayers.

    Sublayer i adds gain_i along one axis beside a large constant, so the cosine falls strictly with the gain skipped.
    """
    weights = [w for w, _ in values]
    gains = torch.tensor([g for _, g in values], dtype=torch.float64)

    def run(i: int, states: Tensor, variant: int = 1) -> Tensor:
        return states + torch.tensor([0.0, 1.0], dtype=torch.float64) * gains[i]

    states = [torch.tensor([[10.0, 0.0]], dtype=torch.float64)]
    for i in range(len(weights)):
        states.append(run(i, states[-1][None])[0])
    references = torch.stack(states)
    best: dict[int, float] = {}
    for variants in itertools.product((0, 1), repeat=len(weights)):
        skipped = sum(w for w, v in zip(weights, variants, strict=True) if not v)
        kept = float(gains[torch.tensor(variants, dtype=torch.bool)].sum())
        best[skipped] = max(best.get(skipped, -1.0), kept)
    for c in solve(references, skipping(weights), run, capacity=sum(weights)):
        kept = float(gains[torch.tensor(c.variants, dtype=torch.bool)].sum())
        assert kept == pytest.approx(best[c.saved])


def test_running_everything_is_always_a_candidate_with_cosine_one() -> None:
    references, run = toy(8, 3)
    full = solve(references, skipping([1] * 8), run, capacity=8, tau=0.99)[0]
    assert full.variants == (1,) * 8
    assert full.cosine == pytest.approx(1.0)


def test_beam_bounds_the_states_and_keeps_every_range() -> None:
    references, run = toy(12, 5)
    seen: list[int] = []

    def counting(i: int, states: Tensor, variant: int) -> Tensor:
        seen.append(states.shape[0])
        return run(i, states, variant)

    weights = [7, 5] * 6
    pruned = solve(references, skipping(weights), counting, capacity=sum(weights), beam=6)
    assert max(seen) == 6
    exact = {c.saved: c.cosine for c in solve(references, skipping(weights), run, capacity=sum(weights))}
    assert len(exact) > 6
    assert all(c.saved in exact for c in pruned)
    assert len(pruned) == 6


def test_a_beam_loses_little_where_much_is_skipped() -> None:
    """The states of highest cosine skip least, so a beam by cosine alone would keep much worse plans."""

    class ByCosine(Knapsack):
        def _prune(self, best: dict[int, tuple[float, int, int]]) -> list[int]:
            width = (max(best) + 1) / self.beam
            winners: dict[int, int] = {}
            for j in best:
                cell = int(j / width)
                if cell not in winners or best[j][0] > best[winners[cell]][0]:
                    winners[cell] = j
            return sorted(winners.values())

    def best(kind: type[Knapsack], seed: int, beam: int) -> float:
        references, run = toy(24, seed)
        weights = [9, 8] * 12
        table = kind(references, skipping(weights), capacity=int(0.8 * sum(weights)), beam=beam)
        while not table.done:
            table.advance(run)
        return max((c.cosine for c in table.candidates() if c.saved >= 0.5 * sum(weights)), default=0.0)

    whole, ours, naive_beam = (
        sum(best(kind, seed, beam) for seed in range(8)) / 8
        for kind, beam in ((Knapsack, 0), (Knapsack, 8), (ByCosine, 8))
    )
    print(f"\nmean cosine: all {whole:.3f}, ours {ours:.3f}, by cosine {naive_beam:.3f}")
    assert whole - ours < 0.5 * (whole - naive_beam)


def test_a_table_may_end_without_candidates() -> None:
    """The states that the beam keeps may all move too far from the model."""
    references, run = toy(12, 5)
    table = Knapsack(references, skipping([2, 3] * 6), capacity=30, tau=0.8, beam=2)
    while not table.done:
        table.advance(run)
    assert table.candidates() == []


def test_a_search_in_steps_equals_one_in_one_go() -> None:
    references, run = toy(6, 9)
    table = Knapsack(references, skipping([2, 3] * 3), capacity=15)
    steps = 0
    while not table.done:
        table.advance(run)
        steps += 1
    assert steps == 6
    at_once = solve(references, skipping([2, 3] * 3), run, capacity=15)
    assert [c.variants for c in table.candidates()] == [c.variants for c in at_once]


def test_prices_in_ticks_are_within_a_few_per_cent() -> None:
    prices = {TARGET: [1.4e-4, 1.0e-4] * 3, SKIP: [0.0] * 6}
    assert menus(prices, 1e-4) == skipping([1, 1] * 3)  # the paper's resolution loses the ratio
    fine = sum(menu[SKIP] for menu in menus(prices, 1e-4 / 8))
    assert fine * 1e-4 / 8 == pytest.approx(sum(prices[TARGET]), rel=0.03)


def test_a_menu_offers_only_variants_that_save_time() -> None:
    prices = {TARGET: [2.0, 4.0], LOW_BIT: [0.5, 4.5], WINDOW: [0.25, math.inf], SKIP: [0.0, 0.0]}
    assert menus(prices, 0.25) == [{TARGET: 0, LOW_BIT: 6, WINDOW: 7, SKIP: 8}, {TARGET: 0, SKIP: 16}]


def test_states_above_the_cosine_bound_have_the_same_argmax() -> None:
    """Lemma 4.1 of KnapSpec, for states of equal norm. At a cosine far below the bound, the argmax can differ."""
    generator = torch.Generator().manual_seed(0)
    agreed_below = 0
    for _ in range(300):
        words = torch.randn(12, 6, generator=generator, dtype=torch.float64)
        x = torch.randn(6, generator=generator, dtype=torch.float64)
        logits = words @ x
        top = int(logits.argmax())
        margin = float(logits[top] - logits[torch.arange(12) != top].max())
        spread = float((words[top] - words[torch.arange(12) != top]).norm(dim=1).max())
        bound = 1 - margin**2 / (2 * float(x.norm()) ** 2 * spread**2)
        aside = torch.randn(6, generator=generator, dtype=torch.float64)
        aside -= (aside @ x) / (x @ x) * x
        for cosine, above in ((bound + (1 - bound) * 1e-6, True), (0.2, False)):
            angle = torch.arccos(torch.tensor(cosine, dtype=torch.float64))
            other = torch.cos(angle) * x + torch.sin(angle) * aside / aside.norm() * x.norm()
            same = int((words @ other).argmax()) == top
            assert same or not above
            agreed_below += same and not above
    assert agreed_below < 300


@pytest.mark.parametrize("scores", [1 << 24, 1])
@torch.inference_mode()
def test_a_candidate_row_equals_a_draft_pass_of_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: int
) -> None:
    """The position and the sub-network are the same, and any number of heads is computed at once."""
    monkeypatch.setattr("engine.model.attention._SCORES", scores)
    tiny_model(tmp_path)
    model = load(torch.float64, model=tmp_path)
    tokens = torch.randint(0, 1024, (24,), generator=torch.Generator().manual_seed(2)).tolist()
    whole = model.attention.prepare([Segment(0, 0, 24)])
    states: list[Tensor] = []
    model.decoder.run(model.decoder.embed(tokens), whole, states)
    positions = [0, 5, 17, 23]
    variants = (1, 1, 0, 1, 1, 0, 1, 1)
    batch = model.attention.candidates(0, positions, 2)
    x = states[0][positions].repeat(2, 1)
    for i, variant in enumerate(variants):
        x = model.decoder.sublayer(i, x, batch) if variant else x
    assert torch.equal(x[:4], x[4:])
    both = model.decoder.sublayer(0, states[0][positions].repeat(2, 1), batch)
    some = model.decoder.sublayer(0, states[0][[5, 23]], batch.select((1, 7)))
    torch.testing.assert_close(some, both[[1, 7]])
    for row, position in enumerate(positions):
        if position:
            copy_context(model.attention.cache, 0, 1, position)
        one = model.attention.prepare([Segment(1, position, 1)])
        alone = model.decoder.run(model.decoder.embed([tokens[position]]), one, variants=variants)
        torch.testing.assert_close(alone[0], x[row])


@torch.inference_mode()
def test_candidates_come_close_to_brute_force_on_a_tiny_model(tmp_path: Path) -> None:
    """The table keeps one state per weight, which is not always the best."""
    tiny_model(tmp_path)
    model = load(torch.float64, model=tmp_path)
    tokens = torch.randint(0, 1024, (20,), generator=torch.Generator().manual_seed(4)).tolist()
    states: list[Tensor] = []
    model.decoder.run(model.decoder.embed(tokens), model.attention.prepare([Segment(0, 0, 20)]), states)
    rows = list(range(8, 20))
    references = torch.stack([x[rows] for x in states])

    def run(i: int, candidates: Tensor, variant: int = TARGET) -> Tensor:
        batch = model.attention.candidates(0, rows, candidates.shape[0])
        return model.decoder.sublayer(i, candidates.flatten(0, 1), batch).view_as(candidates)

    weights = [3, 2] * model.spec.layers
    found = {c.saved: c.cosine for c in solve(references, skipping(weights), run, capacity=sum(weights))}
    best: dict[int, float] = {}
    for variants in itertools.product((0, 1), repeat=len(weights)):
        x = references[:1]
        for i, variant in enumerate(variants):
            x = run(i, x) if variant else x
        skipped = sum(w for w, v in zip(weights, variants, strict=True) if not v)
        best[skipped] = max(best.get(skipped, -1.0), float(cosines(x, directions(references[-1]))[0]))
    regrets = [best[j] - found[j] for j in found]
    print(f"\nregret in cosine: mean {sum(regrets) / len(regrets):.4f}, worst {max(regrets):.4f}")
    assert min(regrets) > -1e-9, "nothing beats brute force"
    assert sum(regrets) / len(regrets) < 0.05
    random_choice = [best[j] - float(cosines(references[:1], directions(references[-1]))[0]) for j in found]
    assert sum(regrets) < 0.5 * sum(random_choice), "far better than skipping blindly"
