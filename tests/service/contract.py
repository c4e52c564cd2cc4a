"""The contract of the HTTP API: checks of real requests and responses against the OpenAPI document."""

import json
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jsonschema import Draft202012Validator

from unbasket.service.openapi import document
from unbasket.service.routes import NDJSON, ROUTES, Route, Router

DOCUMENT = document(ROUTES)
_router = Router(ROUTES)


def route_of(method: str, url: str) -> Route:
    """Return the route of a request; raises for an address that is not in the document."""
    return _router.find(method, urlsplit(url).path.encode())[0]


def operation_of(route: Route) -> dict[str, Any]:
    """Return the description of a route."""
    found: dict[str, Any] = DOCUMENT["paths"][route.path][route.method.lower()]
    return found


def request_faults(method: str, url: str, content_type: str, body: bytes) -> list[str]:
    """Return the faults of a request: parameters and body that the document does not allow."""
    operation = operation_of(route_of(method, url))
    return [*_parameter_faults(operation, url), *_body_faults(operation, content_type, body)]


def _parameter_faults(operation: dict[str, Any], url: str) -> list[str]:
    described = {each["name"]: each["schema"] for each in operation["parameters"] if each["in"] == "query"}
    given: dict[str, Any] = {}
    for name, text in parse_qsl(urlsplit(url).query, keep_blank_values=True):
        if name not in described:
            return [f"{url}: no query parameter {name!r}"]
        if described[name].get("type") == "array":
            given.setdefault(name, []).append(text)
        else:
            given[name] = text if described[name].get("type") == "string" else _parsed(text)
    return [fault for name, value in given.items() for fault in faults(described[name], value, f"query {name}")]


def _parsed(text: str) -> Any:
    """Return the number or the truth value that a query parameter spells, or else its text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _body_faults(operation: dict[str, Any], content_type: str, body: bytes) -> list[str]:
    described = operation.get("requestBody")
    if described is None:
        return ["a body where there is none"] if body else []
    if not body:
        return ["no body"] if described["required"] else []
    media = content_type.partition(";")[0]
    if media not in described["content"]:
        return [f"a body of {media}"]
    value = [json.loads(line) for line in body.splitlines()] if media == NDJSON else json.loads(body)
    return faults(described["content"][media]["schema"], value, "body")


def response_faults(method: str, url: str, status: int, content_type: str, body: bytes) -> list[str]:
    """Return the faults of a response: a status or a body that the document does not describe."""
    described = operation_of(route_of(method, url))["responses"].get(str(status))
    if described is None:
        return [f"{method} {url}: status {status} is not described"]
    if content_type not in described["content"]:
        return [f"{method} {url}: a response of {content_type}"]
    schema = described["content"][content_type]["schema"]
    return faults(schema, json.loads(body), f"{method} {unquote(url)} {status}") if "json" in content_type else []


def faults(schema: dict[str, Any], value: Any, where: str) -> list[str]:
    """Return where a value breaks a schema."""
    found = _validator(json.dumps(schema)).iter_errors(value)
    return [f"{where} {error.json_path}: {error.message[:200]}" for error in found]


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema) | {"components": DOCUMENT["components"]})
