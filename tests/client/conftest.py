"""A service, its client, and a check of every request and response of the client against OpenAPI."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.contract import request_faults, response_faults, route_of
from tests.service.serving import Service, make_shop, serving

from unbasket.client import Client
from unbasket.service.routes import Route


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(make_shop(tmp_path / "shop.db")) as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(str(service.client.base_url)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def used_routes(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Route]]:
    """Check all requests and responses over httpx, and collect their routes."""
    used, faults, send = set[Route](), list[str](), httpx.Client.send

    def checked(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        method, url = request.method, str(request.url)
        faults.extend(request_faults(method, url, request.headers.get("content-type", ""), request.content))
        used.add(route_of(method, url))
        response = send(client, request, **options)
        if "x-request-id" in response.headers:  # it is the service's, not that of a proxy
            content_type = response.headers["content-type"]
            faults.extend(response_faults(method, url, response.status_code, content_type, response.content))
        return response

    monkeypatch.setattr(httpx.Client, "send", checked)
    yield used
    assert faults == []
