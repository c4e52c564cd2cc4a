"""The fast path: short requests on the event loop, as long as they do not block it."""

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.service.process import until
from tests.service.serving import Service, make_shop, serving
from tests.service.sockets import PING, connected, is_pong, request, requesting

from unbasket.domain.ids import Id
from unbasket.errors import BusyError
from unbasket.service.fast_path import MAX_MEAN, BatchHandler, FastPath
from unbasket.service.request import Request
from unbasket.store import DurableRecommender

PATH = "/v1/users/ann/recommendations"
WAITING = cast(Request, object())  # the fast path looks into no request


@pytest.fixture
def always_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make recommendations count as short on any machine, however busy."""
    monkeypatch.setattr("unbasket.service.fast_path.MAX_MEAN", 10.0)
    monkeypatch.setattr("unbasket.service.fast_path._SLICE", 1000.0)


def record_threads(monkeypatch: pytest.MonkeyPatch, *methods: str) -> list[str]:
    """Record the names of the threads that call these methods of the engine from now on."""
    names: list[str] = []

    def record(method: str) -> None:
        original = getattr(DurableRecommender, method)

        def recording(*given: Any, **options: Any) -> Any:
            names.append(threading.current_thread().name)
            return original(*given, **options)

        monkeypatch.setattr(DurableRecommender, method, recording)

    for method in methods:
        record(method)
    return names


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the threads that compute recommendations, in batches or one by one."""
    return record_threads(monkeypatch, "recommend", "recommend_batch")


def in_pool(name: str) -> bool:
    return name.startswith("reader")


def slow(requests: list[Request], _: float | None) -> list[str]:
    """Respond to requests that take long."""
    end = time.thread_time() + 100 * MAX_MEAN
    while time.thread_time() < end:
        pass
    return ["done"] * len(requests)


def quick(requests: list[Request], _: float | None) -> list[str]:
    """Respond at once."""
    return ["done"] * len(requests)


def enabled(work: BatchHandler, *, come_singly: bool = False) -> FastPath:
    """Return an enabled fast path, on which a request was short so far."""
    fast_path = FastPath(quick)
    fast_path._come_singly = come_singly
    fast_path.measure([WAITING])
    assert fast_path.is_enabled
    fast_path._handler = work
    return fast_path


@pytest.mark.usefixtures("always_short")
def test_short_requests_run_on_the_loop_once_measured(tmp_path: Path, threads: list[str]) -> None:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        first, second = service("GET", PATH), service("GET", PATH)
    assert first == second
    assert list(map(in_pool, threads)) == [True, False]


@pytest.mark.usefixtures("always_short")
@pytest.mark.parametrize(
    "query", ["?n=51", "?explain=true", "?exclude=tea", "?only=tea", "?category=Dairy", "?cart=tea"]
)
def test_long_requests_run_in_a_thread(tmp_path: Path, threads: list[str], query: str) -> None:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        service("GET", PATH)
        threads.clear()
        service("GET", PATH + query)
    assert len(threads) == 1
    assert threads[0].startswith("long" if "explain" in query else "reader")


@pytest.mark.usefixtures("always_short")
def test_popular_items_for_unknown_users_are_counted_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = record_threads(monkeypatch, "popular")
    with serving(make_shop(tmp_path / "shop.db")) as service:
        service("GET", PATH)
        assert service("GET", "/v1/users/zoe/recommendations")["popular"]
    assert list(map(in_pool, names)) == [True]


@pytest.mark.usefixtures("always_short")
def test_the_loop_does_not_wait_long_for_a_writer(tmp_path: Path, threads: list[str]) -> None:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        before = service("GET", PATH)
        threads.clear()
        with service.engine._model.lock.writing, requesting(service, 1, PATH):
            until(lambda: threads)
            ping = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            assert service.send_raw(ping).endswith(b'{"ok":true}')
            until(lambda: len(threads) > 1)
            assert list(map(in_pool, threads)) == [False, True]
        assert service("GET", PATH) == before


def test_long_requests_disable_the_fast_path_and_short_ones_enable_it() -> None:
    fast_path = enabled(slow)
    fast_path.measure([WAITING])
    assert not fast_path.is_enabled
    fast_path._handler = lambda requests, _: [None] * len(requests)
    for _ in range(1000):
        fast_path.measure([WAITING])  # requests without a response are not measured
    assert not fast_path.is_enabled
    fast_path._handler = quick
    for _ in range(10):
        fast_path.measure([WAITING] * 100)
    assert fast_path.is_enabled


def test_batches_end_after_a_slice_and_other_callbacks_run_in_between() -> None:
    """Requests take 0.49 ms on average: four of them fill a slice of 2 ms."""
    happened: list[Any] = []

    def work(requests: list[Request], _: float | None) -> list[str]:
        happened.append(len(requests))
        return quick(requests, _)

    async def responses() -> list[str]:
        fast_path = enabled(work)
        fast_path._mean = 0.49e-3
        waiting = [asyncio.ensure_future(fast_path.handle(WAITING)) for _ in range(7)]
        await asyncio.sleep(0)  # the requests wait, and their batch is scheduled
        asyncio.get_running_loop().call_soon(happened.append, "another")
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(responses()) == ["done"] * 7
    assert happened == [4, "another", 3]


