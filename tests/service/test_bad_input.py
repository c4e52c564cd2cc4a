"""Whatever comes over the socket: a clear 4xx, and the service goes on."""

import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.service.process import until
from tests.service.serving import Service, serving, stock

import unbasket as ub
from unbasket.service import logs
from unbasket.service.app import Api
from unbasket.store import DurableRecommender
from unbasket.store.wal import Wal

MOST = 64 * 1024
PUT = "/v1/users/ann/baskets/9"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(stock(tmp_path_factory.mktemp("bad") / "shop.db"), max_body=MOST, timeout=2) as service:
        yield service


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    """Whatever a test does, nothing changes and the service is up."""
    before = running.shop.engine.digest()
    yield running
    assert running("GET", "/healthz") == {"ok": True}
    assert running.shop.engine.digest() == before


def head(answer: bytes) -> int:
    """The status in the answer to raw bytes."""
    return int(answer.split(b" ", 2)[1])


def raw(line: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{line} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


# Bodies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"{]",
        b'{"items": ["a"]',
        b'{"items": ["a"]} x',
        b"{'items': ['a']}",
        b'{"items": ["\xff"]}',
        b'{"items": ["\xed\xa0\x80"]}',
        b'{"items": ["\\ud800"]}',
        b'{"items": [NaN]}',
        b"\x00",
        b"\xff\xfe{\x00}\x00",
        b'\xef\xbb\xbf{"items": ["a"]}',
        b"[" * 60_000,
        b'{"items":' * 6_000,
        b'{"items": [01]}',
    ],
)
@pytest.mark.parametrize(("method", "path"), [("PUT", PUT), ("POST", "/v1/events"), ("POST", "/v1/receipts/verify")])
def test_malformed_json(service: Service, method: str, path: str, body: bytes) -> None:
    answer = service(method, path, 400, content=body, headers={"Content-Type": "application/json"})
    assert answer["error"]["code"] in ("malformed_json", "invalid_body")


@pytest.mark.parametrize(("method", "path"), [("PUT", PUT), ("POST", "/v1/events")])
def test_no_json_at_all(service: Service, method: str, path: str) -> None:
    assert (
        service.code(method, path, 400, content=b"", headers={"Content-Type": "application/json"}) == "malformed_json"
    )


@pytest.mark.parametrize("line", [b"{", b'{"event": "forget", "user": "\xff"}', b'{"event": "forget", "user": "a"} x'])
def test_malformed_lines(service: Service, line: bytes) -> None:
    headers = {"Content-Type": "application/x-ndjson"}
    body = b'{"event": "forget", "user": "ann"}\r\n\n' + line + b"\n"
    answer = service("POST", "/v1/events", 400, content=body, headers=headers)["error"]
    assert answer["code"] == "malformed_json"
    assert answer["message"].startswith("line 3 is not JSON in UTF-8: ")


@pytest.mark.parametrize("body", [b"{", b"", b'{"items": ["\xff"]}'])
def test_malformed_is_not_invalid(service: Service, body: bytes) -> None:
    """The decoder raises another error for it, which is no ValidationError."""
    headers = {"Content-Type": "application/json"}
    assert service.code("PUT", PUT, 400, content=body, headers=headers) == "malformed_json"


@pytest.mark.parametrize(
    "body",
    [
        None,
        1,
        "x",
        [],
        {},
        {"items": None},
        {"items": []},
        {"items": "milk"},
        {"items": {"a": 1}},
        {"items": [""]},
        {"items": [None]},
        {"items": [1.5]},
        {"items": [True]},
        {"items": [["a"]]},
        {"items": [2**63]},
        {"items": [-(2**63) - 1]},
        {"items": ["a"], "time": "now"},
        {"items": ["a"], "time": 1.5},
        {"items": ["a"], "time": True},
        {"items": ["a"], "time": -(2**63)},
        {"items": ["a"], "time": 2**63},
        {"items": ["a"], "basket": 1},
        {"Items": ["a"]},
        {"items": list(range(8193))},
    ],
)
def test_wrong_types(service: Service, body: object) -> None:
    content, headers = json.dumps(body), {"Content-Type": "application/json"}
    assert service.code("PUT", PUT, 400, content=content, headers=headers) == "invalid_body"
    assert service.code("POST", "/v1/users/ann/baskets", 400, content=content, headers=headers) == "invalid_body"


