"""Track which request owns which page of the K/V cache, without tensors.

A request owns a *table*, whose number is its *slab*: its block i, the positions from i·block_size on, lies in page
`table[i]`. Verified full blocks are *sealed*: a tree of prefixes records the tokens that lead to them. Any number of
tables may hold a sealed page. A page that no table holds remains as a cached prefix until it is evicted, oldest first.
Page 0 belongs to no request: padding rows write to it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Tables of so many blocks each, and the pages that they share."""

    slabs: int
    blocks_per_slab: int
    block_size: int
    capacity: int  # pages
    length: int  # longest context; less than the model's if none was configured and memory is short


class Placement(NamedTuple):
    """Assign pages to consecutive blocks of a slab, from block `first` on."""

    slab: int
    first: int
    pages: tuple[int, ...]


class Allocation(NamedTuple):
    """The slab of a new request. Its first `cached` tokens have K/V once the new placements are known to the cache."""

    slab: int
    cached: int


BlockKey = tuple[int | str, ...]


@dataclass(slots=True, eq=False)
class _Node:
    """A sealed page: the prefix that ends in the tokens of `key`. `users` tables hold it and all its ancestors."""

    parent: _Node | None
    key: BlockKey
    page: int
    users: int = 0
    children: dict[BlockKey, _Node] = field(default_factory=dict)


@dataclass(slots=True)
class _Table:
    owner: str | None = None
    salt: str = ""
    pages: list[int] = field(default_factory=list)
    sealed: list[_Node] = field(default_factory=list)  # the nodes of the first len(sealed) pages
    placed: int = 0  # leading pages that `take_placements` has reported


