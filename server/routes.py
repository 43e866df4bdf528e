"""The HTTP endpoints, and the path of a generation request through the server."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from engine.errors import KnapServeError
from engine.types import TokenEvent
from server import openapi
from server.answer.pieces import Answers
from server.answer.writer import ReplyWriter
from server.apis import bodies, replies
from server.apis.api import CountingApi
from server.apis.messages.bodies import CountTokensRequest, MessagesRequest
from server.apis.messages.replies import AnthropicErrorReply, CountedTokens, MessageReply
from server.apis.responses.bodies import ResponsesRequest
from server.apis.responses.replies import Deleted, InputTokens, ResponseReply
from server.config import ServerConfig
from server.edge.asgi import cancelled_on_disconnect
from server.edge.auth import API_KEY
from server.edge.bodies import LARGE_BYTES, return_memory_later
from server.edge.errors import FACTS, APIError, as_api_error, invalid, unknown_model
from server.edge.lifecycle import version
from server.edge.sse import EventStream
from server.generation import Generation
from server.metrics.meter import RequestMeter
from server.metrics.registry import CONTENT_TYPE
from server.prepare import ParsedRequest
from server.services import Services, in_thread
from server.ui import document

_SHORT_BYTES = 2000  # size of a short body; chats in longer ones have threads of their own
_INLINE_LOGPROBS = 500  # per event; more are converted in a thread

Parsed = TypeVar("Parsed")
Converted = TypeVar("Converted")


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _key(request: Request) -> str:
    """Return what stands for the client's API key."""
    key: str = request.scope.get(API_KEY, "")
    return key


async def _parse_body(
    request: Request,
    parse: Callable[[bytes], Parsed],
    size_of: Callable[[bytes], int] = len,
    *,
    renders: bool,
) -> Parsed:
    """Parse the body with `parse`, in a thread: a model's tokenizer may take seconds. Raises APIError.

    `renders`: a chat template is rendered, which may take seconds. So chats have threads of their own, and those of
    short chats do not wait for long ones.
    """
    services = _services(request)
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise APIError(415, f"Send the body without Content-Encoding, not as {encoding}.")
    async with services.bodies.read(request) as raw:
        # Required: without a content type, browsers send cross-origin requests without a preflight.
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json" and not media_type.endswith("+json"):
            raise invalid("The Content-Type must be application/json.")
        size = size_of(raw)
        threads = (services.short_chats if size <= _SHORT_BYTES else services.long_chats) if renders else None
        if size <= LARGE_BYTES:
            return await in_thread(threads, parse, raw)
        async with cancelled_on_disconnect(request.receive):  # a client that has left must not wait here
            await services.large_bodies.acquire()
        try:
            return await in_thread(threads, parse, raw)
        finally:
            services.large_bodies.release()


async def _generate(name: str, request: Request) -> Response:
    """Answer a request of an API that generates. Errors before the first token are raised, so they have a status."""
    services = _services(request)
    api = services.apis[name]
    meter = RequestMeter(services.metrics, arrival=time.perf_counter())
    request.scope[FACTS] = meter.facts

    def as_error(error: Exception) -> APIError:
        failure = as_api_error(error, api.prompt_path)
        meter.facts |= failure.facts
        return failure

    try:
        parsed, writer = await _parse_body(
            request, partial(api.parse, key=_key(request)), api.size, renders=api.renders
        )
        meter.facts |= services.facts(parsed)
        generation = services.submit(parsed, meter, _key(request) if len(services.config.api_key) > 1 else "")
    except (APIError, KnapServeError) as error:
        failure = as_error(error)
        services.metrics.rejected(failure.rejection)
        raise failure from None
    try:
        if parsed.options.stream:
            frames = _frames(generation, parsed, writer)
            return EventStream(generation, frames, writer, as_error, services.config.keepalive_seconds)
        async with cancelled_on_disconnect(request.receive), generation:
            return await _complete_reply(generation, parsed, writer)
    except (APIError, KnapServeError) as error:
        raise as_error(error) from None


