"""The OpenAPI document, from the table of calls."""

from collections.abc import Iterable
from http import HTTPStatus
from importlib.metadata import version
from itertools import groupby
from typing import Any

import msgspec

from unbasket.service.errors import CODES, ErrorAnswer
from unbasket.service.routes import JSON, NDJSON, Call

_REF = "#/components/schemas/{name}"
_DESCRIPTION = """\
Next-basket recommendations that learn a basket in microseconds and forget it completely.

Ids are whole numbers or texts; in paths they are URL-encoded, and `"17"` in quotes is always text. Every error has
one shape, `{"error": {"code": ..., "message": ...}}`.
"""


def document(calls: Iterable[Call]) -> dict[str, Any]:
    """The description of calls."""
    calls = list(calls)
    paths: dict[str, dict[str, Any]] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Unbasket", "version": version("unbasket"), "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": _schemas(calls),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key, or a shopper's token"}
            },
        },
    }


def _schemas(calls: list[Call]) -> dict[str, Any]:
    kinds = [kind for call in calls for kind in (call.body, call.answer) if kind not in (None, bytes)]
    _, components = msgspec.json.schema_components([*kinds, ErrorAnswer], ref_template=_REF)
    return components


def _schema(kind: Any) -> dict[str, Any]:
    [schema], _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


def _operation(call: Call) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{call.handler.__module__.rpartition('.')[2]}_{call.name}",
        "summary": call.summary,
        "description": _who(call),
        "tags": [_tag(call)],
        "parameters": [*_path_parameters(call), *_query_parameters(call)],
        "responses": _responses(call),
        "security": [{"bearer": []}] if call.roles else [],
    }
    if call.body is not None:
        content = {JSON: {"schema": _schema(call.body)}}
        if call.takes_lines:
            content[NDJSON] = {"schema": _schema(call.body) | {"description": "Its elements, one per line"}}
        operation["requestBody"] = {"required": not call.body_is_optional, "content": content}
    return operation


def _who(call: Call) -> str:
    if not call.roles:
        return "Open to everybody."
    return f"Role: {' or '.join(sorted(call.roles))}{', or the shopper whom it is about' if call.own else ''}."


def _tag(call: Call) -> str:
    return call.handler.__module__.rpartition(".")[2]


def _path_parameters(call: Call) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 1} if name == "number" else {"type": "string", "minLength": 1},
        }
        for name in call.places
    ]


def _query_parameters(call: Call) -> list[dict[str, Any]]:
    _, components = msgspec.json.schema_components([call.query], ref_template=_REF)
    properties = components[call.query.__name__]["properties"]
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]


def _responses(call: Call) -> dict[str, Any]:
    responses: dict[str, Any] = {str(call.status): _good(call)}
    for status, codes in groupby(call.errors, lambda code: CODES[code].status):
        responses[str(status)] = {
            "description": "; ".join(f"`{code}`: {CODES[code].meaning}" for code in codes),
            "content": {JSON: {"schema": _schema(ErrorAnswer)}},
        }
    if call.path == "/readyz":
        responses["503"] = _good(call) | {"description": "The shop is being loaded"}
    return responses


def _good(call: Call) -> dict[str, Any]:
    schema = {"type": "string"} if call.answer is bytes else _schema(call.answer)
    good: dict[str, Any] = {
        "description": HTTPStatus(call.status).phrase,
        "content": {call.media_type: {"schema": schema}},
    }
    if call.status == 201 and call.path.endswith("/baskets"):
        good["headers"] = {"Location": {"description": "The new basket", "schema": {"type": "string"}}}
    return good
