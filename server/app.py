"""Build the ASGI application that serves an engine."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from engine.api import Engine
from server import openapi
from server.apis import bodies, replies
from server.apis.messages.bodies import CountTokensRequest
from server.apis.messages.replies import AnthropicErrorReply
from server.apis.paths import PATHS
from server.config import ServerConfig
from server.edge.asgi import CorsErrorMiddleware, ErrorMiddleware, RequestIdMiddleware
from server.edge.auth import AuthMiddleware
from server.edge.errors import from_http_exception
from server.edge.lifecycle import version
from server.metrics.throughput import ThroughputLog
from server.routes import build_router
from server.services import Services

# Models of the OpenAPI document, beside the bodies of the APIs.
_BODIES = (bodies.TokenizeRequest, bodies.DetokenizeRequest, CountTokensRequest)
_STREAMED = (replies.ChatCompletionChunk, replies.CompletionChunk, replies.ErrorReply, AnthropicErrorReply)


class _App(FastAPI):
    """FastAPI with our models in its OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            services: Services = self.state.services
            openapi.complete(document, (*_BODIES, *(api.body for api in services.apis.values())), _STREAMED)
        return super().openapi()


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return from_http_exception(request, error, request.app.state.routes).response(request.scope)


def create_app(engine: Engine, config: ServerConfig) -> FastAPI:
    """Create an application that starts `engine` at startup, and drains it at shutdown."""
    services = Services(engine, config)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await engine.start()
        gc.freeze()  # loaded objects live as long as the process; the collector can skip them
        stats_log = None
        if config.log_stats_interval:
            stats_log = asyncio.create_task(ThroughputLog(engine).every(config.log_stats_interval))
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
        exception_handlers={HTTPException: _http_exception},
    )
    app.state.services = services
    router = build_router(config, services.responses.body)
    app.state.routes = [route for route in router.routes if isinstance(route, APIRoute)]
    services.metrics.handlers = [(route.path_regex, route.path_format) for route in app.state.routes]
    app.include_router(router)
    # The middleware added last sees a request first.
    if config.api_key:
        app.add_middleware(AuthMiddleware, keys=config.api_key, metrics=config.metrics_auth)
    app.add_middleware(ErrorMiddleware)
    if config.cors_origins:
        app.add_middleware(
            CorsErrorMiddleware,
            allow_origins=config.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            allow_private_network=True,
            expose_headers=["x-request-id", "request-id", "retry-after"],
        )
    app.add_middleware(RequestIdMiddleware, paths=PATHS, log_requests=config.log_requests, count=services.metrics.http)
    return app
