"""Connections that mean harm, against a service in a process of its own: bounded, and others hardly notice."""

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from select import select
from typing import Any

import pytest
from tests.service.process import Service, running, until
from tests.service.serving import make_shop, serving

from unbasket.service import connection as connections
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.store import DurableRecommender

MIB = 2**20
PING = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(make_shop(tmp_path_factory.mktemp("attacked") / "shop.db")) as service:
        yield service


def memory(service: Service) -> float:
    """Resident MiB."""
    pages = int(Path(f"/proc/{service.process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


@contextmanager
def bounded(service: Service, growth: float = 16) -> Iterator[None]:
    """The service answers others while something goes on, and does not grow by more than so many MiB."""
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


def connected(service: Any, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), 20, (source, 0))


def flood(connection: socket.socket, part: bytes, most: int) -> int:
    """Send the same again and again, up to so many bytes; returns how many were taken."""
    sent = 0
    try:
        while sent < most:
            connection.sendall(part)
            sent += len(part)
    except OSError:
        pass
    return sent


def answer(connection: socket.socket) -> bytes:
    """All that comes back until the end; a reset ends it too."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def answers(connection: socket.socket, count: int) -> bytes:
    """So many answers to what was sent at once."""
    found = b""
    while found.count(b"HTTP/1.1 ") < count or not found.endswith(b"}"):
        found += connection.recv(65536)
    return found


def code(answer: bytes) -> str:
    """The code of an error."""
    return answer.partition(b'"code":"')[2].partition(b'"')[0].decode()


def test_headers_without_end(service: Service) -> None:
    with bounded(service), connected(service) as connection:
        connection.sendall(PING[:-2])
        lines = b"".join(b"a%d: b\r\n" % i for i in range(10_000))
        assert flood(connection, lines, 256 * MIB) < 16 * MIB


def test_a_header_without_end(service: Service) -> None:
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
def test_heads_that_are_refused(service: Service, head: bytes, expected: str) -> None:
    with connected(service) as connection:
        connection.sendall(PING[:-2] + head + b"\r\n")
        found = answer(connection)
    assert code(found) == expected
    assert found.startswith(b"HTTP/1.1 4")


def test_an_address_that_is_too_long(service: Service) -> None:
    with connected(service) as connection:
        connection.sendall(b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert code(answer(connection)) == "address_too_long"


def test_what_may_be_sent(service: Service) -> None:
    """Just below the limits; and several requests at once, answered in their order."""
    head = b"".join(b"a%d: %s\r\n" % (i, b"b" * 400) for i in range(60))
    with connected(service) as connection:
        connection.sendall(PING[:-2] + head + b"\r\n")
        assert is_well(connection)
        for at in range(0, len(PING), 7):  # a byte here, a byte there
            connection.sendall(PING[at : at + 7])
        assert is_well(connection)
        several = PING * 20 + PING.replace(b"healthz", b"nowhere").replace(
            b"localhost", b"localhost\r\nConnection: close"
        )
        connection.sendall(several)
        found = answer(connection)
    assert found.count(b"HTTP/1.1 200") == 20
    assert found.count(b"HTTP/1.1 404") == 1
    assert found.index(b"HTTP/1.1 404") > found.rindex(b"HTTP/1.1 200")


def is_well(connection: socket.socket) -> bool:
    """Whether the next answer, which is read to its end, is the one to PING."""
    found = b""
    while not found.endswith(b'{"ok":true}'):
        found += connection.recv(65536)
    return found.startswith(b"HTTP/1.1 200")


def test_requests_without_a_reader(service: Service) -> None:
    """Six connections that ask and ask, and never read."""
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


def test_headers_that_never_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a request is refused after its time, a connection without any too; a keep-alive one is closed."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with serving(make_shop(tmp_path / "shop.db")) as service:
        for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc", PING + b"GET /hea"):
            with socket.create_connection(("127.0.0.1", service.port), 20) as connection:
                connection.sendall(begun)
                assert code(answer(connection)) == "slow_request"


def test_an_answer_that_nobody_reads_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
            raise AssertionError("nobody closed the connection")


def test_half_sent_requests_shut_nobody_out(tmp_path: Path) -> None:
    """Of 100 connections, 300 never finish their request: others come in, and the store can open files."""
    with running(make_shop(tmp_path / "shop.db"), "--connections", 100) as service, ExitStack() as stack:
        for number in range(300):
            connection = stack.enter_context(connected(service, f"127.0.0.{2 + number % 3}"))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        for _ in range(20):
            assert service.ask("GET", "/v1/users/ann/recommendations")[0] == 200
        assert service.ask("DELETE", "/v1/users/ann")[0] == 200
        descriptors = len(list(Path(f"/proc/{service.process.pid}/fd").iterdir()))
        assert descriptors < 100 + 64


def test_one_address_takes_half_at_most(tmp_path: Path) -> None:
    """Who is at work is not closed for somebody else: the 51st of 100 from one address is refused."""
    with running(make_shop(tmp_path / "shop.db"), "--connections", 100) as service, ExitStack() as stack:
        body = b"PUT /v1/users/bob/baskets/9 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for _ in range(50):
            connection = stack.enter_context(connected(service, "127.0.0.2"))
            connection.sendall(body + b"Content-Length: 20\r\n\r\n{")
        time.sleep(0.5)
        with connected(service, "127.0.0.2") as connection:
            assert code(answer(connection)) == "too_many_connections"
        assert service.ask("GET", "/healthz")[0] == 200


def test_a_flood_does_not_fill_the_log(tmp_path: Path) -> None:
    """Of many refusals in a second, a few are logged."""
    with running(make_shop(tmp_path / "shop.db"), "--public-rate", 1, "--rate", 1) as service:
        with ExitStack() as stack:
            connections = [stack.enter_context(connected(service)) for _ in range(30)]
            for connection in connections:
                connection.sendall(b"GET /v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
            refused = sum(answers(connection, 10).count(b"HTTP/1.1 429") for connection in connections)
        assert refused > 200
        logged = [line for line in service.lines() if line["event"] == "answer" and line["status"] == 429]
        assert 1 <= len(logged) < 100


# One caller against the others ----------------------------------------------------------------------------------


@contextmanager
def slow(monkeypatch: pytest.MonkeyPatch, method: str = "popular") -> Iterator[tuple[list[int], threading.Event]]:
    """A method of the engine takes until an event; a list tells how often it was called."""
    asked: list[int] = []
    release = threading.Event()
    original = getattr(DurableRecommender, method)

    def wait(*given: Any, **options: Any) -> Any:
        asked.append(1)
        release.wait(20)
        return original(*given, **options)

    monkeypatch.setattr(DurableRecommender, method, wait)
    try:
        yield asked, release
    finally:
        release.set()


def request(path: str, key: str = "") -> bytes:
    """A question, with a key if there is one."""
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}\r\n".encode()


@contextmanager
def asking(service: Any, count: int, path: str, key: str = "") -> Iterator[list[socket.socket]]:
    """Connections that have each asked once."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(service)) for _ in range(count)]
        for connection in connections:
            connection.sendall(request(path, key))
        yield connections


def test_one_key_has_half_of_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyFile.new()
    greedy, other = access.add("greedy", ["read"]), access.add("other", ["read"])
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), threads=4) as service,
        slow(monkeypatch) as (asked, release),
        asking(service, 70, "/v1/popular", greedy) as connections,
    ):
        until(lambda: len(asked) == 2)
        headers = {"Authorization": f"Bearer {other}"}
        assert service("GET", "/v1/users/ann/recommendations", headers=headers)["user"] == "ann"
        assert service("GET", "/v1/items", headers=headers)["items"]
        until(lambda: len(select(connections, [], [], 0)[0]) == 6)  # those that were refused
        assert len(asked) == 2
        release.set()
        first = [connection.recv(15) for connection in connections]
    assert first.count(b"HTTP/1.1 200 OK") == 64
    assert first.count(b"HTTP/1.1 429 To") == 6


