"""Decisions in C++ are those of the array operations that define them."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_double
from random import Random

import pytest

from engine.draft.alike import REQUESTS, Alike, Likely, Memory
from engine.draft.objective import BROUGHT, Prices, Promised, Question, choose, corrected, promises
from engine.draft.tpt import CELLS, THRESHOLDS, AcceptanceCounts
from engine.native.choice import NativeChooser, NativeMemory
from engine.native.library import Library, library
from engine.types import SamplingParams

Plans = dict[tuple[int, ...], AcceptanceCounts]


@pytest.fixture(scope="module")
def native() -> Library:
    found = library()
    assert found is not None
    return found


def some_counts(random: Random, tokens: int) -> AcceptanceCounts:
    counts = AcceptanceCounts()
    counts.add_cells(random.choices(range(CELLS), weights=[1] * (CELLS - 1) + [6], k=tokens))
    return counts


def some_plans(random: Random) -> Plans:
    return {(i, *random.choices((0, 1), k=9)): some_counts(random, random.choice([0, 3, 40, 200])) for i in range(8)}


def fill(memory: Memory, plans: Plans, random: Random, requests: int, asking: int) -> Iterator[Alike]:
    """What is to be expected of the last requests of a history that the seed tells."""
    memory.keep(plans)
    kin = []
    for _ in range(requests):
        kind = 1000 * random.randrange(4)
        prompt = [kind + random.randrange(200) for _ in range(random.choice([5, 50, 700]))]
        kin.append(memory.begin(prompt, SamplingParams(temperature=random.choice([0.0, 0.7]))))
        for _ in range(random.randrange(5)):
            memory.saw(kin[-1], random.choice(list(plans)), random.choices(range(CELLS), k=3))
            memory.told(kin[-1], False, 2.0, random.choice([1.0, 4.0]))
    return (memory.like(each, plans) for each in kin[-asking:])


@pytest.mark.parametrize("seed", range(40))
def test_decisions_are_the_same(native: Library, seed: int) -> None:
    random = Random(seed)
    plans, requests = some_plans(random), random.choice([1, 1, 2, 4, 16])
    history = random.choice([1, 20, 200])
    told = [list(fill(memory, plans, Random(seed), history, requests)) for memory in (Memory(), NativeMemory(native))]
    for ours, theirs in zip(*told, strict=True):
        assert list(theirs.found) == pytest.approx(ours.found, rel=1e-5, abs=1e-9)
        assert theirs.agreement == pytest.approx(ours.agreement, rel=1e-5)
    gamma = random.choice([1, 4, 10])
    most = requests * (1 + gamma)
    rows = sorted({*(n for n in (1, 2, 4, 8, 16) if n < most), most})
    prices = Prices(
        requests,
        gamma,
        [random.uniform(1e-4, 4e-4) for _ in plans],
        rows,
        [4e-4 + 1e-5 * n + 1e-5 * max(n - 4, 0) for n in rows],
        5e-5,
        3e-6,
    )
    own = [some_counts(random, 20).cells if requests == 1 and random.random() < 0.3 else None for _ in plans]
    facts = (random.uniform(0.5, 1.0), [random.uniform(0.7, 1.1) for _ in plans], prices, requests == 1)
    known = [counts.cells for counts in plans.values()]
    asked = [Question(known, own, [alike.found for alike in each] if seed % 3 else [], *facts) for each in told]
    for ours, theirs in zip(choose(asked[0]), NativeChooser(native)(asked[1]), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert ours[:3] == theirs[:3]
            assert ours[3:] == pytest.approx(theirs[3:], rel=1e-5)


def test_what_was_asked_before_does_not_matter(native: Library) -> None:
    """Fewer and more plans, widths, requests, and some of whom nothing is known: a chooser keeps what it writes to."""
    random, asked = Random(5), []
    for plans, rows, requests in ((8, 5, 1), (3, 90, 1), (8, 2, 20), (1, 200, 1), (11, 6, 1)):
        known = [some_counts(random, 60).cells for _ in range(plans)]
        knots = [1 + i * (11 * requests - 1) / (rows - 1) for i in range(rows)]
        draft = [random.uniform(1e-4, 4e-4) for _ in known]
        prices = Prices(requests, 10, draft, knots, [4e-4 + 1e-5 * n for n in knots], 5e-5, 3e-6)
        own = [some_counts(random, 30).cells if requests == 1 and i % 2 else None for i in range(plans)]
        alike = [[random.uniform(0.5, 1.5) for _ in range((1 + plans) * CELLS)] for _ in range(requests)]
        found = [(c_double * len(each))(*each) for each in alike]
        facts = (0.9, [random.uniform(0.7, 1.1) for _ in known], prices, requests == 1)
        asked.append((Question(known, own, alike, *facts), Question(known, own, found, *facts)))
    chooser = NativeChooser(native)
    for ours, theirs in [*asked, *asked[::-1]]:
        assert chooser(theirs)[0] == pytest.approx(choose(ours)[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_what_requests_alike_saw_is_the_same(native: Library, seed: int) -> None:
    found: list[list[Likely | None]] = []
    for memory in (Memory(), NativeMemory(native)):
        random = Random(seed)
        plans = some_plans(random)
        list(fill(memory, plans, random, 60, 1))
        kin = [memory.begin([1000 * random.randrange(4) + i for i in range(50)], SamplingParams()) for _ in range(3)]
        found.append([memory.likely(each, variants) for each in kin for variants in plans])
    for ours, theirs in zip(*found, strict=True):
        assert ours is not None
        assert theirs is not None
        assert theirs.brought == pytest.approx(ours.brought, rel=1e-5)
        assert theirs.cells == pytest.approx(ours.cells, rel=1e-5, abs=1e-9)
    assert any(each and sum(each.cells) > 1 and each.brought[0] > 1 for each in found[0])


@pytest.mark.parametrize("seed", range(20))
def test_what_a_request_is_promised_is_the_same(native: Library, seed: int) -> None:
    random = Random(seed)
    chooser, facts = NativeChooser(native), []
    for _ in range(5):
        likely = [random.choice([0.0, 40 * random.random()]) for _ in range(BROUGHT)] + some_counts(random, 30).cells
        known, own = some_counts(random, random.choice([0, 3, 200])).cells, some_counts(random, 20).cells
        places = random.uniform(0.8, 3.0), random.randrange(len(THRESHOLDS)), random.choice([1, 4, 10])
        brought = random.choice([(0.0, 0.0), (30 * random.random(), 40 * random.random())])
        facts.append(Promised(*places, known, random.choice([own, None]), random.random() < 0.5, likely, brought))
    for promised in facts:
        found = chooser.corrected(promised._replace(likely=(c_double * len(promised.likely))(*promised.likely)))
        assert found == pytest.approx(corrected(promised), rel=1e-9)


@pytest.mark.parametrize("plans", [1, 8, 40])
def test_promises_are_the_same(native: Library, plans: int) -> None:
    random = Random(plans)
    known = [some_counts(random, random.choice([0, 3, 40, 200])).cells for _ in range(plans)]
    draft = [random.uniform(1e-4, 3e-4) for _ in known]
    prices = Prices(1, 9, draft, [1, 2, 4, 10], [4e-4, 4.1e-4, 4.2e-4, 6e-4], 5e-5, 3e-6)
    assert NativeChooser(native).promises(known, prices) == pytest.approx(promises(known, prices), rel=1e-9)


def test_some_of_these_find_a_plan_that_may_be_better(native: Library) -> None:
    """Else the test above would compare nothing with nothing."""
    random = Random(0)
    found = []
    for _ in range(30):
        plans = [some_counts(random, random.choice([2, 200])).cells for _ in range(4)]
        draft = [random.uniform(1e-4, 2e-4) for _ in plans]
        prices = Prices(1, 6, draft, [1, 7], [4e-4, 6e-4], 5e-5, 3e-6)
        asked = Question(plans, [None] * 4, [], 1.0, [1.0] * 4, prices, hope=True)
        assert (choose(asked)[1] is None) == (NativeChooser(native)(asked)[1] is None)
        found.append(choose(asked)[1] is not None)
    assert 0 < sum(found) < 30


@pytest.mark.parametrize("kind", ["array", "native"])
def test_who_never_drafts_does_not_displace_who_did(native: Library, kind: str) -> None:
    memory = Memory() if kind == "array" else NativeMemory(native)
    plans = some_plans(Random(1))
    memory.keep(plans)
    variants = next(iter(plans))
    drafting = [memory.begin([i, i + 1], SamplingParams()) for i in range(REQUESTS)]
    for kin in drafting:
        memory.saw(kin, variants, [0])
    running = [memory.begin([i], SamplingParams()) for i in range(1000)]
    left = [kin for kin in drafting if kin.slot >= 0]
    assert left == drafting[-len(left) :], "the oldest are forgotten"
    assert 0.7 * REQUESTS < len(left) < REQUESTS
    assert all(kin.slot >= 0 for kin in running[-16:]), "who is running is remembered"
    for i in range(REQUESTS):
        drafting.append(memory.begin([i, i + 1], SamplingParams()))
        memory.saw(drafting[-1], variants, [0])
    assert sum(kin.slot >= 0 for kin in drafting) == REQUESTS
    assert all(kin.slot >= 0 for kin in drafting[-REQUESTS:])
