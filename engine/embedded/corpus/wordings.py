"""Further templates of many pools, for training alone: the text files of `wordings/`.

A file is made of blocks: "## name of a pool", then its templates, one a line, `\\n` standing for a line break. None
says what is held out; all but the lists of values among the texts of fields were written without knowledge of that.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

DIRECTORY = Path(__file__).parent / "wordings"


@cache
def wordings_by_pool() -> dict[str, tuple[str, ...]]:
    """All of them."""
    pools: dict[str, tuple[str, ...]] = {}
    for path in sorted(DIRECTORY.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").split("## ")[1:]:
            name, *templates = block.strip().split("\n")
            pools[name] = (*pools.get(name, ()), *(template.replace("\\n", "\n") for template in templates))
    return pools


def wordings(pool: str) -> tuple[str, ...]:
    """Those of the pool called `pool`, "module.NAME" where it has a name; none if there are none."""
    return wordings_by_pool().get(pool, ())
