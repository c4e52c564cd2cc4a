"""Requests through a proxy that spoils some of them, and over TLS."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from tests.client.proxy import Answer, Fault, Proxy, spoiling
from tests.service.certificates import Authority
from tests.service.serving import Service, make_shop, serving

import unbasket as ub
from unbasket.client import Client, ServiceError, UnavailableError
from unbasket.errors import NotReadyError

ERROR = '{"error": {"code": "%s", "message": "not now"}}'
BUSY = Answer(503, {"retry-after": "7"}, ERROR % "not_ready")
BLOCKED = Answer(503, {"retry-after": "1"}, ERROR % "erasure_blocked")
GATEWAY = Answer(502, {}, "<h1>Bad Gateway</h1>")
RATE = Answer(429, {"retry-after": "2"}, ERROR % "too_many_requests")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collect the seconds between requests, without waiting."""
    found: list[float] = []
    monkeypatch.setattr("unbasket.client.transport.time.sleep", found.append)
    return found


@contextmanager
def spoiled(service: Service, *faults: Fault, retries: int = 3) -> Iterator[tuple[Client, Proxy]]:
    """Open a client of a proxy that spoils the first requests."""
    with spoiling(str(service.client.base_url), faults) as proxy, Client(proxy.url, retries=retries) as client:
        yield client, proxy


REPEATABLE: dict[str, Callable[[Client], object]] = {
    "learn": lambda client: client.learn("dan", ["tea"], basket=1),
    "forget": lambda client: client.forget("ann", basket=1),
    "bulk": lambda client: client.apply([ub.Learn("dan", ["tea"], 1, None), ub.Forget("ann", 1, None)]),
    "recommend": lambda client: client.recommend("ann"),
    "visitor": lambda client: client.recommend_for([["milk"]]),
    "availability": lambda client: client.hide(["milk"]),
    "suppress": lambda client: client.suppress("ann", "tea"),
}


FAULTS: list[Fault] = ["cut off", "lose the response", BUSY, GATEWAY, RATE, BLOCKED]


@pytest.mark.parametrize("name", REPEATABLE)
def test_a_repeatable_request_is_repeated(client: Client, service: Service, name: str) -> None:
    call = REPEATABLE[name]
    for fault in FAULTS:
        with spoiled(service, fault) as (unlucky, proxy):
            call(unlucky)
        assert proxy.requests == 2
        state = service.engine.digest(), service.engine.hidden()
        call(client)
        assert (service.engine.digest(), service.engine.hidden()) == state  # as if it had been sent once


@pytest.mark.parametrize("fault", ["cut off", "lose the response", GATEWAY, BLOCKED])
def test_others_are_not_repeated_if_they_may_have_happened(service: Service, fault: Fault) -> None:
    with spoiled(service, fault, fault) as (client, proxy):
        with pytest.raises(ServiceError):
            client.learn_new("dan", ["tea"])
        with pytest.raises(ServiceError):
            client.rename("bob", "eve")
    assert proxy.requests == 2


@pytest.mark.parametrize("fault", [BUSY, RATE])
def test_others_are_repeated_if_nothing_has_changed(service: Service, fault: Fault) -> None:
    with spoiled(service, fault) as (client, _):
        client.learn_new("dan", ["tea"])
        assert len(client.history("dan")) == 1


def test_waits_are_those_that_the_service_asks_for(service: Service, waits: list[float]) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    later = Answer(503, {"retry-after": date}, ERROR % "not_ready")
    with spoiled(service, BUSY, RATE, later) as (client, _):
        client.me()
    assert waits[:2] == [7, 2]
    assert 10 < waits[2] <= 20


def test_waits_without_advice_grow(service: Service, waits: list[float]) -> None:
    nonsense = Answer(503, {"retry-after": "soon"}, ERROR % "not_ready")
    with spoiled(service, "cut off", GATEWAY, nonsense) as (client, _):
        client.me()
    assert 0.05 <= waits[0] <= 0.1 <= waits[1] <= 0.2 <= waits[2] <= 0.4


def test_a_day_is_not_waited_for(service: Service, waits: list[float]) -> None:
    tomorrow = Answer(429, {"retry-after": "80000"}, ERROR % "too_many_requests")
    with spoiled(service, tomorrow) as (client, _), pytest.raises(UnavailableError, match="not now") as raised:
        client.me()
    assert (raised.value.code, raised.value.retry_after, waits) == ("too_many_requests", 80000, [])


def test_there_is_an_end_to_repeating(service: Service) -> None:
    with spoiled(service, *[BUSY] * 10, retries=2) as (client, proxy), pytest.raises(NotReadyError):
        client.me()
    assert proxy.requests == 3


def test_a_service_that_is_not_there(waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    message = rf"http://127\.0\.0\.1:{port} does not answer: .*refused"
    with (
        Client(f"http://127.0.0.1:{port}", "a-secret") as client,
        pytest.raises(UnavailableError, match=message) as raised,
    ):
        client.learn_new("ann", ["milk"])  # it was not sent, so it is repeated
    assert raised.value.code == "unreachable"
    assert len(waits) == 3
    assert "a-secret" not in repr(client) + str(raised.value)


def test_errors_are_those_of_the_engine(client: Client) -> None:
    with pytest.raises(ub.UnknownUserError, match="nothing is held") as unknown:
        client.history("zoe")
    assert isinstance(unknown.value, ServiceError)
    assert (unknown.value.code, unknown.value.status) == ("unknown_user", 404)
    assert unknown.value.request_id
    with pytest.raises(ub.InvalidRequestError, match="both have a basket 1"):
        client.rename(7, "ann")
    with pytest.raises(ub.RetentionError):
        client.retain("no rules")
    with pytest.raises(ServiceError) as missing:
        client.receipt(99)
    assert missing.value.code == "unknown_receipt"


STORE_ERRORS = {
    "uncertain": ub.UncertainError,
    "store_failed": ub.StoreError,
    "erasure_blocked": ub.ErasureBlockedError,
    "disk_full": ub.DiskFullError,
    "params_changing": ub.BusyError,
}


@pytest.mark.parametrize("code", STORE_ERRORS)
def test_errors_of_the_store(service: Service, code: str) -> None:
    answer = Answer(500, {}, ERROR % code)
    with spoiled(service, answer) as (client, _), pytest.raises(STORE_ERRORS[code], match=r"^not now$") as raised:
        client.forget("ann")
    assert isinstance(raised.value, ServiceError)
    assert raised.value.code == code


@pytest.mark.parametrize("answer", [Answer(200, {}, "<h1>It works!</h1>"), Answer(404, {}, "[]")])
def test_another_server(service: Service, answer: Answer) -> None:
    with spoiled(service, answer) as (client, _), pytest.raises(ServiceError, match="is the address right") as raised:
        client.me()
    assert (raised.value.code, raised.value.status) == ("not_json", answer.status)


def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("server")
    mine = authority.issue("till")
    options: dict[str, Any] = {"tls_cert": cert, "tls_key": key, "client_ca": authority.file}
    with serving(make_shop(tmp_path / "shop.db"), **options) as service:
        url = f"https://127.0.0.1:{service.port}"
        with Client(url, ca=authority.file, certificate=mine) as client:
            assert client.recommend("ann", 1)[0].item == "milk"
        with Client(url, certificate=mine) as stranger, pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY"):
            stranger.me()
        with Client(url, ca=authority.file) as nameless, pytest.raises(UnavailableError):
            nameless.me()