@pytest.mark.parametrize("kind", ["text/plain", "", "application/xml", "application/x-ndjson", "application/jsonx"])
def test_other_media(service: Service, kind: str) -> None:
    """A form or a text could come from any web page without asking first."""
    body = json.dumps({"items": ["milk"]}).encode()
    code = service.code("PUT", PUT, 415, content=body, headers={"Content-Type": kind})
    assert code == "unsupported_media_type"


def test_json_with_a_charset_is_json(service: Service) -> None:
    body = json.dumps({"items": []}).encode()
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert service.code("PUT", PUT, 400, content=body, headers=headers) == "invalid_body"


# Size -----------------------------------------------------------------------------------------------------------


def large(size: int) -> bytes:
    return b'{"items": ["' + b"x" * size + b'"]}'


def test_huge_bodies(service: Service) -> None:
    headers = {"Content-Type": "application/json"}
    assert service.code("PUT", PUT, 413, content=large(MOST), headers=headers) == "too_large"
    assert service.code("PUT", PUT, 413, content=large(20_000_000), headers=headers) == "too_large"
    assert service.code("PUT", "/v1/nowhere", 404, content=large(5_000_000), headers=headers) == "not_found"
    assert service("GET", "/v1/users/ann", content=large(5_000_000), headers=headers)["user"] == "ann"
    parts = (b"x" * 10_000 for _ in range(100))
    assert service.code("PUT", PUT, 413, content=parts, headers=headers) == "too_large"


@pytest.mark.parametrize(("length", "status"), [(MOST + 1, 413), (2**62, 413), (10**23, 400)])
def test_announced_sizes(service: Service, length: int, status: int) -> None:
    answer = service.sent(raw(f"PUT {PUT}", "Content-Type: application/json", f"Content-Length: {length}"))
    assert head(answer) == status


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_a_body_that_is_refused_is_the_last_of_its_connection(service: Service, connection: str) -> None:
    """As the answer says, once: whoever sends without an end would be listened to without an end."""
    body = large(MOST)
    lines = f"PUT {PUT} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\nContent-Length: {len(body)}\r\n\r\n"
    answer = service.sent(lines.encode() + body + raw("GET /healthz"))
    assert head(answer) == 413
    assert answer.count(b"connection: close\r\n") == 1
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("length", ["-1", "x", "1, 2", "0x10"])
def test_sizes_that_are_none(service: Service, length: str) -> None:
    answer = service.sent(raw(f"PUT {PUT}", "Content-Type: application/json", f"Content-Length: {length}"))
    assert head(answer) == 400


def test_a_refused_body_may_be_sent_to_its_end(service: Service) -> None:
    """The client reads its answer only when all is sent; a connection closed at once would have lost it."""
    request = raw(f"PUT {PUT}", "Content-Type: application/json", "Content-Length: 5000000", body=b"x" * 5_000_000)
    assert head(service.sent(request)) == 413


@pytest.mark.parametrize(
    "path",
    [
        "/v1/users/" + "x" * 20_000,
        "/v1/users/" + "%41" * 6_000,
        "/v1/users?prefix=" + "x" * 20_000,
        "/v1" + "/" * 17_000,
    ],
)
def test_long_addresses(service: Service, path: str) -> None:
    assert head(service.sent(raw(f"GET {path}"))) == 414


def test_enormous_headers(service: Service) -> None:
    assert head(service.sent(raw("GET /v1/popular", "X-A: " + "x" * 60_000))) == 431