def test_nobody_reads_behind_their_own_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyFile.new()
    key = access.add("till", ["read", "privacy"])
    headers = {"Authorization": f"Bearer {key}"}
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), threads=4) as service,
        slow(monkeypatch, "apply") as (asked, _),
        ExitStack() as stack,
    ):
        for _ in range(64):
            connection = stack.enter_context(connected(service))
            connection.sendall(request("/v1/users/ann/baskets/1", key).replace(b"GET", b"DELETE"))
        until(lambda: len(asked) == 2)
        assert service("GET", "/v1/items", headers=headers)["items"]
        error = service("DELETE", "/v1/users/ann", 429, headers=headers)["error"]
        assert error["message"] == "64 of your calls are under way; wait for an answer"


def test_a_shopper_has_four_calls_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyFile.new()
    access.add("till", ["write"])
    auth = Authenticator(None, access)
    token = auth.issue("nobody yet", 60)[0]
    with (
        serving(make_shop(tmp_path / "shop.db"), auth) as service,
        slow(monkeypatch) as (asked, release),
        asking(service, 10, "/v1/users/nobody%20yet/recommendations?n=60", token) as connections,
    ):
        until(lambda: len(select(connections, [], [], 0)[0]) == 6)
        assert len(asked) == 4
        release.set()
        first = [connection.recv(15) for connection in connections]
    assert first.count(b"HTTP/1.1 200 OK") == 4
    assert first.count(b"HTTP/1.1 429 To") == 6


def test_nobody_works_for_who_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = KeyFile.new()
    key = access.add("shop", ["read"])
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), threads=2) as service,
        slow(monkeypatch) as (asked, release),
    ):
        with asking(service, 20, "/v1/popular", key):
            until(lambda: len(asked) == 1)
        time.sleep(0.3)  # for the service to notice
        release.set()
        headers = {"Authorization": f"Bearer {key}"}
        assert service("GET", "/v1/items", headers=headers)["items"]  # behind all of them
    assert len(asked) == 1


def test_strangers_have_a_rate(tmp_path: Path) -> None:
    """From afar, whatever they ask for; this machine's probes always get an answer."""
    access = KeyFile.new()
    access.add("till", ["write"])
    with serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), public_rate=2) as service:
        for path in ("/openapi.json", "/nowhere", "/v1/nowhere", "/"):
            assert 429 in [service.client.get(path).status_code for _ in range(6)], path
        assert {service.client.get("/healthz").status_code for _ in range(20)} == {200}
        with socket.create_connection(("127.0.0.1", service.port), 20, ("127.0.0.2", 0)) as connection:
            connection.sendall(PING * 6)
            assert answers(connection, 6).count(b"429 Too Many Requests") == 2


def test_who_asks_too_often_waits_and_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for their refusal. Those who come meanwhile get their places."""
    monkeypatch.setattr("unbasket.service.app._PENALTY", 20.0)
    access = KeyFile.new()
    access.add("till", ["write"])
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), public_rate=1, connections=4) as service,
        connected(service, "127.0.0.2") as first,
        connected(service, "127.0.0.2") as second,
    ):
        first.sendall(PING * 3)
        assert answers(first, 2).count(b"200 OK") == 2
        second.sendall(PING)
        assert not select([first, second], [], [], 0.3)[0]  # neither is answered
        with connected(service, "127.0.0.2") as third:
            third.sendall(PING)
            assert answer(first) == b""  # its place was needed
            assert not select([second, third], [], [], 0.3)[0]
