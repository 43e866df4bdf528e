"""The block manager against a model of what is physically in each slab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from engine.kv.blocks import Allocation, BlockManager, Copy
from tests.support.examples import examples

TOKENS = st.sampled_from([0, 0, 0, 1])  # few values, so that prefixes collide
PROMPTS = st.lists(TOKENS, min_size=1, max_size=9)
GARBAGE = -1  # left by a rejected draft


@dataclass(eq=False)
class Owner:
    """A request: its tokens, how many are computed, and the blocks reserved for it."""

    name: str
    slab: int
    tokens: list[int]
    computed: int
    blocks: int


class Blocks(RuleBasedStateMachine):
    """Requests arrive, compute, draft, grow and leave in any order."""

    live = Bundle("live")

    @initialize(size=st.integers(2, 3), per_slab=st.integers(2, 4), slabs=st.integers(2, 5), spare=st.integers(0, 6))
    def start(self, size: int, per_slab: int, slabs: int, spare: int) -> None:
        self.manager = BlockManager(slabs, per_slab, size, per_slab + spare)
        self.size, self.per_slab, self.slabs = size, per_slab, slabs
        self.capacity = min(per_slab + spare, slabs * per_slab)
        self.held: list[list[int]] = [[] for _ in range(slabs)]  # tokens whose K/V lies in a slab, by position
        self.owners: list[Owner] = []
        self.names = 0

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.size)

    @property
    def owned(self) -> int:
        return sum(owner.blocks for owner in self.owners)

    def sealed(self, slab: int) -> list[int]:
        """Tokens of the blocks that the manager believes are verified in a slab."""
        slabs = self.manager._slabs  # noqa: SLF001 (which prefixes are evicted is up to the manager)
        return [token for node in slabs[slab].sealed for token in node.key]

    def brute_match(self, tokens: Sequence[int]) -> int:
        """The longest run of whole blocks, short of the last token, that some slab's sealed tokens begin with."""
        longest = 0
        for slab in range(self.slabs):
            sealed = self.sealed(slab)
            for end in range(self.size, min(len(tokens), len(sealed) + 1), self.size):
                if sealed[:end] == list(tokens[:end]):
                    longest = max(longest, end)
        return longest

    @rule(tokens=PROMPTS)
    def look_up(self, tokens: list[int]) -> None:
        assert self.manager.match(tokens) == self.brute_match(tokens)

    @rule(target=live, tokens=PROMPTS)
    def allocate(self, tokens: list[int]) -> object:
        needed = self.blocks(len(tokens))
        matched = self.brute_match(tokens)
        self.names += 1
        allocation = self.manager.allocate(f"r{self.names}", tokens)
        fits = needed <= self.per_slab and len(self.owners) < self.slabs and self.owned + needed <= self.capacity
        assert (allocation is not None) == fits, "cached prefixes never stand in the way of a request"
        if allocation is None:
            return multiple()
        assert allocation.slab not in {owner.slab for owner in self.owners}
        assert allocation.cached == matched < len(tokens)
        self.apply_changes(adopted=allocation.slab)
        assert self.held[allocation.slab][: allocation.cached] == tokens[: allocation.cached]
        owner = Owner(f"r{self.names}", allocation.slab, tokens, allocation.cached, needed)
        self.owners.append(owner)
        return owner

    def apply_changes(self, adopted: int | None = None) -> None:
        """Copy prefixes and give memory back, as the cache does before a round."""
        changes = self.manager.take_changes()
        for source, target, tokens in changes.copies:
            assert source != target
            assert tokens > 0
            self.held[target][:tokens] = self.held[source][:tokens]
        for slab, first, last in changes.freed:
            assert first < last
            for position in range(first, min(last, len(self.held[slab]))):
                self.held[slab][position] = GARBAGE
            owners = [o for o in self.owners if o.slab == slab]
            assert slab == adopted or not any(first < o.blocks * self.size for o in owners)

    @rule(owner=live, rows=st.sampled_from([1, 2, 5, 12]), drafted=st.integers(0, 3))
    def compute(self, owner: Owner, rows: int, drafted: int) -> None:
        """A verify pass over the next rows, with drafts behind them that are all rejected."""
        end = min(owner.computed + rows, len(owner.tokens))
        held = self.held[owner.slab]
        room = owner.blocks * self.size - end
        held[owner.computed :] = owner.tokens[owner.computed : end] + [GARBAGE] * min(drafted, room)
        owner.computed = end
        self.manager.seal(owner.slab, owner.tokens, owner.computed)
        assert self.sealed(owner.slab) == owner.tokens[: owner.computed // self.size * self.size]

    @rule(owner=live, more=st.lists(TOKENS, min_size=1, max_size=4), draft=st.integers(0, 4))
    def grow(self, owner: Owner, more: list[int], draft: int) -> None:
        """Reserve room for new tokens and a draft.

        A failure changes nothing, and means that requests own the memory.
        """
        wanted = len(owner.tokens) + len(more) + draft
        blocks = max(self.blocks(wanted), owner.blocks)
        fits = blocks <= self.per_slab and self.owned - owner.blocks + blocks <= self.capacity
        before = [self.sealed(slab) for slab in range(self.slabs)], self.manager.usage
        assert self.manager.grow(owner.slab, wanted) == fits
        if fits:
            owner.blocks = blocks
            owner.tokens = owner.tokens + more
        else:
            assert before == ([self.sealed(slab) for slab in range(self.slabs)], self.manager.usage)

    @rule(owner=consumes(live))
    def release(self, owner: Owner) -> None:
        self.manager.release(owner.slab)
        self.owners.remove(owner)

    @rule(tokens=PROMPTS)
    def compute_and_leave(self, tokens: list[int]) -> None:
        """A request that computes its whole prompt and leaves at once."""
        owner = self.allocate(tokens)
        if isinstance(owner, Owner):
            self.compute(owner, rows=len(tokens), drafted=0)
            self.release(owner)

    @rule()
    def forget(self) -> None:
        self.manager.clear()
        assert self.manager.cached == 0

    @rule()
    def give_back(self) -> None:
        """Returned ranges lose their contents; no request may use them."""
        self.apply_changes()

    @precondition(lambda self: not self.owners)
    @rule(target=live, data=st.data())
    def a_full_request_fits_when_all_others_are_gone(self, data: st.DataObject) -> object:
        most = self.per_slab * self.size
        owner = self.allocate(data.draw(st.lists(TOKENS, min_size=1, max_size=most)))
        assert isinstance(owner, Owner)
        return owner

    @invariant()
    def books_balance(self) -> None:
        self.manager.check_integrity()
        assert self.manager.usage == pytest.approx(self.owned / self.capacity)
        assert self.owned + self.manager.cached <= self.capacity

    @invariant()
    def sealed_blocks_hold_verified_tokens(self) -> None:
        for slab in range(self.slabs):
            sealed = self.sealed(slab)
            assert GARBAGE not in sealed
            assert self.held[slab][: len(sealed)] == sealed

    @invariant()
    def blocks_of_requests_are_not_evicted(self) -> None:
        for owner in self.owners:
            whole = owner.tokens[: owner.computed // self.size * self.size]
            assert self.sealed(owner.slab) == whole
            assert self.manager.match([*whole, 0]) == len(whole)

    def teardown(self) -> None:
        for owner in self.owners:
            self.manager.release(owner.slab)
        self.manager.check_integrity()
        assert self.manager.usage == 0
        assert self.manager.allocate("last", [0] * (self.per_slab * self.size)) is not None


Blocks.TestCase.settings = examples(250, steps=60)
TestBlocks = Blocks.TestCase


def finished(manager: BlockManager, tokens: Sequence[int]) -> int:
    """Allocate, compute and release a request with `tokens`. Returns its slab."""
    allocation = manager.allocate("past", tokens)
    assert allocation is not None
    manager.seal(allocation.slab, tokens, len(tokens))
    manager.release(allocation.slab)
    return allocation.slab


def test_the_last_token_is_always_left_to_compute() -> None:
    manager = BlockManager(2, 4, 2, 8)
    finished(manager, [1, 2, 3, 4])
    assert [manager.match([1, 2, 3, 4][:n]) for n in range(5)] == [0, 0, 0, 2, 2]
    assert manager.match([1, 2, 3, 4, 5]) == 4


def test_the_oldest_prefix_is_evicted_first() -> None:
    manager = BlockManager(4, 2, 2, 3)
    prompts = [[1, 1, 0], [2, 2, 0], [3, 3, 0]]
    for prompt in prompts:
        finished(manager, prompt[:2])
    assert [manager.match(p) for p in prompts] == [2, 2, 2]
    assert manager.allocate("a", [9, 9]) is not None
    assert [manager.match(p) for p in prompts] == [0, 2, 2]


def test_reusing_a_prefix_makes_it_the_youngest() -> None:
    manager = BlockManager(4, 2, 2, 4)
    prompts = [[1, 1, 0], [2, 2, 0]]
    for prompt in prompts:
        finished(manager, prompt[:2])
    finished(manager, [1, 1, 5])
    assert manager.allocate("a", [9] * 4) is not None
    assert manager.allocate("b", [8]) is not None
    assert [manager.match(p) for p in prompts] == [2, 0]


def test_copying_a_prefix_makes_it_the_youngest() -> None:
    manager = BlockManager(4, 2, 2, 5)
    long, other = [1, 1, 2, 2], [3, 3]
    finished(manager, long)
    finished(manager, other)
    copy = manager.allocate("a", [1, 1, 5])
    assert copy is not None
    assert manager.take_changes().copies == (Copy(0, copy.slab, 2),)
    assert manager.allocate("b", [9]) is not None
    assert [manager.match([*prompt, 0]) for prompt in (long, other)] == [4, 0]


def test_eviction_takes_no_more_than_it_needs_from_the_end() -> None:
    manager = BlockManager(3, 3, 2, 4)
    finished(manager, [1, 1, 2, 2, 3, 3])
    assert manager.allocate("a", [9, 9, 9]) is not None
    assert manager.match([1, 1, 2, 2, 3, 3, 0]) == 4


def test_the_age_of_a_prefix_counts_from_the_end_of_its_request() -> None:
    manager = BlockManager(3, 2, 2, 3)
    slabs = [manager.allocate(name, prompt) for name, prompt in (("a", [1, 1]), ("b", [2, 2]))]
    for allocation, prompt in reversed(list(zip(slabs, ([1, 1], [2, 2]), strict=True))):
        assert allocation is not None
        manager.seal(allocation.slab, prompt, 2)
        manager.release(allocation.slab)
    assert manager.allocate("c", [9] * 4) is not None
    assert [manager.match(prompt) for prompt in ([1, 1, 0], [2, 2, 0])] == [2, 0]


def test_an_empty_slab_is_taken_before_an_older_prefix() -> None:
    manager = BlockManager(2, 2, 2, 4)
    finished(manager, [1, 1])
    finished(manager, [9])  # seals no block
    assert manager.allocate("a", [9, 9]) is not None
    assert manager.match([1, 1, 0]) == 2


def test_a_prefix_used_whole_is_adopted_in_place() -> None:
    manager = BlockManager(3, 4, 2, 12)
    slab = finished(manager, [1, 2, 3, 4])
    assert manager.allocate("a", [1, 2, 3, 4, 5]) == Allocation(slab, cached=4)
    assert manager.take_changes().copies == ()
    assert manager.cached == 0


def test_a_prefix_used_in_part_is_copied_and_kept() -> None:
    manager = BlockManager(3, 4, 2, 12)
    slab = finished(manager, [1, 2, 3, 4])
    allocation = manager.allocate("a", [1, 2, 5])
    assert allocation is not None
    assert allocation.slab != slab
    assert allocation.cached == 2
    assert manager.take_changes().copies == (Copy(slab, allocation.slab, 2),)
    assert manager.match([1, 2, 3, 4, 0]) == 4


def test_a_running_request_shares_by_copy() -> None:
    manager = BlockManager(2, 4, 2, 8)
    first = manager.allocate("a", [1, 2, 3, 4])
    assert first is not None
    manager.seal(first.slab, [1, 2, 3, 4], computed=3)
    second = manager.allocate("b", [1, 2, 3, 4])
    assert second == Allocation(1 - first.slab, cached=2)
    assert manager.take_changes().copies == (Copy(first.slab, second.slab, 2),)
    assert manager.allocate("c", [1]) is None


def test_with_one_slab_left_a_partial_prefix_is_still_used() -> None:
    manager = BlockManager(1, 4, 2, 4)
    finished(manager, [1, 2, 3, 4])
    assert manager.allocate("a", [1, 2, 9, 9]) == Allocation(0, cached=2)
    assert manager.take_changes().copies == ()


def test_a_prefix_held_by_a_running_request_is_adopted_from_a_free_slab() -> None:
    """Slab 0 is owned and shares its prefix with the free slab 1: adopting slab 1 loses nothing."""
    manager = BlockManager(2, 2, 2, 4)
    first = manager.allocate("a", [1, 2, 3])
    assert first is not None
    manager.seal(first.slab, [1, 2], 2)
    other = finished(manager, [1, 2, 4])
    manager.take_changes()
    assert manager.allocate("b", [1, 2, 5]) == Allocation(other, cached=2)
    assert manager.take_changes().copies == ()


def test_a_request_larger_than_a_slab_is_refused() -> None:
    manager = BlockManager(2, 2, 2, 4)
    assert manager.allocate("a", [0] * 5) is None
    allocation = manager.allocate("a", [0] * 4)
    assert allocation is not None
    assert not manager.grow(allocation.slab, 5)
    manager.check_integrity()
