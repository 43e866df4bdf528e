"""Show the progress of loading on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable


def progress_bar(title: str) -> Callable[[float], None]:
    """Return a function that shows the share done, 0 to 1, if the work takes longer than half a second.

    Nothing is shown if stderr is not a terminal.
    """
    from tqdm import tqdm

    bar = tqdm(total=100, desc=title, unit="%", leave=False, delay=0.5, disable=not sys.stderr.isatty())

    def show(share: float) -> None:
        bar.update(round(100 * share) - bar.n)
        if share >= 1:
            bar.close()

    return show