class PageManager:
    """Manage `capacity` pages in `tables` tables of at most `blocks_per_table` pages."""

    def __init__(self, tables: int, blocks_per_table: int, block_size: int, capacity: int) -> None:
        assert capacity >= blocks_per_table, "one request of full length must fit"
        self.block_size = block_size
        self.blocks_per_table = blocks_per_table
        self.capacity = capacity
        self._tables = [_Table() for _ in range(tables)]
        self._free = list(range(capacity, 0, -1))
        self._root = _Node(None, (), 0)
        self._idle = 0  # sealed pages that no table holds
        self._leaves: OrderedDict[_Node, None] = OrderedDict()  # idle pages without children, oldest first

    @property
    def usage(self) -> float:
        """The share of the pages that requests hold, 0..1. Cached prefixes count as free."""
        return 1 - (len(self._free) + self._idle) / self.capacity

    def match(self, tokens: Sequence[int], salt: str = "") -> int:
        """Count the leading tokens that a cached prefix covers. At least the last token is left to compute."""
        return len(self._path(tokens, salt)) * self.block_size

    def allocate(self, owner: str, tokens: Sequence[int], salt: str = "") -> Allocation | None:
        """Give `owner` a table with room for all of `tokens`; None if pages or tables are exhausted.

        Only prefixes with the same salt are shared.
        """
        needed = self._blocks(len(tokens))
        slab = next((i for i, table in enumerate(self._tables) if table.owner is None), None)
        if slab is None or needed > self.blocks_per_table:
            return None
        path = self._path(tokens, salt)
        found = sum(node.users == 0 for node in path)
        if needed - len(path) > len(self._free) + self._idle - found:
            return None
        for node in path:
            self._hold(node)
        table = self._tables[slab]
        table.owner, table.salt, table.sealed, table.placed = owner, salt, path, 0
        table.pages = [node.page for node in path] + self._take(needed - len(path))
        return Allocation(slab, len(path) * self.block_size)

    def grow(self, slab: int, tokens: int) -> bool:
        """Extend a table to `tokens` in total; evict the oldest prefixes. False, and no change, if pages are short."""
        table = self._tables[slab]
        extra = self._blocks(tokens) - len(table.pages)
        if extra <= 0:
            return True
        if self._blocks(tokens) > self.blocks_per_table or extra > len(self._free) + self._idle:
            return False
        table.pages += self._take(extra)
        return True

    def trim(self, slab: int, tokens: int) -> None:
        """Free the pages of a table beyond `tokens`, after drafts were rejected."""
        table = self._tables[slab]
        self._shorten(table, max(self._blocks(tokens), len(table.sealed)))

    def seal(self, slab: int, tokens: Sequence[int], computed: int) -> None:
        """Seal the full blocks among the first `computed` (verified) positions of `tokens`, so that others reuse them.

        If another request has sealed the same block already, its page replaces this table's own.
        """
        table = self._tables[slab]
        for index in range(len(table.sealed), computed // self.block_size):
            parent = table.sealed[-1] if table.sealed else self._root
            key = self._key(tokens, index, table.salt)
            node = parent.children.get(key)
            if node is None:
                node = parent.children[key] = _Node(parent, key, table.pages[index], users=1)
            else:
                self._free.append(table.pages[index])
                table.pages[index] = node.page
                table.placed = min(table.placed, index)
                self._hold(node)
            table.sealed.append(node)

    def release(self, slab: int) -> None:
        """End the ownership of a table: sealed pages stay as a cached prefix, the rest is freed."""
        table = self._tables[slab]
        self._shorten(table, len(table.sealed))
        for node in reversed(table.sealed):
            node.users -= 1
            if node.users == 0:
                self._idle += 1
                if not node.children:
                    self._leaves[node] = None
        self._tables[slab] = _Table()

    def clear(self) -> None:
        """Evict all cached prefixes."""
        while self._leaves:
            self._evict()

    def take_placements(self) -> tuple[Placement, ...]:
        """Return the changes of tables since the last call, for the cache's own tables."""
        changed = []
        for slab, table in enumerate(self._tables):
            if table.placed < len(table.pages):
                changed.append(Placement(slab, table.placed, tuple(table.pages[table.placed :])))
                table.placed = len(table.pages)
        return tuple(changed)

    def check_integrity(self) -> None:
        """Assert that counts, tables and the prefix tree agree. Visits every page: for tests, and for debugging."""
        held: Counter[int] = Counter()  # the number of tables that hold each page
        private: list[int] = []
        for table in self._tables:
            assert len(table.sealed) <= len(table.pages) <= self.blocks_per_table
            assert table.owner is not None or not table.pages
            parent = self._root
            for node, page in zip(table.sealed, table.pages, strict=False):
                assert node.page == page
                assert node.parent is parent
                assert parent.children[node.key] is node
                held[page] += 1
                parent = node
            private += table.pages[len(table.sealed) :]
        nodes = list(self._root.children.values())
        for node in nodes:
            nodes += node.children.values()
            assert node.users == held[node.page]
            assert (node in self._leaves) == (node.users == 0 and not node.children)
        assert self._idle == sum(node.users == 0 for node in nodes)
        assert sorted([*self._free, *private, *(node.page for node in nodes)]) == list(range(1, self.capacity + 1))

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _key(self, tokens: Sequence[int], index: int, salt: str) -> BlockKey:
        """Return what identifies a block among those after the same prefix: its tokens; in the first the salt too."""
        key = tuple(tokens[index * self.block_size : (index + 1) * self.block_size])
        return (salt, *key) if salt and index == 0 else key

    def _path(self, tokens: Sequence[int], salt: str) -> list[_Node]:
        """Find the sealed blocks that `tokens` begins with, leaving at least the last token out."""
        path: list[_Node] = []
        node = self._root
        for index in range((len(tokens) - 1) // self.block_size):
            child = node.children.get(self._key(tokens, index, salt))
            if child is None:
                break
            path.append(child)
            node = child
        return path

    def _hold(self, node: _Node) -> None:
        if node.users == 0:
            self._idle -= 1
            self._leaves.pop(node, None)
        node.users += 1

    def _take(self, count: int) -> list[int]:
        """Take `count` free pages, evicting prefixes as needed. The caller has checked that there are enough."""
        while len(self._free) < count:
            self._evict()
        return [self._free.pop() for _ in range(count)]

    def _evict(self) -> None:
        """Evict the oldest cached page without children. Its parent, if idle, becomes the next oldest."""
        node, _ = self._leaves.popitem(last=False)
        parent = node.parent
        assert parent is not None
        del parent.children[node.key]
        self._idle -= 1
        self._free.append(node.page)
        if parent is not self._root and parent.users == 0 and not parent.children:
            self._leaves[parent] = None
            self._leaves.move_to_end(parent, last=False)

    def _shorten(self, table: _Table, keep: int) -> None:
        self._free += reversed(table.pages[keep:])
        del table.pages[keep:]
        table.placed = min(table.placed, keep)
