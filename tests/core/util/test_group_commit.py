"""Group commit: one of many callers serves the others."""

import threading
import time

import pytest

from unbasket.core.util import GroupCommit


def test_a_single_caller_serves_itself() -> None:
    served: list[list[int]] = []
    group_commit: GroupCommit[int] = GroupCommit()
    for number in range(3):
        group_commit.submit(number, served.append)
    assert served == [[0], [1], [2]]


def test_requests_that_come_meanwhile_are_served_together() -> None:
    group_commit: GroupCommit[int] = GroupCommit()
    served: list[list[int]] = []
    started, go_on = threading.Event(), threading.Event()

    def serve(requests: list[int]) -> None:
        served.append(requests)
        started.set()
        assert go_on.wait(10)

    threads = [threading.Thread(target=group_commit.submit, args=(number, serve)) for number in range(6)]
    threads[0].start()
    assert started.wait(10)
    for thread in threads[1:]:
        thread.start()
    while group_commit.waiting < 5:
        time.sleep(0.001)
    go_on.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert served[0] == [0]
    assert [sorted(requests) for requests in served[1:]] == [[1, 2, 3, 4, 5]]


def test_every_request_is_served_once_by_one_caller_at_a_time() -> None:
    group_commit: GroupCommit[int] = GroupCommit()
    served: list[int] = []
    serving = threading.Lock()

    def serve(requests: list[int]) -> None:
        assert serving.acquire(blocking=False)
        served.extend(requests)
        time.sleep(0.0001)
        serving.release()

    def call(first: int) -> None:
        for number in range(first, 2000, 8):
            group_commit.submit(number, serve)
            assert number in served

    threads = [threading.Thread(target=call, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert sorted(served) == list(range(2000))


def test_an_interrupt_does_not_stop_other_callers() -> None:
    group_commit: GroupCommit[int] = GroupCommit()

    def interrupted(_: list[int]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        group_commit.submit(1, interrupted)
    served: list[list[int]] = []
    group_commit.submit(2, served.append)
    assert served == [[2]]