# Addresses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/users/..%2F..%2Fetc%2Fpasswd", 404),
        ("/v1/users/../../etc/passwd", 404),
        ("/v1/users/..", 404),
        ("/v1/../v1/users/ann", 404),
        ("/static/../app.py", 404),
        ("/static/..%2Fapp.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("//v1/users/ann", 404),
        ("/v1//users/ann", 404),
        ("/v1/users//baskets/1", 404),
        ("/v1/users/", 404),
        ("/v1/users/ann/", 404),
        ("/v1/", 404),
        ("/v1", 404),
        ("/V1/users/ann", 404),
        ("/v1/users/%00", 404),
        ("/v1/users/a%00b", 404),
        ("/v1/users/%FF", 400),
        ("/v1/users/%C0%AF", 400),
        ("/v1/users/%ED%A0%80", 400),
        ("/v1/users/%", 404),
        ("/v1/users/%zz", 404),
        ("/v1/users/%2", 404),
        ("/v1/users/ann%0d%0aX-Evil:%201", 404),
        ("/v1/users/ann;x=1", 404),
        ("/healthz/x", 404),
        ("/healthzx", 404),
        ("/%68ealthz%00", 404),
        ("http://127.0.0.1/v1/users/zoe", 404),
    ],
)
def test_path_tricks(service: Service, path: str, status: int) -> None:
    answer = service.sent(raw(f"GET {path}"))
    assert head(answer) == status
    assert b"\r\nx-evil" not in answer.lower()
    assert b'{"error":{"code":"' in answer
    assert b"root:" not in answer


def test_other_methods(service: Service) -> None:
    for method in ("PATCH", "HEAD", "OPTIONS", "TRACE", "PUT"):
        answer = service.sent(raw(f"{method} /v1/users/ann"))
        assert head(answer) == 405
        assert b"\r\nallow: DELETE, GET\r\n" in answer
    assert service.code("POST", "/openapi.json", 405) == "method_not_allowed"
    assert service.code("GET", "/nothing", 404) == "not_found"


@pytest.mark.parametrize(
    "query",
    [
        "n=",
        "n=x",
        "n=-1",
        "n=1001",
        "n=1&n=2",
        "n=1.5",
        "m=1",
        "only_new=maybe",
        "n=%FF",
        "%FF=1",
        "exclude=",
        "n=\u0663",
        "explain=2",
        "&".join(f"exclude={number}" for number in range(1001)),
    ],
)
def test_bad_queries(service: Service, query: str) -> None:
    assert service.code("GET", f"/v1/users/ann/recommendations?{query}", 400) == "invalid_query"


def test_queries_that_are_not_ascii(service: Service) -> None:
    assert head(service.sent(raw("GET /v1/users?prefix=\xff"))) == 400
    assert service("GET", "/v1/users?prefix=\u00fc")["users"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/users?limit=0",
        "/v1/users?limit=1001",
        "/v1/items?limit=x",
        "/v1/receipts?after=-1",
        "/v1/receipts?after=x",
        "/v1/popular?n=9999999999999999999999",
        "/v1/stats?x=1",
    ],
)
def test_bad_pages(service: Service, path: str) -> None:
    assert service.code("GET", path, 400) == "invalid_query"


# Protocol -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n",
    ],
)
def test_no_http(service: Service, data: bytes) -> None:
    assert head(service.sent(data, finish=True)) == 400


