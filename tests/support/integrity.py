"""What holds of the book-keeping of blocks and pages at any time."""

from __future__ import annotations

from engine.kv.blocks import BlockManager
from engine.kv.pages import PageManager


def cached_blocks(manager: BlockManager | PageManager) -> int:
    """Blocks that only the prefix cache holds."""
    if isinstance(manager, PageManager):
        return manager._idle
    return sum(slab.used for slab in manager._slabs if slab.owner is None)


def check_integrity(manager: BlockManager | PageManager) -> None:
    """Assert that counts, owners and the prefix tree agree."""
    if isinstance(manager, PageManager):
        _check_pages(manager)
    else:
        _check_blocks(manager)


def _check_blocks(manager: BlockManager) -> None:
    """Assert that counts, owners and the prefix tree agree."""
    assert manager._in_use == sum(s.used for s in manager._slabs) <= manager.capacity
    holders: dict[int, set[int]] = {}
    for index, state in enumerate(manager._slabs):
        assert len(state.sealed) <= state.used <= manager.blocks_per_slab
        assert state.owner is not None or state.used == len(state.sealed)
        parent = manager._root
        for node in state.sealed:
            assert node.parent is parent
            assert parent.children[node.tokens] is node
            assert index in node.slabs
            holders.setdefault(id(node), set()).add(index)
            parent = node
    stack = list(manager._root.children.values())
    while stack:
        node = stack.pop()
        assert node.slabs
        assert node.slabs == holders.pop(id(node))
        stack += node.children.values()
    assert not holders


def _check_pages(manager: PageManager) -> None:
    """Assert that counts, tables and the prefix tree agree."""
    held: dict[object, int] = {}
    private: list[int] = []
    for table in manager._tables:
        assert len(table.sealed) <= len(table.pages) <= manager.blocks_per_table
        assert table.owner is not None or not table.pages
        parent = manager._root
        for node, page in zip(table.sealed, table.pages, strict=False):
            assert node.page == page
            assert node.parent is parent
            assert parent.children[node.tokens] is node
            held[node] = held.get(node, 0) + 1
            parent = node
        private += table.pages[len(table.sealed) :]
    nodes = list(manager._root.children.values())
    for node in nodes:
        nodes += node.children.values()
        assert node.users == held.get(node, 0)
        assert (node in manager._leaves) == (node.users == 0 and not node.children)
    assert manager._idle == sum(node.users == 0 for node in nodes)
    assert sorted([*manager._free, *private, *(node.page for node in nodes)]) == list(range(1, manager.capacity + 1))
