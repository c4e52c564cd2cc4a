"""Responses as bytes, percent escapes in paths, and disconnects. The limits are in test_attacks and test_bad_input."""

import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from tests.service.process import until
from tests.service.serving import Service, make_shop, serving
from tests.service.sockets import connected, request

from unbasket.service.api import PENALTY
from unbasket.service.connection import Connection, unescaped
from unbasket.service.errors import ApiError


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(make_shop(tmp_path_factory.mktemp("connection") / "shop.db")) as service:
        yield service


def test_percent_escapes() -> None:
    chance = random.Random(1)
    for _ in range(20_000):
        path = bytes(chance.choices(b"%%%%=09afAFgz_/.~-&;\t\x80\xff", k=chance.randrange(15)))
        assert unescaped(path) == unquote_to_bytes(path)
    for byte in range(256):
        for path in (b"a%%%02xb" % byte, b"%%%02X" % byte, b"%41" + bytes([byte]), bytes([byte]) + b"%"):
            assert unescaped(path) == unquote_to_bytes(path)


def test_many_literal_percent_signs_are_rejected(service: Service) -> None:
    assert unescaped(b"%" * 100) == b"%" * 100
    with pytest.raises(ApiError, match="more than 100"):
        unescaped(b"%" * 101)
    response = service.send_raw(b"GET /v1/users/" + b"%" * 101 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 400 ")
    assert b'"malformed_request"' in response


@pytest.mark.parametrize("path", ["/healthz", "/v1/users/ann/recommendations", "/v1/items"])
def test_http_1_0_closes_the_connection(service: Service, path: str) -> None:
    head, _, body = service.send_raw(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" in head
    assert f"content-length: {len(body)}".encode() in head
    assert b"\r\ndate: " in head


@pytest.mark.parametrize("path", ["/healthz", "/v1/none"])
def test_a_response_to_head_has_no_body(service: Service, path: str) -> None:
    response = service.send_raw(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert response.startswith((b"HTTP/1.1 405 ", b"HTTP/1.1 404 "))
    assert response.endswith(b"\r\n\r\n")


def test_pipelined_responses_keep_their_order(service: Service) -> None:
    """Handlers run on the event loop, on the fast path, and in threads."""
    paths = ["/v1/users/ann/recommendations", "/healthz", "/v1/items", "/v1/none", "/v1/users/bob/recommendations"] * 3
    requests = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode() for path in paths]
    response = service.send_raw(b"\r\n".join(requests) + b"Connection: close\r\n\r\n")
    wanted = (b'"user":"ann"', b'"ok":true', b'"items":', b'"not_found"', b'"user":"bob"') * 3
    bodies = [each.partition(b"\r\n\r\n")[2] for each in response.split(b"HTTP/1.1 ")[1:]]
    assert [text in body for text, body in zip(wanted, bodies, strict=True)] == [True] * 15


def test_a_disconnect_with_pipelined_requests_logs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The third gets a delayed 429, after the disconnect; the fourth and fifth wait for it."""
    with serving(make_shop(tmp_path / "shop.db"), public_rate=1, rate=1) as service:
        with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5)
            assert connection.recv(1)
        time.sleep(3 * PENALTY)
    assert [record for record in caplog.records if record.name.startswith(("uvicorn", "asyncio"))] == []


def test_a_disconnect_before_the_response_logs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is being closed, and uvicorn does not know yet."""
    checked: list[Connection] = []

    def is_gone(connection: Connection) -> bool:
        checked.append(connection)
        return True

    with serving(make_shop(tmp_path / "shop.db")) as service:
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "is_gone", is_gone)
            with connected(service) as connection:
                connection.sendall(request("/v1/popular"))
                until(lambda: checked)
                time.sleep(0.2)
        assert service("GET", "/v1/popular")
    assert [record for record in caplog.records if record.name.startswith(("uvicorn", "asyncio"))] == []
