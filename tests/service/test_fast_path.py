"""The express lane: short calls on the event loop, as long as nobody has to wait for them there."""

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
from tests.service.serving import serving, stock
from tests.service.test_attacks import PING, asking, connected, is_well, request

from unbasket.domain.ids import Id
from unbasket.engine import locks
from unbasket.errors import BusyError
from unbasket.service import app
from unbasket.service.api_keys import Access
from unbasket.service.auth import Security
from unbasket.service.errors import ClientGoneError
from unbasket.service.fast_path import SHORT, ExpressLane, Quick
from unbasket.service.request import Request
from unbasket.store import DurableRecommender

PATH = "/v1/users/ann/recommendations"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recommendations count as short on any machine, however busy it is."""
    monkeypatch.setattr("unbasket.service.fast_path.SHORT", 10.0)
    monkeypatch.setattr("unbasket.service.fast_path._SLICE", 1000.0)


def noted(monkeypatch: pytest.MonkeyPatch, *methods: str) -> list[str]:
    """The names of the threads in which these methods of the engine are called from now on."""
    names: list[str] = []

    def note(method: str) -> None:
        original = getattr(DurableRecommender, method)

        def noting(*given: Any, **options: Any) -> Any:
            names.append(threading.current_thread().name)
            return original(*given, **options)

        monkeypatch.setattr(DurableRecommender, method, noting)

    for method in methods:
        note(method)
    return names


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which recommendations are made, together or one by one."""
    return noted(monkeypatch, "recommend", "recommend_many")


def in_pool(name: str) -> bool:
    return name.startswith("reader")


class Waiting:
    """A request, of which the lane needs no more than whether somebody waits for the answer."""

    def __init__(self, is_gone: bool = False) -> None:
        self._is_gone = is_gone

    def is_gone(self) -> bool:
        return self._is_gone


NOBODY, SOMEBODY = cast(Request, Waiting(is_gone=True)), cast(Request, Waiting())


def burn(seconds: float) -> None:
    """Take so much of a processor."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def slow(requests: list[Request]) -> list[str]:
    """Calls that take long."""
    burn(100 * SHORT)
    return ["done"] * len(requests)


def quick(requests: list[Request]) -> list[str]:
    """Calls that take next to no time."""
    return ["done"] * len(requests)


def soon(lane: ExpressLane, request: Request = SOMEBODY) -> asyncio.Future[Any]:
    """What the lane hands over."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    lane.take(request, answer.set_result)
    return answer


def opened(work: Quick) -> ExpressLane:
    """A lane in which a call was short so far."""
    lane = ExpressLane(quick)
    lane.measured([SOMEBODY])
    assert lane.is_open
    lane._quick = work
    return lane


@pytest.mark.usefixtures("patient")
def test_short_calls_are_answered_on_the_loop_once_they_were_measured(tmp_path: Path, threads: list[str]) -> None:
    with serving(stock(tmp_path / "shop.db")) as service:
        first, second = service("GET", PATH), service("GET", PATH)
    assert first == second
    assert list(map(in_pool, threads)) == [True, False]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "query", ["?n=51", "?explain=true", "?exclude=tea", "?only=tea", "?category=Dairy", "?cart=tea"]
)
def test_what_takes_longer_is_answered_in_a_thread(tmp_path: Path, threads: list[str], query: str) -> None:
    with serving(stock(tmp_path / "shop.db")) as service:
        service("GET", PATH)
        threads.clear()
        service("GET", PATH + query)
    assert list(map(in_pool, threads)) == [True]


@pytest.mark.usefixtures("patient")
def test_popular_items_for_somebody_unknown_are_counted_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = noted(monkeypatch, "popular")
    with serving(stock(tmp_path / "shop.db")) as service:
        service("GET", PATH)
        assert service("GET", "/v1/users/zoe/recommendations")["popular"]
    assert list(map(in_pool, names)) == [True]


