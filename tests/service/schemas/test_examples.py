"""The examples of OpenAPI, sent to a real service: each gets the response that the document shows."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.contract import DOCUMENT, faults, operation_of, request_faults
from tests.service.serving import make_shop, quoted, serving

from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.service.routes import JSON, NDJSON, ROUTES, Route
from unbasket.service.schemas.examples import EXAMPLES

KEY_FILE = KeyFile.new()
KEY = KEY_FILE.add("back-office", ["admin"])
HASHES = {
    "request",
    "subject",
    "before",
    "after",
    "previous",
    "key",
    "keys",
    "signature",
    "secret",
    "secrets",
    "token",
    "checkpoint",
    "params",
    "nonce",
}
VARYING = HASHES | {"seconds", "time", "expires", "uptime", "memory"}
"""Fields that differ from request to request, and are compared by their type."""
LIVE = {"calls", "buckets", "siblings"}
"""Statistics of other requests and hashes of other users, which only the schema describes."""


def test_every_route_has_an_example_and_no_other() -> None:
    assert list(EXAMPLES) == [route.line for route in ROUTES]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.line)
def test_the_response_is_that_of_the_example(tmp_path: Path, route: Route) -> None:
    operation = operation_of(route)
    with serving(make_shop(tmp_path / "shop.db"), Authenticator(None, KEY_FILE)) as service:
        service.engine.forget("bob", item="tea")
        service.engine.hide(["tea"])
        response = _send(service.client, route, operation)
    assert response.status_code == route.status, response.text
    shown = operation["responses"][str(route.status)]["content"][route.media_type]
    if route.path == "/v1/checkpoint":
        assert len(shown["example"].splitlines()) == len(response.text.splitlines())
        return
    if route.media_type != JSON:
        assert shown["example"] in response.text
        return
    assert faults(shown["schema"], shown["example"], route.line) == []
    assert differences(response.json(), shown["example"], route) == []


def _send(client: httpx.Client, route: Route, operation: dict[str, Any]) -> httpx.Response:
    """Send the example of an operation, as the document has it."""
    shown = {each["name"]: each["example"] for each in operation["parameters"] if "example" in each}
    path = route.path.format(**{name: quoted(shown.pop(name)) for name in route.path_params})
    headers = {"Authorization": f"Bearer {KEY}"}
    body = operation.get("requestBody", {"content": {}})["content"].get(JSON, {}).get("example")
    request = client.build_request(route.method, path, params=shown, headers=headers, json=body)
    sent = str(request.url), request.headers.get("content-type", ""), request.content
    assert request_faults(route.method, *sent) == []
    return client.send(request)


def differences(value: Any, example: Any, route: Route, name: str = "") -> list[str]:
    """Return where a value differs from an example by more than rounding, in fields that do not vary."""
    if name in LIVE:
        return []
    if isinstance(example, dict) and isinstance(value, dict):
        if value.keys() != example.keys():
            return [f"{name} has {sorted(value)}, not {sorted(example)}"]
        return [fault for key in example for fault in differences(value[key], example[key], route, key)]
    if name in VARYING and not isinstance(example, list):
        return [] if type(value) is type(example) else [f"{name} is {value!r}, not like {example!r}"]
    if isinstance(example, list) and isinstance(value, list):
        if len(value) != len(example):
            return [f"{name} has {len(value)} elements, not {len(example)}"]
        pairs = zip(value, example, strict=True)
        return [fault for one, other in pairs for fault in differences(one, other, route, name)]
    if isinstance(example, float) and isinstance(value, float):
        return [] if abs(value - example) < 0.0001 else [f"{name} is {value}, not {example}"]
    is_new_id = name == "basket" and route.line == "POST /v1/users/{user}/baskets"
    return [] if value == example or is_new_id else [f"{name} is {value!r}, not {example!r}"]


def test_events_as_lines(tmp_path: Path) -> None:
    [route] = [route for route in ROUTES if route.accepts_ndjson]
    operation = operation_of(route)
    lines = operation["requestBody"]["content"][NDJSON]["example"]
    with serving(make_shop(tmp_path / "shop.db")) as service:
        service.engine.forget("bob", item="tea")
        response = service("POST", route.path, content=lines, headers={"Content-Type": NDJSON})
    assert differences(response, EXAMPLES[route.line].response, route) == []


def test_every_error_has_an_example() -> None:
    shown = DOCUMENT["components"]["examples"]
    for route in ROUTES:
        for status, response in operation_of(route)["responses"].items():
            if int(status) >= 400 and (route.path, status) != ("/readyz", "503"):
                codes = response["content"][JSON]["examples"]
                assert codes.keys() <= {*route.errors}
                for code in codes:
                    assert faults({"$ref": "#/components/schemas/ErrorResponse"}, shown[code]["value"], code) == []


def test_everything_is_described() -> None:
    for route in ROUTES:
        for parameter in operation_of(route)["parameters"]:
            assert _is_sentence(parameter["description"]), (route.line, parameter["name"])
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert schema["description"], name
        for field, described in schema.get("properties", {}).items():
            is_tag = field == "event"
            assert is_tag or _is_sentence(described.get("description", "")), (name, field)


def _is_sentence(text: str) -> bool:
    return text[:1].isupper() and text.endswith(".")
