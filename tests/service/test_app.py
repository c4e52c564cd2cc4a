"""The application: concurrent requests, timeouts, disconnects, HTTP as clients expect it, times of baskets."""

import socket
import struct
import threading
import time
from pathlib import Path
from typing import cast

import httpx
import pytest
import structlog
from tests.service.process import until
from tests.service.serving import Service, make_shop, serving, slow_engine
from tests.service.sockets import requesting

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.service.api_keys import KeyFile
from unbasket.service.app import PENALTY
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


# HTTP as clients expect it --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/healthz", "/v1/users/ann/recommendations", "/v1/items", "/"])
def test_http_1_0_closes_the_connection(service: Service, path: str) -> None:
    head, _, body = service.send_raw(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"content-length: {len(body)}".encode() in head
    assert b"\r\ndate: " in head


@pytest.mark.parametrize(
    "path", ["/healthz", "/v1/users/ann/recommendations", "/v1/items", "/v1/none", "/", "/openapi.json"]
)
def test_head_is_get_without_a_body(service: Service, path: str) -> None:
    got, head = service.client.get(path), service.client.head(path)
    assert head.status_code == got.status_code
    assert head.content == b""
    changing = ("date", "x-request-id")
    assert [pair for pair in head.headers.items() if pair[0] not in changing] == [
        pair for pair in got.headers.items() if pair[0] not in changing
    ]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/users/ann", "DELETE, GET, HEAD, OPTIONS"),
        ("/v1/users/ann/baskets", "OPTIONS, POST"),
        ("/healthz", "GET, HEAD, OPTIONS"),
    ],
)
def test_options_lists_the_methods(service: Service, path: str, methods: str) -> None:
    response = service.client.options(path)
    assert (response.status_code, response.headers["allow"], response.content) == (204, methods, b"")
    assert service.client.patch(path).headers["allow"] == methods


def test_an_unknown_address_has_no_options(service: Service) -> None:
    assert service.code("OPTIONS", "/v1/none", 404) == "not_found"


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json"])
def test_a_file_has_options(service: Service, path: str) -> None:
    response = service.client.options(path)
    assert (response.status_code, response.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    assert service.client.post(path).headers["allow"] == response.headers["allow"]


def test_every_response_has_an_id_of_its_own(service: Service) -> None:
    paths = ["/healthz", "/v1/users/ann", "/v1/none", "/", "/healthz"]
    assert len({service.client.get(path).headers["x-request-id"] for path in paths}) == len(paths)


def test_personal_responses_are_not_stored(service: Service) -> None:
    for path in ("/v1/users/ann", "/v1/users/ann/recommendations", "/v1/users/zoe"):
        assert service.client.get(path).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/v1/users/ann", "/v1/users/ann/recommendations", "/v1/items", "/", "/openapi.json"])
def test_an_entity_tag_changes_with_the_response(service: Service, path: str) -> None:
    first = service.client.get(path)
    tag = first.headers["etag"]
    assert service.client.get(path).headers["etag"] == tag
    for known in (tag, f'"other", W/{tag}'):
        again = service.client.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert service.client.get(path, headers={"If-None-Match": '"other"'}).content == first.content
    if path.startswith("/v1/users"):
        service("PUT", "/v1/users/ann/baskets/9", json={"items": ["tea"]})
        assert service.client.get(path, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    ("header", "logged"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("00-secret-00f067aa0ba902b7-01", None),
    ],
)
def test_the_trace_of_the_caller_is_logged(service: Service, header: str, logged: str | None) -> None:
    with structlog.testing.capture_logs() as lines:
        service("PUT", "/v1/users/ann/baskets/9", json={"items": ["tea"]}, headers={"traceparent": header})
    assert [(line["event"], line.get("trace")) for line in lines] == [("response", logged)]


@pytest.mark.parametrize(("flags", "logged"), [("00", 0), ("01", 1), ("02", 0), ("ff", 1)])
def test_a_read_is_logged_if_the_caller_records_its_trace(service: Service, flags: str, logged: int) -> None:
    header = f"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}"
    with structlog.testing.capture_logs() as lines:
        service("GET", "/v1/users/ann/recommendations", headers={"traceparent": header})
    assert [line["trace"] for line in lines] == ["4bf92f3577b34da6a3ce929d0e0e4736"] * logged


def test_pipelined_responses_keep_their_order(service: Service) -> None:
    """Handlers run on the event loop, on the fast path, and in threads."""
    paths = ["/v1/users/ann/recommendations", "/healthz", "/v1/items", "/v1/none", "/v1/users/bob/recommendations"] * 3
    requests = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode() for path in paths]
    response = service.send_raw(b"\r\n".join(requests) + b"Connection: close\r\n\r\n")
    wanted = (b'"user":"ann"', b'"ok":true', b'"items":', b'"not_found"', b'"user":"bob"') * 3
    bodies = [each.partition(b"\r\n\r\n")[2] for each in response.split(b"HTTP/1.1 ")[1:]]
    assert [text in body for text, body in zip(wanted, bodies, strict=True)] == [True] * 15


