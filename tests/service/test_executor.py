"""The executor: long work a step at a time with pauses, other work in threads."""

import asyncio
import resource
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request
from tests.service.process import until
from tests.service.serving import Service, make_shop, serving

from unbasket.domain.ids import Id
from unbasket.service import executor as executors
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.service.errors import ApiError
from unbasket.service.executor import CallerQueue, Executor, Steps
from unbasket.service.request import Request, Shared
from unbasket.store import DurableRecommender

REQUEST = Request(cast(Shared, None), make_mocked_request("GET", "/"))


def queue_of(executor: Executor) -> AbstractContextManager[CallerQueue]:
    return executor.queue("reader", "a caller", 10)


def test_a_pause_takes_twice_as_long_as_the_step_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = 100.0, list[float]()

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now

        @staticmethod
        def sleep(seconds: float) -> None:
            nonlocal now
            slept.append(seconds)
            now += seconds

    monkeypatch.setattr(executors, "time", Clock)

    def work(seconds: float, error: Exception | None = None) -> float:
        nonlocal now
        now += seconds
        if error is not None:
            raise error
        return seconds

    async def run() -> None:
        nonlocal now
        executor = Executor(2)
        with queue_of(executor) as queue:
            for idle in (0.0, 0.0, 1.0):
                now += idle
                assert await executor.run_long(queue, REQUEST, partial(work, 2.0)) == 2.0
            with pytest.raises(ValueError, match="no"):
                await executor.run_long(queue, REQUEST, partial(work, 3.0, ValueError("no")))
            await executor.run_long(queue, REQUEST, partial(work, 1.0))
            now += 9.0
            await executor.run_long(queue, REQUEST, partial(work, 1.0))
        executor.shutdown()

    asyncio.run(run())
    assert slept == [0.0, 4.0, 3.0, 4.0, 6.0, 0.0]


def test_steps_run_in_the_thread_of_long_work() -> None:
    threads: list[str] = []

    def note() -> None:
        threads.append(threading.current_thread().name.partition("_")[0])

    def steps() -> Steps[str]:
        note()
        yield
        note()
        return "done"

    def start() -> Steps[str]:
        note()
        return steps()

    async def run() -> str:
        executor = Executor(2)
        with queue_of(executor) as queue:
            result: str = await executor.run(queue, REQUEST, start)
        executor.shutdown()
        return result

    assert asyncio.run(run()) == "done"
    assert threads == ["reader", "long", "long"]


def test_without_a_thread_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that can't start a thread has queued the work already, which a thread may find later."""
    done: list[str] = []

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def run() -> None:
        executor = Executor(2)
        with queue_of(executor) as queue, monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            await executor.run(queue, REQUEST, partial(done.append, "first"))
            patch.undo()
            await executor.run(queue, REQUEST, partial(done.append, "second"))
        executor.shutdown()

    asyncio.run(run())
    assert done == ["first", "second"]


def test_a_caller_may_have_few_requests_in_progress() -> None:
    executor = Executor(2)
    with executor.queue("reader", "one", 2), executor.queue("reader", "one", 2):
        third = executor.queue("reader", "one", 2)
        with pytest.raises(ApiError, match="2 of your requests are in progress"), third:
            pass
        with executor.queue("writer", "one", 2), executor.queue("reader", "other", 2):
            pass
    with executor.queue("reader", "one", 1):
        pass
    executor.shutdown()


@pytest.fixture
def service(tmp_path: Path) -> Any:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        yield service


def run_concurrently(count: int, run: Callable[[], object]) -> None:
    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


FORGETS = [{"event": "forget", "user": f"unknown {number}"} for number in range(20)]