def test_requests_that_come_singly_do_not_wait_for_a_batch() -> None:
    """The first of several is answered at once, if the one before it came alone; the next time all are one batch."""
    sizes: list[int] = []

    def work(requests: list[Request], _: float | None) -> list[str]:
        sizes.append(len(requests))
        return quick(requests, _)

    async def handle() -> None:
        fast_path = enabled(work, come_singly=True)
        for together in (1, 1, 3, 3, 1, 1, 2):
            assert await asyncio.gather(*(fast_path.handle(WAITING) for _ in range(together))) == ["done"] * together
            await asyncio.sleep(0)

    asyncio.run(handle())
    assert sizes == [1, 1, 1, 2, 3, 1, 1, 1, 1]


def test_a_batch_that_fails_is_handled_in_threads() -> None:
    """The request at fault is unknown, so each is handled alone."""

    def fail(_: list[Request], __: float | None) -> list[str]:
        raise ValueError("no")

    async def responses() -> list[Any]:
        fast_path = enabled(fail)
        batch = await asyncio.gather(fast_path.handle(WAITING), fast_path.handle(WAITING))
        fast_path._handler = quick
        return [*batch, await fast_path.handle(WAITING)]

    assert asyncio.run(responses()) == [None, None, "done"]


def test_a_batch_waits_briefly_for_a_writer_and_later_ones_do_not() -> None:
    timeouts: list[float | None] = []
    outcomes = iter([None, None, ["done", "done"], ["again"]])

    def work(_: list[Request], timeout: float | None) -> Sequence[Any]:
        timeouts.append(timeout)
        outcome = next(outcomes)
        if outcome is None:
            raise BusyError("a writer")
        return outcome

    async def responses() -> list[Any]:
        fast_path = enabled(work)
        found = [await asyncio.gather(fast_path.handle(WAITING), fast_path.handle(WAITING)) for _ in range(3)]
        return [*found, await fast_path.handle(WAITING)]

    assert asyncio.run(responses()) == [[None, None], [None, None], ["done", "done"], "again"]
    assert timeouts == [5e-3, 0.0, 0.0, 5e-3]


@contextmanager
def arriving(
    service: Service, count: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[list[socket.socket], threading.Event, list[list[Id]]]]:
    """Open connections whose requests arrive in one batch: the event loop is blocked until the event is set.

    Yields them, the event, and the users of each batch of recommendations.
    """
    recommend, blocked, release, batches = DurableRecommender.recommend_batch, threading.Event(), threading.Event(), []

    def wait(rec: DurableRecommender, users: list[Id], *given: Any, **options: Any) -> Any:
        if not blocked.is_set():
            blocked.set()
            release.wait(20)
        else:
            batches.append(users)
        return recommend(rec, users, *given, **options)

    with ExitStack() as stack:
        service("GET", PATH)
        connections = [stack.enter_context(connected(service)) for _ in range(count)]
        for connection in connections:  # wait until they are accepted
            connection.sendall(PING)
            assert is_pong(connection)
        monkeypatch.setattr(DurableRecommender, "recommend_batch", wait)
        stack.enter_context(requesting(service, 1, PATH))
        assert blocked.wait(20)
        stack.callback(release.set)
        yield connections, release, batches


def response_of(connection: socket.socket) -> Any:
    """Return the JSON of the next response."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return json.loads(response.read())


@pytest.mark.usefixtures("always_short")
def test_a_batch_has_the_same_responses_as_single_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["ann", "bob", "ann?n=1", "7", "zoe", "ann?only_new=true", "%227%22", "cleo?n=51", "cleo", "bob?n=1", "ann"]
    users = [text.partition("?") for text in texts]
    paths = [f"/v1/users/{user}/recommendations{separator}{query}" for user, separator, query in users]
    with serving(make_shop(tmp_path / "shop.db")) as service:
        alone = [service("GET", path) for path in paths]
        with arriving(service, len(paths), monkeypatch) as (connections, release, batches):
            for connection, path in zip(connections, paths, strict=True):
                connection.sendall(request(path))
            time.sleep(0.5)  # for the event loop to have them
            release.set()
            responses = [response_of(connection) for connection in connections]
    assert responses == alone
    assert max(map(len, batches)) >= 6  # seven have the default n; the first request to arrive is answered at once


@pytest.mark.usefixtures("always_short")
def test_a_failing_request_does_not_fail_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = ["ann", "bob", "cleo"]
    with serving(make_shop(tmp_path / "shop.db")) as service:
        alone = [service("GET", f"/v1/users/{user}/recommendations") for user in ("ann", "cleo")]
        with arriving(service, len(users), monkeypatch) as (connections, release, _):
            for method in ("recommend_batch", "recommend"):
                monkeypatch.setattr(DurableRecommender, method, failing(getattr(DurableRecommender, method)))
            for connection, user in zip(connections, users, strict=True):
                connection.sendall(request(f"/v1/users/{user}/recommendations"))
            time.sleep(0.5)
            release.set()
            first, wrong, last = [response_of(connection) for connection in connections]
    assert [first, last] == alone
    assert wrong["error"]["code"] == "internal"


def failing(original: Any) -> Any:
    """Return a method that fails for bob."""

    def run(rec: DurableRecommender, user: Id | list[Id], *given: Any, **options: Any) -> Any:
        if user == "bob" or (isinstance(user, list) and "bob" in user):
            raise ValueError("no")
        return original(rec, user, *given, **options)

    return run
