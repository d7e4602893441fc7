"""How a request becomes a call of a function, and what it returns an answer: the one way through the server.

Key, size, type and content of the body are checked before the function runs. One object for each route, a plain ASGI
application, because a request costs as much here as its arithmetic does.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Message, Receive, Scope, Send

from topnrank.serve.problems import TITLES, ProblemError, as_problem
from topnrank.serve.wire import MAX_BODY, MAX_ID, Problem

if TYPE_CHECKING:
    from topnrank.serve.app import Server

LOG = logging.getLogger("topnrank.serve")
JSON, NDJSON, PROBLEM = "application/json", "application/x-ndjson", "application/problem+json"
QUOTED_SLASH = "\ue02f"
"""Stands for a slash that was sent as %2F: it belongs to an id, and ends no part of the path."""
_ENCODER = msgspec.json.Encoder()


class Call(NamedTuple):
    """What a request asks for, checked."""

    path: dict[str, str]
    query: Any
    body: Any


class Raw(NamedTuple):
    """An answer that is not JSON, or not of status 200."""

    content: bytes
    content_type: str
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


Handler = Callable[["Server", Call], Awaitable[Any]]


class Route(NamedTuple):
    """An endpoint, for the router and for the OpenAPI document."""

    method: str
    path: str
    scope: str | None
    """What a key must be allowed to do; None: no key is needed"""
    handler: Handler
    answer: Any
    """Type of the answer"""
    body: Any = None
    """Type of the body; None: there is none"""
    query: Any = None
    """Type of the query string; None: there is none"""
    lines: Any = None
    """Type of a line, where the body may also be NDJSON"""
    status: int = 200
    problems: tuple[int, ...] = ()
    """Further problems that may come"""
    tag: str = "recommend"
    plain_errors: bool = False
    """Errors as {"error": ...}, as the Open Inference Protocol has them"""

    @property
    def name(self) -> str:
        """For metrics and the OpenAPI document."""
        return f"{self.method} {self.path}"


class Endpoint:
    """The ASGI application of a route."""

    def __init__(self, server: "Server", route: Route) -> None:
        self.server, self.route = server, route
        self.metrics = server.metrics.route(route.name)
        self.decoder = None if route.body is None else msgspec.json.Decoder(route.body)
        self.lines = None if route.lines is None else msgspec.json.Decoder(route.lines)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; every error is an answer, too."""
        begin = time.perf_counter()
        try:
            raw = await self._answer(scope, receive)
        except Exception as error:
            raw = problem_answer(error, scope)
            if self.route.plain_errors:
                raw = raw._replace(content=_ENCODER.encode({"error": as_problem(error).detail}), content_type=JSON)
        await respond(raw, send)
        self.metrics.observe(raw.status, time.perf_counter() - begin)

    async def _answer(self, scope: Scope, receive: Receive) -> Raw:
        route = self.route
        if route.scope is not None:
            self.server.keys.require(route.scope, scope["headers"])
        path = {name: value.replace(QUOTED_SLASH, "/") for name, value in scope["path_params"].items()}
        for name, value in path.items():
            check_id(name, value)
        query = None if route.query is None else _query(scope["query_string"], route.query)
        body = None if self.decoder is None else self._decoded(scope, await read_body(scope, receive))
        answer = await route.handler(self.server, Call(path, query, body))
        if isinstance(answer, Raw):
            return answer
        return Raw(_ENCODER.encode(answer), JSON, route.status)

    def _decoded(self, scope: Scope, body: bytes) -> Any:
        """The body as a struct."""
        assert self.decoder is not None
        kind = _content_type(scope)
        if not body and not kind and _all_optional(self.route.body):
            return self.route.body()
        try:
            if kind == JSON:
                return self.decoder.decode(body)
            if kind == NDJSON and self.lines is not None:
                return msgspec.convert({"events": self.lines.decode_lines(body)}, self.route.body, from_attributes=True)
        except msgspec.ValidationError as error:
            with suppress(ValueError, RecursionError):
                return msgspec.convert(_whole_numbers(msgspec.json.decode(body)), self.route.body)
            raise ProblemError(422, f"{_sentence(error)}; /openapi.json says what is possible") from None
        except (ValueError, RecursionError) as error:  # DecodeError of msgspec is a ValueError
            raise ProblemError(400, f"the body is not JSON ({str(error).rstrip('.')}); check it") from None
        kinds = JSON if self.lines is None else f"{JSON} or {NDJSON}"
        raise ProblemError(415, f"the body must be JSON; send it with the header Content-Type: {kinds}")


