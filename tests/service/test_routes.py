"""The table of routes, and docs/http.md, which describes it."""

import json
import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from tests.service.serving import Service, serving
from tests.service.sockets import connected, error_code, request

import unbasket as ub
from unbasket.service.api_keys import Role
from unbasket.service.errors import ApiError
from unbasket.service.routes import ROUTES, unescaped

DOCS = Path(__file__).parents[2] / "docs" / "http.md"


def test_every_role_is_used_and_every_route_needs_one() -> None:
    assert {role for route in ROUTES for role in route.roles} == set(Role)
    assert [route.path for route in ROUTES if not route.roles] == ["/healthz", "/readyz"]
    assert [route.path for route in ROUTES if route.own and "{user}" not in route.path] == ["/v1/me"]


def test_every_route_is_documented() -> None:
    text = DOCS.read_text()
    for route in ROUTES:
        assert f"`{route.method} {route.path}`" in text


def test_the_examples_of_the_documentation(tmp_path: Path) -> None:
    """Each is a request and its response, sent in order; "..." matches anything."""
    examples = re.findall(r"```http\n(.*?)\n\n(\d+)\n(.*?)\n```", DOCS.read_text(), re.DOTALL)
    assert len(examples) > 10
    ub.open(tmp_path / "shop.db", ub.Params(neighbors=2)).close()
    with serving(tmp_path / "shop.db") as service:
        for request, status, expected in examples:
            line, _, body = request.partition("\n")
            method, path = line.split(" ", 1)
            kind = "application/x-ndjson" if path == "/v1/events" and not body.startswith("[") else "application/json"
            response = service.client.request(method, path, content=body, headers={"Content-Type": kind})
            assert response.status_code == int(status), (line, response.text)
            assert is_like(response.json(), json.loads(expected)), (line, response.text)


def is_like(value: Any, example: Any) -> bool:
    """Return whether a value matches an example."""
    if example == "...":
        return True
    if isinstance(example, dict) and isinstance(value, dict):
        shown = {name: value.get(name) for name in example} if example.pop("...", None) else value
        return shown.keys() == example.keys() and all(is_like(shown[name], example[name]) for name in example)
    if isinstance(example, list) and isinstance(value, list):
        return len(value) == len(example) and all(map(is_like, value, example))
    if isinstance(example, float) and isinstance(value, float):
        return abs(value - example) < 0.0001
    return bool(value == example)


def test_percent_escapes() -> None:
    chance = random.Random(1)
    for _ in range(20_000):
        path = bytes(chance.choices(b"%%%%=09afAFgz_/.~-&;\t\x80\xff", k=chance.randrange(15)))
        assert unescaped(path) == unquote_to_bytes(path)
    for byte in range(256):
        for path in (b"a%%%02xb" % byte, b"%%%02X" % byte, b"%41" + bytes([byte]), bytes([byte]) + b"%"):
            assert unescaped(path) == unquote_to_bytes(path)


def test_many_literal_percent_signs_are_rejected(service: Service) -> None:
    assert unescaped(b"%" * 100) == b"%" * 100
    with pytest.raises(ApiError, match="more than 100"):
        unescaped(b"%" * 101)
    with connected(service) as connection:
        connection.sendall(request("/v1/users/" + "%" * 101))
        response = connection.recv(65536)
    assert response.startswith(b"HTTP/1.1 400 ")
    assert error_code(response) == "malformed_request"
