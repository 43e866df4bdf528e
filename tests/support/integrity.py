"""What always holds of the book-keeping of cache blocks."""

from __future__ import annotations

from engine.kv.blocks import BlockManager, Blocks
from engine.kv.pages import PageManager


def check_integrity(blocks: Blocks) -> None:
    """Assert that counts, owners and the prefix tree agree."""
    if isinstance(blocks, PageManager):
        _check_pages(blocks)
    else:
        assert isinstance(blocks, BlockManager)
        _check_slabs(blocks)


def _check_slabs(blocks: BlockManager) -> None:
    assert blocks._in_use == sum(s.used for s in blocks._slabs) <= blocks.capacity
    holders: dict[int, set[int]] = {}
    for index, state in enumerate(blocks._slabs):
        assert len(state.sealed) <= state.used <= blocks.blocks_per_slab
        assert state.owner is not None or state.used == len(state.sealed)
        parent = blocks._root
        for node in state.sealed:
            assert node.parent is parent
            assert parent.children[node.tokens] is node
            assert index in node.slabs
            holders.setdefault(id(node), set()).add(index)
            parent = node
    stack = list(blocks._root.children.values())
    while stack:
        node = stack.pop()
        assert node.slabs
        assert node.slabs == holders.pop(id(node))
        stack += node.children.values()
    assert not holders


def _check_pages(blocks: PageManager) -> None:
    held: dict[object, int] = {}
    private: list[int] = []
    for table in blocks._tables:
        assert len(table.sealed) <= len(table.pages) <= blocks.blocks_per_table
        assert table.owner is not None or not table.pages
        parent = blocks._root
        for node, page in zip(table.sealed, table.pages, strict=False):
            assert node.page == page
            assert node.parent is parent
            assert parent.children[node.tokens] is node
            held[node] = held.get(node, 0) + 1
            parent = node
        private += table.pages[len(table.sealed) :]
    nodes = list(blocks._root.children.values())
    for node in nodes:
        nodes += node.children.values()
        assert node.users == held.get(node, 0)
        assert (node in blocks._leaves) == (node.users == 0 and not node.children)
    assert blocks._idle == sum(node.users == 0 for node in nodes)
    assert sorted([*blocks._free, *private, *(node.page for node in nodes)]) == list(range(1, blocks.capacity + 1))