def _whole_numbers(value: Any) -> Any:
    """What was decoded, with integers in the place of floats such as 4.0, which JSON does not tell apart."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole_numbers(one) for one in value]
    return {key: _whole_numbers(one) for key, one in value.items()} if isinstance(value, dict) else value


def _all_optional(kind: Any) -> bool:
    return not any(field.required for field in msgspec.structs.fields(kind))


def _sentence(error: Exception) -> str:
    """A message of msgspec in our words: what is wrong, and where."""
    what, _, where = str(error).partition(" - at `")
    where = where.rstrip("`").removeprefix("$").lstrip(".")
    return f"{where or 'the request'}: {what[:1].lower()}{what[1:]}"


def _content_type(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"content-type":
            return str(value.split(b";")[0].strip().lower().decode("latin-1"))
    return ""


def check_id(name: str, value: str) -> None:
    """ProblemError unless the text may be an id."""
    if not value or len(value) > MAX_ID or "\0" in value:
        raise ProblemError(422, f"{name}: an id has 1 to {MAX_ID} letters, none of them NUL")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ProblemError(422, f"{name}: is no text in UTF-8") from None


def _query(text: bytes, kind: Any) -> Any:
    """The query string as a struct; lists are separated by commas."""
    try:
        given: dict[str, Any] = dict(
            parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
        )
    except (UnicodeDecodeError, ValueError):
        raise ProblemError(400, "the query string cannot be read; percent-encode what is not ASCII") from None
    for field in msgspec.structs.fields(kind):
        if field.name in given and isinstance(field.default_factory, type) and field.default_factory is list:
            given[field.name] = [part for part in given[field.name].split(",") if part]
    try:
        return msgspec.convert(given, kind, strict=False)
    except (msgspec.ValidationError, OverflowError) as error:
        raise ProblemError(422, f"{_sentence(error)}; /openapi.json says what is possible") from None


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body; ProblemError 413 as soon as it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ProblemError(400, "the client went away before the request was whole")
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            raise ProblemError(413, f"a request has at most {MAX_BODY} bytes; send several smaller ones")
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def problem_of(error: Exception, request_id: str | None = None) -> Problem:
    """An error as it goes over the wire."""
    found = as_problem(error)
    return Problem(TITLES.get(found.status, "Error"), found.status, found.detail, request_id)


def problem_answer(error: Exception, scope: Scope) -> Raw:
    """An error as an answer; what nobody foresaw is logged with its traceback."""
    found, request_id = as_problem(error), scope.get("request_id")
    if found.status == 500:
        LOG.error("request failed", exc_info=error, extra={"request_id": request_id, "path": scope["path"]})
    headers = tuple((name.encode(), value.encode()) for name, value in found.headers.items())
    return Raw(_ENCODER.encode(problem_of(error, request_id)), PROBLEM, found.status, headers)


async def respond(raw: Raw, send: Send) -> None:
    """Sends an answer as one piece."""
    headers = [
        (b"content-type", raw.content_type.encode()),
        (b"content-length", b"%d" % len(raw.content)),
        *raw.headers,
    ]
    await send({"type": "http.response.start", "status": raw.status, "headers": headers})
    await send({"type": "http.response.body", "body": raw.content})
