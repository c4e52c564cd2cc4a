"""The fast path: short requests on the event loop, as long as they do not block it."""

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.service.process import until
from tests.service.serving import make_shop, serving
from tests.service.sockets import PING, connected, is_pong, request, requesting

from unbasket.domain.ids import Id
from unbasket.engine import locks
from unbasket.errors import BusyError
from unbasket.service import api
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.service.errors import ClientGoneError
from unbasket.service.fast_path import MAX_MEAN, BatchHandler, FastPath
from unbasket.service.request import Request
from unbasket.store import DurableRecommender

PATH = "/v1/users/ann/recommendations"


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
    return record_threads(monkeypatch, "recommend", "recommend_many")


def in_pool(name: str) -> bool:
    return name.startswith("reader")


class FakeRequest:
    """A request, of which the fast path only needs whether the client has disconnected."""

    def __init__(self, is_gone: bool = False) -> None:
        self._is_gone = is_gone

    def is_gone(self) -> bool:
        return self._is_gone


GONE, WAITING = cast(Request, FakeRequest(is_gone=True)), cast(Request, FakeRequest())


def burn(seconds: float) -> None:
    """Use a processor for some seconds."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def slow(requests: list[Request]) -> list[str]:
    """Respond to requests that take long."""
    burn(100 * MAX_MEAN)
    return ["done"] * len(requests)


def quick(requests: list[Request]) -> list[str]:
    """Respond at once."""
    return ["done"] * len(requests)


def submit(fast_path: FastPath, request: Request = WAITING) -> asyncio.Future[Any]:
    """Submit a request, and return its future response."""
    response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    fast_path.submit(request, response.set_result)
    return response


def enabled(work: BatchHandler) -> FastPath:
    """Return an enabled fast path, on which a request was short so far."""
    fast_path = FastPath(quick)
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
    assert list(map(in_pool, threads)) == [True]


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
    fast_path._handler = lambda requests: [None] * len(requests)
    for _ in range(1000):
        fast_path.measure([WAITING])  # requests without a response are not measured
    assert not fast_path.is_enabled
    fast_path._handler = quick
    for _ in range(10):
        fast_path.measure([WAITING] * 100)
    assert fast_path.is_enabled


def test_batches_end_after_a_slice_and_other_callbacks_run_in_between() -> None:
    """Requests take 0.49 ms on average: five of them fill a slice of 2 ms."""
    happened: list[Any] = []

    def work(requests: list[Request]) -> list[str]:
        happened.append(len(requests))
        return quick(requests)

    async def responses() -> list[str]:
        fast_path = enabled(work)
        fast_path._mean = 0.49e-3
        waiting = [submit(fast_path) for _ in range(7)]
        asyncio.get_running_loop().call_soon(happened.append, "another")
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(responses()) == ["done"] * 7
    assert happened == [5, "another", 2]


def test_disconnected_clients_are_skipped() -> None:
    seen: list[int] = []

    def work(requests: list[Request]) -> list[str]:
        seen.append(len(requests))
        return quick(requests)

    async def responses() -> list[Any]:
        fast_path = enabled(work)
        batch = await asyncio.gather(submit(fast_path), submit(fast_path, GONE), submit(fast_path))
        return [*batch, await submit(fast_path, GONE)]

    first, gone, third, alone = asyncio.run(responses())
    assert (first, third) == ("done", "done")
    assert isinstance(gone, ClientGoneError)
    assert isinstance(alone, ClientGoneError)
    assert seen == [2]


def test_an_error_reaches_only_its_own_request() -> None:
    """In a batch its request is unknown, so a thread handles each of them alone."""

    def fail(_: list[Request]) -> list[str]:
        raise ValueError("no")

    async def responses() -> list[Any]:
        fast_path = enabled(fail)
        batch = await asyncio.gather(submit(fast_path), submit(fast_path))
        alone = await submit(fast_path)
        fast_path._handler = quick
        return [*batch, alone, await submit(fast_path)]

    first, second, alone, after = asyncio.run(responses())
    assert (first, second, after) == (None, None, "done")
    assert isinstance(alone, ValueError)


def test_a_batch_waits_briefly_for_a_writer_and_later_ones_do_not() -> None:
    timeouts: list[float] = []
    outcomes = iter([None, None, ["done", "done"], ["again"]])

    def work(_: list[Request]) -> list[str]:
        timeouts.append(locks._thread.timeout)
        outcome = next(outcomes)
        if outcome is None:
            raise BusyError("a writer")
        return outcome

    async def responses() -> list[Any]:
        fast_path = enabled(work)
        found = [await asyncio.gather(submit(fast_path), submit(fast_path)) for _ in range(3)]
        return [*found, await submit(fast_path)]

    assert asyncio.run(responses()) == [[None, None], [None, None], ["done", "done"], "again"]
    assert timeouts == [5e-3, 0.0, 0.0, 5e-3]
    assert locks._thread.timeout < 0  # other callers wait without a timeout


@contextmanager
def arriving(
    service: Any, count: int, key: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[list[socket.socket], threading.Event, list[int]]]:
    """Open connections whose requests arrive in one batch: the event loop is blocked until the event is set.

    Yields them, the event, and a list with the size of each batch of recommendations.
    """
    recommend, blocked, release = DurableRecommender.recommend, threading.Event(), threading.Event()
    recommend_many, batches = DurableRecommender.recommend_many, list[int]()

    def wait(*given: Any, **options: Any) -> Any:
        blocked.set()
        release.wait(20)
        return recommend(*given, **options)

    def note(rec: DurableRecommender, users: list[Id], *given: Any, **options: Any) -> Any:
        batches.append(len(users))
        return recommend_many(rec, users, *given, **options)

    with ExitStack() as stack:
        service("GET", PATH, headers={"Authorization": f"Bearer {key}"} if key else {})
        connections = [stack.enter_context(connected(service)) for _ in range(count)]
        for connection in connections:  # wait until they are accepted
            connection.sendall(PING)
            assert is_pong(connection)
        monkeypatch.setattr(DurableRecommender, "recommend", wait)
        monkeypatch.setattr(DurableRecommender, "recommend_many", note)
        stack.enter_context(requesting(service, 1, PATH, key))
        assert blocked.wait(20)
        stack.callback(release.set)
        yield connections, release, batches


def response_of(connection: socket.socket) -> Any:
    """Return the JSON of the next response."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return json.loads(response.read())


