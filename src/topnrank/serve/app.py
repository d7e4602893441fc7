"""The application: what all requests share, and the way from a path to an endpoint."""

import logging
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topnrank.serve import lists
from topnrank.serve.batching import Batcher
from topnrank.serve.catalog import Facts
from topnrank.serve.endpoints import events, explain, inference, items, operate, recommend
from topnrank.serve.endpoints.base import PROBLEM, QUOTED_SLASH, Endpoint, problem_answer, respond
from topnrank.serve.endpoints.page import FOLDER, Page
from topnrank.serve.keys import Keys
from topnrank.serve.metrics import Metrics
from topnrank.serve.models import LiveModel, Models
from topnrank.serve.openapi import document
from topnrank.serve.problems import ProblemError
from topnrank.serve.settings import Settings
from topnrank.serve.store.base import EventStore, open_store
from topnrank.serve.wire import Answer, RecommendRequest

LOG = logging.getLogger("topnrank.serve")
ROUTES = [*recommend.ROUTES, *items.ROUTES, *explain.ROUTES, *events.ROUTES, *operate.ROUTES, *inference.ROUTES]
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
SECURITY = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Server:
    """What endpoints work with, one for each worker."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys.read(settings.api_keys)
        self.metrics = Metrics()
        self.models = Models(settings.models, Facts.read(settings.items))
        self.store: EventStore | None = None
        self.batcher = Batcher(settings.batch_window_ms) if settings.batch_window_ms else None
        self.openapi = document(ROUTES, list(settings.models), with_keys=bool(self.keys))
        self.started = time.time()
        for live in self.models.live.values():
            self._measure(live)

    async def answer(self, request: RecommendRequest) -> Answer:
        """A list."""
        answer = await lists.answer(self.models.get(request.model), request, self.store, self.batcher)
        if answer.unknown_items:
            self.metrics.unknown_items.inc(len(answer.unknown_items))
        return answer

    @asynccontextmanager
    async def running(self, _: Starlette) -> AsyncIterator[None]:
        """From the start of the worker to its end: requests come after the first part and before the last."""
        settings = self.settings
        if settings.events is not None:
            self.store = await open_store(settings.events, durability=settings.durability)
            for live in self.models.live.values():
                self._measure(live)
        if settings.watch_seconds:
            self.models.watch(settings.watch_seconds, self.note_swap)
        try:
            yield
        finally:
            await self.models.close()
            if self.store is not None:
                await self.store.close()

    def note_swap(self, live: LiveModel, error: Exception | None) -> None:
        """Counts and logs what became of a new model file."""
        if error is None:
            self.metrics.swaps.labels(live.name).inc()
            LOG.info("model taken in", extra={"model": live.name, "version": live.current.version})
        else:
            self.metrics.failures.labels(live.name).inc()
            LOG.warning("model refused: %s", error, extra={"model": live.name})
        self._measure(live)

    def _measure(self, live: LiveModel) -> None:
        self.metrics.modified.labels(live.name).set(live.current.identity.modified_ns / 1e9)
        if self.store is not None:
            through = live.current.events_through.get(self.store.identity, 0)
            self.metrics.through.labels(live.name).set(through)


class Shell:
    """Around all requests: a request id, headers of security, the host's name, and a line in the log if wanted."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self.app, self.server = app, server
        self.hosts = frozenset(host.lower() for host in server.settings.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, host = None, b""
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
                request_id = value
            elif name == b"host":
                host = value
        request_id = request_id or os.urandom(12).hex().encode()
        scope["request_id"] = request_id.decode()
        if b"%2" in scope.get("raw_path", b""):
            parts = re.split(b"%2[fF]", scope["raw_path"])
            scope["path"] = QUOTED_SLASH.join(unquote(part.decode("latin-1")) for part in parts)
        begin, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SECURITY, (b"x-request-id", request_id)]
            await send(message)

        if self.hosts and _name(host) not in self.hosts:
            error = ProblemError(
                421, "this server is not called by this name; without keys it serves its own machine only"
            )
            await respond(problem_answer(error, scope), send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)
        if self.server.settings.log_requests:
            facts = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "request_id": scope["request_id"],
            }
            LOG.info("request", extra=facts | {"ms": round(1000 * (time.perf_counter() - begin), 3)})


def _name(host: bytes) -> str:
    """The name in a Host header, without the port."""
    text = host.decode("latin-1").lower()
    return text.rpartition("]")[0].lstrip("[") if text.startswith("[") else text.partition(":")[0]


class _NotAllowed:
    """The ASGI application for methods that a path does not take."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        raise HTTPException(405)


async def _as_problem(request: Request, error: Exception) -> Response:
    """What the router refuses: a path or a method that there is not."""
    assert isinstance(error, HTTPException)
    sentence = {
        404: "there is nothing at this path; /openapi.json lists what there is",
        405: f"this path does not take {request.method}; /openapi.json says what it takes",
    }
    problem = ProblemError(error.status_code, sentence.get(error.status_code, "the request cannot be followed"))
    raw = problem_answer(problem, request.scope)
    headers = {"allow": ", ".join(_allowed(request.scope["path"]))} if error.status_code == 405 else error.headers
    return Response(raw.content, raw.status, headers=headers, media_type=PROBLEM)


def _allowed(path: str) -> list[str]:
    """The methods that there are for a path."""
    return [route.method for route in ROUTES if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route.path), path)] or ["GET"]


async def _failed(request: Request, error: Exception) -> Response:
    """What no endpoint caught."""
    raw = problem_answer(error, request.scope)
    return Response(raw.content, raw.status, media_type=PROBLEM)


def make_app(settings: Settings) -> Starlette:
    """The ASGI application; models are loaded at once, the event store is opened when it starts."""
    server = Server(settings)
    routes: list[BaseRoute] = [
        StarletteRoute(route.path, Endpoint(server, route), methods=[route.method], name=route.name) for route in ROUTES
    ]
    for path in dict.fromkeys(route.path for route in ROUTES):  # before the page, which takes all paths
        routes.append(StarletteRoute(path, _NotAllowed(), methods=None))
    if settings.page and (FOLDER / "index.html").exists():
        routes.append(Mount("/", Page(), name="page"))
    middleware = [Middleware(Shell, server=server)]
    if settings.cors:
        origins: dict[str, Any] = {
            "allow_origins": list(settings.cors),
            "allow_headers": ["authorization", "content-type", "x-api-key"],
        }
        middleware.append(Middleware(CORSMiddleware, **origins, allow_methods=["GET", "POST", "DELETE"]))
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: _as_problem, Exception: _failed},
        lifespan=server.running,
    )
    app.state.server = server
    return app
