"""The page manager against a model of what is physically in each page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from engine.kv.pages import PageManager
from tests.support.examples import examples

TOKENS = st.sampled_from([0, 0, 0, 1])  # few values, so that prefixes collide
PROMPTS = st.lists(TOKENS, min_size=1, max_size=9)


@dataclass(eq=False)
class Owner:
    """A request: its tokens, how many are computed, and the blocks reserved for it."""

    slab: int
    tokens: list[int]
    computed: int
    blocks: int


class Pages(RuleBasedStateMachine):
    """Requests arrive, compute, draft, grow and leave in any order."""

    live = Bundle("live")

    @initialize(size=st.integers(2, 3), per_table=st.integers(2, 4), tables=st.integers(1, 4), spare=st.integers(0, 6))
    def start(self, size: int, per_table: int, tables: int, spare: int) -> None:
        self.manager = PageManager(tables, per_table, size, per_table + spare)
        self.size, self.per_table, self.tables = size, per_table, tables
        self.contents: dict[int, list[int]] = {}  # page -> tokens whose K/V it holds
        self.known: list[list[int]] = [[0] * per_table for _ in range(tables)]  # the runner's tables
        self.owners: list[Owner] = []

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.size)

    def place(self) -> None:
        """Read placements as the runner does before a round."""
        for slab, first, pages in self.manager.take_placements():
            self.known[slab][first : first + len(pages)] = pages
        for owner in self.owners:
            table = self.known[owner.slab][: owner.blocks]
            assert 0 not in table
            assert len(set(table)) == len(table)

    def read(self, owner: Owner, tokens: int) -> list[int]:
        """Contents that a pass would read at the first positions of a request."""
        table = self.known[owner.slab]
        return [self.contents[table[p // self.size]][p % self.size] for p in range(tokens)]

    @rule(target=live, tokens=PROMPTS)
    def allocate(self, tokens: list[int]) -> object:
        needed = self.blocks(len(tokens))
        matched = self.manager.match(tokens)
        self.place()
        room = needed - self.shared(tokens) <= self.manager.capacity - len(self.held())
        allocation = self.manager.allocate("somebody", tokens)
        assert (allocation is not None) == (needed <= self.per_table and len(self.owners) < self.tables and room)
        if allocation is None:
            return multiple()
        assert allocation.cached == matched
        assert matched < len(tokens)
        owner = Owner(allocation.slab, tokens, matched, needed)
        self.owners.append(owner)
        self.place()
        assert self.read(owner, matched) == tokens[:matched]
        return owner

    def shared(self, tokens: list[int]) -> int:
        """Leading whole blocks of `tokens`, short of the last token, whose pages some request holds already."""
        ends = range(self.size, len(tokens), self.size)
        return sum(any(o.computed >= end and o.tokens[:end] == tokens[:end] for o in self.owners) for end in ends)

    def held(self) -> set[int]:
        """Pages in any request's table."""
        return {page for owner in self.owners for page in self.known[owner.slab][: owner.blocks]}

    @rule(owner=live, rows=st.sampled_from([1, 2, 5, 12]), drafted=st.integers(0, 3))
    def compute(self, owner: Owner, rows: int, drafted: int) -> None:
        """A verify pass over the next rows, with drafts behind them that are all rejected."""
        self.place()
        end = min(owner.computed + rows, len(owner.tokens))
        written = owner.tokens[owner.computed : end] + [-1] * min(drafted, owner.blocks * self.size - end)
        for position, token in enumerate(written, owner.computed):
            page = self.known[owner.slab][position // self.size]
            self.contents.setdefault(page, [-1] * self.size)[position % self.size] = token
        owner.computed = end
        self.manager.seal(owner.slab, owner.tokens, owner.computed)

    @rule(owner=live, more=st.lists(TOKENS, min_size=1, max_size=4), draft=st.integers(0, 4))
    def grow(self, owner: Owner, more: list[int], draft: int) -> None:
        """Reserve room for new tokens and a draft.

        A failure changes nothing, and means that requests hold the pages.
        """
        wanted = len(owner.tokens) + len(more) + draft
        blocks = max(self.blocks(wanted), owner.blocks)
        self.place()
        free = self.manager.capacity - len(self.held())
        grown = self.manager.grow(owner.slab, wanted)
        assert grown == (blocks <= self.per_table and blocks - owner.blocks <= free)
        if grown:
            owner.blocks = blocks
            owner.tokens = owner.tokens + more

    @rule(owner=live)
    def trim(self, owner: Owner) -> None:
        self.manager.trim(owner.slab, len(owner.tokens))
        owner.blocks = self.blocks(len(owner.tokens))

    @rule(owner=consumes(live))
    def release(self, owner: Owner) -> None:
        self.manager.release(owner.slab)
        self.owners.remove(owner)

    @rule(tokens=PROMPTS)
    def forget(self, tokens: list[int]) -> None:
        self.manager.clear()
        assert self.manager.match(tokens) == self.shared(tokens) * self.size

    @invariant()
    def books_balance(self) -> None:
        self.manager.check_integrity()
        self.place()
        assert self.manager.usage == pytest.approx(len(self.held()) / self.manager.capacity)

    @invariant()
    def computed_tokens_stay_in_place(self) -> None:
        """Arrivals, growth, eviction and releases of other requests change nothing."""
        self.place()
        for owner in self.owners:
            assert self.read(owner, owner.computed) == owner.tokens[: owner.computed]
            whole = owner.tokens[: owner.computed // self.size * self.size]
            assert self.manager.match([*whole, 0]) == len(whole)

    def teardown(self) -> None:
        for owner in self.owners:
            self.manager.release(owner.slab)
        self.manager.check_integrity()
        assert self.manager.usage == 0
        assert self.manager.allocate("last", [0] * (self.per_table * self.size)) is not None


Pages.TestCase.settings = examples(250, steps=60)
TestPages = Pages.TestCase


def finished(manager: PageManager, tokens: Sequence[int]) -> tuple[int, ...]:
    """Allocate, compute and release a request with `tokens`. Returns its pages."""
    allocation = manager.allocate("past", tokens)
    assert allocation is not None
    (placement,) = manager.take_placements()
    manager.seal(allocation.slab, tokens, len(tokens))
    manager.release(allocation.slab)
    return placement.pages


def test_equal_blocks_of_two_requests_become_one_page() -> None:
    manager = PageManager(2, 4, 2, 8)
    slabs = [a.slab for a in (manager.allocate(name, [1, 2, 3]) for name in "ab") if a]
    manager.take_placements()
    for slab in slabs:
        manager.seal(slab, [1, 2, 3], 2)
    (moved,) = manager.take_placements()
    assert (moved.slab, moved.first, len(moved.pages)) == (slabs[1], 0, 2)
    assert manager.usage == pytest.approx(3 / 8)


def test_the_oldest_prefix_is_evicted_first_from_its_end() -> None:
    manager = PageManager(2, 3, 2, 5)
    finished(manager, [1, 1, 2, 2, 3, 3])
    finished(manager, [7, 7, 8, 8])
    assert manager.allocate("a", [9, 9, 9]) is not None
    assert manager.match([1, 1, 2, 2, 3, 3, 0]) == 2
    assert manager.match([7, 7, 8, 8, 0]) == 4


def test_a_cached_prefix_is_no_room_for_the_request_that_shares_it() -> None:
    manager = PageManager(3, 4, 2, 5)
    prefix = [1, 1, 2, 2]
    finished(manager, prefix)
    assert manager.allocate("other", [9]) is not None
    assert manager.allocate("short", [*prefix, 3, 3, 4]) is not None, "two pages are shared, and two are free"
    manager = PageManager(3, 4, 2, 5)
    finished(manager, prefix)
    assert manager.allocate("other", [9, 9, 9]) is not None
    assert manager.allocate("long", [*prefix, 3, 3, 4]) is None, "two are shared, and one is free"