@pytest.mark.usefixtures("patient")
def test_nobody_waits_long_for_a_writer_on_the_loop(tmp_path: Path, threads: list[str]) -> None:
    with serving(stock(tmp_path / "shop.db")) as service:
        before = service("GET", PATH)
        threads.clear()
        with service.shop.engine._model.lock.writing, asking(service, 1, PATH):
            until(lambda: threads)
            ping = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            assert service.sent(ping).endswith(b'{"ok":true}')
            until(lambda: len(threads) > 1)
            assert list(map(in_pool, threads)) == [False, True]
        assert service("GET", PATH) == before


def test_long_calls_close_the_lane_and_short_ones_open_it_again() -> None:
    lane = opened(slow)
    lane.measured([SOMEBODY])
    assert not lane.is_open
    lane._quick = lambda requests: [None] * len(requests)
    for _ in range(1000):
        lane.measured([SOMEBODY])  # without an answer, it says nothing about how long one takes
    assert not lane.is_open
    lane._quick = quick
    for _ in range(10):
        lane.measured([SOMEBODY] * 100)
    assert lane.is_open


def test_those_that_come_together_are_answered_together_and_others_have_their_turn_between_slices() -> None:
    """Calls that usually take 0.49 ms: with the fifth of them, a slice of 2 ms is over."""
    happened: list[Any] = []

    def work(requests: list[Request]) -> list[str]:
        happened.append(len(requests))
        return quick(requests)

    async def answers() -> list[str]:
        lane = opened(work)
        lane._usual = 0.49e-3
        waiting = [soon(lane) for _ in range(7)]
        asyncio.get_running_loop().call_soon(happened.append, "another")
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(answers()) == ["done"] * 7
    assert happened == [5, "another", 2]


def test_who_has_gone_keeps_nobody_waiting() -> None:
    seen: list[int] = []

    def work(requests: list[Request]) -> list[str]:
        seen.append(len(requests))
        return quick(requests)

    async def answers() -> list[Any]:
        lane = opened(work)
        together = await asyncio.gather(soon(lane), soon(lane, NOBODY), soon(lane))
        return [*together, await soon(lane, NOBODY)]

    first, gone, third, alone = asyncio.run(answers())
    assert (first, third) == ("done", "done")
    assert isinstance(gone, ClientGoneError)
    assert isinstance(alone, ClientGoneError)
    assert seen == [2]


def test_an_error_goes_to_whom_it_concerns_and_to_nobody_else() -> None:
    """Of several calls, nobody knows which one it concerns: a thread works on each of them alone."""

    def fail(_: list[Request]) -> list[str]:
        raise ValueError("no")

    async def answers() -> list[Any]:
        lane = opened(fail)
        together = await asyncio.gather(soon(lane), soon(lane))
        alone = await soon(lane)
        lane._quick = quick
        return [*together, alone, await soon(lane)]

    first, second, alone, after = asyncio.run(answers())
    assert (first, second, after) == (None, None, "done")
    assert isinstance(alone, ValueError)


def test_calls_wait_a_moment_for_a_writer_and_those_after_them_do_not() -> None:
    patience: list[float] = []
    outcomes = iter([None, None, ["done", "done"], ["again"]])

    def work(_: list[Request]) -> list[str]:
        patience.append(locks._thread.timeout)
        outcome = next(outcomes)
        if outcome is None:
            raise BusyError("a writer")
        return outcome

    async def answers() -> list[Any]:
        lane = opened(work)
        found = [await asyncio.gather(soon(lane), soon(lane)) for _ in range(3)]
        return [*found, await soon(lane)]

    assert asyncio.run(answers()) == [[None, None], [None, None], ["done", "done"], "again"]
    assert patience == [5e-3, 0.0, 0.0, 5e-3]
    assert locks._thread.timeout < 0  # elsewhere, everybody waits as ever


