"""The distribution of the sampler, and what its draws depend on."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.kernels.library import kernel_library
from engine.sampling.sample import Sample, Sampler, gumbel, process
from engine.types import SamplingParams

LOGITS = torch.tensor([1.5, 0.3, -0.2, 0.9, -1.0, 0.31])
DRAWS = 40_000


def sample(*arguments: Any, **options: Any) -> Sample:
    return Sampler(kernel_library()).sample(*arguments, **options).wait()


def ours(logits: torch.Tensor, params: SamplingParams, draws: int) -> list[int]:
    """Independent draws: one per position."""
    return sample(logits.expand(draws, -1), [params] * draws, range(draws)).tokens


def expected(logits: torch.Tensor, params: SamplingParams) -> list[float]:
    """The processed distribution by enumeration: temperature, top-k, the fewest ids that hold top_p, min-p."""
    weights = {i: math.exp(float(x) / params.temperature) for i, x in enumerate(logits.tolist())}
    order = sorted(weights, key=lambda i: (-weights[i], i))
    if params.top_k > 0:
        order = order[: params.top_k]
    total = sum(weights[i] for i in order)
    kept, mass = [], 0.0
    for i in order:
        if mass >= params.top_p and params.top_p < 1:
            break
        kept.append(i)
        mass += weights[i] / total
    kept = [i for i in kept if weights[i] >= params.min_p * max(weights.values())]
    total = sum(weights[i] for i in kept)
    return [weights[i] / total if i in kept else 0.0 for i in range(len(logits))]


def chi_square(tokens: list[int], probabilities: list[float]) -> float:
    """Pearson's statistic; infinite if an excluded id was drawn."""
    counts = [tokens.count(i) for i in range(len(probabilities))]
    if any(c and not p for c, p in zip(counts, probabilities, strict=True)):
        return math.inf
    n = len(tokens)
    return sum((c - n * p) ** 2 / (n * p) for c, p in zip(counts, probabilities, strict=True) if p)


CRITICAL = 25.7  # χ² with 5 degrees of freedom, p ≈ 1e-4 (the draws are seeded: no flaking)

CASES = [
    SamplingParams(temperature=1.0, seed=1),
    SamplingParams(temperature=0.6, seed=2),
    SamplingParams(temperature=1.3, top_k=3, seed=3),
    SamplingParams(temperature=1.0, top_p=0.8, seed=4),
    SamplingParams(temperature=0.9, top_k=4, top_p=0.7, seed=5),
    SamplingParams(temperature=1.2, min_p=0.25, seed=6),
    SamplingParams(temperature=0.9, top_p=0.95, min_p=0.3, seed=7),
]


@pytest.mark.parametrize("params", CASES)
def test_draws_follow_the_enumerated_distribution(params: SamplingParams) -> None:
    assert chi_square(ours(LOGITS, params, DRAWS), expected(LOGITS, params)) < CRITICAL


def test_speculation_keeps_the_enumerated_distribution() -> None:
    """Two tokens are drafted by another distribution and verified: the pair has the target's distribution."""
    target = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))  # logits of the second token given the first
    first = torch.tensor([0.2, 1.0, -0.5, 0.4])
    draft = first + torch.tensor([0.5, -0.8, 0.3, 0.0])
    seen = dict.fromkeys(itertools.product(range(4), repeat=2), 0)
    n, agreed = 20_000, 0
    for seed in range(n):
        params = SamplingParams(temperature=1.0, seed=seed)
        guess = sample(draft[None], [params], [0]).tokens[0]
        said = sample(first[None], [params], [0]).tokens[0]  # the target speaks for itself, whatever was guessed
        agreed += guess == said
        seen[said, sample(target[said][None], [params], [1]).tokens[0]] += 1
    p1 = first.softmax(-1)
    law = {(a, b): float(p1[a] * target[a].softmax(-1)[b]) for a, b in seen}
    statistic = sum((seen[k] - n * law[k]) ** 2 / (n * law[k]) for k in law)
    assert statistic < 47  # χ² with 15 degrees of freedom, p ≈ 4e-5
    # Shared noise: P(accept) = Σ_x 1 / Σ_y max(p_y/p_x, q_y/q_x), far above that of independent draws, Σ p·q.
    p, q = p1.tolist(), draft.softmax(-1).tolist()
    shared = sum(1 / sum(max(p[y] / p[x], q[y] / q[x]) for y in range(4)) for x in range(4))
    assert abs(agreed / n - shared) < 0.02
    assert agreed / n > sum(a * b for a, b in zip(p, q, strict=True)) + 0.1


def test_noise_is_a_pure_function_of_seed_position_and_id() -> None:
    whole = gumbel([7, 7, 8], [3, 4, 3], torch.arange(1000))
    assert torch.equal(whole[1], gumbel([7], [4], torch.arange(1000))[0])
    assert torch.equal(whole[0, :10], gumbel([7], [3], torch.arange(10))[0])
    for a, b in itertools.combinations(range(3), 2):
        assert abs(float(torch.corrcoef(whole[[a, b]])[0, 1])) < 0.15
    big = gumbel([2**63 - 1], [10**6], torch.arange(200_000))[0].double()
    assert torch.isfinite(big).all()
    assert abs(float(big.mean()) - 0.5772) < 0.02  # Euler's constant
    assert abs(float(big.var()) - math.pi**2 / 6) < 0.03
    assert float(big.max()) > 9, "the upper tail is there"


@pytest.mark.parametrize("params", CASES)
def test_less_noise_draws_the_likeliest_token_more_often(params: SamplingParams) -> None:
    """Without noise a draw is the likeliest token; half of the noise equals half of the temperature, once truncated."""
    rows = 4000

    def drawn(noise: float, params: SamplingParams = params) -> list[int]:
        return sample(LOGITS.expand(rows, -1), [params] * rows, range(rows), noise=[noise] * rows).tokens

    assert set(drawn(0.0)) == {int(LOGITS.argmax())}
    assert drawn(1.0) == ours(LOGITS, params, rows)
    if not params.truncates:
        assert drawn(0.5) == drawn(1.0, replace(params, temperature=params.temperature / 2))
    allowed = {i for i, p in enumerate(expected(LOGITS, params)) if p}
    assert set(drawn(0.5)) <= allowed
    likeliest = int(LOGITS.argmax())
    assert drawn(0.5).count(likeliest) > drawn(1.0).count(likeliest)


def test_ties_go_to_the_lowest_id() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0, 2.0]])
    assert sample(logits, [SamplingParams(temperature=0.0)], [0]).tokens == [1]
    kept = process(logits.clone(), [SamplingParams(temperature=1.0, top_k=2)])[0]
    assert torch.isfinite(kept).nonzero().flatten().tolist() == [1, 2]


def test_rows_truncated_together_equal_rows_truncated_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    cuts = [
        *((0, 0.9, 0.0), (5, 1.0, 0.0), (5, 0.5, 0.0), (1, 1.0, 0.0), (0, 1e-9, 0.0), (-1, 0.999, 0.0)),
        *((1000, 0.3, 0.0), (0, 1.0, 0.1), (6, 0.9, 0.05), (0, 1.0, 1.0)),
    ]
    params = [SamplingParams(temperature=1.0, top_k=k, top_p=p, min_p=m) for k, p, m in cuts]
    scores = torch.randn(len(cuts), 40, dtype=torch.float64, generator=generator).mul_(3)
    scores[:, 7] = scores[:, 3]  # a tie: the lower id comes first
    together = process(scores, params)
    for row, one in enumerate(params):
        torch.testing.assert_close(together[row], process(scores[row : row + 1], [one])[0], rtol=0, atol=0)
