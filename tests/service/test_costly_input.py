"""Input that would cost more than its length: refused before the work begins, and everybody else is answered."""

import gc
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.service.process import until
from tests.service.serving import Service, serving, stock

from unbasket.domain.events import Learn
from unbasket.service.api_keys import Access
from unbasket.service.auth import Security
from unbasket.service.openapi import document
from unbasket.service.request import Request
from unbasket.service.routes import CALLS
from unbasket.store import DurableRecommender

DEEP = "[" * 15_000
LEARN = {"event": "learn", "user": "eve", "basket": 1, "items": ["tea"]}
FORGET = {"event": "forget", "user": "nobody"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(stock(tmp_path_factory.mktemp("costly") / "shop.db")) as service:
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
        ("GET", f"/v1/users/{DEEP}", 404),
        ("GET", f"/v1/users/{DEEP}/recommendations", 200),
        ("GET", f"/v1/users/ann/explanations/{DEEP}", 200),
        ("GET", f"/v1/users/ann/recommendations?exclude={DEEP}", 200),
        ("GET", f"/v1/users?after={DEEP}", 200),
        ("GET", f"/v1/items?after={DEEP}", 200),
        ("GET", f"/v1/users/%22{DEEP}", 404),
        ("DELETE", f"/v1/users/{DEEP}/baskets/1", 200),
        ("DELETE", f"/v1/users/ann/baskets/{DEEP}", 200),
        ("GET", "/v1" + "/users" * 2_000, 404),
        ("GET", "/v1/users/" + "a/" * 8_000, 404),
        ("GET", "/v1/users/ann/recommendations?" + "exclude=a&" * 999, 200),
        ("GET", "/v1/users/ann/recommendations?" + "exclude=a&" * 1_500, 400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_deep_and_long_addresses(service: Service, method: str, path: str, status: int) -> None:
    answer = service.sent(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert int(answer.split(b" ", 2)[1]) == status


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
    before = service.shop.engine.digest()
    body = json.dumps(events) if kind.endswith("/json") else "\n".join(map(json.dumps, events))
    answer = service("POST", "/v1/events", status, content=body, headers={"Content-Type": kind})
    if status == 200:
        assert len(answer["results"]) == len(events)
    else:
        assert answer["error"]["code"] == "too_large"
        assert "at most 10,000, of which at most 1,000 forget" in answer["error"]["message"]
        assert service.shop.engine.digest() == before


def test_what_was_refused_is_not_kept(service: Service) -> None:
    """Its bytes are gone with the answer, not when Python next looks for what refers to itself."""
    gc.collect()
    gc.disable()
    try:
        service("POST", "/v1/events", 413, json=[FORGET] * 10_001)
        until(lambda: not any(isinstance(each, Request) for each in gc.get_objects()))
    finally:
        gc.enable()


def test_forgets_of_somebody_with_very_many_baskets(service: Service) -> None:
    engine = service.shop.engine
    engine.apply(Learn("old", ["milk"], basket, basket) for basket in range(200))
    before = engine.digest()
    forgets = [{"event": "forget", "user": "old", "basket": basket} for basket in range(1_000)]
    error = service("POST", "/v1/events", 413, json=forgets)["error"]
    assert error["code"] == "too_large"
    assert "Send fewer at a time" in error["message"]
    assert engine.digest() == before
    assert len(service("POST", "/v1/events", json=forgets[-10:])["results"]) == 10
    engine.forget("old")


def test_forgets_of_somebody_with_very_large_baskets(service: Service) -> None:
    service.shop.engine.apply(Learn("rich", list(range(1_000, 9_000)), basket, basket) for basket in range(3))
    forgets = [{"event": "forget", "user": "rich", "item": item} for item in range(100)]
    assert service.code("POST", "/v1/events", 413, json=forgets) == "too_large"
    service.shop.engine.forget("rich")


def test_a_category_of_somebody_with_many_purchases_goes_in_pieces(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may write between the pieces."""
    engine = service.shop.engine
    engine.learn("kim", ["wine", "gin", "milk"], basket=1)
    pieces: list[int] = []
    apply = type(engine).apply

    def counted(rec: Any, events: Any) -> Any:
        pieces.append(len(events))
        return apply(rec, events)

    monkeypatch.setattr(type(engine), "apply", counted)
    monkeypatch.setattr("unbasket.service.handlers.users.MAX_READ", 13)
    answer = service("DELETE", "/v1/users/kim/categories/Alcohol")
    assert pieces == [1, 1]
    assert answer["removed"] == {"purchases": 2, "baskets": 0, "users": 0}
    assert [receipt["verified"] for receipt in answer["receipts"]] == [True, True]


def test_receipts(service: Service) -> None:
    receipt = service("DELETE", "/v1/users/nobody")["receipt"]
    assert service("POST", "/v1/receipts/verify", json={"receipts": [receipt]})["ok"]
    error = service("POST", "/v1/receipts/verify", 413, json={"receipts": [receipt] * 10_001})["error"]
    assert error["code"] == "too_large"
    assert "at most 10,000" in error["message"]


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The first and last numbers of the receipts that are read at once, two at most."""
    monkeypatch.setattr("unbasket.service.handlers.privacy._PIECE", 2)
    read: list[tuple[int, ...]] = []
    receipts = DurableRecommender.receipts

    def noted(rec: DurableRecommender, *numbers: int) -> Any:
        read.append(numbers)
        return receipts(rec, *numbers)

    monkeypatch.setattr(DurableRecommender, "receipts", noted)
    return read


def test_all_receipts_are_checked_in_pieces(tmp_path: Path, pieces: list[tuple[int, ...]]) -> None:
    with serving(stock(tmp_path / "shop.db")) as service:
        for user in ("ann", "bob", "cleo", "dan", "eve"):
            service.shop.engine.forget(user)
        answer = service("POST", "/v1/receipts/verify")
    assert answer["ok"]
    assert (answer["receipts"], answer["chained"], len(answer["keys"])) == (5, [[1, 5]], 1)
    assert pieces == [(1, 2), (3, 4), (5, 5)]


def test_no_more_receipts_are_checked_for_who_has_given_up(
    tmp_path: Path, pieces: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, receipts = Event(), DurableRecommender.receipts

    def slow(*given: Any) -> Any:
        assert answered.wait(20)
        return receipts(*given)

    monkeypatch.setattr(DurableRecommender, "receipts", slow)
    with serving(stock(tmp_path / "shop.db"), timeout=0.3) as service:
        for user in ("ann", "bob", "cleo"):
            service.shop.engine.forget(user)
        assert service.code("POST", "/v1/receipts/verify", 504) == "timed_out"
        answered.set()
    assert pieces == [(1, 2)]


def test_explanations_take_one_search(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, path = service.shop.engine, "/v1/users/ann/recommendations"
    found = service("GET", f"{path}?n=100")["recommendations"]
    assert len(found) > 1
    expected = [engine.explain("ann", item["item"]) for item in found]
    searched: list[int] = []
    explain_many = type(engine).explain_many

    def counted(*given: Any) -> Any:
        searched.append(1)
        return explain_many(*given)

    monkeypatch.setattr(type(engine), "explain_many", counted)
    explained = service("GET", f"{path}?n=100&explain=true")["recommendations"]
    assert len(searched) == 1
    assert [each["explanation"]["score"] for each in explained] == [why.score for why in expected]
    assert [each["explanation"]["item"] for each in explained] == [each["item"] for each in explained]
    error = service("GET", f"{path}?n=101&explain=true", 400)["error"]
    assert error["code"] == "invalid_query"
    assert error["message"] == "with `explain`, `n` is at most 100, not 101"


def test_the_description_says_so() -> None:
    text = json.dumps(document(CALLS))
    assert "At most 10,000 events, of which at most 1,000 forget." in text
    assert "At most 10,000 of them." in text
    assert "At most 131,072 characters." in text
    assert "At most 100 with `explain`." in text


# Receipts for nothing -------------------------------------------------------------------------------------------


class Shopper:
    """A shopper of a shop with keys, by token."""

    def __init__(self, service: Service, security: Security, user: str) -> None:
        self._service = service
        self._headers = {"Authorization": f"Bearer {security.issue(user, 600)[0]}"}
        self._path = f"/v1/users/{user}"

    def forget(self, what: str = "", status: int = 200) -> Any:
        return self._service("DELETE", self._path + what, status, headers=self._headers)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Service, Security]]:
    access = Access.new()
    access.add("till", ["write"])
    security = Security(None, access)
    with serving(stock(tmp_path / "shop.db"), security) as service:
        yield service, security


def test_a_receipt_for_nothing_is_given_again(guarded: tuple[Service, Security]) -> None:
    service, _ = guarded
    engine, ann, bob = service.shop.engine, Shopper(*guarded, "ann"), Shopper(*guarded, "bob")
    first = ann.forget("/items/soap")
    assert first["removed"] == {"purchases": 0, "baskets": 0, "users": 0}
    assert [ann.forget("/items/soap")["receipt"] for _ in range(5)] == [first["receipt"]] * 5
    assert engine.receipt_count == 1
    assert bob.forget("/items/soap")["receipt"]["number"] == 2  # somebody else
    assert ann.forget("/items/glue")["receipt"]["number"] == 3  # something else
    assert ann.forget("/items/gin")["removed"]["purchases"] == 1
    assert ann.forget("/items/gin")["receipt"]["number"] == 5  # what was just forgotten is not there
    assert ann.forget("/items/gin")["receipt"]["number"] == 5
    engine.learn("ann", ["gin", "soap"], basket=9)  # and when it is back, it is forgotten
    assert ann.forget("/items/gin")["removed"]["purchases"] == 1
    assert ann.forget("/items/soap")["removed"]["purchases"] == 1
    assert engine.receipt_count == 7


def test_a_key_gets_no_more_of_them(tmp_path: Path) -> None:
    """Per person, whoever asks; what is there can always be forgotten."""
    with serving(stock(tmp_path / "shop.db")) as service:
        first = service("DELETE", "/v1/users/zoe")["receipt"]
        assert service("DELETE", "/v1/users/zoe")["receipt"] == first
        for each in range(9):
            service("DELETE", f"/v1/users/zoe/baskets/{each}")
        assert service.code("DELETE", "/v1/users/zoe/baskets/9", 429) == "too_many_requests"
        assert service("DELETE", "/v1/users/yan")["receipt"]["number"] == 11
        service.shop.engine.learn("zoe", ["tea"], basket=9)
        assert service("DELETE", "/v1/users/zoe/baskets/9")["removed"]["purchases"] == 1


def test_receipts_for_nothing_are_few(guarded: tuple[Service, Security], monkeypatch: pytest.MonkeyPatch) -> None:
    service, _ = guarded
    ann, bob = Shopper(*guarded, "ann"), Shopper(*guarded, "bob")
    numbers = [ann.forget(f"/baskets/none-{each}")["receipt"]["number"] for each in range(10)]
    error = ann.forget("/baskets/none-10", 429)["error"]
    assert error["code"] == "too_many_requests"
    assert f"receipt {numbers[-1]}" in error["message"]
    assert service.shop.engine.receipt_count == 10
    assert ann.forget("/baskets/none-3")["receipt"]["number"] == numbers[3]
    assert bob.forget("/baskets/none-10")["removed"]["purchases"] == 0
    assert ann.forget("/baskets/1")["removed"]["purchases"] == 2  # what is there can always be forgotten
    numbers = [ann.forget(f"/baskets/none-{each}")["receipt"]["number"] for each in range(10)]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - now % 86_400 + 86_401)
    ann = Shopper(*guarded, "ann")
    assert ann.forget("/baskets/none-3")["receipt"]["number"] > numbers[-1]  # another day


def test_an_erasure_that_failed_is_not_answered_with_an_earlier_receipt(
    guarded: tuple[Service, Security], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _ = guarded
    engine, ann = service.shop.engine, Shopper(*guarded, "ann")
    ann.forget("/items/soap")
    engine.learn("ann", ["soap"], basket=9)
    monkeypatch.setattr("unbasket.store.journal.TIMEOUT", 0.2)
    with closing(sqlite3.connect(service.shop.db, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM baskets").fetchone()
        for _ in range(2):
            assert ann.forget("/items/soap", 503)["error"]["code"] == "erasure_blocked"
    assert ann.forget("/items/soap")["receipt"]["number"] == 4