def test_disconnects_log_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The third request gets a delayed 429, after the disconnect; the fourth and fifth wait for it."""
    with serving(make_shop(tmp_path / "shop.db"), public_rate=1, rate=1) as service:
        with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5)
            assert connection.recv(1)
        with requesting(service, 5, "/v1/popular"):
            pass
        time.sleep(3 * PENALTY)
    assert caplog.records == []


# Times of baskets -----------------------------------------------------------------------------------------------


def times(service: Service, user: str) -> dict[Id, int | None]:
    return {basket.basket: basket.time for basket in service.engine.history(user)}


def test_a_time_may_be_text(service: Service) -> None:
    service("PUT", "/v1/users/dan/baskets/1", json={"items": ["tea"], "time": "2026-05-01T18:30+02:00"})
    service("POST", "/v1/events", json=[
        {"event": "learn", "user": "dan", "basket": 2, "items": ["tea"], "time": "2026-05-02"},
        {"event": "learn", "user": "dan", "basket": 3, "items": ["tea"], "time": 1777593600},
    ])  # fmt: skip
    assert times(service, "dan") == {3: 1777593600, 1: 1777653000, 2: 1777680000}
    wrong = service("PUT", "/v1/users/dan/baskets/4", 400, json={"items": ["tea"], "time": "tomorrow"})["error"]
    assert "tomorrow" in wrong["message"]
    assert len(times(service, "dan")) == 3


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 1000)])
def test_without_a_time_the_clock_has_it(tmp_path: Path, unit: str, scale: int) -> None:
    """A repeated request changes nothing, and an edited basket keeps its time."""
    start = int(time.time())
    with serving(make_shop(tmp_path / "shop.db"), default_time="now", time_unit=unit) as service:
        path = "/v1/users/ann/baskets/9"
        assert service("PUT", path, json={"items": ["tea"]})["result"] == "added"
        learned = times(service, "ann")
        assert learned.keys() == {1, 2, 9}
        assert start <= cast(int, learned[9]) // scale <= time.time()
        time.sleep(1.1)
        assert service("PUT", path, json={"items": ["tea"]})["result"] == "unchanged"
        event = {"event": "learn", "user": "ann", "basket": 9, "items": ["tea", "milk"]}
        assert service("POST", "/v1/events", json=[event])["results"] == [{"result": "replaced"}]
        assert times(service, "ann") == learned
        assert service("POST", "/v1/users/eve/baskets", 201, json={"items": ["tea"]})
        assert all(start * scale <= cast(int, each) for each in times(service, "eve").values())


def test_a_basket_after_later_ones_has_no_time(tmp_path: Path) -> None:
    """The clock's time would put it before them: their unit is another, or their clock was wrong."""
    with serving(make_shop(tmp_path / "shop.db"), default_time="now") as service:
        service("PUT", "/v1/users/ann/baskets/8", json={"items": ["tea"], "time": 10**15})
        service("PUT", "/v1/users/ann/baskets/9", json={"items": ["tea"]})
        assert list(times(service, "ann").items())[-2:] == [(8, 10**15), (9, None)]
