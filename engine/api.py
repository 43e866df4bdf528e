"""The seam between server and engine: an engine in a process, in a thread (`engine.host`) or faked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

from engine.types import EngineInfo, EngineStats, GenerateRequest, RoundReport, TokenEvent


class PromptTokenizer(Protocol):
    """The tokenizer as the server uses it. Thread-safe: long inputs are tokenised off the event loop."""

    def encode(self, text: str, *, add_special_tokens: bool = True, literal: bool = False) -> list[int]:
        """Return token ids. `add_special_tokens`: add the tokens that the model expects around a bare prompt.

        `literal`: the text is a chat, rendered with `literal`.
        """

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, special tokens included."""

    def render_chat(
        self,
        messages: list[dict[str, Any]],
        tools: Sequence[dict[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        literal: bool = False,
    ) -> str:
        """Return a chat's prompt, ready to be encoded. Raises RequestError when the model has no chat template.

        `literal`: markers that messages, tools or options spell do not become tokens.
        """

    def added_token_id(self, text: str) -> int | None:
        """Return the id of an added token (special tokens, tags), or None if `text` does not name one."""

    def is_special(self, text: str) -> bool:
        """Whether `text` names a special token, which decoded text omits."""

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of one token; of a special token, its name."""

    @property
    def longest_token(self) -> int:
        """The number of characters of the longest token."""


class Engine(Protocol):
    """Tokens for prompts. Methods are called from the event loop's thread."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def tokenizer(self) -> PromptTokenizer: ...

    def submit(self, request: GenerateRequest) -> AsyncIterator[TokenEvent]:
        """Queue a request and return its events, which end after the one with a finish_reason.

        Raises at once (not on first iteration): RequestError, QueueFullError, EngineUnavailableError. While iterating:
        EngineDeadError. Only `cancel` ends a request early, however the iterator is left.
        """

    def cancel(self, request_id: str) -> None:
        """Forget a request within one round. Unknown and finished ids are ignored."""

    def reset_calibration(self) -> None:
        """Price passes by the latency profile again, within one round."""

    def stats(self) -> EngineStats: ...

    def fail(self, reason: str) -> None:
        """Give up an engine that does not respond: end its process, and every stream with EngineDeadError."""

    @property
    def pid(self) -> int:
        """The process that runs the model."""

    def add_listener(self, listener: Callable[[RoundReport], None]) -> None:
        """Call `listener` with every round's report, on the event loop's thread."""

    async def start(self) -> None:
        """Begin to serve; events go to the running event loop."""

    async def drain(self, timeout: float) -> None:
        """Refuse new requests, finish running ones within `timeout` seconds, fail the rest, stop the loop."""