def test_a_body_that_stops_being_http(service: Service) -> None:
    """A part of it without a length ends the connection; nobody waits for an answer to what is no request."""
    assert service.sent(b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", finish=True) == b""


def test_a_client_that_leaves(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request ends with it: nothing is learned, nothing fails, and nothing waits for the rest."""
    ended, failures = threading.Semaphore(0), list[object]()
    run = Api._run

    async def watched(*given: Any) -> None:
        await run(*given)
        ended.release()

    monkeypatch.setattr(Api, "_run", watched)
    monkeypatch.setattr(logs, "failure", lambda *given, **_: failures.append(given))
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(raw(f"PUT {PUT}", "Content-Type: application/json", "Content-Length: 1000", body=b"{"))
    assert all(ended.acquire(timeout=20) for _ in range(20))
    assert failures == []
    assert [basket["basket"] for basket in service("GET", "/v1/users/ann")["baskets"]] == [1, 2]


def test_a_slow_body_keeps_nobody_waiting(tmp_path: Path) -> None:
    with serving(stock(tmp_path / "shop.db"), timeout=600) as service, begun(service) as slow:
        service("GET", "/v1/users/ann/recommendations")
        assert select.select([slow], [], [], 0)[0] == []


def test_a_slow_body_is_told_to_go(service: Service) -> None:
    """However steadily it comes."""
    stop = threading.Event()
    with begun(service) as slow:
        trickle = threading.Thread(target=_trickle, args=(slow, stop))
        trickle.start()
        answer = slow.recv(65536)
        stop.set()
        trickle.join()
    assert head(answer) == 408
    assert b'"slow_request"' in answer


@contextmanager
def begun(service: Service) -> Iterator[socket.socket]:
    """A request whose body has begun to arrive."""
    with socket.create_connection(("127.0.0.1", service.port), 60) as connection:
        connection.sendall(raw(f"PUT {PUT}", "Content-Type: application/json", "Content-Length: 1000", body=b"{"))
        yield connection


def _trickle(connection: socket.socket, stop: threading.Event) -> None:
    while not stop.wait(0.1):
        try:
            connection.sendall(b" ")
        except OSError:
            return


def test_many_slow_clients_keep_nobody_waiting(service: Service) -> None:
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(100)]
    try:
        for connection in slow:
            connection.sendall(b"PUT /v1/users/ann/baskets/1 HTTP/1.1\r\nHost: 127")
        for _ in range(5):
            service("GET", "/v1/users/ann/recommendations")
    finally:
        for connection in slow:
            connection.close()


# Limits ---------------------------------------------------------------------------------------------------------


def test_rates(tmp_path: Path) -> None:
    """Two seconds' worth at once, then as many as the rate allows."""
    with serving(stock(tmp_path / "shop.db"), rate=2) as service:
        start = time.monotonic()
        answers = [service.client.get("/v1/popular") for _ in range(50)]
        most = 4 + 2 * (time.monotonic() - start)
        refused = [answer for answer in answers if answer.status_code == 429]
        assert [answer.status_code for answer in answers[:4]] == [200, 200, 200, 200]
        assert len(answers) - len(refused) <= most
        assert refused[0].json()["error"]["code"] == "too_many_requests"
        assert refused[0].headers["retry-after"] == "1"
        assert service("GET", "/healthz") == {"ok": True}
        until(lambda: service.client.get("/v1/popular").status_code == 200)


def test_an_answer_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(stock(tmp_path / "shop.db"), timeout=0.3) as service:
        release = threading.Event()
        popular = DurableRecommender.popular
        monkeypatch.setattr(
            DurableRecommender, "popular", lambda *given, **named: release.wait(10) and popular(*given, **named)
        )
        assert service.code("GET", "/v1/popular", 504) == "timed_out"
        assert service("GET", "/v1/users/ann/recommendations")["user"] == "ann"
        release.set()


def test_a_mistake_of_ours_is_a_500_without_details(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(stock(tmp_path / "shop.db")) as service:
        monkeypatch.setattr(DurableRecommender, "popular", lambda *_: [][1])
        answer = service("GET", "/v1/popular", 500)
        assert answer["error"] == {"code": "internal", "message": "the service had an error, which its log describes"}
        assert service("GET", "/v1/users/ann/recommendations")["user"] == "ann"


def test_a_disk_that_does_not_confirm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether it happened, and the answer says so; of what is asked for later, nothing happens."""
    with serving(stock(tmp_path / "shop.db")) as service:

        def fail(_: Wal) -> None:
            raise OSError(5, "no room left on device")  # not what a full disk says, whatever it sounds like

        with monkeypatch.context() as patch:
            patch.setattr(Wal, "sync", fail)
            answer = service("DELETE", "/v1/users/ann", 500)["error"]
        assert answer["code"] == "uncertain"
        assert "it may have happened, or not" in answer["message"]
        assert "nothing was changed" not in answer["message"]
        assert service.code("DELETE", "/v1/users/bob", 503) == "store_failed"
    with ub.open(tmp_path / "shop.db", read_only=True) as rec:
        assert "bob" in rec


def test_a_full_disk(tmp_path: Path) -> None:
    with serving(stock(tmp_path / "shop.db")) as service:
        execute = service.shop.engine._journal._database._connection.execute
        pages = execute("PRAGMA page_count").fetchone()[0]
        execute(f"PRAGMA max_page_count = {pages}")
        body = {"items": ["x" * 100_000]}
        answer = service("PUT", "/v1/users/ann/baskets/9", 507, json=body)
        assert answer["error"]["code"] == "disk_full"
        assert str(tmp_path) not in answer["error"]["message"]
        assert len(service("GET", "/v1/users/ann")["baskets"]) == 2
        execute("PRAGMA max_page_count = 1000000")
        service("PUT", "/v1/users/ann/baskets/9", json=body)
