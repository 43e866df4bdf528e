"""The dynamic program: equal to its naive loop, optimal where it can be, and close on real models."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engine.draft.knapsack import Candidate, Knapsack, cosines, directions, reaching, solve, ticks
from engine.model.attention import Segment
from tests.support.cores import load, tiny_model
from tests.support.examples import examples

Transition = Callable[[int, Tensor], Tensor]


def naive(
    references: Tensor, weights: list[int], run: Transition, capacity: int, tau: float, protected: frozenset[int]
) -> list[Candidate]:
    """The same recurrence, one state at a time, carrying the choice forward instead of back-pointers."""
    table: dict[int, tuple[Tensor, tuple[int, ...], float]] = {0: (references[0], (), 1.0)}
    for i, weight in enumerate(weights):
        nxt: dict[int, tuple[Tensor, tuple[int, ...], float]] = {}
        last = i + 1 == len(weights)
        for j, (state, chosen, _) in table.items():
            ran = run(i, state[None])[0]
            score = float(cosines(ran[None], directions(references[i + 1]))[0])
            if score >= tau or (j == 0 and last):
                nxt[j] = (ran, (*chosen, 1), score)
        if i not in protected:
            for j, (state, chosen, _) in table.items():
                score = float(cosines(state[None], directions(references[i + 1]))[0])
                if score >= tau and j + weight <= capacity and (j + weight not in nxt or score > nxt[j + weight][2]):
                    nxt[j + weight] = (state, (*chosen, 0), score)
        table = nxt
    return [Candidate(table[j][1], j, table[j][2], table[j][0]) for j in sorted(table)]


def toy(sublayers: int, seed: int, rows: int = 3, hidden: int = 8) -> tuple[Tensor, Transition]:
    """Nonlinear residual sublayers, row by row, and the full model's states."""
    generator = torch.Generator().manual_seed(seed)
    matrices = torch.randn(sublayers, hidden, hidden, generator=generator, dtype=torch.float64) * 0.4

    def run(i: int, states: Tensor) -> Tensor:
        return states + torch.tanh(states @ matrices[i])

    states = [torch.randn(rows, hidden, generator=generator, dtype=torch.float64)]
    for i in range(sublayers):
        states.append(run(i, states[-1][None])[0])
    return torch.stack(states), run


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    weights=st.lists(st.integers(0, 5), min_size=1, max_size=9),
    tau=st.sampled_from([-1.0, 0.5, 0.9]),
    share=st.sampled_from([0.3, 0.5, 1.0]),
    data=st.data(),
)
def test_batched_equals_the_naive_loop(
    seed: int, weights: list[int], tau: float, share: float, data: st.DataObject
) -> None:
    references, run = toy(len(weights), seed)
    protected = frozenset(data.draw(st.sets(st.integers(0, len(weights) - 1), max_size=3)))
    capacity = int(share * sum(weights))
    got = solve(references, weights, run, capacity=capacity, tau=tau, protected=protected)
    want = naive(references, weights, run, capacity, tau, protected)
    assert [(c.variants, c.skipped) for c in got] == [(c.variants, c.skipped) for c in want]
    for a, b in zip(got, want, strict=True):
        assert a.cosine == pytest.approx(b.cosine)
        torch.testing.assert_close(a.state, b.state)
    for c in got:
        assert c.skipped == sum(w for w, v in zip(weights, c.variants, strict=True) if not v) <= capacity
        assert all(c.variants[i] for i in protected)


@examples(40)
@given(values=st.lists(st.tuples(st.integers(1, 6), st.floats(0.05, 1.0)), min_size=2, max_size=8))
def test_optimal_on_additive_sublayers(values: list[tuple[int, float]]) -> None:
    """Where likeness depends on what was skipped by a sum, one state per weight loses nothing: brute force agrees.

    Sublayer i adds gain_i along one axis beside a large constant, so the cosine falls strictly with the gain skipped.
    """
    weights = [w for w, _ in values]
    gains = torch.tensor([g for _, g in values], dtype=torch.float64)

    def run(i: int, states: Tensor) -> Tensor:
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
    for c in solve(references, weights, run, capacity=sum(weights)):
        kept = float(gains[torch.tensor(c.variants, dtype=torch.bool)].sum())
        assert kept == pytest.approx(best[c.skipped])


def test_running_everything_is_always_a_candidate_with_cosine_one() -> None:
    references, run = toy(8, 3)
    full = solve(references, [1] * 8, run, capacity=8, tau=0.99)[0]
    assert full.variants == (1,) * 8
    assert full.cosine == pytest.approx(1.0)


