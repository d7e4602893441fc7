"""The OpenAPI 3.1 document, made from the same table and structs that answer requests."""

import inspect
import re
from collections.abc import Sequence
from typing import Any

import msgspec

import topnrank
from topnrank.serve.endpoints.base import JSON, NDJSON, PROBLEM, Route
from topnrank.serve.problems import TITLES
from topnrank.serve.wire import MAX_ID, Problem

TAGS = {
    "recommend": "Lists of the best items, and why.",
    "items": "The catalog.",
    "events": "What users do; it counts in the next answer.",
    "open inference protocol": "Version 2, for KServe, Seldon, Triton and their clients.",
    "server": "Models, health and metrics.",
}
_SOMEBODY = {
    "anyOf": [
        {"required": ["user"], "properties": {"user": {"type": ["string", "integer"]}}},
        {"required": ["history"], "properties": {"history": {"type": "array"}}},
    ]
}
"""A user, a history, or both: the rule that a struct cannot say."""
_REF = "#/components/schemas/{name}"
_PLACE = re.compile(r"\{(\w+)\}")


def document(routes: Sequence[Route], models: Sequence[str], *, with_keys: bool) -> bytes:
    """The document as JSON."""
    kinds = [
        Problem,
        *(kind for route in routes for kind in (route.answer, route.body, route.lines) if kind is not None),
    ]
    schemas, components = msgspec.json.schema_components(list(dict.fromkeys(kinds)), ref_template=_REF)
    by_kind = dict(zip(dict.fromkeys(kinds), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind, models, with_keys)
    security = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "topnrank",
            "version": topnrank.__version__,
            "summary": "Top-N recommendations from a model file.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {"schemas": components, **({"securitySchemes": security} if with_keys else {})},
    }
    return msgspec.json.encode(whole)


def _operation(route: Route, by_kind: dict[Any, Any], models: Sequence[str], with_keys: bool) -> dict[str, Any]:
    summary, _, more = (inspect.getdoc(route.handler) or "").partition("\n")
    content = {JSON: {"schema": {"type": "object"} if route.answer is None else by_kind[route.answer]}}
    if route.path == "/metrics":
        content = {"text/plain": {"schema": {"type": "string"}}}
    operation: dict[str, Any] = {
        "operationId": f"{'oip_' * route.plain_errors}{route.handler.__name__}",
        "tags": [route.tag],
        "summary": summary,
        "responses": {str(route.status): {"description": "As asked.", "content": content}},
    }
    if more.strip():
        operation["description"] = " ".join(more.split())
    if parameters := [*_path_parameters(route, models), *_query_parameters(route)]:
        operation["parameters"] = parameters
    if route.body is not None:
        schema = by_kind[route.body]
        if "history" in route.body.__struct_fields__:
            schema = {"allOf": [schema, _SOMEBODY]}
        bodies = {JSON: {"schema": schema}}
        if route.lines is not None:
            bodies[NDJSON] = {"schema": {"type": "string", "description": "One JSON object on each line."}}
        operation["requestBody"] = {
            "required": any(f.required for f in msgspec.structs.fields(route.body)),
            "content": bodies,
        }
    problem = {"content": {PROBLEM: {"schema": by_kind[Problem]}}}
    if route.plain_errors:
        error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
        problem = {"content": {JSON: {"schema": error}}}
    for status in sorted({*_problems(route), *([401, 403] if with_keys and route.scope else []), *route.problems}):
        operation["responses"][str(status)] = {"description": TITLES[status], **problem}
    if with_keys and route.scope is not None:
        operation["security"] = [{"bearer": []}, {"key": []}]
        operation["description"] = f"{operation.get('description', '')} A key needs the scope {route.scope}.".strip()
    return operation


def _problems(route: Route) -> set[int]:
    """Statuses that come by the form of the endpoint."""
    found = set()
    if route.body is not None:
        found |= {400, 413, 415, 422}
    if route.query is not None:
        found |= {400, 404, 422}
    if "{" in route.path:
        found |= {404, 422}
    if route.scope is not None and route.tag == "recommend":
        found |= {503, 404}
    return found


def _path_parameters(route: Route, models: Sequence[str]) -> list[dict[str, Any]]:
    schemas: dict[str, Any] = {"model": {"type": "string", "enum": list(models)}}
    usual = {"type": "string", "minLength": 1, "maxLength": MAX_ID}
    names = _PLACE.findall(route.path)
    return [{"name": one, "in": "path", "required": True, "schema": schemas.get(one, usual)} for one in names]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    (_,), components = msgspec.json.schema_components([route.query], ref_template=_REF)
    properties = components[route.query.__name__]["properties"]
    parameters = []
    for name, schema in properties.items():
        one: dict[str, Any] = {"name": name, "in": "query", "required": False, "schema": schema}
        if schema.get("type") == "array":
            one |= {"style": "form", "explode": False}
        parameters.append(one)
    return parameters
