"""The express lane: calls that take microseconds, answered on the event loop, since a thread would cost more.

Those that came together are answered one right after the other. The engine then finds in the processor's caches what
the call before has left there, and so does the code that reads requests and writes answers.
"""

import asyncio
import time
from asyncio import Future
from collections import deque
from collections.abc import Callable
from typing import Any

from unbasket.engine.locks import waiting_at_most
from unbasket.errors import BusyError
from unbasket.service.request import Request

Quick = Callable[[Request], Any]
"""Answers, or returns None if that would take longer."""

SHORT = 0.5e-3
"""Seconds of a processor that calls in the lane may take on average."""

_WEIGHT = 0.01  # of the latest call in the average: a single one of 50 ms closes the lane
_SLICE = 2e-3  # seconds after which others have their turn on the event loop
_PATIENCE = 1e-3  # seconds that one call waits for a writer; the others, until the writer is done, not at all


class ExpressLane:
    """It is open while calls are short on average. Those that threads answer are measured too.

    How long a call takes depends on the size of the shop, and in a large one nobody may wait for it on the loop.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Quick, Request, Future[Any]]] = deque()
        self._patience = _PATIENCE
        self._usual = SHORT  # so it is closed until calls were measured

    @property
    def is_open(self) -> bool:
        """Whether calls may be answered here."""
        return self._usual < SHORT

    def answer(self, quick: Quick, request: Request) -> Future[Any]:
        """The answer; None if it would take longer, or a writer does. Then a thread must find it."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._work)
        answer = loop.create_future()
        self._waiting.append((quick, request, answer))
        return answer

    def measured(self, quick: Quick, request: Request) -> Any:
        """The answer, in any thread. What it takes decides whether the lane is open."""
        start = time.thread_time()
        answer = quick(request)
        if answer is not None:
            self._usual += _WEIGHT * (time.thread_time() - start - self._usual)
        return answer

    def _work(self) -> None:
        end = time.perf_counter() + _SLICE
        with waiting_at_most(self._patience):
            while self._waiting and time.perf_counter() < end and self._serve(*self._waiting.popleft()):
                pass
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._work)

    def _serve(self, quick: Quick, request: Request, answer: Future[Any]) -> bool:
        """Answer a call; returns whether that could be done, or a writer is at work, whom nobody else waits for."""
        try:
            request.go_on()
            found = self.measured(quick, request)
        except BusyError:
            self._patience = 0.0
            _give(answer, None)
            return False
        except Exception as error:  # noqa: BLE001 - whoever waits for the answer gets it
            _give(answer, error)
        else:
            self._patience = _PATIENCE
            _give(answer, found)
        return True


def _give(waiting: Future[Any], answer: Any) -> None:
    """Hand an answer over, if somebody still waits: the service may be stopping."""
    if waiting.done():
        return
    if isinstance(answer, Exception):
        waiting.set_exception(answer)
    else:
        waiting.set_result(answer)
