"""A fake engine of scripted tokens, for the HTTP tests."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from engine.errors import EngineDeadError, EngineDrainingError, QueueFullError, RequestError
from engine.types import (
    EngineInfo,
    EngineStats,
    FinishReason,
    GenerateRequest,
    RequestRound,
    RequestTiming,
    RoundReport,
    SpeculationStats,
    TokenEvent,
)

INFO = EngineInfo(
    model="fake/model",
    max_model_len=64,
    max_num_seqs=4,
    vocab_size=256,
    eos_token_ids=(0,),
    device="cpu",
    dtype="float32",
    default_policy="knapspec",
    policies=("knapspec", "none"),
    profile_file="fake.json",
    profile_hardware="abacus",
    max_queued=1000,
)
PLAN = (2, 2, 0, 0, 3, 2, 2)
SPECULATION = SpeculationStats("knapspec", 2, 6, 4, 3, 1, 2.5, 4 / 6, 3.0, 2.0, 1, 50.0, 60.0, PLAN)


class ByteTokenizer:
    """Each UTF-8 byte is a token. A character takes up to four, so that `longest_token` stays an upper bound."""

    longest_token = 4
    bos: tuple[int, ...] = ()
    special: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.rendered: list[dict[str, Any]] = []
        self.literal: list[bool] = []  # of every chat that was rendered or encoded

    def encode(self, text: str, *, add_special_tokens: bool = True, literal: bool = False) -> list[int]:
        self.literal.append(literal)
        return [*(self.bos if add_special_tokens else ()), *text.encode()]

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(tokens).decode(errors="replace")

    def token_bytes(self, token: int) -> bytes:
        return bytes([token])

    def added_token_id(self, text: str) -> int | None:
        return None

    def is_special(self, text: str) -> bool:
        return text in self.special

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
        self.literal.append(literal)
        self.rendered.append(
            {
                "messages": messages,
                "tools": list(tools),
                "options": options,
                "flags": (add_generation_prompt, continue_final_message),
            }
        )
        if any(message["role"] == "tool" for message in messages):
            raise RequestError("the chat template knows no role 'tool'", param="messages")
        return "".join(f"{message['role'][0]}:{message['content']}\n" for message in messages)


class FakeEngine:
    """Sends `script`, one token a piece, to every request. With `gated`, each token waits for `release`."""

    info = INFO
    pid = os.getpid()

    def __init__(self, script: tuple[str, ...] = ("Hel", "lo"), *, capacity: int = 100, gated: bool = False) -> None:
        self.script, self.capacity = script, capacity
        self.tokenizer = ByteTokenizer()
        self.gate: asyncio.Queue[Exception | None] | None = asyncio.Queue() if gated else None
        self.submitted: list[GenerateRequest] = []
        self.running: set[str] = set()
        self.cancelled: list[str] = []
        self.finished = asyncio.Event()
        self.arrived, self.left = threading.Event(), threading.Event()
        self.ready, self.draining, self.heartbeat_age = True, False, 0.0
        self.failure: str | None = None
        self.resets = 0
        self.refuse: Exception | None = None
        self.fail_at: tuple[int, Exception] | None = None  # position of a token, and the error raised instead of it
        self.listeners: list[Callable[[RoundReport], None]] = []
        self.loop: asyncio.AbstractEventLoop | None = None

    def submit(self, request: GenerateRequest) -> AsyncIterator[TokenEvent]:
        if self.draining:
            raise EngineDrainingError
        if self.refuse is not None:
            raise self.refuse
        if len(self.running) >= self.capacity:
            raise QueueFullError(len(self.running), retry_after=3)
        self.submitted.append(request)
        self.running.add(request.id)
        self.arrived.set()
        return self._events(request)

    async def _events(self, request: GenerateRequest) -> AsyncIterator[TokenEvent]:
        limit = request.sampling.max_tokens or 10**6
        for position, text in enumerate(self.script[:limit]):
            if self.gate is not None and (error := await self.gate.get()) is not None:
                raise error
            if self.fail_at is not None and self.fail_at[0] == position:
                raise self.fail_at[1]
            last = position + 1 == min(limit, len(self.script))
            reason = (FinishReason.LENGTH if position + 1 == limit else FinishReason.STOP) if last else None
            event = TokenEvent(
                request_id=request.id,
                text=text,
                token_ids=(position,),
                finish_reason=reason,
                prompt_tokens=len(request.prompt),
                completion_tokens=position + 1,
                cached_tokens=min(2, len(request.prompt)),
                speculation=SPECULATION if last else None,
                timing=RequestTiming(0.25, 0.5, 2.0) if last else None,
            )
            part = RequestRound(
                request.id, "knapspec", 1, 3, 1, 3, 9, 5, 4, 60.0, 0.75, "changed" if last else None, plan=PLAN
            )
            report = RoundReport((event,), (part,), 1, 0, 0.5, 4, 0, 0.25, 0.25, 0.0, 0.0, 8, 2)
            for listener in self.listeners:
                listener(report)
            if last:
                self._forget(request.id)
            yield event

    def _forget(self, request_id: str) -> None:
        self.running.discard(request_id)
        self.finished.set()

    def reset_calibration(self) -> None:
        self.resets += 1

    def cancel(self, request_id: str) -> None:
        if request_id in self.running:
            self._forget(request_id)
            self.cancelled.append(request_id)
            self.left.set()

    def release(self, tokens: int = 1, error: Exception | None = None) -> None:
        """Let gated requests continue by so many tokens, or fail one of them; from any thread."""
        assert self.gate is not None
        assert self.loop is not None
        for _ in range(tokens):
            self.loop.call_soon_threadsafe(self.gate.put_nowait, error)

    def die(self, reason: str) -> None:
        """Fail like an engine: every running request gets the error."""
        self.failure = reason
        self.refuse = EngineDeadError(reason)
        self.release(len(self.running), self.refuse)

    def stats(self) -> EngineStats:
        running = len(self.running)
        return EngineStats(self.ready, self.draining, self.failure, running, 0, 0, 0.5, self.heartbeat_age)

    def fail(self, reason: str) -> None:
        self.failure = reason

    def add_listener(self, listener: Callable[[RoundReport], None]) -> None:
        self.listeners.append(listener)

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()

    async def drain(self, timeout: float) -> None:
        self.draining = True
        if timeout == 0:
            self.release(len(self.running), EngineDrainingError())
        while self.running:
            self.finished.clear()
            await self.finished.wait()
