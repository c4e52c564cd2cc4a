"""The OpenAPI document against the service: schemathesis generates requests from it. It covers the schemas."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.service.serving import Service, make_shop, serving

from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.service.openapi import document
from unbasket.service.routes import ROUTES

KEY_FILE = KeyFile.new()
KEY = KEY_FILE.add("tester", ["admin"])
MIN_REQUESTS = 2000

schema = schemathesis.openapi.from_dict(document(ROUTES))
sent: dict[str, int] = {}


@schemathesis.serializer("application/x-ndjson")
def lines(_: schemathesis.SerializationContext, value: Any) -> bytes:
    """Serialize a list with an element per line, or any other value as it is."""
    return "\n".join(map(json.dumps, value if isinstance(value, list) else [value])).encode()


@schema.hook
def filter_body(_: schemathesis.HookContext, body: Any) -> bool:
    """Reject floats such as 17.0, which are integers in JSON Schema but not valid as ids."""
    return not _has_whole_float(body)


@schema.hook
def filter_query(_: schemathesis.HookContext, query: Any) -> bool:
    """Reject empty lists and objects, which disappear from the address."""
    return not any(value in ([], {}, None) for value in (query or {}).values())


def _has_whole_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_whole_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_whole_float, value))
    return isinstance(value, float) and value.is_integer()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(make_shop(tmp_path_factory.mktemp("openapi") / "shop.db"), Authenticator(None, KEY_FILE)) as running:
        running.engine.forget("ann", basket=1)
        running.engine.change_ids(basket="text")  # a shop of texts accepts every id
        yield running


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as opened:
        yield opened


@schema.parametrize()
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_requests(case: schemathesis.Case[Any], service: Service, session: requests.Session) -> None:
    sent[case.operation.label] = sent.get(case.operation.label, 0) + 1
    case.call_and_validate(
        base_url=str(service.client.base_url),
        headers={"Authorization": f"Bearer {KEY}"},
        session=session,
        excluded_checks=_beyond_schemas(case),
    )


def _beyond_schemas(case: schemathesis.Case[Any]) -> list[CheckFunction]:
    """Return the checks that go beyond schemas, which cannot express TOML, conflicts with `explain`, ids or lists that
    must differ, or parameters that depend on each other.
    """
    explains = case.path.endswith("/recommendations") and "explain" in (case.query or {})
    special = case.path in ("/v1/params", "/v1/retention", "/v1/items/availability", "/v1/users/{user}/rename")
    return [positive_data_acceptance] if special or explains else []


def test_enough_requests_were_sent(service: Service) -> None:
    if not sent:
        pytest.skip("test_requests was not selected")
    assert len(sent) == len(ROUTES)
    assert sum(sent.values()) >= MIN_REQUESTS
    assert service.engine.verify().ok


def test_the_document_is_served(service: Service) -> None:
    response = service.client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == document(ROUTES)


def test_every_route_is_described() -> None:
    described = document(ROUTES)
    operations = [operation for path in described["paths"].values() for operation in path.values()]
    assert len(operations) == len(ROUTES)
    assert len({operation["operationId"] for operation in operations}) == len(ROUTES)
    assert all(operation["summary"] for operation in operations)