def test_beam_bounds_the_states_and_keeps_every_range() -> None:
    references, run = toy(12, 5)
    seen: list[int] = []

    def counting(i: int, states: Tensor) -> Tensor:
        seen.append(states.shape[0])
        return run(i, states)

    weights = [7, 5] * 6
    pruned = solve(references, weights, counting, capacity=sum(weights), beam=6)
    assert max(seen) == 6
    exact = {c.skipped: c.cosine for c in solve(references, weights, run, capacity=sum(weights))}
    assert len(exact) > 6
    assert all(c.skipped in exact for c in pruned)
    assert len(pruned) == 6


def test_a_beam_loses_little_where_much_is_skipped() -> None:
    """What is best by cosine alone skips least, so a beam that goes by that ends with plans far worse than need be."""

    class ByCosine(Knapsack):
        def _prune(self, best: dict[int, tuple[float, bool, int]]) -> list[int]:
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
        table = kind(references, weights, capacity=int(0.8 * sum(weights)), beam=beam)
        while not table.done:
            table.advance(reaching(run))
        return max((c.cosine for c in table.candidates() if c.skipped >= 0.5 * sum(weights)), default=0.0)

    whole, ours, naive_beam = (
        sum(best(kind, seed, beam) for seed in range(8)) / 8
        for kind, beam in ((Knapsack, 0), (Knapsack, 8), (ByCosine, 8))
    )
    print(f"\nmean cosine: all {whole:.3f}, ours {ours:.3f}, by cosine {naive_beam:.3f}")
    assert whole - ours < 0.5 * (whole - naive_beam)


def test_a_table_may_end_empty() -> None:
    """Where the one state that a beam keeps comes to be too far from the model."""
    references, run = toy(12, 5)
    table = Knapsack(references, [2, 3] * 6, capacity=30, tau=0.8, beam=2)
    while not table.done:
        table.advance(reaching(run))
    assert table.candidates() == []


def test_a_search_may_be_spread_over_time() -> None:
    references, run = toy(6, 9)
    table = Knapsack(references, [2, 3] * 3, capacity=15)
    steps = 0
    while not table.done:
        table.advance(reaching(run))
        steps += 1
    assert steps == 6
    at_once = solve(references, [2, 3] * 3, run, capacity=15)
    assert [c.variants for c in table.candidates()] == [c.variants for c in at_once]


def test_ticks_round_and_stay_within_a_few_per_cent() -> None:
    seconds = [1.4e-4, 1.0e-4] * 3
    assert ticks(seconds, 1e-4) == (1, 1) * 3  # the paper's resolution loses the ratio
    fine = ticks(seconds, 1e-4 / 8)
    assert sum(fine) * 1e-4 / 8 == pytest.approx(sum(seconds), rel=0.03)


def test_lemma_4_1() -> None:
    """Equal norms and a cosine above the bound give the same argmax; just below it, it can differ."""
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
def test_candidates_see_what_the_first_drafted_token_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: int
) -> None:
    """A candidate row's state equals that of a draft pass of the same sub-network at the same position, however many
    heads are looked at together."""
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
    for row, position in enumerate(positions):
        if position:
            model.attention.cache.copy(0, 1, position)
        one = model.attention.prepare([Segment(1, position, 1)])
        alone = model.decoder.run_plan(model.decoder.embed([tokens[position]]), one, variants)
        torch.testing.assert_close(alone[0], x[row])


@torch.inference_mode()
def test_regret_against_brute_force_on_a_tiny_model(tmp_path: Path) -> None:
    """The table keeps one state per weight, which is not always the best one; on a real model it comes close."""
    tiny_model(tmp_path)
    model = load(torch.float64, model=tmp_path)
    tokens = torch.randint(0, 1024, (20,), generator=torch.Generator().manual_seed(4)).tolist()
    states: list[Tensor] = []
    model.decoder.run(model.decoder.embed(tokens), model.attention.prepare([Segment(0, 0, 20)]), states)
    rows = list(range(8, 20))
    references = torch.stack([x[rows] for x in states])

    def run(i: int, candidates: Tensor) -> Tensor:
        batch = model.attention.candidates(0, rows, candidates.shape[0])
        return model.decoder.sublayer(i, candidates.flatten(0, 1), batch).view_as(candidates)

    weights = [3, 2] * model.spec.layers
    found = {c.skipped: c.cosine for c in solve(references, weights, run, capacity=sum(weights))}
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
