"""Track which request owns which cache block, without tensors.

A request owns one slab. Block i of a slab holds the positions from i·block_size on, so (slab, i) identifies a block.
Verified full blocks are *sealed*: a tree of prefixes records the tokens that lead to them. When a request ends, its
sealed blocks remain as cached prefixes until they are evicted, oldest first. A new request that begins with a cached
prefix copies it. If no block would be lost, the request adopts the slab of the prefix instead.

Slabs are address space; `capacity` blocks are memory. Blocks in use (owned or cached) never exceed `capacity`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self, TypeVar


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Slabs of address space (or tables of pages), blocks of memory."""

    slabs: int
    blocks_per_slab: int
    block_size: int
    capacity: int
    length: int  # longest context; less than the model's if none was configured and memory is short


class Placement(NamedTuple):
    """Assign pages to consecutive blocks of a slab, from block `first` on."""

    slab: int
    first: int
    pages: tuple[int, ...]


class Copy(NamedTuple):
    """Copy the first `tokens` positions of one slab to another."""

    source: int
    target: int
    tokens: int


class Freed(NamedTuple):
    """Positions first..last-1 of a slab, which are not in use any more."""

    slab: int
    first: int
    last: int


class CacheChanges(NamedTuple):
    """What the memory of a cache has to do before the next passes, in this order."""

    placements: tuple[Placement, ...] = ()  # of a paged cache
    copies: tuple[Copy, ...] = ()
    freed: tuple[Freed, ...] = ()


class Allocation(NamedTuple):
    """The slab of a new request. Its first `cached` tokens have K/V once the changes of the cache are applied."""

    slab: int
    cached: int


class Blocks(Protocol):
    """The scheduler's view of cache memory: a `BlockManager`, or an `engine.kv.pages.PageManager`.

    `BlockManager` documents the methods. For a `PageManager` a slab is the number of a table of pages.
    """

    block_size: int
    capacity: int  # blocks

    @property
    def usage(self) -> float: ...
    def match(self, tokens: Sequence[int], salt: str = "") -> int: ...
    def allocate(self, owner: str, tokens: Sequence[int], salt: str = "") -> Allocation | None: ...
    def grow(self, slab: int, tokens: int) -> bool: ...
    def trim(self, slab: int, tokens: int) -> None: ...
    def seal(self, slab: int, tokens: Sequence[int], computed: int) -> None: ...
    def release(self, slab: int) -> None: ...
    def clear(self) -> None: ...
    def take_changes(self) -> CacheChanges: ...
    def check_integrity(self) -> None: ...


BlockKey = tuple[int | str, ...]


@dataclass(slots=True, eq=False)
class _Node:
    """A sealed block: the prefix that ends in the tokens of `key`. A slab that holds it holds all its ancestors."""

    parent: _Node | None
    key: BlockKey
    slabs: set[int] = field(default_factory=set)
    children: dict[BlockKey, _Node] = field(default_factory=dict)


@dataclass(slots=True)
class _Slab:
    owner: str | None = None
    salt: str = ""
    used: int = 0  # blocks, from the start of the slab
    sealed: list[_Node] = field(default_factory=list)  # the first len(sealed) of them
    touched: int = 0  # tick of last use, for eviction by age


class PrefixNode(Protocol):
    """A node of a tree of prefixes, with its children by the tokens of the next block."""

    @property
    def children(self) -> Mapping[BlockKey, Self]: ...


N = TypeVar("N", bound=PrefixNode)


def block_key(tokens: Sequence[int], index: int, block_size: int, salt: str) -> BlockKey:
    """Return what identifies a block among those after the same prefix: its tokens; in the first block the salt too."""
    key = tuple(tokens[index * block_size : (index + 1) * block_size])
    return (salt, *key) if salt and index == 0 else key


