"""The slow lane: a piece at a time, with rests."""

import resource
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.service.process import until
from tests.service.serving import Service, make_shop, serving

from unbasket.domain.ids import Id
from unbasket.service import throttled_executor
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.service.throttled_executor import ThrottledExecutor
from unbasket.store import DurableRecommender


def test_a_piece_that_follows_another_waits_for_twice_as_long_as_that_took(monkeypatch: pytest.MonkeyPatch) -> None:
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

    monkeypatch.setattr(throttled_executor, "time", Clock)

    def work(seconds: float, error: Exception | None = None) -> float:
        nonlocal now
        now += seconds
        if error is not None:
            raise error
        return seconds

    with ThrottledExecutor("lane") as lane:
        for pause in (0.0, 0.0, 1.0):
            now += pause
            assert lane.submit(work, 2.0).result() == 2.0
        with pytest.raises(ValueError, match="no"):
            lane.submit(work, 3.0, ValueError("no")).result()
        lane.submit(work, 1.0).result()
        now += 9.0
        lane.submit(work, 1.0).result()
    assert slept == [0.0, 4.0, 3.0, 4.0, 6.0, 0.0]


@pytest.fixture
def service(tmp_path: Path) -> Any:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        yield service


def ask_at_once(count: int, ask: Callable[[], object]) -> None:
    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


FORGETS = [{"event": "forget", "user": f"nobody {number}"} for number in range(20)]


@pytest.mark.parametrize(
    ("method", "ask"),
    [
        ("explain_many", lambda service: service("GET", "/v1/users/ann/recommendations?explain=true")),
        ("receipts", lambda service: service("POST", "/v1/receipts/verify")),
        ("apply", lambda service: service("POST", "/v1/events", json=FORGETS)),
    ],
)
def test_long_work_is_done_one_at_a_time(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str, ask: Callable[[Service], object]
) -> None:
    service("POST", "/v1/events", json=FORGETS[:2])
    original, at_once, most = getattr(DurableRecommender, method), 0, 0

    def counted(*given: Any, **options: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.01)  # for others to come
        try:
            return original(*given, **options)
        finally:
            at_once -= 1

    monkeypatch.setattr(DurableRecommender, method, counted)
    ask_at_once(4, lambda: ask(service))
    assert most == 1


def explanation(user: str, key: str) -> bytes:
    lines = f"GET /v1/users/{user}/recommendations?explain=true HTTP/1.1\r\nHost: localhost\r\n"
    return f"{lines}Authorization: Bearer {key}\r\n\r\n".encode()


def test_who_waits_for_the_slow_lane_keeps_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither from others nor from themselves; and callers take turns in it, however much one of them asks for."""
    access, explain = KeyFile.new(), DurableRecommender.explain_many
    greedy, other = access.add("greedy", ["read"]), access.add("other", ["read"])
    asked, release = list[object](), threading.Event()

    def wait(rec: DurableRecommender, user: Id, items: Any) -> Any:
        asked.append(user)
        assert release.wait(20)
        return explain(rec, user, items)

    monkeypatch.setattr(DurableRecommender, "explain_many", wait)
    with serving(make_shop(tmp_path / "shop.db"), Authenticator(None, access), threads=2) as service, ExitStack() as stack:
        connections = []
        for user, key in [*[("ann", greedy)] * 6, *[("bob", other)] * 2]:
            connections.append(stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 20)))
            connections[-1].sendall(explanation(user, key))
            until(lambda: asked)
        for key in (greedy, other):
            headers = {"Authorization": f"Bearer {key}"}
            assert service("GET", "/v1/items", headers=headers)["items"]
        assert asked == ["ann"]
        release.set()
        assert {connection.recv(15) for connection in connections} == {b"HTTP/1.1 200 OK"}
    assert asked[:4] == ["ann", "bob", "ann", "bob"]
    assert asked[4:] == ["ann"] * 4


def test_nobody_works_slowly_for_who_has_gone(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    explain, asked, release = DurableRecommender.explain_many, list[object](), threading.Event()

    def wait(*given: Any) -> Any:
        asked.append(given)
        release.wait(20)
        return explain(*given)

    monkeypatch.setattr(DurableRecommender, "explain_many", wait)
    path = b"GET /v1/users/ann/recommendations?explain=true HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port)) as first:
        first.sendall(path)
        until(lambda: asked)
        with socket.create_connection(("127.0.0.1", service.port)) as second:
            second.sendall(path)
            time.sleep(0.3)  # for the service to begin
        time.sleep(0.3)  # for the service to notice
        release.set()
        assert first.recv(15) == b"HTTP/1.1 200 OK"
    assert service("GET", "/v1/users/ann/recommendations?explain=true")
    assert len(asked) == 2


def resident() -> int:
    """Bytes of memory that this process takes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_what_large_work_took_is_handed_back() -> None:
    with ThrottledExecutor("lane") as lane:
        taken = lane.submit(lambda: [bytes(1000) for _ in range(100_000)]).result()
        last = taken.pop()  # as long as it is there, all before it stays with the process
        taken.clear()
        before = resident()
        lane.tidy_up()
        lane.submit(int).result()
        assert resident() < before - 50e6
        del last
    lane.tidy_up()  # closed: nothing happens