@contextmanager
def arriving(
    service: Any, count: int, key: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[list[socket.socket], threading.Event, list[int]]]:
    """Connections whose requests are all there at once: the loop is held up until the event is set.

    Also, how many recommendations the engine was asked for at a time.
    """
    recommend, held, release = DurableRecommender.recommend, threading.Event(), threading.Event()
    recommend_many, together = DurableRecommender.recommend_many, list[int]()

    def wait(*given: Any, **options: Any) -> Any:
        held.set()
        release.wait(20)
        return recommend(*given, **options)

    def note(rec: DurableRecommender, users: list[Id], *given: Any, **options: Any) -> Any:
        together.append(len(users))
        return recommend_many(rec, users, *given, **options)

    with ExitStack() as stack:
        service("GET", PATH, headers={"Authorization": f"Bearer {key}"} if key else {})
        connections = [stack.enter_context(connected(service)) for _ in range(count)]
        for connection in connections:  # they are accepted
            connection.sendall(PING)
            assert is_well(connection)
        monkeypatch.setattr(DurableRecommender, "recommend", wait)
        monkeypatch.setattr(DurableRecommender, "recommend_many", note)
        stack.enter_context(asking(service, 1, PATH, key))
        assert held.wait(20)
        stack.callback(release.set)
        yield connections, release, together


def answer_of(connection: socket.socket) -> Any:
    """What comes behind the headers."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return json.loads(response.read())


@pytest.mark.usefixtures("patient")
def test_one_caller_has_64_calls_in_the_lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access.new()
    key = access.add("greedy", ["read"])
    with (
        serving(stock(tmp_path / "shop.db"), Security(None, access)) as service,
        arriving(service, 70, key, monkeypatch) as (connections, release, _),
    ):
        for connection in connections:
            connection.sendall(request(PATH, key))
        release.set()
        first = [connection.recv(15) for connection in connections]
    served, refused = first.count(b"HTTP/1.1 200 OK"), first.count(b"HTTP/1.1 429 To")
    assert (served in (63, 64), served + refused) == (True, 70)  # the call that held up the loop may be the 64th


@pytest.mark.usefixtures("patient")
def test_requests_that_come_together_have_the_answers_that_they_have_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["ann", "bob", "ann?n=1", "7", "zoe", "ann?only_new=true", "%227%22", "cleo?n=51", "cleo", "bob?n=1", "ann"]
    users = [text.partition("?") for text in asked]
    paths = [f"/v1/users/{user}/recommendations{mark}{query}" for user, mark, query in users]
    with serving(stock(tmp_path / "shop.db")) as service:
        alone = [service("GET", path) for path in paths]
        with arriving(service, len(paths), "", monkeypatch) as (connections, release, together):
            for connection, path in zip(connections, paths, strict=True):
                connection.sendall(request(path))
            release.set()
            answers = [answer_of(connection) for connection in connections]
    assert answers == alone
    assert together == [5, 2, 1]  # for ann, bob, 7, cleo and ann; n = 1; only new ones


def failing(original: Any, concerns_bob: Callable[..., bool]) -> Any:
    """A function that fails if bob is concerned."""

    def run(*given: Any, **options: Any) -> Any:
        if concerns_bob(*given):
            raise ValueError("no")
        return original(*given, **options)

    return run


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("place", ["search", "answer"])
def test_what_goes_wrong_with_one_request_is_nobody_elses_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "search":
        for method in ("recommend", "recommend_many"):
            original = getattr(DurableRecommender, method)
            fail = failing(original, lambda _, who, *__: who == "bob" or (isinstance(who, list) and "bob" in who))
            monkeypatch.setattr(DurableRecommender, method, fail)
    else:
        fail = failing(app._encode, lambda answer: getattr(answer, "user", None) == "bob")
        monkeypatch.setattr(app, "_encode", fail)
    users = ["ann", "bob", "cleo"]
    with serving(stock(tmp_path / "shop.db")) as service:
        alone = [service("GET", f"/v1/users/{user}/recommendations") for user in ("ann", "cleo")]
        with arriving(service, len(users), "", monkeypatch) as (connections, release, together):
            for connection, user in zip(connections, users, strict=True):
                connection.sendall(request(f"/v1/users/{user}/recommendations"))
            release.set()
            first, wrong, last = [answer_of(connection) for connection in connections]
    assert together == [3]
    assert [first, last] == alone
    assert wrong["error"]["code"] == "internal"
