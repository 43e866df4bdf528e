"""Find strings in a text that arrives in pieces. Text that may begin one of them is held back.

The results do not depend on where the text is cut.
"""

from collections.abc import Sequence
from itertools import compress


class StopStrings:
    """Cut a growing text before the stop string that ends first, or the longest of those."""

    def __init__(self, stops: tuple[str, ...], *, include: bool = False) -> None:
        """`include`: the text ends with the stop string instead of before it."""
        self._stops = stops
        self._include = include
        self._held = ""
        self._shown = b""  # whether each character of `_held` is shown, one byte each
        self._returned = ""  # last text returned without `may_stop`; a stop string may begin in it
        self.found: str | None = None  # the stop string that has ended the text

    def push(self, text: str, *, may_stop: bool = True, shown: bool = True) -> str:
        """Add text. Returns the text that cannot be part of a stop string; "" after a stop string.

        Text that is not `shown`, such as a special token's, may be part of a stop string, but is not returned.
        """
        if not self._stops or self.found is not None:
            return text if shown and self.found is None else ""
        self._shown += bytes([shown]) * len(text)
        if not may_stop:
            freed, self._held = self._held + text, ""
            longest = max(map(len, self._stops)) - 1
            self._returned = (self._returned + freed)[-longest:] if longest else ""
            return self._release(freed)
        offset = len(self._returned)
        pending = self._returned + self._held + text
        # Stop strings within `_returned` do not count.
        stops = [
            (start + len(stop), start)
            for stop in self._stops
            if (start := pending.find(stop, max(offset + 1 - len(stop), 0))) >= 0
        ]
        if stops:
            end, start = min(stops)
            self.found = pending[start:end]
            self._held = ""
            before = self._release(pending[offset:start])
            return before + pending[max(start, offset) : end] if self._include else before
        keep = _overlap(pending, self._stops)
        if keep > len(pending) - offset:  # the stop string would begin in `_returned`
            self._held = pending[offset:]
            return ""
        self._returned, self._held = "", pending[len(pending) - keep :]
        return self._release(pending[offset : len(pending) - keep])

    def flush(self) -> str:
        """Return the text held back at the end."""
        held, self._held = self._held, ""
        return self._release(held)

    def _release(self, text: str) -> str:
        """Return what is shown of the first text held back."""
        shown, self._shown = self._shown[: len(text)], self._shown[len(text) :]
        return "".join(compress(text, shown))


class MarkerSplitter:
    """Split a growing text at marker strings."""

    def __init__(self) -> None:
        self._held = ""

    def push(self, text: str, markers: Sequence[str]) -> tuple[str, str | None, str]:
        """Return the text before the first complete marker, the marker or None, and the text after it."""
        pending = self._held + text
        found = [(position, marker) for marker in markers if (position := pending.find(marker)) >= 0]
        if found:
            position, marker = min(found)
            self._held = ""
            return pending[:position], marker, pending[position + len(marker) :]
        keep = _overlap(pending, markers)
        self._held = pending[len(pending) - keep :]
        return pending[: len(pending) - keep], None, ""

    def flush(self) -> str:
        """Return the text held back at the end."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, markers: Sequence[str]) -> int:
    """Return the length of the longest suffix of `text` that is a proper prefix of a marker."""
    longest = min(max(map(len, markers), default=1) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if any(len(m) > n and m.startswith(text[-n:]) for m in markers)), 0)
