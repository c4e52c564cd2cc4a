"""Invalid input over a socket: a clear 4xx, and no change. A scenario of decoding, routes, limits and connection."""

import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.service.serving import Service, make_shop, serving

from unbasket.service import logs
from unbasket.service.app import Application
from unbasket.service.response import Response

MOST = 64 * 1024
PUT = "/v1/users/ann/baskets/9"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(make_shop(tmp_path_factory.mktemp("bad") / "shop.db"), max_body=MOST, timeout=2) as service:
        yield service


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    """Check after each test that the data are unchanged and the service responds."""
    before = running.engine.digest()
    yield running
    assert running("GET", "/healthz") == {"ok": True}
    assert running.engine.digest() == before


def status_of(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


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
    response = service(method, path, 400, content=body, headers={"Content-Type": "application/json"})
    assert response["error"]["code"] in ("malformed_json", "invalid_body")


@pytest.mark.parametrize(("method", "path"), [("PUT", PUT), ("POST", "/v1/events")])
def test_empty_bodies(service: Service, method: str, path: str) -> None:
    assert (
        service.code(method, path, 400, content=b"", headers={"Content-Type": "application/json"}) == "malformed_json"
    )


@pytest.mark.parametrize("line", [b"{", b'{"event": "forget", "user": "\xff"}', b'{"event": "forget", "user": "a"} x'])
def test_malformed_lines(service: Service, line: bytes) -> None:
    headers = {"Content-Type": "application/x-ndjson"}
    body = b'{"event": "forget", "user": "ann"}\r\n\n' + line + b"\n"
    response = service("POST", "/v1/events", 400, content=body, headers=headers)["error"]
    assert response["code"] == "malformed_json"
    assert response["message"].startswith("line 3 is not JSON in UTF-8: ")


@pytest.mark.parametrize("body", [b"{", b"", b'{"items": ["\xff"]}'])
def test_malformed_is_not_invalid(service: Service, body: bytes) -> None:
    """The decoder raises another error than ValidationError."""
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
def test_other_media_types(service: Service, kind: str) -> None:
    """A page of any site may send forms and text without a preflight request."""
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
def test_content_lengths(service: Service, length: int, status: int) -> None:
    response = service.send_raw(raw(f"PUT {PUT}", "Content-Type: application/json", f"Content-Length: {length}"))
    assert status_of(response) == status


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_a_rejected_body_closes_its_connection(service: Service, connection: str) -> None:
    """The response says so once; otherwise an endless body would be read forever."""
    body = large(MOST)
    lines = f"PUT {PUT} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\nContent-Length: {len(body)}\r\n\r\n"
    response = service.send_raw(lines.encode() + body + (raw("GET /healthz") if connection == "keep-alive" else b""))
    assert status_of(response) == 413
    assert response.count(b"connection: close\r\n") == 1
    assert response.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("length", ["-1", "x", "1, 2", "0x10"])
def test_invalid_content_lengths(service: Service, length: str) -> None:
    response = service.send_raw(raw(f"PUT {PUT}", "Content-Type: application/json", f"Content-Length: {length}"))
    assert status_of(response) == 400


def test_a_rejected_body_may_be_sent_to_its_end(service: Service) -> None:
    """The client reads the response after sending; a connection closed at once would lose it."""
    request = raw(f"PUT {PUT}", "Content-Type: application/json", "Content-Length: 5000000", body=b"x" * 5_000_000)
    assert status_of(service.send_raw(request)) == 413


@pytest.mark.parametrize(
    "path",
    [
        "/v1/users/" + "x" * 80_000,
        "/v1/users/" + "%41" * 27_000,
        "/v1/users?prefix=" + "x" * 80_000,
        "/v1" + "/" * 80_000,
    ],
)
def test_long_addresses(service: Service, path: str) -> None:
    assert status_of(service.send_raw(raw(f"GET {path}"))) == 400


def test_enormous_headers(service: Service) -> None:
    assert status_of(service.send_raw(raw("GET /v1/popular", "X-A: " + "x" * 80_000))) == 400


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
def test_path_traversal_and_odd_paths(service: Service, path: str, status: int) -> None:
    response = service.send_raw(raw(f"GET {path}"))
    assert status_of(response) == status
    assert b"\r\nx-evil" not in response.lower()
    assert b'{"error":{"code":"' in response
    assert b"root:" not in response


def test_other_methods(service: Service) -> None:
    for method in ("PATCH", "TRACE", "PUT"):
        response = service.send_raw(raw(f"{method} /v1/users/ann"))
        assert status_of(response) == 405
        assert b"\r\nallow: DELETE, GET, HEAD, OPTIONS\r\n" in response
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
def test_invalid_queries(service: Service, query: str) -> None:
    assert service.code("GET", f"/v1/users/ann/recommendations?{query}", 400) == "invalid_query"


def test_queries_that_are_not_ascii(service: Service) -> None:
    assert status_of(service.send_raw(raw("GET /v1/users?prefix=\xff"))) == 400
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
def test_invalid_pages(service: Service, path: str) -> None:
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
def test_bytes_that_are_not_http(service: Service, data: bytes) -> None:
    assert status_of(service.send_raw(data)) == 400


def test_an_invalid_chunk(service: Service) -> None:
    """A chunk without a length closes the connection, and nothing is learned."""
    before = service.engine.digest()
    head = f"PUT {PUT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    assert b" 200 " not in service.send_raw(f"{head}\r\nzz\r\n".encode(), finish=True)
    assert service.engine.digest() == before


def test_a_client_that_disconnects(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request ends: nothing is learned, nothing fails, and nothing waits for the rest of the body."""
    ended, failures = threading.Semaphore(0), list[object]()
    run = Application.__call__

    async def watched(*given: Any) -> Response:
        response = await run(*given)
        ended.release()
        return response

    monkeypatch.setattr(Application, "__call__", watched)
    monkeypatch.setattr(logs, "failure", lambda *given, **_: failures.append(given))
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(raw(f"PUT {PUT}", "Content-Type: application/json", "Content-Length: 1000", body=b"{"))
    assert all(ended.acquire(timeout=20) for _ in range(20))
    assert failures == []
    assert [basket["basket"] for basket in service("GET", "/v1/users/ann")["baskets"]] == [1, 2]


def test_a_client_that_waits_before_its_body(service: Service) -> None:
    """As curl does: the service asks for the body, or rejects it unseen."""
    head = f"PUT {PUT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    body = b'{"items": "tea"}'
    for length, first, second in ((len(body), b"100", b"400"), (MOST + 1, b"413", b"")):
        with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
            connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 " + first)
            connection.sendall(body)
            assert connection.recv(1000)[9:12] == second


def test_a_slow_body_does_not_block_others(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path / "shop.db"), timeout=600) as service, partly_sent(service) as slow:
        service("GET", "/v1/users/ann/recommendations")
        assert select.select([slow], [], [], 0)[0] == []


def test_a_slow_body_times_out(service: Service) -> None:
    """Even if bytes keep arriving."""
    stop = threading.Event()
    with partly_sent(service) as slow:
        trickle = threading.Thread(target=_trickle, args=(slow, stop))
        trickle.start()
        response = slow.recv(65536)
        stop.set()
        trickle.join()
    assert status_of(response) == 408
    assert b'"slow_request"' in response


@contextmanager
def partly_sent(service: Service) -> Iterator[socket.socket]:
    """Send a request with the start of its body."""
    with socket.create_connection(("127.0.0.1", service.port), 60) as connection:
        connection.sendall(raw(f"PUT {PUT}", "Content-Type: application/json", "Content-Length: 1000", body=b"{"))
        yield connection


def _trickle(connection: socket.socket, stop: threading.Event) -> None:
    while not stop.wait(0.1):
        try:
            connection.sendall(b" ")
        except OSError:
            return


def test_many_slow_clients_do_not_block_others(service: Service) -> None:
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(100)]
    try:
        for connection in slow:
            connection.sendall(b"PUT /v1/users/ann/baskets/1 HTTP/1.1\r\nHost: 127")
        for _ in range(5):
            service("GET", "/v1/users/ann/recommendations")
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("PUT", PUT, {"items": ["a"], "item": "b"}, "Unknown field `item`. Allowed: items, time."),
        ("POST", "/v1/events", [{"event": "forget", "user": "a"}, {"event": "learn", "user": "a", "itms": []}],
         "Unknown field `itms`. Allowed: event, user, basket, items, time, item. At `[1]`."),
        ("POST", "/v1/users/ann/preview", {"forget": {"itm": "b"}},
         "Unknown field `itm`. Allowed: basket, item, category. At `.forget`."),
        ("GET", "/v1/users/ann/recommendations?m=3", None,
         "Unknown field `m`. Allowed: exclude, only, category, n, only_new, cart, explain, fields."),
        ("GET", "/v1/categories?a=1", None, "Unknown field `a`. Allowed: none."),
    ],
)  # fmt: skip
def test_an_unknown_field_names_the_allowed_ones(
    service: Service, method: str, path: str, body: object, message: str
) -> None:
    response = service(method, path, 400, **({} if body is None else {"json": body}))
    assert response["error"]["message"].endswith(": " + message)
