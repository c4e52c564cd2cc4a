"""Limits per caller: no caller can block or slow down the others."""

import socket
import time
from contextlib import ExitStack
from pathlib import Path
from select import select

import pytest
from tests.service.process import until
from tests.service.serving import make_shop, serving, slow_engine
from tests.service.sockets import PING, connected, read_responses, request, requesting

from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator


def test_a_rate_allows_a_burst(tmp_path: Path) -> None:
    """Two seconds' worth of requests may come at once."""
    with serving(make_shop(tmp_path / "shop.db"), rate=2) as service:
        start = time.monotonic()
        responses = [service.client.get("/v1/popular") for _ in range(50)]
        most = 4 + 2 * (time.monotonic() - start)
        refused = [response for response in responses if response.status_code == 429]
        assert [response.status_code for response in responses[:4]] == [200, 200, 200, 200]
        assert len(responses) - len(refused) <= most
        assert refused[0].json()["error"]["code"] == "too_many_requests"
        assert refused[0].headers["retry-after"] == "1"
        assert service("GET", "/healthz") == {"ok": True}
        until(lambda: service.client.get("/v1/popular").status_code == 200)


def test_unreadable_requests_count_against_their_address(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path / "shop.db"), public_rate=1, rate=1) as service:
        found = [service.send_raw(b"no request\r\n\r\n") for _ in range(6)]
    assert found[0].startswith(b"HTTP/1.1 400 ")
    assert sum(response.startswith(b"HTTP/1.1 429 ") for response in found) >= 3
    assert all(b"connection: close" in response for response in found)


def test_each_key_and_each_shopper_has_its_own_rate(tmp_path: Path) -> None:
    access = KeyFile.new()
    busy, quiet = access.add("busy", ["read"]), access.add("quiet", ["read"])
    auth = Authenticator(None, access)
    with serving(make_shop(tmp_path / "shop.db"), auth, rate=1, public_rate=1) as service:

        def statuses(key: str, path: str = "/v1/popular") -> list[int]:
            headers = {"Authorization": f"Bearer {key}"}
            return [service.client.get(path, headers=headers).status_code for _ in range(6)]

        assert statuses(busy).count(429) >= 3
        assert statuses("guessed").count(401) <= 3  # guessed keys are slowed down,
        assert statuses(quiet)[:2] == [200, 200]  # but not other callers at their address
        for user in ("ann", "bob"):
            assert statuses(service.token(auth, user), f"/v1/users/{user}")[:2] == [200, 200]


def test_one_key_gets_half_of_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyFile.new()
    greedy, other = access.add("greedy", ["read"]), access.add("other", ["read"])
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), threads=4) as service,
        slow_engine(monkeypatch) as (called, release),
        requesting(service, 70, "/v1/popular", greedy) as connections,
    ):
        until(lambda: len(called) == 2)
        headers = {"Authorization": f"Bearer {other}"}
        assert service("GET", "/v1/users/ann/recommendations", headers=headers)["user"] == "ann"
        assert service("GET", "/v1/items", headers=headers)["items"]
        until(lambda: len(select(connections, [], [], 0)[0]) == 6)  # the rejected ones
        assert len(called) == 2
        release.set()
        first = [connection.recv(15) for connection in connections]
    assert first.count(b"HTTP/1.1 200 OK") == 64
    assert first.count(b"HTTP/1.1 429 To") == 6


def test_reads_do_not_queue_behind_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyFile.new()
    key = access.add("till", ["read", "privacy"])
    headers = {"Authorization": f"Bearer {key}"}
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), threads=4) as service,
        slow_engine(monkeypatch, "apply") as (called, _),
        ExitStack() as stack,
    ):
        for _ in range(64):
            connection = stack.enter_context(connected(service))
            connection.sendall(request("/v1/users/ann/baskets/1", key).replace(b"GET", b"DELETE"))
        until(lambda: len(called) == 2)
        assert service("GET", "/v1/items", headers=headers)["items"]
        error = service("DELETE", "/v1/users/ann", 429, headers=headers)["error"]
        assert error["message"] == "64 of your requests are in progress; wait for a response"


def test_a_shopper_has_four_requests_in_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyFile.new()
    access.add("till", ["write"])
    auth = Authenticator(None, access)
    path = "/v1/users/new%20shopper/recommendations?n=60"
    with (
        serving(make_shop(tmp_path / "shop.db"), auth) as service,
        slow_engine(monkeypatch) as (called, release),
        requesting(service, 10, path, service.token(auth, "new shopper")) as connections,
    ):
        until(lambda: len(select(connections, [], [], 0)[0]) == 6)
        assert len(called) == 4
        release.set()
        first = [connection.recv(15) for connection in connections]
    assert first.count(b"HTTP/1.1 200 OK") == 4
    assert first.count(b"HTTP/1.1 429 To") == 6


def test_anonymous_callers_have_a_rate(tmp_path: Path) -> None:
    """On every path, from other machines; probes of this machine are not limited."""
    access = KeyFile.new()
    access.add("till", ["write"])
    with serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), public_rate=2) as service:
        for path in ("/openapi.json", "/nowhere", "/v1/nowhere", "/"):
            assert 429 in [service.client.get(path).status_code for _ in range(6)], path
        assert {service.client.get("/healthz").status_code for _ in range(20)} == {200}
        with socket.create_connection(("127.0.0.1", service.port), 20, ("127.0.0.2", 0)) as connection:
            connection.sendall(PING * 6)
            assert read_responses(connection, 6).count(b"429 Too Many Requests") == 2