async def _frames(
    generation: Generation, parsed: ParsedRequest, writer: ReplyWriter
) -> AsyncGenerator[tuple[bytes, bool], None]:
    """Yield the frames of a stream, and whether they are the last."""
    answers = Answers(parsed.format)
    async with aclosing(generation.events()) as events:
        async for index, event in events:
            data = await _convert(event, writer.frames, answers.step(index, event), answers.usage)
            if answers.repeats(index):
                generation.end(index)
            yield data + writer.end(answers.usage()) if generation.finished else data, generation.finished


async def _complete_reply(generation: Generation, parsed: ParsedRequest, writer: ReplyWriter) -> Response:
    answers = Answers(parsed.format)
    async with aclosing(generation.events()) as events:
        async for index, event in events:
            await _convert(event, writer.add, answers.step(index, event))
            if answers.repeats(index):
                generation.end(index)
    body = writer.encode(answers.usage())
    if len(body) > LARGE_BYTES:
        return_memory_later()
    return Response(body, media_type="application/json")


async def _convert(event: TokenEvent, write: Callable[..., Converted], *arguments: object) -> Converted:
    """Write the pieces of an event, in a thread if it has the log-probabilities of a prompt.

    Those of a thousand tokens take 5 ms and more.
    """
    if len(event.prompt_logprobs) < _INLINE_LOGPROBS:
        return write(*arguments)
    return await asyncio.to_thread(write, *arguments)


async def retrieve_response(request: Request, response_id: str) -> Response:
    if request.query_params.get("stream", "false").lower() not in ("false", "0"):
        raise invalid("A stored response cannot be streamed.", "stream")
    found = _services(request).stored.get(response_id, _key(request))
    if found is None:
        raise _no_response(response_id)
    return Response(found.reply, media_type="application/json")


async def delete_response(request: Request, response_id: str) -> Deleted:
    if not _services(request).stored.remove(response_id, _key(request)):
        raise _no_response(response_id)
    return Deleted(id=response_id)


def _no_response(id: str) -> APIError:
    return APIError(404, f"Response with id {id!r:.80} not found.")


async def count_tokens(request: Request) -> CountedTokens:
    return CountedTokens(input_tokens=await _count_tokens(request, _services(request).messages))


async def input_tokens(request: Request) -> InputTokens:
    return InputTokens(input_tokens=await _count_tokens(request, _services(request).responses))


async def _count_tokens(request: Request, api: CountingApi) -> int:
    return await _parse_body(request, partial(api.count_tokens, key=_key(request)), api.size, renders=True)


async def render_chat(request: Request) -> replies.Rendered:
    return (await _render("chat_completions", request))[0]


async def render_completion(request: Request) -> list[replies.Rendered]:
    return await _render("completions", request)


async def _render(name: str, request: Request) -> list[replies.Rendered]:
    """Return the prompts that a request would generate from, without generating."""
    api = _services(request).apis[name]
    parsed, _ = await _parse_body(request, partial(api.parse, key=_key(request)), renders=api.renders)
    tokenizer = _services(request).engine.tokenizer
    return [
        replies.Rendered(request_id=parsed.id, model=parsed.model, prompt=tokenizer.decode(prompt), token_ids=[*prompt])
        for prompt in parsed.prompts
    ]


async def tokenize(request: Request) -> replies.Tokenized:
    return await _parse_body(request, _services(request).tokens.tokenize, renders=True)


async def detokenize(request: Request) -> replies.Detokenized:
    return await _parse_body(request, _services(request).tokens.detokenize, renders=False)


async def reset_calibration(request: Request) -> replies.Status:
    """Discard the measured corrections of the latency profile, for instance after another program has stopped.

    Browsers send this request without a preflight, so the `Origin` header of cross-origin requests is checked here.
    """
    services = _services(request)
    origin, allowed = request.headers.get("origin"), services.config.cors_origins
    same_origin = origin is None or origin.partition("://")[2] == request.headers.get("host")
    if not same_origin and origin not in allowed and "*" not in allowed:
        raise APIError(403, f"Cross-origin request from {origin} refused; allow the origin with --cors-origins.")
    services.check_health()
    services.engine.reset_calibration()
    return replies.Status()


async def list_models(request: Request) -> replies.ModelList:
    services = _services(request)
    return replies.ModelList(data=[services.model_card(name) for name in services.names])


async def retrieve_model(request: Request, model_id: str) -> replies.ModelCard:
    services = _services(request)
    if model_id not in services.names:
        raise unknown_model(model_id, services.names)
    return services.model_card(model_id)


