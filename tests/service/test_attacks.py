"""Hostile connections against a service in its own process: memory stays bounded, and other clients get responses.

A scenario of connection, limits and logs.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.service.process import Service, memory, running
from tests.service.serving import make_shop, serving
from tests.service.sockets import PING, connected, error_code, is_pong, read_all, read_responses

from unbasket.service import connection as connections

MIB = 2**20


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(make_shop(tmp_path_factory.mktemp("attacked") / "shop.db")) as service:
        yield service


@contextmanager
def bounded(service: Service, growth: float = 16) -> Iterator[None]:
    """Check that the service still responds after the block, and never grew by more than `growth` MiB."""
    assert service.ask("GET", "/healthz")[0] == 200
    before, most = memory(service), 0.0
    over = threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.01):
            most = max(most, memory(service))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
        assert service.ask("GET", "/v1/users/ann/recommendations")[0] == 200
    finally:
        over.set()
        watcher.join()
    assert most < before + growth
    assert memory(service) < before * 1.1


def flood(connection: socket.socket, chunk: bytes, most: int) -> int:
    """Send a chunk repeatedly, up to `most` bytes. Returns the bytes that were accepted."""
    sent = 0
    try:
        while sent < most:
            connection.sendall(chunk)
            sent += len(chunk)
    except OSError:
        pass
    return sent


def test_endless_headers(service: Service) -> None:
    with bounded(service), connected(service) as connection:
        connection.sendall(PING[:-2])
        lines = b"".join(b"a%d: b\r\n" % i for i in range(10_000))
        assert flood(connection, lines, 256 * MIB) < 16 * MIB


def test_an_endless_header(service: Service) -> None:
    with bounded(service), connected(service) as connection:
        connection.sendall(PING[:-2] + b"a: ")
        assert flood(connection, b"x" * 65536, 128 * MIB) < 16 * MIB


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"".join(b"a%d: b\r\n" % i for i in range(70)), "headers_too_large"),
        (b"a: " + b"x" * 40_000 + b"\r\n", "headers_too_large"),
        (b"Host: localhost\r\n", "malformed_request"),
        (b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", "malformed_request"),
        (b"Transfer-Encoding: gzip, chunked\r\n", "malformed_request"),
        (b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "malformed_request"),
        (b"no header\r\n", "malformed_request"),
    ],
)
def test_rejected_headers(service: Service, head: bytes, expected: str) -> None:
    with connected(service) as connection:
        connection.sendall(PING[:-2] + head + b"\r\n")
        response = read_all(connection)
    assert error_code(response) == expected
    assert response.startswith(b"HTTP/1.1 4")


def test_an_address_that_is_too_long(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert error_code(read_all(connection)) == "address_too_long"


def test_accepted_headers(service: Service) -> None:
    """Headers just below the limits, in fragments, and pipelined requests with responses in their order."""
    head = b"".join(b"a%d: %s\r\n" % (i, b"b" * 400) for i in range(60))
    with connected(service) as connection:
        connection.sendall(PING[:-2] + head + b"\r\n")
        assert is_pong(connection)
        for at in range(0, len(PING), 7):  # in fragments
            connection.sendall(PING[at : at + 7])
        assert is_pong(connection)
        several = PING * 20 + PING.replace(b"healthz", b"nowhere").replace(
            b"localhost", b"localhost\r\nConnection: close"
        )
        connection.sendall(several)
        response = read_all(connection)
    assert response.count(b"HTTP/1.1 200") == 20
    assert response.count(b"HTTP/1.1 404") == 1
    assert response.index(b"HTTP/1.1 404") > response.rindex(b"HTTP/1.1 200")


def test_clients_that_never_read(service: Service) -> None:
    """Six connections send requests and never read a response."""
    with bounded(service, growth=32), ExitStack() as stack:
        connections = [stack.enter_context(connected(service)) for _ in range(6)]
        taken = []
        threads = [
            threading.Thread(target=lambda each=each: taken.append(flood(each, PING * 1000, 64 * MIB)))
            for each in connections
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert max(taken) < 64 * MIB


def test_slow_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An incomplete request times out, as does a connection without one, and one after a complete request."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with serving(make_shop(tmp_path / "shop.db")) as service:
        for start in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc", PING + b"GET /hea"):
            with socket.create_connection(("127.0.0.1", service.port), 20) as connection:
                connection.sendall(start)
                assert error_code(read_all(connection)) == "slow_request"


def test_a_client_that_reads_too_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD_SECONDS", 0.3)
    with (
        serving(make_shop(tmp_path / "shop.db")) as service,
        socket.create_connection(("127.0.0.1", service.port), 20) as connection,
    ):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(500):
            try:
                connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
            except OSError:
                break
            time.sleep(0.01)
        else:
            raise AssertionError("the connection was not closed")


def test_incomplete_requests_lock_out_no_client(tmp_path: Path) -> None:
    """With a limit of 100, 300 connections never finish a request: others are accepted, and the store opens files."""
    with running(make_shop(tmp_path / "shop.db"), "--connections", 100) as service, ExitStack() as stack:
        for number in range(300):
            connection = stack.enter_context(connected(service, f"127.0.0.{2 + number % 3}"))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        for _ in range(20):
            assert service.ask("GET", "/v1/users/ann/recommendations")[0] == 200
        assert service.ask("DELETE", "/v1/users/ann")[0] == 200
        descriptors = len(list(Path(f"/proc/{service.process.pid}/fd").iterdir()))
        assert descriptors < 100 + 64


def test_one_address_gets_half_of_the_connections(tmp_path: Path) -> None:
    """Busy connections are not evicted: with a limit of 100, the 51st from one address is rejected."""
    with running(make_shop(tmp_path / "shop.db"), "--connections", 100) as service, ExitStack() as stack:
        body = b"PUT /v1/users/bob/baskets/9 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for _ in range(50):
            connection = stack.enter_context(connected(service, "127.0.0.2"))
            connection.sendall(body + b"Content-Length: 20\r\n\r\n{")
        time.sleep(0.5)
        with connected(service, "127.0.0.2") as connection:
            assert error_code(read_all(connection)) == "too_many_connections"
        assert service.ask("GET", "/healthz")[0] == 200


def test_a_flood_does_not_fill_the_log(tmp_path: Path) -> None:
    """Of many responses 429 in a second, a few are logged."""
    with running(make_shop(tmp_path / "shop.db"), "--public-rate", 1, "--rate", 1) as service:
        with ExitStack() as stack:
            connections = [stack.enter_context(connected(service)) for _ in range(30)]
            for connection in connections:
                connection.sendall(b"GET /v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
            rejected = sum(read_responses(connection, 10).count(b"HTTP/1.1 429") for connection in connections)
        assert rejected > 200
        logged = [line for line in service.lines() if line["event"] == "response" and line["status"] == 429]
        assert 1 <= len(logged) < 100
