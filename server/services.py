"""The objects that the endpoints share, and the admission of generation requests."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import copy_context
from hashlib import sha256
from typing import TypeVar

from engine.api import Engine
from engine.errors import EngineDrainingError, PromptError, QueueFullError
from engine.types import EngineStats, key_limit
from server.apis import replies
from server.apis.api import Api, Model
from server.apis.chat import ChatApi
from server.apis.completions import CompletionApi
from server.apis.logprobs import TokenTexts
from server.apis.messages.api import MessagesApi
from server.apis.responses.api import ResponsesApi
from server.apis.responses.store import ResponseStore
from server.apis.tokens import TokenizeService
from server.config import ServerConfig
from server.edge.bodies import BodyReader
from server.edge.errors import unavailable
from server.edge.lifecycle import drain, version
from server.generation import Generation
from server.metrics.meter import RequestMeter
from server.metrics.registry import Metrics
from server.prepare import ParsedRequest, Preparer
from server.prompt import ChatPrompts, Encoder
from server.tool_formats import TOOL_FORMATS, ToolFormat

_SILENT_TICKS = 10  # most ticks of 0.1 s without a heartbeat in time

Parsed = TypeVar("Parsed")


async def in_thread(threads: Executor | None, parse: Callable[[bytes], Parsed], raw: bytes) -> Parsed:
    """Parse a body in one of some threads. Raises EngineDrainingError if they end first."""
    try:
        parsing = asyncio.get_running_loop().run_in_executor(threads, copy_context().run, parse, raw)
    except RuntimeError:  # the executor has been shut down
        raise EngineDrainingError from None
    try:
        return await parsing
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise EngineDrainingError from None


class Services:
    """The objects that the endpoints of one app share."""

    def __init__(self, engine: Engine, config: ServerConfig) -> None:
        self.engine = engine
        self.config = config
        self.started = int(time.time())
        self.names = config.served_model_name or (engine.info.model,)
        self.metrics = Metrics(engine, self.names[0])
        model = self._model()
        self.stored = ResponseStore(config.response_store)
        self.responses = ResponsesApi(model, self.stored if config.response_store else None, config.max_body_size)
        self.messages = MessagesApi(model)
        self.apis: Mapping[str, Api] = {
            "chat_completions": ChatApi(model),
            "completions": CompletionApi(model),
            "responses": self.responses,
            "messages": self.messages,
        }
        self.tokens = TokenizeService(engine.info, model)
        self._silent_ticks = 0
        self.bodies = BodyReader(config.max_body_size, config.max_body_values)
        # Threads that render and tokenise chats; a template may take seconds.
        self.short_chats = ThreadPoolExecutor(2, thread_name_prefix="knapserve-short-chats")
        self.long_chats = ThreadPoolExecutor(4, thread_name_prefix="knapserve-long-chats")
        self._draining: asyncio.Task[None] | None = None
        # Large bodies are tokenised one at a time: each takes some hundred times its size in memory.
        self.large_bodies = asyncio.Semaphore(1)

    def _model(self) -> Model:
        """Return what the APIs know of the served model."""
        config, info, tokenizer = self.config, self.engine.info, self.engine.tokenizer
        tools = (info.tool_format or "hermes") if config.tool_call_parser == "auto" else config.tool_call_parser
        thinks = info.thinks if config.reasoning_parser == "auto" else config.reasoning_parser == "think"
        encoder = Encoder(info, tokenizer)
        chats = ChatPrompts(
            encoder,
            literal=config.spelled_markers == "text",
            tool_format=TOOL_FORMATS.get(tools, ToolFormat()),
            describes_tools=not info.tool_format,
            thinks=thinks,
        )
        priorities = config.scheduling_policy == "priority"
        preparer = Preparer(info, tokenizer, self.names, config.max_n, priorities=priorities)
        build = repr((version(), info.model, info.dtype, info.device))
        return Model(preparer, encoder, TokenTexts(tokenizer), chats, f"fp_{sha256(build.encode()).hexdigest()[:10]}")

    async def drain(self) -> None:
        """Reject new requests, finish or fail the running ones, and stop the engine, all once."""
        if self._draining is None:
            for threads in (self.short_chats, self.long_chats):
                threads.shutdown(wait=False, cancel_futures=True)
            self._draining = asyncio.create_task(drain(self.engine, self.config.shutdown_timeout))
        await asyncio.shield(self._draining)

    def submit(self, parsed: ParsedRequest, meter: RequestMeter, key: str = "") -> Generation:
        """Submit all choices of a request to the engine, or none.

        `key` stands for the client's API key. Raises APIError or KnapServeError if they are not admitted.
        """
        info, stats = self.engine.info, self.engine.stats()
        if self._silent(stats):
            raise unavailable("The engine does not respond.", "engine_stalled")
        limit, live = info.max_num_seqs + info.max_queued, stats.running + stats.waiting
        own_limit = key_limit(limit) if key else limit
        choices = parsed.format.choices
        if choices > own_limit:
            raise PromptError(
                f"The request has {choices} choices, but the server holds at most {own_limit} requests.",
                param="n" if parsed.format.n > 1 else "prompt",
            )
        # The engine checks each request; this check prevents that choices start before others are rejected, unless the
        # key has too many already.
        if stats.ready and live + choices > limit:
            raise QueueFullError(max(live - info.max_num_seqs, 0))
        requests = parsed.requests(key, salt=key if self.config.isolate_api_keys else "")
        meter.asked(parsed.format.n, parsed.sampling.max_tokens)
        return Generation(self.engine, requests, meter)

    def facts(self, parsed: ParsedRequest) -> dict[str, object]:
        """Return the access-log fields that are known before the reply."""
        facts: dict[str, object] = {
            "id": parsed.id,
            "stream": parsed.options.stream,
            "choices": parsed.format.choices,
            "policy": parsed.options.draft_policy or self.engine.info.default_policy,
        }
        if self.config.log_prompts:
            facts["prompts"] = [self.engine.tokenizer.decode(prompt) for prompt in parsed.prompts]
        return facts

    def check_health(self) -> None:
        """Raise APIError if the server cannot take requests now."""
        stats = self.engine.stats()
        if stats.restarting:
            raise unavailable("The engine is restarting.", "engine_restarting")
        if stats.failure is not None:
            raise unavailable("The engine has failed.", "engine_dead")
        if stats.draining:
            raise unavailable("The server is shutting down.", "draining")
        if not stats.ready:
            raise unavailable("The model is loading.", "loading")
        if self._silent(stats):
            raise unavailable("The engine does not respond.", "engine_stalled")

    def watch(self) -> None:
        """Give up an engine that does not respond. Called ten times a second."""
        stats = self.engine.stats()
        # If this process too was stopped for a while, the heartbeats are waiting to be read.
        self._silent_ticks = self._silent_ticks + 1 if self._silent(stats) else 0
        if self._silent_ticks > _SILENT_TICKS:
            self.engine.fail(f"it has not responded for {stats.heartbeat_age:.0f} s")

    def _silent(self, stats: EngineStats) -> bool:
        return stats.ready and stats.heartbeat_age > self.config.heartbeat_timeout

    def model_card(self, name: str) -> replies.ModelCard:
        info = self.engine.info
        return replies.ModelCard(
            id=name,
            created=self.started,
            root=info.model,
            max_model_len=info.max_model_len,
            device=info.device,
            dtype=info.dtype,
            draft_policy=info.default_policy,
            draft_policies=list(info.policies),
        )
