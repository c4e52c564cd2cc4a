"""The express lane: short calls on the event loop, as long as nobody has to wait for them there."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from tests.service.process import until
from tests.service.serving import serving, stock
from tests.service.test_attacks import PING, asking, connected, is_well, request

from unbasket.engine import locks
from unbasket.errors import BusyError
from unbasket.service.access import Access
from unbasket.service.errors import ClientGoneError
from unbasket.service.express import SHORT, ExpressLane
from unbasket.service.request import Request
from unbasket.service.security import Security
from unbasket.store import DurableRecommender

PATH = "/v1/users/ann/recommendations"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recommendations count as short on any machine, however busy it is."""
    monkeypatch.setattr("unbasket.service.express.SHORT", 10.0)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which recommendations are made."""
    names: list[str] = []
    recommend = DurableRecommender.recommend

    def noted(*given: Any, **options: Any) -> Any:
        names.append(threading.current_thread().name)
        return recommend(*given, **options)

    monkeypatch.setattr(DurableRecommender, "recommend", noted)
    return names


def in_pool(name: str) -> bool:
    return name.startswith("reader")


class Waiting:
    """A request, of which these calls need no more than whether somebody waits for the answer."""

    def __init__(self, is_gone: bool = False) -> None:
        self._is_gone = is_gone

    def go_on(self) -> None:
        if self._is_gone:
            raise ClientGoneError


NOBODY, SOMEBODY = cast(Request, Waiting(is_gone=True)), cast(Request, Waiting())


def burn(seconds: float) -> Callable[[Request], str]:
    """A call that takes so much of a processor."""

    def call(_: Request) -> str:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
        return "done"

    return call


def soon(lane: ExpressLane, call: Callable[[Request], Any], request: Request = SOMEBODY) -> asyncio.Future[Any]:
    """What the lane hands over."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    lane.take(call, request, answer.set_result)
    return answer


def opened() -> ExpressLane:
    """A lane in which a call was short."""
    lane = ExpressLane()
    lane.measured(burn(0), SOMEBODY)
    assert lane.is_open
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
    popular, names = DurableRecommender.popular, []

    def noted(*given: Any, **options: Any) -> Any:
        names.append(threading.current_thread().name)
        return popular(*given, **options)

    monkeypatch.setattr(DurableRecommender, "popular", noted)
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
    lane = opened()
    lane.measured(burn(100 * SHORT), SOMEBODY)
    assert not lane.is_open
    for _ in range(1000):
        lane.measured(lambda _: None, SOMEBODY)  # without an answer, it says nothing about how long one takes
    assert not lane.is_open
    for _ in range(1000):
        lane.measured(burn(0), SOMEBODY)
    assert lane.is_open


def test_others_have_their_turn_between_calls() -> None:
    happened: list[str] = []

    def call(name: str) -> Callable[[Request], str]:
        def work(_: Request) -> str:
            happened.append(name)
            return burn(3e-3)(SOMEBODY)

        return work

    async def answers() -> list[str]:
        lane = opened()
        waiting = [soon(lane, call(name)) for name in ("first", "second")]
        asyncio.get_running_loop().call_soon(happened.append, "another")
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(answers()) == ["done", "done"]
    assert happened == ["first", "another", "second"]


def test_each_call_has_its_own_end() -> None:
    """An error, a writer at work, a caller who has gone, and an answer, all at once."""

    def fail(_: Request) -> None:
        raise ValueError("no")

    def wait(_: Request) -> None:
        raise BusyError("a writer")

    async def answers() -> list[Any]:
        lane = opened()
        calls = [(fail, SOMEBODY), (wait, SOMEBODY), (burn(0), NOBODY), (burn(0), SOMEBODY)]
        return list(await asyncio.gather(*(soon(lane, call, request) for call, request in calls)))

    error, busy, gone, good = asyncio.run(answers())
    assert isinstance(error, ValueError)
    assert busy is None
    assert isinstance(gone, ClientGoneError)
    assert good == "done"


def test_one_call_waits_a_moment_for_a_writer_and_the_others_do_not() -> None:
    patience: list[float] = []

    def call(outcome: Any) -> Callable[[Request], Any]:
        def work(_: Request) -> Any:
            patience.append(locks._thread.patience)
            if outcome is None:
                raise BusyError("a writer")
            return outcome

        return work

    async def answers() -> list[Any]:
        lane = opened()
        found = await asyncio.gather(*(soon(lane, call(outcome)) for outcome in (None, None, "done")))
        return [*found, await soon(lane, call("again"))]

    assert asyncio.run(answers()) == [None, None, "done", "again"]
    assert patience == [1e-3, 0.0, 0.0, 1e-3]
    assert locks._thread.patience < 0  # elsewhere, everybody waits as ever


@pytest.mark.usefixtures("patient")
def test_one_caller_has_64_calls_in_the_lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is held up while they come, so that all of them are there at once."""
    access = Access.new()
    key = access.add("greedy", ["read"])
    recommend, held, release = DurableRecommender.recommend, threading.Event(), threading.Event()

    def wait(*given: Any, **options: Any) -> Any:
        held.set()
        release.wait(20)
        return recommend(*given, **options)

    with serving(stock(tmp_path / "shop.db"), Security(None, access)) as service, ExitStack() as stack:
        service("GET", PATH, headers={"Authorization": f"Bearer {key}"})
        connections = [stack.enter_context(connected(service)) for _ in range(70)]
        for connection in connections:  # they are accepted
            connection.sendall(PING)
            assert is_well(connection)
        monkeypatch.setattr(DurableRecommender, "recommend", wait)
        stack.enter_context(asking(service, 1, PATH, key))
        assert held.wait(20)
        for connection in connections:
            connection.sendall(request(PATH, key))
        release.set()
        first = [connection.recv(15) for connection in connections]
    served, refused = first.count(b"HTTP/1.1 200 OK"), first.count(b"HTTP/1.1 429 To")
    assert (served in (63, 64), served + refused) == (True, 70)  # the call that held up the loop may be the 64th
