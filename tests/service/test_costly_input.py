"""Input that costs more than its length is rejected before the work, or worked on in steps: a scenario of decoding,
handlers and the throttled executor.
"""

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.service.process import until
from tests.service.serving import Service, make_shop, serving

from unbasket.domain.events import Learn
from unbasket.service.openapi import document
from unbasket.service.request import Request
from unbasket.service.routes import ROUTES
from unbasket.store import DurableRecommender

DEEP = "[" * 15_000
LEARN = {"event": "learn", "user": "eve", "basket": 1, "items": ["tea"]}
FORGET = {"event": "forget", "user": "unknown"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(make_shop(tmp_path_factory.mktemp("costly") / "shop.db")) as service:
        yield service


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ("a" + ".a" * 50_000 + " = 1", "nested too deeply"),
        ("[a" + ".a" * 50_000 + "]", "nested too deeply"),
        ("x = {a" + ".a" * 50_000 + " = 1}", "nested too deeply"),
        ("x = " + "[" * 50_000, "nested too deeply"),
        ("[[rule]]\nolder_than_days = 1\n" * 10_000, "more than 131,072 characters"),
    ],
)
def test_rules(service: Service, rules: str, complaint: str) -> None:
    error = service("POST", "/v1/retention", 400, json={"rules": rules})["error"]
    assert error["code"] == "invalid_rules"
    assert complaint in error["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"/v1/users/{DEEP}", 400),
        ("GET", f"/v1/users/{DEEP}/recommendations", 400),
        ("GET", f"/v1/users/ann/explanations/{DEEP}", 400),
        ("GET", f"/v1/users/ann/explanations/{DEEP[:256]}", 200),
        ("GET", f"/v1/users/ann/recommendations?exclude={DEEP}", 200),
        ("GET", f"/v1/users?after={DEEP}", 200),
        ("GET", f"/v1/items?after={DEEP}", 200),
        ("GET", f"/v1/users/%22{DEEP}", 400),
        ("GET", f"/v1/users/%22{DEEP[:255]}", 404),
        ("DELETE", f"/v1/users/{DEEP}/baskets/1", 400),
        ("DELETE", f"/v1/users/ann/baskets/{DEEP}", 400),
        ("GET", "/v1" + "/users" * 2_000, 404),
        ("GET", "/v1/users/" + "a/" * 8_000, 404),
        ("GET", "/v1/users/ann/recommendations?" + "exclude=a&" * 999, 200),
        ("GET", "/v1/users/ann/recommendations?" + "exclude=a&" * 1_500, 400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_deep_and_long_addresses(service: Service, method: str, path: str, status: int) -> None:
    response = service.send_raw(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert int(response.split(b" ", 2)[1]) == status


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([LEARN] * 9_000 + [FORGET] * 1_000, 200),
        ([LEARN] * 10_001, 413),
        ([FORGET] * 1_001, 413),
    ],
    ids=["all", "events", "forgets"],
)
def test_events(service: Service, kind: str, events: list[Any], status: int) -> None:
    before = service.engine.digest()
    body = json.dumps(events) if kind.endswith("/json") else "\n".join(map(json.dumps, events))
    response = service("POST", "/v1/events", status, content=body, headers={"Content-Type": kind})
    if status == 200:
        assert len(response["results"]) == len(events)
    else:
        assert response["error"]["code"] == "too_large"
        assert "at most 10,000, of which at most 1,000 forget" in response["error"]["message"]
        assert service.engine.digest() == before


def test_a_rejected_body_is_freed_at_once(service: Service) -> None:
    """No reference cycle keeps its bytes until the next garbage collection."""
    gc.collect()
    gc.disable()
    try:
        service("POST", "/v1/events", 413, json=[FORGET] * 10_001)
        until(lambda: not any(isinstance(each, Request) for each in gc.get_objects()))
    finally:
        gc.enable()


def test_forgets_of_a_user_with_very_many_baskets(service: Service) -> None:
    engine = service.engine
    engine.apply(Learn("old", ["milk"], basket, basket) for basket in range(200))
    before = engine.digest()
    forgets = [{"event": "forget", "user": "old", "basket": basket} for basket in range(1_000)]
    error = service("POST", "/v1/events", 413, json=forgets)["error"]
    assert error["code"] == "too_large"
    assert "Send fewer at a time" in error["message"]
    assert engine.digest() == before
    assert len(service("POST", "/v1/events", json=forgets[-10:])["results"]) == 10
    engine.forget("old")


def test_forgets_of_a_user_with_very_large_baskets(service: Service) -> None:
    service.engine.apply(Learn("rich", list(range(1_000, 9_000)), basket, basket) for basket in range(3))
    forgets = [{"event": "forget", "user": "rich", "item": item} for item in range(100)]
    assert service.code("POST", "/v1/events", 413, json=forgets) == "too_large"
    service.engine.forget("rich")


def test_a_category_of_many_purchases_is_forgotten_in_batches(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other writers may run between the batches."""
    engine = service.engine
    engine.learn("kim", ["wine", "gin", "milk"], basket=1)
    batches: list[int] = []
    apply = type(engine).apply

    def counted(rec: Any, events: Any) -> Any:
        batches.append(len(events))
        return apply(rec, events)

    monkeypatch.setattr(type(engine), "apply", counted)
    monkeypatch.setattr("unbasket.service.handlers.users.MAX_READ", 13)
    response = service("DELETE", "/v1/users/kim/categories/Alcohol")
    assert batches == [1, 1]
    assert response["removed"] == {"purchases": 2, "baskets": 0, "users": 0}
    assert [receipt["verified"] for receipt in response["receipts"]] == [True, True]


def test_receipts(service: Service) -> None:
    receipt = service("DELETE", "/v1/users/unknown")["receipt"]
    assert service("POST", "/v1/receipts/verify", json={"receipts": [receipt]})["ok"]
    error = service("POST", "/v1/receipts/verify", 413, json={"receipts": [receipt] * 10_001})["error"]
    assert error["code"] == "too_large"
    assert "at most 10,000" in error["message"]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Read at most two receipts at once. Returns the first and last numbers of each batch."""
    monkeypatch.setattr("unbasket.service.handlers.privacy._BATCH", 2)
    read: list[tuple[int, ...]] = []
    receipts = DurableRecommender.receipts

    def noted(rec: DurableRecommender, *numbers: int) -> Any:
        read.append(numbers)
        return receipts(rec, *numbers)

    monkeypatch.setattr(DurableRecommender, "receipts", noted)
    return read


def test_all_receipts_are_verified_in_batches(tmp_path: Path, batches: list[tuple[int, ...]]) -> None:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        for user in ("ann", "bob", "cleo", "dan", "eve"):
            service.engine.forget(user)
        response = service("POST", "/v1/receipts/verify")
    assert response["ok"]
    assert (response["receipts"], response["chained"], len(response["keys"])) == (5, [[1, 5]], 1)
    assert batches == [(1, 2), (3, 4), (5, 5)]


def test_verification_stops_after_a_timeout(
    tmp_path: Path, batches: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed_out, receipts = Event(), DurableRecommender.receipts

    def slow(*given: Any) -> Any:
        assert timed_out.wait(20)
        return receipts(*given)

    monkeypatch.setattr(DurableRecommender, "receipts", slow)
    with serving(make_shop(tmp_path / "shop.db"), timeout=0.3) as service:
        for user in ("ann", "bob", "cleo"):
            service.engine.forget(user)
        assert service.code("POST", "/v1/receipts/verify", 504) == "timed_out"
        timed_out.set()
    assert batches == [(1, 2)]


def test_explanations_take_one_search(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, path = service.engine, "/v1/users/ann/recommendations"
    found = service("GET", f"{path}?n=100")["recommendations"]
    assert len(found) > 1
    expected = [engine.explain("ann", item["item"]) for item in found]
    searched: list[int] = []
    explain_many = type(engine).explain_many

    def counted(*given: Any, **named: Any) -> Any:
        searched.append(1)
        return explain_many(*given, **named)

    monkeypatch.setattr(type(engine), "explain_many", counted)
    explained = service("GET", f"{path}?n=100&explain=true")["recommendations"]
    assert len(searched) == 1
    assert [each["explanation"]["score"] for each in explained] == [why.score for why in expected]
    assert [each["explanation"]["item"] for each in explained] == [each["item"] for each in explained]
    error = service("GET", f"{path}?n=101&explain=true", 400)["error"]
    assert error["code"] == "invalid_query"
    assert error["message"] == "with `explain`, `n` is at most 100, not 101"


def test_openapi_has_the_limits() -> None:
    text = json.dumps(document(ROUTES))
    assert "At most 10,000 events, of which at most 1,000 forget." in text
    assert "at most 10,000." in text
    assert "at most 131,072 characters." in text
    assert "at most; 100 with `explain`." in text