async def health(request: Request) -> replies.Status:
    """Readiness: 200 while the server takes requests, else 503."""
    _services(request).check_health()
    return replies.Status()


async def live() -> replies.Status:
    """Liveness: 200 while the process runs."""
    return replies.Status()


async def show_version() -> replies.Version:
    return replies.Version(version=version())


async def page() -> Response:
    """A web page with a chat that shows drafts and their verification."""
    built = document()
    headers = {"Content-Security-Policy": built.policy, "Referrer-Policy": "no-referrer"}
    return HTMLResponse(built.html, headers=headers)


async def metrics(request: Request) -> Response:
    return Response(_services(request).metrics.exposition(), media_type=CONTENT_TYPE)


def build_router(config: ServerConfig, responses_body: type[ResponsesRequest] = ResponsesRequest) -> APIRouter:
    """Build all routes. With API keys, those that require one document a 401."""
    router = APIRouter()
    add = router.add_api_route
    key = [401] if config.api_key else []

    def add_post(path: str, handler: Callable[..., Any], body: type, reply: openapi.Replies, **options: Any) -> None:
        """Add an endpoint that reads a body; `reply` describes what it streams or {}."""
        error = AnthropicErrorReply if path.startswith("/v1/messages") else replies.ErrorReply
        busy = [429] if reply else []  # endpoints that generate have a queue
        documented = reply | openapi.errors(400, *key, 404, 408, 413, 415, *busy, 500, 503, model=error)
        extra = openapi.request_body(body)
        add(path, handler, methods=["POST"], responses=documented, openapi_extra=extra, **options)

    def add_api(path: str, name: str, body: type, reply: openapi.Replies, operation_id: str | None = None) -> None:
        """Add the endpoint of an API that generates."""

        async def generate(request: Request) -> Response:
            return await _generate(name, request)

        add_post(path, generate, body, reply, name=name, response_model=None, operation_id=operation_id)

    chat, text = bodies.ChatCompletionRequest, bodies.CompletionRequest
    reply = openapi.chunks(replies.ChatCompletion, replies.ChatCompletionChunk)
    add_api("/v1/chat/completions", "chat_completions", chat, reply, "chat")
    reply = openapi.chunks(replies.Completion, replies.CompletionChunk)
    add_api("/v1/completions", "completions", text, reply, "complete")
    add_post("/v1/chat/completions/render", render_chat, chat, {})
    add_post("/v1/completions/render", render_completion, text, {})
    add_api("/v1/responses", "responses", responses_body, openapi.events(ResponseReply))
    add_post("/v1/responses/input_tokens", input_tokens, responses_body, {})
    stored, found = "/v1/responses/{response_id}", openapi.reply(ResponseReply, "A stored response.")
    errors = openapi.errors(400, *key, 404, 503)
    add(stored, retrieve_response, response_class=Response, response_model=None, responses=found | errors)
    add(stored, delete_response, methods=["DELETE"], responses=openapi.errors(*key, 404, 503))
    add_api("/v1/messages", "messages", MessagesRequest, openapi.events(MessageReply))
    add_post("/v1/messages/count_tokens", count_tokens, CountTokensRequest, {})
    add_post("/tokenize", tokenize, bodies.TokenizeRequest, {})
    add_post("/detokenize", detokenize, bodies.DetokenizeRequest, {})
    add("/reset_calibration", reset_calibration, methods=["POST"], responses=openapi.errors(*key, 403, 503))
    add("/v1/models", list_models, responses=openapi.errors(*key, 503))  # 503 while the model loads
    add("/v1/models/{model_id:path}", retrieve_model, responses=openapi.errors(*key, 404, 503))
    for path in ("/health", "/ping"):
        add(path, health, responses=openapi.errors(503))
    add("/live", live)
    html = openapi.text("text/html", "The page.") | openapi.errors(503)
    add("/", page, response_class=HTMLResponse, responses=html)
    add("/version", show_version, responses=openapi.errors(503))
    exposition = openapi.text("text/plain", "Metrics in Prometheus' text format.")
    exposition |= openapi.errors(*(key if config.metrics_auth else []), 503)
    add("/metrics", metrics, response_class=Response, responses=exposition)
    return router
