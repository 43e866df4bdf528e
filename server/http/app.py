"""The ASGI application over an engine."""

from __future__ import annotations

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
from server.config import ServerConfig
from server.http.asgi import BodyLimitMiddleware, BrowserMiddleware, EdgeMiddleware, FailureMiddleware
from server.http.auth import AuthMiddleware
from server.http.errors import APIError, any_api_error, from_http_exception
from server.http.lifecycle import version
from server.metrics.throughput import ThroughputLog
from server.openai.replies.schemas import ChatCompletionChunk, CompletionChunk
from server.openai.requests.schemas import ChatCompletionRequest, CompletionRequest, DetokenizeRequest, TokenizeRequest
from server.openai.routes import Services, build_router

_BODIES = (ChatCompletionRequest, CompletionRequest, TokenizeRequest, DetokenizeRequest)
_CHUNKS = (ChatCompletionChunk, CompletionChunk)


class _App(FastAPI):
    """FastAPI, with requests and chunks in its OpenAPI document: we parse bodies and write streams, not FastAPI."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            _, models = models_json_schema(
                [*((kind, "validation") for kind in _BODIES), *((kind, "serialization") for kind in _CHUNKS)],
                ref_template="#/components/schemas/{model}",
            )
            document["components"]["schemas"].update(models["$defs"])
            for name in ("HTTPValidationError", "ValidationError"):
                document["components"]["schemas"].pop(name, None)
            for operations in document["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)  # no endpoint answers with FastAPI's own 422
        return super().openapi()


async def _failed(request: Request, error: Exception) -> Response:
    return any_api_error(error).response(request.scope)


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return from_http_exception(request, error, request.app.state.paths).response()


def create_app(engine: Engine, config: ServerConfig) -> FastAPI:
    """An application that serves `engine`: started with the app, drained at its end. All state hangs off the app."""
    services = Services(engine, config)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await engine.start()
        gc.freeze()  # what was loaded stays: the collector need not look at it again
        lines = None
        if config.log_stats_interval:
            lines = asyncio.create_task(ThroughputLog(services.metrics, engine).every(config.log_stats_interval))
        try:
            yield
        finally:
            if lines is not None:
                lines.cancel()
            await services.drain()

    app = _App(
        title="KnapServe",
        version=version(),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={APIError: _failed, KnapServeError: _failed, HTTPException: _http_exception},
    )
    app.state.services = services
    router = build_router(config)
    app.state.paths = [route.path for route in router.routes if isinstance(route, APIRoute) and "{" not in route.path]
    app.include_router(router)
    # The last one added sees a request first.
    app.add_middleware(BodyLimitMiddleware, limit=config.max_body_size)
    if config.api_key:
        app.add_middleware(AuthMiddleware, keys=config.api_key, metrics=config.metrics_auth)
    app.add_middleware(FailureMiddleware)
    if config.cors_origins:
        app.add_middleware(
            BrowserMiddleware,
            allow_origins=config.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["x-request-id", "retry-after"],
        )
    app.add_middleware(EdgeMiddleware, log_requests=config.log_requests, count=services.metrics.http)
    return app
