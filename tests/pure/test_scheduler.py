"""Any interleaving of arrivals, cancellations and rounds, in any memory, gives the tokens of plain decoding."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.turns import CompilingTurns, share_rows
from engine.kv.pages import PageManager
from engine.types import FinishReason, GenerateRequest, Owner, SamplingParams
from tests.support.examples import examples
from tests.support.simulation import Setting, World

SETTINGS = st.builds(
    Setting,
    block_size=st.integers(1, 4),
    blocks_per_slab=st.integers(4, 8),
    slabs=st.integers(1, 6),
    spare=st.integers(0, 8),
    max_num_seqs=st.integers(1, 6),
    max_rows=st.integers(1, 14),
    max_shared=st.sampled_from([None, 1, 2, 5]),
    gamma=st.integers(0, 6),
    skill=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    stopped_clock=st.booleans(),  # choices of one request arrive together: time does not tell the youngest
    apart=st.booleans(),
    owners=st.sampled_from([1, 1, 2, 3]),
)
PROMPTS = st.lists(st.integers(1, 2), min_size=1, max_size=12)
SAMPLING = st.builds(
    SamplingParams,
    max_tokens=st.sampled_from([None, None, 1, 5, 9, 16]),
    seed=st.integers(0, 3),
    stop=st.sampled_from([(), (), ("a",), ("bc",), ("aab", "ccb")]),
    ignore_eos=st.sampled_from([True, True, False]),
    prompt_logprobs=st.sampled_from([False, False, True]),
)
ACTIONS = st.one_of(
    st.tuples(st.just("add"), PROMPTS, SAMPLING),
    st.tuples(st.just("add"), PROMPTS, SAMPLING),
    st.tuples(st.just("step"), st.integers(1, 4)),
    st.tuples(st.just("cancel"), st.integers(0, 9)),
    st.tuples(st.just("admit")),
)


def play(world: World, actions: list[tuple[object, ...]]) -> None:
    for name, *arguments in actions:
        match name, arguments:
            case "add", [list(prompt), SamplingParams() as sampling]:
                world.add(prompt, sampling)
            case "step", [int(rounds)]:
                for _ in range(rounds):
                    world.step()
            case "admit", []:
                world.admit()
            case "cancel", [int(which)]:
                world.cancel(f"r{which}")
    world.drain()


@examples(240)
@given(SETTINGS, st.integers(0, 99), st.lists(ACTIONS, min_size=6, max_size=30))
def test_any_interleaving_gives_the_tokens_of_plain_decoding(
    setting: Setting, seed: int, actions: list[tuple[object, ...]]
) -> None:
    play(World(setting, seed), actions)


@examples(60)
@given(SETTINGS, st.integers(0, 99), st.lists(ACTIONS, min_size=60, max_size=60))
def test_long_runs_give_the_tokens_of_plain_decoding(
    setting: Setting, seed: int, actions: list[tuple[object, ...]]
) -> None:
    play(World(setting, seed), actions)


@examples(200)
@given(SETTINGS, st.integers(0, 99), st.lists(st.tuples(PROMPTS, SAMPLING), min_size=3, max_size=6))
def test_requests_that_wait_from_the_start_finish_and_drafting_preempts_none(
    setting: Setting, seed: int, asked: list[tuple[list[int], SamplingParams]]
) -> None:
    world = World(setting, seed)
    for prompt, sampling in asked:
        world.add(prompt, sampling)
    world.drain()
    assert world.needless_preemptions == 0


def test_a_draft_takes_no_room_that_the_next_request_needs() -> None:
    """Two requests of two tokens in four blocks of one: both can go on, so the first must not draft."""
    world = World(Setting(block_size=1, blocks_per_slab=4, slabs=2, spare=0, max_rows=9, gamma=1, always_draft=True))
    for prompt in ([1], [2]):
        world.add(prompt, SamplingParams(ignore_eos=True))
    world.step()
    assert [(len(w.tokens), w.gamma) for w in world.step().work] == [(1, 0), (1, 0)]


def test_a_rejected_draft_takes_no_room_from_the_next_request() -> None:
    """The room was taken a round before the second request arrived."""
    world = World(
        Setting(block_size=1, blocks_per_slab=6, slabs=2, spare=0, max_rows=9, gamma=3, always_draft=True, skill=0.0)
    )
    first = world.add([1], SamplingParams(ignore_eos=True))
    for _ in range(2):
        world.step()  # five blocks held, two of them for tokens
    assert len(first.request.tokens) == 3
    second = world.add([2, 2], SamplingParams(ignore_eos=True))
    world.step()
    assert second.request in world.scheduler.running


LONG = SamplingParams(ignore_eos=True)


@pytest.mark.parametrize("gamma", [0, 3])
def test_preemptions_change_no_token_and_spare_the_oldest(gamma: int) -> None:
    """Each of four requests wants all of the memory."""
    world = World(Setting(block_size=2, blocks_per_slab=8, slabs=4, spare=2, max_num_seqs=4, gamma=gamma, skill=1.0))
    for seed in range(4):
        world.add([1, 2, seed % 3 + 1], SamplingParams(ignore_eos=True, seed=seed))
    world.drain()
    assert world.scheduler.preemptions > 0
    assert "r0" not in world.policy.suspended
    assert {e.request.finish_reason for e in world.requests.values()} == {FinishReason.LENGTH}


def test_a_common_prefix_of_several_chunks_is_read_once() -> None:
    """Requests wait for the whole common prefix, and no longer."""
    world = World(Setting(block_size=2, blocks_per_slab=6, slabs=4, spare=18, max_num_seqs=4, max_rows=4))
    prompt = [1, 2, 2, 1, 1, 2, 1, 1, 2]
    prompts = [prompt, prompt, [*prompt[:4], 2, 2, 2]]
    for tokens in prompts:
        world.add(tokens, SamplingParams(max_tokens=1))
    running, deferred = [], []
    while not world.scheduler.idle:
        world.step()
        running.append([r.id for r in world.scheduler.running])
        deferred.append(world.scheduler.deferred)
    assert deferred[:4] == [2, 1, 1, 0], "both wait, then the second alone, until all of its prefix is read"
    assert [e.request.cached_tokens for e in world.requests.values()] == [0, 8, 4]
    first = {name: next(i for i, ids in enumerate(running) if name in ids) for name in ("r0", "r2")}
    assert first == {"r0": 0, "r2": 1}, "the third request's common prefix is read in the first round"


def test_a_held_request_does_not_hold_up_others() -> None:
    world = World(Setting(block_size=3, blocks_per_slab=4, spare=12, max_rows=2, max_num_seqs=2))
    for prompt in ([1, 1, 1, 1, 1], [1, 1, 1, 2], [2, 1]):
        world.add(prompt)
    world.step()
    assert [r.id for r in world.scheduler.running] == ["r0", "r2"]
    world.drain()


@pytest.mark.parametrize("ready", [0, 3])
def test_cancelling_frees_the_slab_for_the_same_round(ready: int) -> None:
    world = World(Setting(slabs=1, spare=0))
    first, second = world.add([1, 2], LONG), world.add([2, 1], LONG)
    for _ in range(ready):
        world.step()
    world.cancel(first.request.id)
    world.step()
    assert [r.id for r in world.scheduler.running] == [second.request.id]
    world.drain()
    assert first.request.finish_reason is FinishReason.CANCELLED


def test_drafts_leave_half_of_the_rows_to_prompts() -> None:
    world = World(
        Setting(block_size=1, blocks_per_slab=40, spare=80, max_rows=8, gamma=8, max_num_seqs=2, always_draft=True)
    )
    world.add([1], LONG)
    world.step()
    world.add([2] * 30, LONG)
    first = world.step().work
    assert sorted((len(w.tokens), w.gamma) for w in first) == [(1, 3), (4, 0)]
    world.drain()


def test_a_draft_may_take_every_row_that_no_prompt_needs() -> None:
    world = World(Setting(block_size=1, blocks_per_slab=40, spare=0, max_rows=8, gamma=9, always_draft=True))
    world.add([1], LONG)
    world.step()
    assert [w.gamma for w in world.step().work] == [7]


def test_prompts_are_read_in_smaller_pieces_at_longer_contexts() -> None:
    """Two prompts share the rows of a round: neither gets all of them."""

    def world() -> World:
        setting = Setting(block_size=4, blocks_per_slab=16, slabs=4, spare=64, max_rows=32, gamma=0)
        return World(setting, prompt_rows=lambda context, shared: 16 if context < 20 else 4)

    alone, both = world(), world()
    alone.add([1] * 40)
    assert [len(w.tokens) for _ in range(4) for w in alone.step().work] == [16, 16, 4, 4]
    both.add([1] * 10)
    both.add([2] * 40)
    assert sorted(len(w.tokens) for w in both.step().work) == [6, 10]


def test_prompts_beside_decoding_are_read_in_small_chunks_and_alone_in_large_ones() -> None:
    world = World(Setting(block_size=4, blocks_per_slab=16, slabs=4, spare=64, max_rows=32, max_shared=3, gamma=0))
    first = world.add([1] * 40)
    assert [len(w.tokens) for w in world.step().work] == [32]
    assert [len(w.tokens) for w in world.step().work] == [8]
    world.add([2] * 7)
    sizes = [sorted(len(w.tokens) for w in world.step().work) for _ in range(3)]
    assert first.request.decoding
    assert sizes == [[1, 3], [1, 3], [1, 1]]


def busy(choices: int, max_num_seqs: int = 8) -> World:
    """A world in which the choices of one request run, or wait to."""
    setting = Setting(block_size=4, blocks_per_slab=8, slabs=16, spare=99, max_num_seqs=max_num_seqs, max_rows=64)
    world = World(setting)
    for index in range(choices):
        world.add([index % 2 + 1, 1], LONG, Owner("", "many"))
    world.step()
    world.step()
    return world


def running_of(world: World, owner: Owner) -> int:
    return sum(r.owner == owner for r in world.scheduler.running)


def test_a_request_with_many_choices_makes_way_for_others() -> None:
    world = busy(40)
    assert running_of(world, Owner("", "many")) == 8
    single = world.add([2, 2], LONG, Owner("", "one"))
    world.step()
    assert single.request in world.scheduler.running
    assert running_of(world, Owner("", "many")) == 7
    for index in range(20):
        world.add([2, 2], LONG, Owner("", str(index)))
    world.step()
    assert running_of(world, Owner("", "many")) == 1, "it keeps one"
    world.drain()


def test_keys_get_equal_shares_however_many_requests_they_have() -> None:
    world = busy(0)
    for index in range(30):
        world.add([1, 1], LONG, Owner("a", str(index)))
    world.step()
    for index in range(4):
        world.add([2, 2], LONG, Owner("b", str(index)))
    for _ in range(3):
        world.step()
    counts = Counter(r.owner.key for r in world.scheduler.running)
    assert counts == {"a": 4, "b": 4}
    preemptions = world.scheduler.preemptions
    assert preemptions == 4
    world.step()
    assert world.scheduler.preemptions == preemptions, "nobody makes way in turns"
    world.drain()


def test_a_request_of_higher_priority_takes_the_place_of_the_lowest() -> None:
    world = busy(8)
    world.scheduler.running[5].priority = 3
    low = world.scheduler.running[5]
    urgent = world.add([2, 2], LONG, Owner("", "other"))
    world.step()
    assert urgent.request in world.scheduler.running
    assert low in world.scheduler.waiting
    world.drain()


def test_others_overtake_a_request_without_memory_and_make_way_for_it() -> None:
    """Two long requests do not fit at once. Short ones go on meanwhile, and cannot keep the second out."""
    world = World(Setting(block_size=1, blocks_per_slab=12, slabs=8, spare=2, max_num_seqs=6, max_rows=40, gamma=0))
    sampling = SamplingParams(4, ignore_eos=True)
    first, second = (world.add([1 + i] * 8, sampling, Owner("", "ab"[i])) for i in range(2))
    world.step()
    assert world.scheduler.running == [first.request]
    endless = [world.add([2], LONG, Owner("", f"short {i}")) for i in range(2)]
    world.step()
    assert [each.request for each in endless] == world.scheduler.running[1:]
    while first.request in world.scheduler.running:
        world.step()
    for _ in range(2):
        world.step()
    assert second.request in world.scheduler.running
    world.drain()


def test_a_long_prompt_leaves_half_of_each_round_to_shorter_ones() -> None:
    setting = Setting(block_size=4, blocks_per_slab=64, slabs=4, spare=64, max_rows=32, gamma=0)
    world = World(setting, prompt_rows=lambda context, shared: 16)
    first, short = world.add([1] * 200), world.add([2] * 6)
    other = world.add([1, 2] * 60)
    assert {w.request_id: len(w.tokens) for w in world.step().work} == {
        short.request.id: 6,
        other.request.id: 2,
        first.request.id: 8,
    }


def test_prefixes_are_shared_only_with_the_same_salt() -> None:
    manager = PageManager(8, 8, 4, 64)
    tokens = [1] * 20
    first = manager.allocate("a", tokens, "x")
    assert first is not None
    manager.seal(first.slab, tokens, 20)
    manager.release(first.slab)
    assert [manager.match(tokens, salt) for salt in ("x", "y", "")] == [16, 0, 0]
    other = manager.allocate("b", tokens, "y")
    assert other is not None
    assert other.cached == 0
    manager.seal(other.slab, tokens, 20)
    manager.check_integrity()


def test_grammars_are_compiled_in_turn_for_each_key() -> None:
    sampling = SamplingParams(1, grammar="{}")
    row = [GenerateRequest(f"{key}{i}", (1,), sampling, owner=Owner(key)) for key in "ab" for i in range(3)]
    row.append(GenerateRequest("first", (1,), sampling, owner=Owner("a"), priority=-1))
    turns, added = CompilingTurns(), list[str]()
    while row:
        begun = False

        def add_one(request: GenerateRequest) -> bool:
            nonlocal begun
            added.extend([] if begun else [request.id])
            begun, adds = True, not begun
            return adds

        row = turns.without_ready(row, add_one)
    assert added == ["first", "b0", "a0", "b1", "a1", "b2", "a2"]


@pytest.mark.parametrize(
    ("pending", "limits", "spare", "rows"),
    [
        ([40], [16], 32, [16]),
        ([40], [16], 8, [8]),
        ([40], [16], 0, [0]),
        ([200, 6, 120], [16, 16, 16], 32, [8, 6, 2]),
        ([200, 3, 3, 3], [99, 99, 99, 99], 8, [4, 3, 1, 0]),
        ([10, 40], [16, 16], 32, [10, 6]),
        ([50, 40], [16, 4], 32, [8, 2]),
    ],
)
def test_the_first_prompt_and_the_shortest_share_a_round(
    pending: list[int], limits: list[int], spare: int, rows: list[int]
) -> None:
    assert share_rows(pending, limits, spare) == rows
