"""The API: concurrent requests, timeouts, disconnects."""

import threading
import time
from pathlib import Path

import httpx
import pytest
from tests.service.process import until
from tests.service.serving import Service, make_shop, serving, slow_engine
from tests.service.sockets import requesting

import unbasket as ub
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.store import DurableRecommender


def test_acknowledged_changes_are_on_disk(service: Service, tmp_path: Path) -> None:
    service("PUT", "/v1/users/dan/baskets/8", json={"items": ["milk"]})
    service("DELETE", "/v1/users/ann")
    copy = ub.open(tmp_path / "shop.db", read_only=True)
    assert copy.users() == ["7", "bob", "cleo", "dan"]


def test_concurrent_callers(service: Service) -> None:
    failures: list[str] = []

    def run(number: int) -> None:
        with httpx.Client(base_url=str(service.client.base_url), timeout=60) as client:
            for basket in range(10):
                path = f"/v1/users/u{number}/baskets/{basket}"
                responses = (
                    client.put(path, json={"items": ["milk", number]}),
                    client.get(f"/v1/users/u{number}/recommendations"),
                    client.delete(path) if basket % 3 == 0 else client.get("/healthz"),
                )
                failures.extend(response.text for response in responses if response.status_code != 200)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert service.engine.verify().ok
    assert all(len(service.engine.history(f"u{number}")) == 6 for number in range(8))


def test_a_handler_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(make_shop(tmp_path / "shop.db"), timeout=0.3) as service:
        release = threading.Event()
        popular = DurableRecommender.popular
        monkeypatch.setattr(
            DurableRecommender, "popular", lambda *given, **named: release.wait(10) and popular(*given, **named)
        )
        assert service.code("GET", "/v1/popular", 504) == "timed_out"
        assert service("GET", "/v1/users/ann/recommendations")["user"] == "ann"
        release.set()


def test_requests_of_disconnected_clients_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyFile.new()
    key = access.add("shop", ["read"])
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), threads=2) as service,
        slow_engine(monkeypatch) as (called, release),
    ):
        with requesting(service, 20, "/v1/popular", key):
            until(lambda: len(called) == 1)
        time.sleep(0.3)  # for the service to notice the disconnects
        release.set()
        headers = {"Authorization": f"Bearer {key}"}
        assert service("GET", "/v1/items", headers=headers)["items"]  # queued behind them
    assert len(called) == 1