@pytest.mark.parametrize(
    ("method", "ask"),
    [
        ("explain_many", lambda service: service("GET", "/v1/users/ann/recommendations?explain=true")),
        ("verify", lambda service: service("POST", "/v1/users/ann/verify")),
        ("receipts", lambda service: service("POST", "/v1/receipts/verify")),
        ("apply", lambda service: service("POST", "/v1/events", json=FORGETS)),
    ],
)
def test_long_steps_run_one_at_a_time(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str, ask: Callable[[Service], object]
) -> None:
    service("POST", "/v1/events", json=FORGETS[:2])
    original, running, most = getattr(DurableRecommender, method), 0, 0

    def counted(*given: Any, **options: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.01)  # for other requests to arrive
        try:
            return original(*given, **options)
        finally:
            running -= 1

    monkeypatch.setattr(DurableRecommender, method, counted)
    run_concurrently(4, lambda: ask(service))
    assert most == 1


def explanation(user: str, key: str) -> bytes:
    lines = f"GET /v1/users/{user}/recommendations?explain=true HTTP/1.1\r\nHost: localhost\r\n"
    return f"{lines}Authorization: Bearer {key}\r\n\r\n".encode()


def test_waiting_requests_occupy_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other requests of the same and of other callers run, and the executor alternates between callers."""
    keys, explain = KeyFile.new(), DurableRecommender.explain_many
    greedy, other = keys.add("greedy", ["read"]), keys.add("other", ["read"])
    explained, release = list[object](), threading.Event()

    def wait(rec: DurableRecommender, user: Id, items: Any, **named: Any) -> Any:
        explained.append(user)
        assert release.wait(20)
        return explain(rec, user, items, **named)

    monkeypatch.setattr(DurableRecommender, "explain_many", wait)
    with (
        serving(make_shop(tmp_path / "shop.db"), Authenticator(None, keys), threads=2) as service,
        ExitStack() as stack,
    ):
        connections = []
        for user, key in [*[("ann", greedy)] * 6, *[("bob", other)] * 2]:
            connections.append(stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 20)))
            connections[-1].sendall(explanation(user, key))
            until(lambda: explained)
        for key in (greedy, other):
            headers = {"Authorization": f"Bearer {key}"}
            assert service("GET", "/v1/items", headers=headers)["items"]
        assert explained == ["ann"]
        release.set()
        assert {connection.recv(15) for connection in connections} == {b"HTTP/1.1 200 OK"}
    assert explained[:4] == ["ann", "bob", "ann", "bob"]
    assert explained[4:] == ["ann"] * 4


def test_steps_of_disconnected_clients_are_dropped(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    explain, explained, release = DurableRecommender.explain_many, list[object](), threading.Event()

    def wait(*given: Any, **named: Any) -> Any:
        explained.append(given)
        release.wait(20)
        return explain(*given, **named)

    monkeypatch.setattr(DurableRecommender, "explain_many", wait)
    path = b"GET /v1/users/ann/recommendations?explain=true HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port)) as first:
        first.sendall(path)
        until(lambda: explained)
        with socket.create_connection(("127.0.0.1", service.port)) as second:
            second.sendall(path)
            time.sleep(0.3)  # for the request to arrive
        time.sleep(0.3)  # for the service to notice the disconnect
        release.set()
        assert first.recv(15) == b"HTTP/1.1 200 OK"
    assert service("GET", "/v1/users/ann/recommendations?explain=true")
    assert len(explained) == 2


def resident() -> int:
    """Return the resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory_of_large_work_is_returned() -> None:
    async def take_and_return(executor: Executor) -> None:
        with queue_of(executor) as queue:
            taken = await executor.run_long(queue, REQUEST, lambda: [bytes(1000) for _ in range(100_000)])
            last = taken.pop()  # keeps the heap from shrinking by itself
            taken.clear()
            before = resident()
            executor.trim_memory()
            for _ in range(100):  # 10 seconds at most
                await asyncio.sleep(0.1)
                if resident() < before - 50e6:
                    break
            assert resident() < before - 50e6
            del last

    async def run() -> None:
        executor, errors = Executor(2), list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        for _ in range(2):
            await take_and_return(executor)
        executor.trim_memory()
        executor.shutdown()
        await asyncio.sleep(1)
        assert not errors

    asyncio.run(run())
