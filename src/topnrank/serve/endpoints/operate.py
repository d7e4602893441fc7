"""For those who run the server: models, health, metrics, status, the OpenAPI document."""

import asyncio
import time
from typing import TYPE_CHECKING

import topnrank
from topnrank.serve.endpoints.base import JSON, Call, Raw, Route
from topnrank.serve.metrics import CONTENT_TYPE
from topnrank.serve.models import LiveModel
from topnrank.serve.problems import ProblemError
from topnrank.serve.wire import ModelFacts, ModelList, Reloaded, ReloadRequest, Status

if TYPE_CHECKING:
    from topnrank.serve.app import Server


async def models(server: "Server", call: Call) -> ModelList:
    """What is served."""
    return ModelList([_facts(server, live) for live in server.models.live.values()], topnrank.__version__)


def _facts(server: "Server", live: LiveModel) -> ModelFacts:
    served = live.current
    model, values, info = served.model, served.values, served.model.fitted.info
    through = None if server.store is None else served.events_through.get(server.store.identity)
    return ModelFacts(
        name=live.name,
        kind=model.name,
        version=served.version,
        task=model.task_,
        users=len(model.user_map),
        items=len(model.item_map),
        training_rows=info.rows,
        value=values.kind,
        liked=None if info.liked is None else str(info.liked),
        like=values.like if values.kind else None,
        dislike=values.dislike if values.kind else None,
        types=list(values.types),
        explains=served.explains,
        similar=served.finds_similar,
        groups=served.catalog.has_groups,
        modified=served.identity.modified_ns / 1e9,
        loaded=served.loaded,
        events_through=through,
        refused=live.refused,
    )


async def reload(server: "Server", call: Call) -> Reloaded:
    """Takes in the model's file if it is a new one; a file that is not fit is refused, and the old model goes on."""
    name = call.path["model"]
    if name not in server.models.live:
        raise ProblemError(404, f"there is no model {name!r}; the models: {', '.join(server.models.live)}")
    live, body = server.models.live[name], call.body
    changed = await asyncio.to_thread(live.reload, force=body is not None and body.force)
    server.note_swap(live, None)
    return Reloaded(name, live.current.version, changed)


async def health(server: "Server", call: Call) -> Raw:
    """The process lives."""
    return Raw(b'{"status":"ok"}', JSON)


async def ready(server: "Server", call: Call) -> Raw:
    """The models are warm, and events can be stored; 503 where they cannot."""
    if server.store is not None:
        await server.store.check()
    return Raw(b'{"status":"ready"}', JSON)


async def metrics(server: "Server", call: Call) -> Raw:
    """For Prometheus, of all workers of this machine."""
    return Raw(server.metrics.text(), CONTENT_TYPE)


async def status(server: "Server", call: Call) -> Status:
    """What the operator's page shows."""
    store = server.store
    totals = None if store is None else await store.totals()
    log = [] if store is None else await store.refreshes(20)
    return Status(
        version=topnrank.__version__,
        uptime_s=round(time.time() - server.started, 1),
        workers=server.settings.workers,
        models=[_facts(server, live) for live in server.models.live.values()],
        store=None if store is None else store.kind,
        events=0 if totals is None else totals.events,
        last_event=None if totals is None else totals.last_time,
        latency=server.metrics.latencies(),
        refreshes=log,
    )


async def openapi(server: "Server", call: Call) -> Raw:
    """This document."""
    return Raw(server.openapi, JSON)


ROUTES = [
    Route("GET", "/v1/models", "read", models, ModelList, tag="server"),
    Route(
        "POST",
        "/v1/models/{model}/reload",
        "admin",
        reload,
        Reloaded,
        body=ReloadRequest,
        problems=(404,),
        tag="server",
    ),
    Route("GET", "/v1/status", "read", status, Status, problems=(503,), tag="server"),
    Route("GET", "/healthz", None, health, None, tag="server"),
    Route("GET", "/readyz", None, ready, None, problems=(503,), tag="server"),
    Route("GET", "/metrics", "read", metrics, None, tag="server"),
    Route("GET", "/openapi.json", None, openapi, None, tag="server"),
]
