"""The OpenAPI document, generated from the table of routes, their schemas and examples."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from importlib.metadata import version
from itertools import groupby
from typing import Any

import msgspec

from unbasket.service.errors import CODES
from unbasket.service.routes import JSON, NDJSON, Route
from unbasket.service.schemas.examples import EXAMPLES, Example
from unbasket.service.schemas.requests import PATH_PARAMETERS
from unbasket.service.schemas.responses import RECEIPT_FIELDS, ErrorDetail, ErrorResponse

_REF = "#/components/schemas/{name}"
_DESCRIPTION = """\
Next-basket recommendations that learn a basket in microseconds and forget it completely.

Ids of a kind (user, basket, item) are all whole numbers or all texts, and 17 is whichever of the two the shop has. In
paths they are URL-encoded. An id has at most 256 bytes in UTF-8, unless the shop allows more. Every error has the same
fields, `{"error": {"code": ..., "message": ...}}`.
"""


_HEADERS = {
    "X-Request-Id": {"description": "The id of the request in the service's log.", "schema": {"type": "string"}},
    "ETag": {"description": "The tag of this content, for If-None-Match.", "schema": {"type": "string"}},
    "Location": {"description": "The address of the new basket.", "schema": {"type": "string"}},
    "Retry-After": {"description": "The seconds after which to try again.", "schema": {"type": "integer"}},
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Describe routes."""
    kinds = [kind for route in routes for kind in (route.body, route.response) if kind not in (None, bytes)]
    _, schemas = msgspec.json.schema_components([*kinds, ErrorResponse], ref_template=_REF)
    for name, text in RECEIPT_FIELDS.items():
        schemas["Receipt"]["properties"][name]["description"] = text
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, EXAMPLES[route.line])
    return {
        "openapi": "3.1.0",
        "info": {"title": "Unbasket", "version": version("unbasket"), "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": _HEADERS,
            "examples": {
                code: {"summary": meaning, "value": msgspec.to_builtins(ErrorResponse(ErrorDetail(code, meaning)))}
                for code, (_, _, meaning) in CODES.items()
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key, or a shopper's token"}
            },
        },
    }


def _schema(kind: Any) -> dict[str, Any]:
    [schema], _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


def _operation(route: Route, example: Example) -> dict[str, Any]:
    tag, own = route.handler.__module__.rpartition(".")[2], ", or the shopper in the path" if route.own else ""
    operation: dict[str, Any] = {
        "operationId": f"{tag}_{route.name}",
        "summary": route.summary,
        "description": f"Role: {' or '.join(sorted(route.roles))}{own}." if route.roles else "Public.",
        "tags": [tag],
        "parameters": _parameters(route, example),
        "responses": _responses(route, example),
        "security": [{"bearer": []}] if route.roles else [],
    }
    if route.body is not None:
        schema = _schema(route.body)
        content = {JSON: {"schema": schema} | ({} if example.body is None else {"example": example.body})}
        if route.accepts_ndjson:
            lines = b"\n".join(map(msgspec.json.encode, example.body)).decode()
            content[NDJSON] = {"schema": schema | {"description": "Its elements, one per line"}, "example": lines}
        operation["requestBody"] = {"required": not route.body_is_optional, "content": content}
    return operation


def _parameters(route: Route, example: Example) -> list[dict[str, Any]]:
    path = [(name, "path", _schema(PATH_PARAMETERS[name])) for name in route.path_params]
    _, components = msgspec.json.schema_components([route.query], ref_template=_REF)
    query = [(name, "query", schema) for name, schema in components[route.query.__name__]["properties"].items()]
    examples, parameters = example.path | example.query, []
    for name, place, schema in path + query:
        # The description of a parameter that may be repeated is that of each of its values.
        text = schema.pop("description", None) or schema["items"].pop("description") + " May be repeated."
        parameter = {"name": name, "in": place, "description": text, "schema": schema}
        shown = {"example": examples[name]} if name in examples else {}
        parameters.append(parameter | shown | ({"required": True} if place == "path" else {}))
    return parameters


def _responses(route: Route, example: Example) -> dict[str, Any]:
    responses: dict[str, Any] = {str(route.status): _good(route, example)}
    if route.has_etag:
        responses["304"] = {"description": "The content has the tag in If-None-Match.", "headers": _headers(["ETag"])}
    for status, group in groupby(route.errors, lambda code: CODES[code].status):
        codes = list(group)
        examples = {code: {"$ref": f"#/components/examples/{code}"} for code in codes}
        responses[str(status)] = {
            "description": "; ".join(f"`{code}`: {CODES[code].meaning}" for code in codes),
            "headers": _headers(["Retry-After"] if status in (429, 503) else []),
            "content": {JSON: {"schema": _schema(ErrorResponse), "examples": examples}},
        }
    if route.path == "/readyz":
        loading = Example({"ready": False, "stage": "reading the database", "progress": [2000, 5000]})
        described = {"description": "The database is being loaded", "headers": _headers(["Retry-After"])}
        responses["503"] = _good(route, loading) | described
    return responses


def _good(route: Route, example: Example) -> dict[str, Any]:
    schema = {"type": "string"} if route.response is bytes else _schema(route.response)
    names = ["ETag"] if route.has_etag else []
    if route.status == 201 and route.path.endswith("/baskets"):
        names.append("Location")
    return {
        "description": HTTPStatus(route.status).phrase,
        "headers": _headers(names),
        "content": {route.media_type: {"schema": schema, "example": example.response}},
    }


def _headers(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *names)}
