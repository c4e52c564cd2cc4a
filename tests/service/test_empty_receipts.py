"""Receipts of forgets that found nothing."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.service.serving import Service, make_shop, serving

from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator


class Shopper:
    """A shopper with a token, of a service with keys."""

    def __init__(self, service: Service, auth: Authenticator, user: str) -> None:
        self._service = service
        self._headers = {"Authorization": f"Bearer {service.token(auth, user)}"}
        self._path = f"/v1/users/{user}"

    def forget(self, path: str = "", status: int = 200) -> Any:
        return self._service("DELETE", self._path + path, status, headers=self._headers)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Service, Authenticator]]:
    keys = KeyFile.new()
    keys.add("till", ["write"])
    auth = Authenticator(None, keys)
    with serving(make_shop(tmp_path / "shop.db"), auth) as service:
        yield service, auth


def test_a_repeated_forget_gets_the_same_receipt(guarded: tuple[Service, Authenticator]) -> None:
    service, _ = guarded
    engine, ann, bob = service.engine, Shopper(*guarded, "ann"), Shopper(*guarded, "bob")
    first = ann.forget("/items/soap")
    assert first["removed"] == {"purchases": 0, "baskets": 0, "users": 0}
    assert [ann.forget("/items/soap")["receipt"] for _ in range(5)] == [first["receipt"]] * 5
    assert engine.receipt_count == 1
    assert bob.forget("/items/soap")["receipt"]["number"] == 2  # another user
    assert ann.forget("/items/glue")["receipt"]["number"] == 3  # another item
    assert ann.forget("/items/gin")["removed"]["purchases"] == 1
    assert ann.forget("/items/gin")["receipt"]["number"] == 5  # it was just forgotten
    assert ann.forget("/items/gin")["receipt"]["number"] == 5
    engine.learn("ann", ["gin", "soap"], basket=9)  # once stored again, it is forgotten again
    assert ann.forget("/items/gin")["removed"]["purchases"] == 1
    assert ann.forget("/items/soap")["removed"]["purchases"] == 1
    assert engine.receipt_count == 7


def test_empty_receipts_are_limited_for_keys_too(tmp_path: Path) -> None:
    """Per user, whichever caller forgets. Stored purchases can always be forgotten."""
    with serving(make_shop(tmp_path / "shop.db")) as service:
        first, again = (service("DELETE", "/v1/users/zoe") for _ in range(2))
        assert again["receipt"] == first["receipt"]
        assert (len(first["secret"]), again["secret"]) == (64, "")  # it was given once, and is kept nowhere
        for each in range(9):
            service("DELETE", f"/v1/users/zoe/baskets/{each}")
        assert service.code("DELETE", "/v1/users/zoe/baskets/9", 429) == "too_many_requests"
        assert service("DELETE", "/v1/users/yan")["receipt"]["number"] == 11
        service.engine.learn("zoe", ["tea"], basket=9)
        assert service("DELETE", "/v1/users/zoe/baskets/9")["removed"]["purchases"] == 1


def test_empty_receipts_are_limited(guarded: tuple[Service, Authenticator], monkeypatch: pytest.MonkeyPatch) -> None:
    service, _ = guarded
    ann, bob = Shopper(*guarded, "ann"), Shopper(*guarded, "bob")
    numbers = [ann.forget(f"/baskets/10{each}")["receipt"]["number"] for each in range(10)]
    error = ann.forget("/baskets/1010", 429)["error"]
    assert error["code"] == "too_many_requests"
    assert f"receipt {numbers[-1]}" in error["message"]
    assert service.engine.receipt_count == 10
    assert ann.forget("/baskets/103")["receipt"]["number"] == numbers[3]
    assert bob.forget("/baskets/1010")["removed"]["purchases"] == 0
    assert ann.forget("/baskets/1")["removed"]["purchases"] == 2  # stored purchases can always be forgotten
    numbers = [ann.forget(f"/baskets/10{each}")["receipt"]["number"] for each in range(10)]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - now % 86_400 + 86_401)
    ann = Shopper(*guarded, "ann")
    assert ann.forget("/baskets/103")["receipt"]["number"] > numbers[-1]  # another day


def test_a_failed_erasure_discards_earlier_receipts(
    guarded: tuple[Service, Authenticator], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _ = guarded
    engine, ann = service.engine, Shopper(*guarded, "ann")
    ann.forget("/items/soap")
    engine.learn("ann", ["soap"], basket=9)
    monkeypatch.setattr("unbasket.store.journal.TIMEOUT", 0.2)
    with closing(sqlite3.connect(service.loader.db, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM baskets").fetchone()
        for _ in range(2):
            assert ann.forget("/items/soap", 503)["error"]["code"] == "erasure_blocked"
    assert ann.forget("/items/soap")["receipt"]["number"] == 4