def walk(root: N, tokens: Sequence[int], block_size: int, salt: str) -> list[N]:
    """Find the blocks below `root` that `tokens` begins with, leaving at least the last token out."""
    path: list[N] = []
    node = root
    for index in range((len(tokens) - 1) // block_size):
        child = node.children.get(block_key(tokens, index, block_size, salt))
        if child is None:
            break
        path.append(child)
        node = child
    return path


class BlockManager:
    """Manage `slabs` slabs of `blocks_per_slab` blocks, of which `capacity` may be in use at a time."""

    def __init__(self, slabs: int, blocks_per_slab: int, block_size: int, capacity: int) -> None:
        assert capacity >= blocks_per_slab, "one request of full length must fit"
        self.block_size = block_size
        self.blocks_per_slab = blocks_per_slab
        self.capacity = min(capacity, slabs * blocks_per_slab)
        self._slabs = [_Slab() for _ in range(slabs)]
        self._root = _Node(None, ())
        self._in_use = 0
        # Blocks (slab, first, last + 1) whose memory may go back to the system: only if slabs exceed the capacity.
        self._overcommitted = self.capacity < slabs * blocks_per_slab
        self._freed: list[tuple[int, int, int]] = []
        self._copies: list[Copy] = []
        self._tick = 0

    @property
    def usage(self) -> float:
        """The share of the capacity that requests own, 0..1. Cached prefixes count as free."""
        return sum(slab.used for slab in self._slabs if slab.owner is not None) / self.capacity

    @property
    def cached(self) -> int:
        """Blocks that only cached prefixes hold."""
        return sum(slab.used for slab in self._slabs if slab.owner is None)

    def match(self, tokens: Sequence[int], salt: str = "") -> int:
        """Count the leading tokens that a cached prefix covers. At least the last token is left to compute."""
        return len(walk(self._root, tokens, self.block_size, salt)) * self.block_size

    def allocate(self, owner: str, tokens: Sequence[int], salt: str = "") -> Allocation | None:
        """Give `owner` a slab with room for all of `tokens`; None if memory or slabs are exhausted.

        Only prefixes with the same salt are shared.
        """
        path = walk(self._root, tokens, self.block_size, salt)
        needed = self._blocks(len(tokens))
        if needed > self.blocks_per_slab:
            return None
        source = min(path[-1].slabs, key=lambda i: (not self._adoptable(i, len(path)), i)) if path else -1
        for target in self._targets(source, len(path)):
            keep = len(path) if target == source else 0
            if self._evictable(needed - keep, {target, source}, target, keep):
                break
        else:
            return None
        slab = self._slabs[target]
        self._drop(target, keep)
        self._make_room(needed - slab.used, {target, source})
        slab.owner, slab.salt = owner, salt
        self._in_use += needed - slab.used
        slab.used = needed
        self._touch(target)
        if target != source and source >= 0:
            self._touch(source)
            for node in path:
                node.slabs.add(target)
            slab.sealed = list(path)
        cached = len(path) * self.block_size
        if cached and target != source:
            self._copies.append(Copy(source, target, cached))
        return Allocation(target, cached)

    def grow(self, slab: int, tokens: int) -> bool:
        """Extend a slab to `tokens` in total; evict the oldest prefixes. False, and no change, if memory is short."""
        state = self._slabs[slab]
        extra = self._blocks(tokens) - state.used
        if extra <= 0:
            return True
        if self._blocks(tokens) > self.blocks_per_slab or not self._evictable(
            extra, spare={slab}, target=slab, keep=state.used
        ):
            return False
        self._make_room(extra, spare={slab})
        state.used += extra
        self._in_use += extra
        return True

    def trim(self, slab: int, tokens: int) -> None:
        """Free the blocks of an owned slab beyond `tokens`, after drafts were rejected."""
        state = self._slabs[slab]
        keep = max(self._blocks(tokens), len(state.sealed))
        if keep < state.used:
            self._free(slab, keep, state.used)
            state.used = keep

    def seal(self, slab: int, tokens: Sequence[int], computed: int) -> None:
        """Seal the full blocks among the first `computed` (verified) positions of `tokens`, for others to reuse."""
        state = self._slabs[slab]
        for index in range(len(state.sealed), computed // self.block_size):
            parent = state.sealed[-1] if state.sealed else self._root
            key = block_key(tokens, index, self.block_size, state.salt)
            node = parent.children.get(key)
            if node is None:
                node = parent.children[key] = _Node(parent, key)
            node.slabs.add(slab)
            state.sealed.append(node)

    def release(self, slab: int) -> None:
        """End the ownership of a slab: sealed blocks stay as a cached prefix, the rest is freed."""
        state = self._slabs[slab]
        state.owner = None
        self._free(slab, len(state.sealed), state.used)
        state.used = len(state.sealed)
        self._touch(slab)

    def clear(self) -> None:
        """Evict all cached prefixes."""
        for index, slab in enumerate(self._slabs):
            if slab.owner is None:
                self._drop(index, 0)

    def take_changes(self) -> CacheChanges:
        """Return copied prefixes, and positions that were freed and are not in use again, since the last call."""
        copies, self._copies = tuple(self._copies), []
        freed, self._freed = self._freed, []
        size = self.block_size
        unused = (
            Freed(slab, max(first, self._slabs[slab].used) * size, last * size)
            for slab, first, last in freed
            if self._slabs[slab].used < last
        )
        return CacheChanges(copies=copies, freed=tuple(unused))

    def check_integrity(self) -> None:
        """Assert that counts, owners and the prefix tree agree. Visits every block: for tests, and for debugging."""
        assert self._in_use == sum(slab.used for slab in self._slabs) <= self.capacity
        holders: dict[int, set[int]] = {}  # by the id of a node
        for index, slab in enumerate(self._slabs):
            assert len(slab.sealed) <= slab.used <= self.blocks_per_slab
            assert slab.owner is not None or slab.used == len(slab.sealed)
            parent = self._root
            for node in slab.sealed:
                assert node.parent is parent
                assert parent.children[node.key] is node
                holders.setdefault(id(node), set()).add(index)
                parent = node
        nodes = list(self._root.children.values())
        for node in nodes:
            nodes += node.children.values()
            assert node.slabs
            assert node.slabs == holders.pop(id(node))
        assert not holders

    def _free(self, slab: int, first: int, last: int) -> None:
        self._in_use -= last - first
        if self._overcommitted and last > first:
            self._freed.append((slab, first, last))

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _touch(self, slab: int) -> None:
        self._tick += 1
        self._slabs[slab].touched = self._tick

    def _adoptable(self, slab: int, matched: int) -> bool:
        """Whether a request that matches the first `matched` blocks of a slab can adopt it without losing any other."""
        return self._slabs[slab].owner is None and self._slabs[slab].used == matched

    def _targets(self, source: int, matched: int) -> list[int]:
        """List the slabs to try, best first: an adoptable source; or an empty or the oldest slab, then the source."""
        unowned = [i for i, s in enumerate(self._slabs) if s.owner is None]
        if source >= 0 and self._adoptable(source, matched):
            return [source]
        empty = [i for i in unowned if self._slabs[i].used == 0]
        oldest = sorted((i for i in unowned if i != source), key=lambda i: self._slabs[i].touched)
        return (empty or oldest)[:1] + ([source] if source in unowned else [])

    def _evictable(self, extra: int, spare: set[int], target: int, keep: int) -> bool:
        """Whether evicting unowned slabs frees `extra` blocks, if `target` keeps its first `keep` blocks."""
        state = self._slabs[target]
        free = self.capacity - self._in_use + (state.used - keep if state.owner is None else 0)
        free += sum(s.used for i, s in enumerate(self._slabs) if s.owner is None and i not in spare)
        return extra <= free

    def _make_room(self, extra: int, spare: set[int]) -> None:
        """Evict blocks from the ends of unowned slabs, oldest slab first, until `extra` blocks are free."""
        while self.capacity - self._in_use < extra:
            oldest = min(
                (i for i, s in enumerate(self._slabs) if s.owner is None and s.used and i not in spare),
                key=lambda i: self._slabs[i].touched,
            )
            excess = extra - (self.capacity - self._in_use)
            self._drop(oldest, max(self._slabs[oldest].used - excess, 0))

    def _drop(self, slab: int, keep: int) -> None:
        """Free the blocks of an unowned slab beyond the first `keep`."""
        state = self._slabs[slab]
        for node in reversed(state.sealed[keep:]):
            node.slabs.discard(slab)
            if not node.slabs:
                assert node.parent is not None
                assert not node.children
                del node.parent.children[node.key]
        del state.sealed[keep:]
        keep = min(keep, state.used)
        self._free(slab, keep, state.used)
        state.used = keep
