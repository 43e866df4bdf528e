"""Decode tokens incrementally and detect stop strings, in the engine, so that generation ends at once."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer as BackendTokenizer
from tokenizers.decoders import DecodeStream

_TAIL = 6  # last tokens of the prompt that the first decoded characters may depend on


class StopStrings:
    """Cut a growing text before the stop string that ends first. Text that may begin a stop string is held back.

    Of stop strings with the same end, the one that begins first counts. The result does not depend on the pieces.
    """

    def __init__(self, stops: tuple[str, ...], *, include: bool = False) -> None:
        """`include`: the text ends with the stop string instead of before it."""
        self._stops = stops
        self._include = include
        self._held = ""
        self._returned = ""  # end of the text returned with `may_stop` false, where a stop string may begin
        self.stopped = False

    def push(self, text: str, *, may_stop: bool = True) -> str:
        """Add text. Returns the text that cannot be part of a stop string; "" after a stop string."""
        if not self._stops or self.stopped:
            return "" if self.stopped else text
        if not may_stop:
            freed = self.flush() + text
            longest = max(map(len, self._stops)) - 1
            self._returned = (self._returned + freed)[-longest:] if longest else ""
            return freed
        offset = len(self._returned)
        pending = self._returned + self._held + text
        # Stop strings within `_returned` do not count.
        stops = [
            (start + len(stop), start)
            for stop in self._stops
            if (start := pending.find(stop, max(offset + 1 - len(stop), 0))) >= 0
        ]
        if stops:
            self.stopped = True
            self._held = ""
            end, start = min(stops)
            return pending[offset : end if self._include else start]
        keep = max(self._overlap(pending, stop) for stop in self._stops)
        if keep > len(pending) - offset:  # the stop string would begin in `_returned`
            self._held = pending[offset:]
            return ""
        self._returned, self._held = "", pending[len(pending) - keep :]
        return pending[offset : len(pending) - keep]

    def flush(self) -> str:
        """Return the text held back at the end."""
        held, self._held = self._held, ""
        return held

    @staticmethod
    def _overlap(text: str, stop: str) -> int:
        """Return the length of the longest suffix of `text` that is a proper prefix of the stop string."""
        return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)


class Detokenizer:
    """Decode the tokens of one request. Bytes of incomplete characters are held back."""

    def __init__(
        self,
        backend: BackendTokenizer,
        stops: tuple[str, ...],
        prompt: Sequence[int] = (),
        *,
        skip_special_tokens: bool = True,
        include_stop: bool = False,
    ) -> None:
        """`prompt` precedes the text: without it, SentencePiece tokenizers drop the first space."""
        self._backend = backend
        self._skip = skip_special_tokens
        before = list(prompt[-_TAIL:])
        if backend.decode(before, skip_special_tokens=self._skip).endswith("\ufffd"):
            before = []  # the prompt ends within a character, which must not appear again
        self._stream = DecodeStream(ids=before, skip_special_tokens=self._skip)
        self._unfinished: list[int] = []
        self._stops = StopStrings(stops, include=include_stop)

    @property
    def stopped(self) -> bool:
        """Whether the text has reached a stop string."""
        return self._stops.stopped

    def push(self, token: int, *, may_stop: bool = True) -> str:
        """Add a token. Returns new text. `may_stop`: a stop string that this token completes counts."""
        before = ""
        try:
            text = self._stream.step(self._backend, token)
        except Exception:  # bare Exception: invalid bytes have changed the text decoded before them
            before = self._rest()
            self._stream = DecodeStream(ids=[], skip_special_tokens=self._skip)
            text = self._stream.step(self._backend, token)
        if text is None:
            self._unfinished.append(token)
        else:
            self._unfinished.clear()
        new = before + (text or "")
        return self._stops.push(new, may_stop=may_stop) if new else ""

    def finish(self) -> str:
        """Return the rest of the text. Bytes of incomplete characters become U+FFFD."""
        return self._stops.push(self._rest()) + self._stops.flush()

    def _rest(self) -> str:
        """Decode the tokens of incomplete characters."""
        rest = self._backend.decode(self._unfinished, skip_special_tokens=self._skip) if self._unfinished else ""
        self._unfinished.clear()
        return rest
