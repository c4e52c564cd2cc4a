"""Hostile connections against a service in its own process: memory stays bounded, and other clients get responses.

A scenario of server, limits and logs.
"""

import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.service.process import Service, memory, running, until
from tests.service.serving import make_shop, serving, slow_engine
from tests.service.sockets import PING, connected, error_code, is_pong, read_all, read_responses, request

from unbasket.service import server as servers

MIB = 2**20


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(make_shop(tmp_path_factory.mktemp("attacked") / "shop.db")) as service:
        yield service


@contextmanager
def bounded(service: Service, growth: float = 32) -> Iterator[None]:
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
    until(lambda: memory(service) < before * 1.1)


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
    "start",
    [
        PING[:-2] + b"".join(b"a%d: b\r\n" % i for i in range(110)) + b"\r\n",
        PING[:-2] + b"a: " + b"x" * 80_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 80_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        PING[:-2] + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        PING[:-2] + b"Transfer-Encoding: gzip\r\n\r\n",
        PING[:-2] + b"no header\r\n\r\n",
        PING[:-2] + b"Host: localhost\r\n\r\n",
        PING[:-2] + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
        PING[:-2] + b"Content-Type: a\r\nContent-Type: a\r\n\r\n",
    ],
)
def test_rejected_heads(service: Service, start: bytes) -> None:
    """The error has the schema of all others. The connection is closed, since the next request may begin anywhere."""
    with connected(service) as connection:
        connection.sendall(start)
        response = read_all(connection)
    assert response.startswith(b"HTTP/1.1 400 ")
    assert error_code(response) == "malformed_request"
    assert b"x-request-id: " in response


def test_rejected_heads_leave_no_garbage(tmp_path: Path) -> None:
    """Nothing of a connection remains after its end, even while Python looks for no garbage."""
    with serving(make_shop(tmp_path / "shop.db")) as service:
        gc.collect()
        gc.disable()
        try:
            for start in (b"no request\r\n\r\n", PING[:-2] + b"a: " + b"x" * 80_000 + b"\r\n\r\n"):
                with connected(service) as connection:
                    connection.sendall(start)
                    assert error_code(read_all(connection)) == "malformed_request"
            until(lambda: not any(isinstance(each, servers.Connection) for each in gc.get_objects()))
        finally:
            gc.enable()


def test_two_lengths_of_a_body(service: Service) -> None:
    """Transfer-Encoding counts, and the connection is closed: no second request can hide in the body (RFC 9112)."""
    with connected(service) as connection:
        lengths = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        connection.sendall(PING[:-2] + lengths + PING)
        assert read_all(connection).count(b"HTTP/1.1 ") == 1


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
    with bounded(service), ExitStack() as stack:
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


def test_slow_heads_and_idle_connections_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An incomplete request, a connection without one, and one after a complete request."""
    monkeypatch.setattr(servers, "IDLE_SECONDS", 0.3)
    with serving(make_shop(tmp_path / "shop.db")) as service:
        for start in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc", PING, PING + b"GET /hea"):
            with connected(service) as connection:
                connection.sendall(start)
                assert read_all(connection).count(b"HTTP/1.1 200") == start.count(PING)


def test_connections_are_closed_whose_client_never_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then responses fill the buffers of both sides, and no further requests are read."""
    monkeypatch.setattr(servers, "UNREAD_SECONDS", 0.5)
    with serving(make_shop(tmp_path / "shop.db")) as service, connected(service) as connection:
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(PING * 1_000_000)
        assert service("GET", "/healthz")["ok"]


def test_an_idle_connection_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of two, a third connection closes the first one that has no request in progress."""
    monkeypatch.setattr(servers, "IDLE_SECONDS", 60.0)
    with (
        serving(make_shop(tmp_path / "shop.db"), connections=2) as service,
        slow_engine(monkeypatch) as (called, release),
        ExitStack() as stack,
    ):
        busy, idle = (stack.enter_context(connected(service)) for _ in range(2))
        busy.sendall(request("/v1/popular"))
        until(lambda: len(called) == 1)
        third = stack.enter_context(connected(service))
        third.sendall(PING)
        assert is_pong(third)
        assert idle.recv(1) == b""
        release.set()
        assert busy.recv(100).startswith(b"HTTP/1.1 200")


def test_incomplete_requests_delay_other_clients_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of 100, 300 connections never finish a request: they are closed after a while, and others served."""
    monkeypatch.setattr(servers, "IDLE_SECONDS", 0.3)
    with serving(make_shop(tmp_path / "shop.db"), connections=100) as service, ExitStack() as stack:
        for _ in range(300):
            connection = stack.enter_context(connected(service))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        for _ in range(20):
            assert service("GET", "/v1/users/ann/recommendations")["user"] == "ann"
        assert service("DELETE", "/v1/users/ann")["removed"]["users"] == 1


def test_the_number_of_connections_is_limited(tmp_path: Path) -> None:
    """With a limit of 50, the oldest connections make room for others, and the store can open files."""
    with running(make_shop(tmp_path / "shop.db"), "--connections", 50) as service, ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connected(service)).sendall(PING[:20])
        time.sleep(0.5)
        assert len(list(Path(f"/proc/{service.process.pid}/fd").iterdir())) < 50 + 64
        assert service.ask("DELETE", "/v1/users/ann")[0] == 200


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
