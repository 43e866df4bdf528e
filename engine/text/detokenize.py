"""Tokens to text as they come, and stop strings. Lives in the engine so that nothing after a stop is computed."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer as BackendTokenizer
from tokenizers.decoders import DecodeStream

_TAIL = 6  # tokens of the prompt that the text's beginning may depend on


class StopStrings:
    """Cuts a growing text before the stop string that is complete first; what may become one is held back.

    Of several that end at the same place the one that begins first counts. So nothing depends on how the text is cut.
    """

    def __init__(self, stops: tuple[str, ...], *, include: bool = False) -> None:
        """`include`: the stop string itself is shown."""
        self._stops = stops
        self._include = include
        self._held = ""
        self._passed = ""  # the last of what was shown while nothing could stop: a stop string may begin there
        self.stopped = False

    def push(self, text: str, *, may_stop: bool = True) -> str:
        """Add text, return what is safe to show. After a stop was found, returns ""."""
        if not self._stops or self.stopped:
            return "" if self.stopped else text
        if not may_stop:
            freed = self.flush() + text
            most = max(map(len, self._stops)) - 1
            self._passed = (self._passed + freed)[-most:] if most else ""
            return freed
        shown = len(self._passed)
        held = self._passed + self._held + text
        # One that was complete before it counted does not stop.
        found = [
            (where + len(stop), where)
            for stop in self._stops
            if (where := held.find(stop, max(shown + 1 - len(stop), 0))) >= 0
        ]
        if found:
            self.stopped = True
            self._held = ""
            end, where = min(found)
            return held[shown : end if self._include else where]
        keep = max(self._overlap(held, stop) for stop in self._stops)
        if keep > len(held) - shown:  # it would begin in what was shown
            self._held = held[shown:]
            return ""
        self._passed, self._held = "", held[len(held) - keep :]
        return held[shown : len(held) - keep]

    def flush(self) -> str:
        """What was held back and turned out not to be a stop."""
        held, self._held = self._held, ""
        return held

    @staticmethod
    def _overlap(text: str, stop: str) -> int:
        """Length of the longest end of `text` that a stop string begins with."""
        return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)


class Detokenizer:
    """One request's text. `push` a token, get the text that became certain; bytes of unfinished characters wait."""

    def __init__(
        self,
        backend: BackendTokenizer,
        stops: tuple[str, ...],
        prompt: Sequence[int] = (),
        *,
        skip_special_tokens: bool = True,
        include_stop: bool = False,
    ) -> None:
        """`prompt` is what the text follows: SentencePiece tokenizers drop the space of a text's first word."""
        self._backend = backend
        self._skip = skip_special_tokens
        before = list(prompt[-_TAIL:])
        if backend.decode(before, skip_special_tokens=self._skip).endswith("\ufffd"):
            before = []  # the prompt ends within a character, which will not be repeated
        self._stream = DecodeStream(ids=before, skip_special_tokens=self._skip)
        self._unfinished: list[int] = []
        self._stops = StopStrings(stops, include=include_stop)

    @property
    def stopped(self) -> bool:
        """A stop string was reached."""
        return self._stops.stopped

    def push(self, token: int, *, may_stop: bool = True) -> str:
        """`may_stop`: whether a stop string that is complete with this token counts."""
        before = ""
        try:
            text = self._stream.step(self._backend, token)
        except Exception:  # a bare one: bytes that were no character after all changed what stood before them
            before = self._rest()
            self._stream = DecodeStream(ids=[], skip_special_tokens=self._skip)
            text = self._stream.step(self._backend, token)
        if text is None:
            self._unfinished.append(token)
        else:
            self._unfinished.clear()
        shown = before + (text or "")
        return self._stops.push(shown, may_stop=may_stop) if shown else ""

    def finish(self) -> str:
        """The rest at the end of the request; bytes that never became a character show as U+FFFD."""
        return self._stops.push(self._rest()) + self._stops.flush()

    def _rest(self) -> str:
        """What tokens without a whole character stand for."""
        rest = self._backend.decode(self._unfinished, skip_special_tokens=self._skip) if self._unfinished else ""
        self._unfinished.clear()
        return rest