@pytest.mark.usefixtures("always_short")
def test_one_caller_has_64_requests_on_the_fast_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = KeyFile.new()
    key = keys.add("greedy", ["read"])
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, keys)) as service,
        arriving(service, 70, key, monkeypatch) as (connections, release, _),
    ):
        for connection in connections:
            connection.sendall(request(PATH, key))
        release.set()
        first = [connection.recv(15) for connection in connections]
    served, rejected = first.count(b"HTTP/1.1 200 OK"), first.count(b"HTTP/1.1 429 To")
    assert (served in (63, 64), served + rejected) == (True, 70)  # the request that blocks the loop may be the 64th


@pytest.mark.usefixtures("always_short")
def test_a_batch_has_the_same_responses_as_single_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["ann", "bob", "ann?n=1", "7", "zoe", "ann?only_new=true", "%227%22", "cleo?n=51", "cleo", "bob?n=1", "ann"]
    users = [text.partition("?") for text in texts]
    paths = [f"/v1/users/{user}/recommendations{separator}{query}" for user, separator, query in users]
    with serving(make_shop(tmp_path / "shop.db")) as service:
        alone = [service("GET", path) for path in paths]
        with arriving(service, len(paths), "", monkeypatch) as (connections, release, batches):
            for connection, path in zip(connections, paths, strict=True):
                connection.sendall(request(path))
            release.set()
            responses = [response_of(connection) for connection in connections]
    assert responses == alone
    assert batches == [6, 2, 1]  # ann, bob, 7, "7", cleo and ann; n = 1; only_new


def failing(original: Any, concerns_bob: Callable[..., bool]) -> Any:
    """Return a function that fails for bob."""

    def run(*given: Any, **options: Any) -> Any:
        if concerns_bob(*given):
            raise ValueError("no")
        return original(*given, **options)

    return run


@pytest.mark.usefixtures("always_short")
@pytest.mark.parametrize("stage", ["search", "response"])
def test_a_failing_request_does_not_fail_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    if stage == "search":
        for method in ("recommend", "recommend_many"):
            original = getattr(DurableRecommender, method)
            fail = failing(original, lambda _, user, *__: user == "bob" or (isinstance(user, list) and "bob" in user))
            monkeypatch.setattr(DurableRecommender, method, fail)
    else:
        fail = failing(api._encode, lambda response: getattr(response, "user", None) == "bob")
        monkeypatch.setattr(api, "_encode", fail)
    users = ["ann", "bob", "cleo"]
    with serving(make_shop(tmp_path / "shop.db")) as service:
        alone = [service("GET", f"/v1/users/{user}/recommendations") for user in ("ann", "cleo")]
        with arriving(service, len(users), "", monkeypatch) as (connections, release, batches):
            for connection, user in zip(connections, users, strict=True):
                connection.sendall(request(f"/v1/users/{user}/recommendations"))
            release.set()
            first, wrong, last = [response_of(connection) for connection in connections]
    assert batches == [3]
    assert [first, last] == alone
    assert wrong["error"]["code"] == "internal"
