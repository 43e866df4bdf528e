"""Build the ASGI application that serves an engine."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from engine.api import Engine
from engine.errors import KnapServeError
from server.anthropic.translate import CountTokensTranslator, MessagesTranslator
from server.config import ServerConfig
from server.http.asgi import CorsErrorMiddleware, InternalErrorMiddleware, RequestIdMiddleware
from server.http.auth import AuthMiddleware
from server.http.errors import APIError, as_api_error, from_http_exception
from server.http.lifecycle import version
from server.metrics.throughput import ThroughputLog
from server.openai.replies.schemas import AnthropicErrorReply, ChatCompletionChunk, CompletionChunk, ErrorReply
from server.openai.requests.adapted import AdaptedTranslator
from server.openai.requests.schemas import ChatCompletionRequest, CompletionRequest, DetokenizeRequest, TokenizeRequest
from server.openai.responses.stored import StoringTranslator
from server.openai.routes import build_router
from server.openai.services import Services

_BODIES = (ChatCompletionRequest, CompletionRequest, TokenizeRequest, DetokenizeRequest)
_ADAPTED: dict[str, type[AdaptedTranslator]] = {
    "ResponsesRequest": StoringTranslator,
    "MessagesRequest": MessagesTranslator,
    "CountTokensRequest": CountTokensTranslator,
}
_REPLIES = (ChatCompletionChunk, CompletionChunk, ErrorReply, AnthropicErrorReply)


class _App(FastAPI):
    """FastAPI with our models of requests, chunks and errors in its OpenAPI document.

    FastAPI does not know these models: the endpoints parse bodies and write streams and errors themselves.
    """

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            _, models = models_json_schema(
                [*((kind, "validation") for kind in _BODIES), *((kind, "serialization") for kind in _REPLIES)],
                ref_template="#/components/schemas/{model}",
            )
            document["components"]["schemas"].update(models["$defs"])
            document["components"]["schemas"].update({name: kind.body_schema() for name, kind in _ADAPTED.items()})
            for name in ("HTTPValidationError", "ValidationError"):
                document["components"]["schemas"].pop(name, None)
            for operations in document["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)  # no endpoint returns FastAPI's own 422
        return super().openapi()


async def _error_response(request: Request, error: Exception) -> Response:
    return as_api_error(error).response(request.scope)


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return from_http_exception(request, error, request.app.state.routes).response(request.scope)


def create_app(engine: Engine, config: ServerConfig) -> FastAPI:
    """Create an application that starts `engine` at startup and drains it at shutdown. Its state is in `app.state`."""
    services = Services(engine, config)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await engine.start()
        gc.freeze()  # loaded objects live as long as the process; the collector can skip them
        stats_log = None
        if config.log_stats_interval:
            stats_log = asyncio.create_task(ThroughputLog(services.metrics, engine).every(config.log_stats_interval))
        try:
            yield
        finally:
            if stats_log is not None:
                stats_log.cancel()
            await services.drain()

    app = _App(
        title="KnapServe",
        version=version(),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={APIError: _error_response, KnapServeError: _error_response, HTTPException: _http_exception},
    )
    app.state.services = services
    router = build_router(config)
    app.state.routes = [route for route in router.routes if isinstance(route, APIRoute)]
    app.include_router(router)
    # The middleware added last sees a request first.
    if config.api_key:
        app.add_middleware(AuthMiddleware, keys=config.api_key, metrics=config.metrics_auth)
    app.add_middleware(InternalErrorMiddleware)
    if config.cors_origins:
        app.add_middleware(
            CorsErrorMiddleware,
            allow_origins=config.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            allow_private_network=True,
            expose_headers=["x-request-id", "request-id", "retry-after"],
        )
    app.add_middleware(RequestIdMiddleware, log_requests=config.log_requests, count=services.metrics.http)
    return app
