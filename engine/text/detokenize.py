"""Decode tokens incrementally, up to a stop string. This is done in the engine, so that generation ends at once."""

from collections.abc import Sequence

from tokenizers import Tokenizer as BackendTokenizer
from tokenizers.decoders import DecodeStream

from engine.errors import RequestFailedError
from engine.text.markers import StopStrings
from engine.text.tokenizer import library_errors

_FAILURE = "The model's tokenizer cannot decode this answer"
_TAIL = 6  # number of the prompt's last tokens that may change the first decoded characters


class Detokenizer:
    """Decode the tokens of one request. Bytes of incomplete characters are held back. Raises RequestFailedError."""

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
        if self._decode(before).endswith("\ufffd"):
            before = []  # the prompt ends within a character, which must not appear again
        self._stream = DecodeStream(ids=before, skip_special_tokens=self._skip)
        self._unfinished: list[int] = []
        self._stops = StopStrings(stops, include=include_stop)
        # Special tokens that stop strings contain: their names count, although the text lacks them.
        self._named: dict[int, str] = {}
        for stop in stops if skip_special_tokens else ():
            encoded = backend.encode(stop, add_special_tokens=False)
            for token, name in zip(encoded.ids, encoded.tokens, strict=True):
                if name in stop and not backend.decode([token]):
                    self._named[token] = name

    @property
    def stopped(self) -> bool:
        """Whether the text has reached a stop string."""
        return self._stops.found is not None

    @property
    def stop_string(self) -> str | None:
        """The stop string that the text has reached."""
        return self._stops.found

    def push(self, token: int, *, may_stop: bool = True) -> str:
        """Add a token. Returns new text. `may_stop`: a stop string that this token completes counts."""
        before = ""
        try:
            with library_errors(RequestFailedError, _FAILURE):
                text = self._stream.step(self._backend, token)
        except RequestFailedError:  # invalid bytes have changed the text decoded before them
            before = self._rest()
            self._stream = DecodeStream(ids=[], skip_special_tokens=self._skip)
            with library_errors(RequestFailedError, _FAILURE):
                text = self._stream.step(self._backend, token)
        if text is None:
            self._unfinished.append(token)
        else:
            self._unfinished.clear()
        new = before + (text or "")
        shown = self._stops.push(new, may_stop=may_stop) if new else ""
        if token in self._named:
            shown += self._stops.push(self._named[token], may_stop=may_stop, shown=False)
        return shown

    def finish(self) -> str:
        """Return the rest of the text. Bytes of incomplete characters become U+FFFD."""
        return self._stops.push(self._rest()) + self._stops.flush()

    def _rest(self) -> str:
        rest = self._decode(self._unfinished) if self._unfinished else ""
        self._unfinished.clear()
        return rest

    def _decode(self, tokens: list[int]) -> str:
        with library_errors(RequestFailedError, _FAILURE):
            return str(self._backend.decode(tokens, skip_special_tokens=self._skip))
