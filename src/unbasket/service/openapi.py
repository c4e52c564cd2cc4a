"""The OpenAPI document, generated from the table of routes."""

from collections.abc import Sequence
from http import HTTPStatus
from importlib.metadata import version
from itertools import groupby
from typing import Any

import msgspec

from unbasket.service.errors import CODES, ErrorResponse
from unbasket.service.routes import JSON, NDJSON, Route

_REF = "#/components/schemas/{name}"
_DESCRIPTION = """\
Next-basket recommendations that learn a basket in microseconds and forget it completely.

Ids of a kind (user, basket, item) are all whole numbers or all texts, and 17 is whichever of the two the shop has. In
paths they are URL-encoded. An id has at most 256 bytes in UTF-8, unless the shop allows more. Every error has the same
fields, `{"error": {"code": ..., "message": ...}}`.
"""


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Describe routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Unbasket", "version": version("unbasket"), "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key, or a shopper's token"}
            },
        },
    }


def _schemas(routes: Sequence[Route]) -> dict[str, Any]:
    kinds = [kind for route in routes for kind in (route.body, route.response) if kind not in (None, bytes)]
    _, components = msgspec.json.schema_components([*kinds, ErrorResponse], ref_template=_REF)
    return components


def _schema(kind: Any) -> dict[str, Any]:
    [schema], _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


def _operation(route: Route) -> dict[str, Any]:
    tag = route.handler.__module__.rpartition(".")[2]
    operation: dict[str, Any] = {
        "operationId": f"{tag}_{route.name}",
        "summary": route.summary,
        "description": _access(route),
        "tags": [tag],
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _responses(route),
        "security": [{"bearer": []}] if route.roles else [],
    }
    if route.body is not None:
        content = {JSON: {"schema": _schema(route.body)}}
        if route.accepts_ndjson:
            content[NDJSON] = {"schema": _schema(route.body) | {"description": "Its elements, one per line"}}
        operation["requestBody"] = {"required": not route.body_is_optional, "content": content}
    return operation


def _access(route: Route) -> str:
    if not route.roles:
        return "Public."
    return f"Role: {' or '.join(sorted(route.roles))}{', or the shopper in the path' if route.own else ''}."


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 1} if name == "number" else {"type": "string", "minLength": 1},
        }
        for name in route.path_params
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    _, components = msgspec.json.schema_components([route.query], ref_template=_REF)
    properties = components[route.query.__name__]["properties"]
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]


def _responses(route: Route) -> dict[str, Any]:
    responses: dict[str, Any] = {str(route.status): _good(route)}
    for status, codes in groupby(route.errors, lambda code: CODES[code].status):
        responses[str(status)] = {
            "description": "; ".join(f"`{code}`: {CODES[code].meaning}" for code in codes),
            "content": {JSON: {"schema": _schema(ErrorResponse)}},
        }
    if route.path == "/readyz":
        responses["503"] = _good(route) | {"description": "The database is being loaded"}
    return responses


def _good(route: Route) -> dict[str, Any]:
    schema = {"type": "string"} if route.response is bytes else _schema(route.response)
    good: dict[str, Any] = {
        "description": HTTPStatus(route.status).phrase,
        "content": {route.media_type: {"schema": schema}},
    }
    if route.status == 201 and route.path.endswith("/baskets"):
        good["headers"] = {"Location": {"description": "The new basket", "schema": {"type": "string"}}}
    return good
