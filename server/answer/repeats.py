"""A model that must call a tool, and may call several, tends to write the same call again and again."""

from collections.abc import Sequence

from server.answer.parsers import Delta


class RepeatedCalls:
    """Hold back each call while it equals an earlier one so far; an equal call ends the answer."""

    def __init__(self) -> None:
        self._calls: list[str] = []  # name and arguments
        self._held: list[Delta] = []  # deltas of the last call
        self.found = False  # whether a call is equal to an earlier one

    def push(self, deltas: Sequence[Delta], *, complete: bool) -> list[Delta]:
        """Return the deltas to show. `complete`: the last call is."""
        shown: list[Delta] = []
        for delta in deltas:
            if delta.call is None:
                shown.append(delta)
                continue
            if delta.name is not None:
                if self._held:  # the call before ended while it was held
                    self.found = True
                    return shown
                self._calls.append(f"{delta.name}\0")
            self._calls[-1] += delta.arguments
            self._held.append(delta)
            if not any(call.startswith(self._calls[-1]) for call in self._calls[:-1]):
                shown += self._held
                self._held = []
        self.found = complete and bool(self._held) and self._calls[-1] in self._calls[:-1]
        return shown

    def finish(self) -> list[Delta]:
        """Return what is held at the end of an answer without an equal call."""
        return [] if self.found else self._held
