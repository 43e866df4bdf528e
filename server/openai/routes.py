"""The HTTP endpoints, and the path of a generation request through the server."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from engine.errors import KnapServeError
from engine.types import TokenEvent
from server.config import ServerConfig
from server.http.asgi import cancelled_on_disconnect
from server.http.auth import API_KEY
from server.http.bodies import LARGE_BYTES, return_memory_later
from server.http.errors import FACTS, APIError, as_api_error, invalid, unknown_model
from server.http.lifecycle import version
from server.http.sse import EventStream
from server.metrics.meter import RequestMeter
from server.metrics.registry import CONTENT_TYPE
from server.openai.generation import Generation
from server.openai.replies import schemas as reply_schemas
from server.openai.replies.build import Chunker, Usage
from server.openai.requests import schemas
from server.openai.requests.adapted import AdaptedTranslator
from server.openai.requests.translate import ParsedRequest, RequestTranslator
from server.openai.services import Services, in_thread
from server.ui import document

_SHORT_BYTES = 2000  # of a body; chats in longer ones have threads of their own
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


async def _generate(request: Request, translator: RequestTranslator) -> Response:
    """Answer a generation request. Errors before the first token are raised, so the client gets their status code."""
    services = _services(request)
    meter = RequestMeter(services.metrics, arrival=time.perf_counter())
    request.scope[FACTS] = meter.facts

    def as_error(error: Exception) -> APIError:
        failure = translator.renamed(as_api_error(error, translator.prompt_param))
        meter.facts |= failure.facts
        return failure

    try:
        parsed = await _parse_body(request, translator.parse, translator.size, renders=translator.renders)
    except (APIError, KnapServeError) as error:
        services.metrics.rejected("invalid")
        raise as_error(error) from None
    meter.facts |= services.facts(parsed)
    key = _key(request) if len(services.config.api_key) > 1 else ""
    try:
        generation = services.submit(parsed, meter, key)
        if parsed.stream:
            return EventStream(
                generation,
                _frames(generation, parsed),
                keep_alive=services.config.keepalive_seconds,
                comment=parsed.writer.keep_alive,
                done=parsed.writer.done,
                as_error=as_error,
                error_frame=parsed.writer.error,
            )
        async with cancelled_on_disconnect(request.receive), generation:
            return await _complete_reply(generation, parsed)
    except (APIError, KnapServeError) as error:
        raise as_error(error) from None


async def _frames(generation: Generation, parsed: ParsedRequest) -> AsyncGenerator[tuple[bytes, bool], None]:
    """Yield the frames of a stream, and whether they are the last."""
    writer, chunker = parsed.writer, Chunker(parsed.format, parsed.usage)

    def frames(index: int, event: TokenEvent) -> bytes:
        return writer.frames(chunker.step(index, event))

    async with aclosing(generation.events()) as events:
        async for index, event in events:
            data = await _convert(frames, index, event)
            if chunker.repeats(index):
                generation.end(index)
            yield data + writer.frames(chunker.end()) if generation.finished else data, generation.finished


async def _complete_reply(generation: Generation, parsed: ParsedRequest) -> Response:
    writer, chunker = parsed.writer, Chunker(parsed.format, Usage.AT_END)

    def add(index: int, event: TokenEvent) -> None:
        writer.add(chunker.step(index, event))

    async with aclosing(generation.events()) as events:
        async for index, event in events:
            await _convert(add, index, event)
            if chunker.repeats(index):
                generation.end(index)
    writer.add(chunker.end())
    body = writer.encode()
    if len(body) > LARGE_BYTES:
        return_memory_later()
    return Response(body, media_type="application/json")


async def _convert(function: Callable[[int, TokenEvent], Converted], index: int, event: TokenEvent) -> Converted:
    """Call `function` with an event of choice `index`, in a thread if the event has the log-probabilities of a prompt.

    Those of a thousand tokens take 5 ms and more.
    """
    if len(event.prompt_logprobs) < _INLINE_LOGPROBS:
        return function(index, event)
    return await asyncio.to_thread(function, index, event)


async def chat_completions(request: Request) -> Response:
    return await _generate(request, _services(request).chat)


async def completions(request: Request) -> Response:
    return await _generate(request, _services(request).completions)


async def responses(request: Request) -> Response:
    return await _generate(request, _services(request).responses.for_request(_key(request)))


async def retrieve_response(request: Request, response_id: str) -> Response:
    if request.query_params.get("stream", "false").lower() not in ("false", "0"):
        raise invalid("A stored response cannot be streamed.", "stream")
    found = _services(request).stored.get(response_id, _key(request))
    if found is None:
        raise _no_response(response_id)
    return Response(found.reply, media_type="application/json")


async def delete_response(request: Request, response_id: str) -> reply_schemas.Deleted:
    if not _services(request).stored.remove(response_id, _key(request)):
        raise _no_response(response_id)
    return reply_schemas.Deleted(id=response_id)


def _no_response(id: str) -> APIError:
    return APIError(404, f"Response with id {id!r:.80} not found.")


async def messages(request: Request) -> Response:
    return await _generate(request, _services(request).messages)


async def count_tokens(request: Request) -> Response:
    return JSONResponse({"input_tokens": await _count_tokens(request, _services(request).messages)})


async def input_tokens(request: Request) -> Response:
    count = await _count_tokens(request, _services(request).responses.for_request(_key(request)))
    return JSONResponse({"object": "response.input_tokens", "input_tokens": count})


async def _count_tokens(request: Request, translator: AdaptedTranslator) -> int:
    try:
        return await _parse_body(request, translator.count_tokens, translator.size, renders=True)
    except (APIError, KnapServeError) as error:
        raise translator.renamed(as_api_error(error, translator.prompt_param)) from None


async def render_chat(request: Request) -> reply_schemas.Rendered:
    return (await _render(request, _services(request).chat))[0]


async def render_completion(request: Request) -> list[reply_schemas.Rendered]:
    return await _render(request, _services(request).completions)


async def _render(request: Request, translator: RequestTranslator) -> list[reply_schemas.Rendered]:
    """Return the prompts that a request would generate from, without generating."""
    parsed = await _parse_body(request, translator.parse, renders=translator.renders)
    tokenizer = _services(request).engine.tokenizer
    return [
        reply_schemas.Rendered(
            request_id=parsed.id, model=parsed.model, prompt=tokenizer.decode(prompt), token_ids=[*prompt]
        )
        for prompt in parsed.prompts
    ]


async def tokenize(request: Request) -> reply_schemas.Tokenized:
    return await _parse_body(request, _services(request).tokens.tokenize, renders=True)


async def detokenize(request: Request) -> reply_schemas.Detokenized:
    return await _parse_body(request, _services(request).tokens.detokenize, renders=False)


async def reset_calibration(request: Request) -> reply_schemas.Status:
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
    return reply_schemas.Status()


async def list_models(request: Request) -> reply_schemas.ModelList:
    services = _services(request)
    return reply_schemas.ModelList(data=[services.model_card(name) for name in services.names])


async def retrieve_model(request: Request, model_id: str) -> reply_schemas.ModelCard:
    services = _services(request)
    if model_id not in services.names:
        raise unknown_model(model_id, services.names)
    return services.model_card(model_id)


async def health(request: Request) -> reply_schemas.Status:
    """Readiness: 200 while the server takes requests, else 503."""
    _services(request).check_health()
    return reply_schemas.Status()


async def live() -> reply_schemas.Status:
    """Liveness: 200 while the process runs."""
    return reply_schemas.Status()


async def show_version() -> reply_schemas.Version:
    return reply_schemas.Version(version=version())


async def page() -> Response:
    """A web page with a chat that shows drafts and their verification."""
    built = document()
    headers = {"Content-Security-Policy": built.policy, "Referrer-Policy": "no-referrer"}
    return HTMLResponse(built.html, headers=headers)


async def metrics(request: Request) -> Response:
    return Response(_services(request).metrics.exposition(), media_type=CONTENT_TYPE)


_DESCRIPTIONS = {
    400: "Invalid or unsupported request, or one that exceeds the context length.",
    401: "Missing or incorrect API key.",
    403: "Cross-origin request refused.",
    404: "Unknown model, response or item.",
    408: "The request body did not arrive in time.",
    413: "Request body too large.",
    415: "Request body with a Content-Encoding.",
    429: "Queue full; retry after `Retry-After` seconds.",
    500: "Internal server error.",
    503: "The server is loading or shutting down, or its engine has failed.",
}


def _reference(kind: type | str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind if isinstance(kind, str) else kind.__name__}"}


def _event(chunk: type) -> dict[str, Any]:
    """Describe an event of a stream in OpenAPI 3.2: a chunk or an error in JSON, or `[DONE]` at the end."""
    payload = {"anyOf": [_reference(chunk), _reference(reply_schemas.ErrorReply)]}
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": payload}
    return {"type": "object", "properties": {"data": {"anyOf": [{"const": "[DONE]"}, data]}}, "required": ["data"]}


Responses = dict[int | str, dict[str, Any]]  # by status, as FastAPI takes them


def _errors(*statuses: int, model: type = reply_schemas.ErrorReply) -> Responses:
    content = {"application/json": {"schema": _reference(model)}}
    return {status: {"content": content, "description": _DESCRIPTIONS[status]} for status in sorted(statuses)}


def _request_body(model: type | str) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _reference(model)}}}}


_STREAMED = "The complete reply, or a stream of {} if `stream` is true."
_STRING = {"type": "string"}


def _chunks(reply: type, chunk: type) -> Responses:
    """Describe a reply of OpenAI's older APIs: an object, or a stream of chunks."""
    content = {"text/event-stream": {"itemSchema": _event(chunk)}}
    return {200: {"model": reply, "description": _STREAMED.format("chunks"), "content": content}}


