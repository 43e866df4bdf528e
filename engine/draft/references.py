"""The verified rows of a request that its next search starts from."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.step import References

if TYPE_CHECKING:
    from engine.draft.search import Search


@dataclass(slots=True)
class SearchState:
    """A request's recorded rows and its search, if one is going on."""

    due: int  # the round from which the request may search
    recorded: deque[References] = field(default_factory=deque)
    search: Search | None = None

    @property
    def rows(self) -> int:
        return sum(len(references.positions) for references in self.recorded)

    def record(self, references: References, most: int) -> None:
        """Append rows; drop the oldest while `most` remain."""
        self.recorded.append(references)
        while self.rows - len(self.recorded[0].positions) >= most:
            self.recorded.popleft()

    def forget(self) -> None:
        """Drop everything that refers to the request's cache."""
        self.recorded.clear()
        self.search = None
