"""What a request is expected to do, by what requests with prompts like its own did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from engine.draft.alike import REQUESTS, Alike, Memory
from engine.draft.tpt import CELLS, AcceptanceCounts
from engine.types import SamplingParams

HALF, THIRD = (1, 1, 0, 0), (1, 0, 0, 0)
GREEDY = SamplingParams(temperature=0.0)
AGREED, REJECTED = CELLS - 1, 0
TEMPLATE = range(5000, 5020)  # tokens of every prompt
HARD, EASY, NEW = range(0, 80), range(1000, 1080), range(3000, 3080)


def prompt(kind: Sequence[int], random: Random) -> list[int]:
    return [*TEMPLATE, *random.sample(kind, 60)]


def seen(agreed: int, rejected: int) -> AcceptanceCounts:
    counts = AcceptanceCounts()
    counts.add([0.95] * (agreed + rejected), [True] * agreed + [False] * rejected)
    return counts


def memory_of(random: Random, plans: Sequence[tuple[int, ...]], each: int = 30) -> Memory:
    """Half of its requests are of a kind whose drafts agree; the others' do not. By turns with these plans."""
    memory = Memory()
    memory.keep(plans)
    for i in range(2 * each):
        kin = memory.begin(prompt(EASY if i % 2 else HARD, random), GREEDY)
        memory.saw(kin, plans[i // 2 % len(plans)], [AGREED if i % 2 else REJECTED] * 10)
    return memory


def expected(memory: Memory, kind: Sequence[int], known: Mapping[tuple[int, ...], AcceptanceCounts]) -> Alike:
    return memory.like(memory.begin(prompt(kind, Random(1)), GREEDY), known)


def test_requests_are_expected_to_do_as_those_like_them() -> None:
    known = {HALF: seen(120, 120)}
    memory = memory_of(Random(0), [HALF])
    easy, hard, new = (expected(memory, kind, known).agreement[HALF] for kind in (EASY, HARD, NEW))
    assert easy > 0.75
    assert hard < 0.25
    assert new == pytest.approx(0.5, abs=0.12), "nobody is like it: as all"


def test_what_one_plan_shows_of_a_kind_holds_for_others() -> None:
    """Texts are hard or easy for all plans alike."""
    known = {HALF: seen(120, 120), THIRD: seen(120, 120)}
    memory = memory_of(Random(0), [HALF])
    memory.keep([HALF, THIRD])
    assert expected(memory, EASY, known).agreement[THIRD] > 0.7
    assert expected(memory, HARD, known).agreement[THIRD] < 0.3


def test_what_drafting_brought_those_like_it_is_known() -> None:
    """By decisions of all and by their own, apart; a long answer counts for no more than a short one or two."""
    memory, random = Memory(), Random(0)
    memory.keep([HALF])
    for i in range(60):
        kin = memory.begin(prompt(EASY if i % 2 else HARD, random), GREEDY)
        memory.saw(kin, HALF, [AGREED if i % 2 else REJECTED] * 10)
        for _ in range(1000 if i == 1 else 5):
            memory.told(kin, False, 2.0, 4.0 if i % 2 else 1.0)
        memory.told(kin, True, 2.0, 6.0)
    easy, hard = (memory.likely(memory.begin(prompt(kind, Random(1)), GREEDY), HALF) for kind in (EASY, HARD))
    assert easy
    assert hard
    gains = [likely.brought[2 * own + 1] / likely.brought[2 * own] for own in (0, 1) for likely in (easy, hard)]
    assert gains == pytest.approx([2.0, 0.5, 3.0, 3.0], rel=0.2)
    assert easy.brought[1] < 30 * 48.0
    assert easy.cells[AGREED] > 10 * easy.cells[REJECTED]
    assert memory.likely(kin, THIRD) is None, "nobody knows it"


def test_the_same_words_sampled_otherwise_are_less_alike() -> None:
    memory = Memory()
    memory.keep([HALF])
    random = Random(0)
    for i in range(40):
        sampling = GREEDY if i % 2 else SamplingParams(temperature=0.7)
        memory.saw(memory.begin(prompt(EASY, random), sampling), HALF, [AGREED if i % 2 else REJECTED] * 10)
    greedy, warm = (
        memory.like(memory.begin(prompt(EASY, random), sampling), {HALF: seen(100, 100)}).agreement[HALF]
        for sampling in (GREEDY, SamplingParams(temperature=0.7))
    )
    assert greedy > warm + 0.1


def test_the_oldest_are_forgotten() -> None:
    random = Random(0)
    memory = memory_of(random, [HALF])
    first = memory.begin(prompt(EASY, random), GREEDY)
    for _ in range(REQUESTS):
        memory.saw(memory.begin(prompt(HARD, random), GREEDY), HALF, [REJECTED] * 10)
    assert first.slot == -1
    memory.saw(first, HALF, [AGREED] * 10)  # goes nowhere
    assert expected(memory, EASY, {HALF: seen(10, 110)}).agreement[HALF] < 0.3
    assert memory.tested.max() == 10


def test_plans_that_are_gone_are_forgotten() -> None:
    memory = memory_of(Random(0), [HALF, THIRD])
    version = memory.version
    memory.keep([THIRD])
    assert memory.version > version
    assert set(memory.columns) == {THIRD}
    assert memory.tested.sum() == 300, "what was seen of the other plan"
    memory.keep([THIRD, HALF])
    assert memory.tested.sum() == 300
    assert list(expected(memory, EASY, {HALF: seen(50, 50), THIRD: seen(50, 50)}).agreement) == [HALF, THIRD]


def test_long_prompts_are_known_by_their_ends() -> None:
    memory = Memory()
    memory.keep([HALF])
    for kind, cell in ((EASY, AGREED), (HARD, REJECTED)):
        for i in range(10):
            middle = [100_000 + i * 5000 + j for j in range(4000)]
            memory.saw(memory.begin([*kind, *middle, *prompt(kind, Random(i))], GREEDY), HALF, [cell] * 10)
    kin = memory.begin([*EASY, *range(200_000, 204_000), *prompt(EASY, Random(99))], GREEDY)
    assert memory.like(kin, {HALF: seen(50, 50)}).agreement[HALF] > 0.6