def _events() -> Responses:
    """Describe a reply of another API: an object, or a stream of named events."""
    event = {"type": "object", "properties": {"event": _STRING, "data": _STRING}, "required": ["event", "data"]}
    content = {"application/json": {"schema": {"type": "object"}}, "text/event-stream": {"itemSchema": event}}
    return {200: {"description": _STREAMED.format("events"), "content": content}}


def _text(media_type: str, description: str) -> Responses:
    schema = {"type": "object"} if media_type == "application/json" else _STRING
    return {200: {"description": description, "content": {media_type: {"schema": schema}}}}


def build_router(config: ServerConfig) -> APIRouter:
    """Build all routes. With API keys, those that require one document a 401."""
    router = APIRouter()
    add = router.add_api_route
    key = [401] if config.api_key else []

    def add_post(path: str, handler: Callable[..., Any], body: type | str, reply: Responses, **options: Any) -> None:
        """Add an endpoint that reads a body; `reply` describes what it streams or {}."""
        error = reply_schemas.AnthropicErrorReply if path.startswith("/v1/messages") else reply_schemas.ErrorReply
        busy = [429] if reply else []  # of those that generate
        responses = reply | _errors(400, *key, 404, 408, 413, 415, *busy, 500, 503, model=error)
        add(path, handler, methods=["POST"], responses=responses, openapi_extra=_request_body(body), **options)

    chat, text = schemas.ChatCompletionRequest, schemas.CompletionRequest
    reply = _chunks(reply_schemas.ChatCompletion, reply_schemas.ChatCompletionChunk)
    add_post("/v1/chat/completions", chat_completions, chat, reply, operation_id="chat", response_model=None)
    reply = _chunks(reply_schemas.Completion, reply_schemas.CompletionChunk)
    add_post("/v1/completions", completions, text, reply, operation_id="complete", response_model=None)
    add_post("/v1/chat/completions/render", render_chat, chat, {})
    add_post("/v1/completions/render", render_completion, text, {})
    add_post("/v1/responses", responses, "ResponsesRequest", _events())
    add_post("/v1/responses/input_tokens", input_tokens, "ResponsesRequest", {})
    stored, found = "/v1/responses/{response_id}", _text("application/json", "A stored response.")
    add(stored, retrieve_response, response_class=Response, responses=found | _errors(400, *key, 404, 503))
    add(stored, delete_response, methods=["DELETE"], responses=_errors(*key, 404, 503))
    add_post("/v1/messages", messages, "MessagesRequest", _events())
    add_post("/v1/messages/count_tokens", count_tokens, "CountTokensRequest", {})
    add_post("/tokenize", tokenize, schemas.TokenizeRequest, {})
    add_post("/detokenize", detokenize, schemas.DetokenizeRequest, {})
    add("/reset_calibration", reset_calibration, methods=["POST"], responses=_errors(*key, 403, 503))
    add("/v1/models", list_models, responses=_errors(*key, 503))  # 503 while the model loads
    add("/v1/models/{model_id:path}", retrieve_model, responses=_errors(*key, 404, 503))
    for path in ("/health", "/ping"):
        add(path, health, responses=_errors(503))
    add("/live", live)
    html = _text("text/html", "The page.") | _errors(503)
    add("/", page, response_class=HTMLResponse, responses=html)
    add("/version", show_version, responses=_errors(503))
    exposition = _text("text/plain", "Metrics in Prometheus' text format.")
    exposition |= _errors(*(key if config.metrics_auth else []), 503)
    add("/metrics", metrics, response_class=Response, responses=exposition)
    return router
