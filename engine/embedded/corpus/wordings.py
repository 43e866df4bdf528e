"""Further templates of many pools, for training alone: the text files of `wordings/`.

A file is made of blocks: "## name of a pool", then its templates, one a line, `\\n` standing for a line break. They
were written without knowledge of what is held out.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

DIRECTORY = Path(__file__).parent / "wordings"


@cache
def _all() -> dict[str, tuple[str, ...]]:
    pools: dict[str, tuple[str, ...]] = {}
    for path in sorted(DIRECTORY.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").split("## ")[1:]:
            name, *templates = block.strip().split("\n")
            pools[name] = (*pools.get(name, ()), *(template.replace("\\n", "\n") for template in templates))
    return pools


def wordings(pool: str) -> tuple[str, ...]:
    """Those of the pool called `pool`, "module.NAME" where it has a name; none if there are none."""
    return _all().get(pool, ())
