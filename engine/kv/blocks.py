"""Who owns which cache block; no tensors.

Placement here is by slab: a request owns one slab, and block i of a slab holds positions i·block_size onwards, so a
block id is (slab, i). Verified full blocks are *sealed* under the tokens that lead to them; when their request ends
they stay as cached prefixes, unowned, until age or need evicts them. A new request that begins with a sealed prefix
gets it by copy, or adopts the slab where nothing is lost by it.

Slabs are address space; `capacity` blocks are memory. Blocks in use (owned or cached) never exceed it.
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
    length: int  # longest context: what was asked for, or less if nothing was asked for and memory is short


class Placement(NamedTuple):
    """Blocks of a slab, from number `first` on, lie in these pages from now on."""

    slab: int
    first: int
    pages: tuple[int, ...]


class Allocation(NamedTuple):
    """A slab for a request, of whose tokens `cached` are there once the first `copied` come from slab `source`."""

    slab: int
    cached: int
    source: int
    copied: int


class Blocks(Protocol):
    """What the scheduler asks of the book-keeping: `BlockManager`, or `engine.kv.pages.PageManager`.

    The methods say the same of both; a slab is then the name of a table of pages.
    """

    block_size: int

    @property
    def usage(self) -> float: ...
    @property
    def cached(self) -> int: ...
    def match(self, tokens: Sequence[int]) -> int: ...
    def allocate(self, owner: str, tokens: Sequence[int]) -> Allocation | None: ...
    def grow(self, slab: int, tokens: int) -> bool: ...
    def trim(self, slab: int, tokens: int) -> None: ...
    def seal(self, slab: int, tokens: Sequence[int], computed: int) -> None: ...
    def release(self, slab: int) -> None: ...
    def clear(self) -> None: ...
    def take_freed(self) -> list[tuple[int, int, int]]: ...
    def take_placements(self) -> list[Placement]: ...
    def check_integrity(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Node:
    """A sealed block: the prefix ending in `tokens` after `parent`. Slabs that hold it hold all its ancestors."""

    parent: _Node | None
    tokens: tuple[int, ...]
    slabs: set[int] = field(default_factory=set)
    children: dict[tuple[int, ...], _Node] = field(default_factory=dict)


@dataclass(slots=True)
class _Slab:
    owner: str | None = None
    used: int = 0  # blocks, from the start of the slab
    sealed: list[_Node] = field(default_factory=list)  # the first len(sealed) of them
    touched: int = 0  # tick of last use, for eviction by age


class PrefixNode(Protocol):
    """A node of a tree of prefixes: what follows it, by the tokens of the next block."""

    @property
    def children(self) -> Mapping[tuple[int, ...], Self]: ...


N = TypeVar("N", bound=PrefixNode)


def walk(root: N, tokens: Sequence[int], block_size: int) -> list[N]:
    """The blocks below `root` that `tokens` begins with, short of its last token."""
    path: list[N] = []
    node = root
    for start in range(0, len(tokens) - block_size, block_size):
        child = node.children.get(tuple(tokens[start : start + block_size]))
        if child is None:
            break
        path.append(child)
        node = child
    return path


class BlockManager:
    """Bookkeeping of `slabs` slabs of `blocks_per_slab` blocks, `capacity` of which may be in use at a time."""

    def __init__(self, slabs: int, blocks_per_slab: int, block_size: int, capacity: int) -> None:
        assert capacity >= blocks_per_slab, "one request of full length must fit"
        self.block_size = block_size
        self.blocks_per_slab = blocks_per_slab
        self.capacity = min(capacity, slabs * blocks_per_slab)
        self._slabs = [_Slab() for _ in range(slabs)]
        self._root = _Node(None, ())
        self._in_use = 0
        # (slab, first, last + 1) blocks whose memory is free again; kept only where slabs promise more than there is
        self._overcommitted = self.capacity < slabs * blocks_per_slab
        self._freed: list[tuple[int, int, int]] = []
        self._tick = 0

    @property
    def usage(self) -> float:
        """Share of the capacity that requests own, 0..1; cached prefixes count as free."""
        return sum(slab.used for slab in self._slabs if slab.owner is not None) / self.capacity

    @property
    def cached(self) -> int:
        """Blocks that only cached prefixes hold."""
        return sum(slab.used for slab in self._slabs if slab.owner is None)

    def match(self, tokens: Sequence[int]) -> int:
        """Leading tokens that a sealed prefix covers; at least the last token is left to compute."""
        return len(self._walk(tokens)) * self.block_size

    def allocate(self, owner: str, tokens: Sequence[int]) -> Allocation | None:
        """A slab with room for `tokens` (all to be computed or copied in), or None while memory or slabs lack."""
        path = self._walk(tokens)
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
        slab.owner = owner
        self._in_use += needed - slab.used
        slab.used = needed
        self._touch(target)
        if target != source and source >= 0:
            self._touch(source)
            for node in path:
                node.slabs.add(target)
            slab.sealed = list(path)
        cached = len(path) * self.block_size
        return Allocation(target, cached, source, 0 if target == source else cached)

    def grow(self, slab: int, tokens: int) -> bool:
        """Make room for `tokens` in all; evicts cached prefixes by age. False, and nothing changed, if memory lacks."""
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
        """Free the blocks of an owned slab that `tokens` do not need: those of rejected drafts."""
        state = self._slabs[slab]
        keep = max(self._blocks(tokens), len(state.sealed))
        if keep < state.used:
            self._free(slab, keep, state.used)
            state.used = keep

    def seal(self, slab: int, tokens: Sequence[int], computed: int) -> None:
        """Publish the full blocks among the first `computed` (verified) positions of `tokens`."""
        state = self._slabs[slab]
        for index in range(len(state.sealed), computed // self.block_size):
            parent = state.sealed[-1] if state.sealed else self._root
            key = tuple(tokens[index * self.block_size : (index + 1) * self.block_size])
            node = parent.children.get(key)
            if node is None:
                node = parent.children[key] = _Node(parent, key)
            node.slabs.add(slab)
            state.sealed.append(node)

    def release(self, slab: int) -> None:
        """The owner is gone: sealed blocks stay as cached prefix, the rest is free."""
        state = self._slabs[slab]
        state.owner = None
        self._free(slab, len(state.sealed), state.used)
        state.used = len(state.sealed)
        self._touch(slab)

    def clear(self) -> None:
        """Forget all cached prefixes."""
        for index, slab in enumerate(self._slabs):
            if slab.owner is None:
                self._drop(index, 0)

    def take_freed(self) -> list[tuple[int, int, int]]:
        """Ranges of positions (slab, first, last + 1) to give back to the system, unless used again since."""
        freed, self._freed = self._freed, []
        size = self.block_size
        return [
            (slab, max(first, self._slabs[slab].used) * size, last * size)
            for slab, first, last in freed
            if self._slabs[slab].used < last
        ]

    def take_placements(self) -> list[Placement]:
        """Nothing: a block's place is its number."""
        return []

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
                assert parent.children[node.tokens] is node
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

    def _walk(self, tokens: Sequence[int]) -> list[_Node]:
        """Sealed blocks that `tokens` begins with, short of its last token."""
        return walk(self._root, tokens, self.block_size)

    def _adoptable(self, slab: int, matched: int) -> bool:
        """Whether a request that matches the first blocks of a slab may take it over and nothing is lost."""
        return self._slabs[slab].owner is None and self._slabs[slab].used == matched

    def _targets(self, source: int, matched: int) -> list[int]:
        """Slabs to take, best first: the source if nothing is lost by it; an empty one, else the oldest; the source."""
        unowned = [i for i, s in enumerate(self._slabs) if s.owner is None]
        if source >= 0 and self._adoptable(source, matched):
            return [source]
        empty = [i for i in unowned if self._slabs[i].used == 0]
        oldest = sorted((i for i in unowned if i != source), key=lambda i: self._slabs[i].touched)
        return (empty or oldest)[:1] + ([source] if source in unowned else [])

    def _evictable(self, extra: int, spare: set[int], target: int, keep: int) -> bool:
        """Whether `extra` blocks can be had if `target` keeps its first `keep` and unowned slabs may be evicted."""
        state = self._slabs[target]
        free = self.capacity - self._in_use + (state.used - keep if state.owner is None else 0)
        free += sum(s.used for i, s in enumerate(self._slabs) if s.owner is None and i not in spare)
        return extra <= free

    def _make_room(self, extra: int, spare: set[int]) -> None:
        """Evict unowned slabs' blocks, oldest slab first, from their ends, until `extra` blocks are free."""
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
                del node.parent.children[node.tokens]
        del state.sealed[keep:]
        keep = min(keep, state.used)
        self._free(slab, keep, state.used)
        state.used = keep
