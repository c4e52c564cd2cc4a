"""Events in bulk, within the limits of one request."""

from pathlib import Path
from typing import Any

import pytest
from tests.service.serving import Service

import unbasket as ub
from unbasket.client import Client, ServiceError
from unbasket.client.batch import MAX_BYTES, MAX_EVENTS, MAX_FORGETS, Batch
from unbasket.service.schemas import requests
from unbasket.service.settings import Settings
from unbasket.store.receipts import subject_of


def test_the_limits_are_those_of_the_service() -> None:
    assert (MAX_EVENTS, MAX_FORGETS) == (requests.MAX_EVENTS, requests.MAX_FORGETS)
    assert Settings(db=Path()).max_body == 2 * MAX_BYTES


def test_one_request_is_all_or_nothing(client: Client, service: Service) -> None:
    learned, forgotten = client.apply([ub.Learn("dan", ["tea"], 1, 5), ub.Forget("ann", None, "milk")])
    assert learned == ub.Learned.ADDED
    assert forgotten == (2, 0, 0)
    assert isinstance(forgotten, ub.Erased)
    assert forgotten.receipt == service.engine.receipts()[0]
    assert subject_of("ann", bytes.fromhex(forgotten.secret)) == forgotten.receipt.subject
    before = service.engine.digest()
    with pytest.raises(ub.InvalidRequestError, match="basket"):
        client.apply([ub.Learn("eve", ["tea"], 1, 5), ub.Learn("eve", ["tea"], "not a number", 5)])
    assert service.engine.digest() == before


def test_a_batch_equals_the_same_events_one_by_one(client: Client, service: Service) -> None:
    other = ub.Recommender(service.engine.params, salt=service.engine.salt)
    for user in service.engine.users():
        for basket, time, items in service.engine.history(user):
            other.learn(user, items, basket=basket, time=time)
    with client.batch() as batch:
        for rec in (other, batch):
            rec.learn("dan", ["tea", "milk"], basket=1, time="2026-05-01")
            rec.learn("dan", ["wine"], basket=2, time=1_800_000_000)
            rec.forget("dan", basket=1, item="tea")
            rec.forget("ann", item="milk")
            rec.forget("cleo")
    assert batch.sent == 5
    assert [receipt.scope for receipt in batch.receipts] == ["item of a basket", "item", "user"]
    assert len(batch.secrets) == 3
    assert [service.engine.history(user) for user in service.engine.users()] == [
        other.history(user) for user in other.users()
    ]
    assert service.engine.digest() == other.digest()


def test_a_long_batch_is_sent_in_several_requests(
    client: Client, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbasket.client.batch.MAX_FORGETS", 10)
    with client.batch() as batch:
        for number in range(MAX_EVENTS + 1):
            batch.learn(f"u{number}", ["milk"], basket=1)
        assert batch.sent == MAX_EVENTS
        for number in range(11):
            batch.forget(f"u{number}")
        assert batch.sent == MAX_EVENTS + 1 + 10
    assert batch.sent == MAX_EVENTS + 1 + 11
    assert len(batch.receipts) == 11
    assert len(service.engine) == 4 + MAX_EVENTS + 1 - 11


class Sent:
    """The requests of a batch to a service that takes so many bytes."""

    def __init__(self, most: int) -> None:
        self.requests: list[int] = []
        self._most = most

    def __call__(self, lines: bytes) -> Any:
        if len(lines) > self._most:
            raise ServiceError("too_large", "too large", status=413)
        count = lines.count(b"\n")
        self.requests.append(count)
        return {"results": [{"result": "added"}] * count, "seconds": 0.1}


def test_large_baskets_fill_a_request_by_their_bytes() -> None:
    sent = Sent(MAX_BYTES)
    with Batch(sent) as batch:
        for number in range(200):
            batch.learn("ann", [f"{item:0100}" for item in range(1000)], basket=number)
    assert batch.sent == sum(sent.requests) == 200
    assert len(sent.requests) == 5


def test_a_request_that_is_too_large_is_halved() -> None:
    sent = Sent(300)
    with Batch(sent) as batch:
        for number in range(10):
            batch.learn("ann", ["milk"], basket=number)
    assert sent.requests == [5, 5]
    with pytest.raises(ServiceError, match="too large"), Batch(Sent(10)) as batch:
        batch.learn("ann", ["milk"], basket=1)
    assert batch.sent == 0


def test_an_exception_keeps_the_rest_back(client: Client, service: Service) -> None:
    batch = client.batch()
    batch.learn("dan", ["tea"], basket=1)
    with pytest.raises(ub.InvalidBasketError), batch:
        batch.learn("dan", [], basket=2)
    assert batch.sent == 0
    assert "dan" not in service.engine
