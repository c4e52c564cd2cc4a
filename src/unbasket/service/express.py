"""The express lane: calls that take microseconds, answered on the event loop, since a thread would cost more.

Those that came together are answered one right after the other. The engine then finds in the processor's caches what
the call before has left there, and so does the code that reads requests and writes answers.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from unbasket.engine.locks import waiting_at_most
from unbasket.errors import BusyError
from unbasket.service.request import Request

Quick = Callable[[Request], Any]
"""Answers, or returns None if that would take longer."""
Give = Callable[[Any], object]
"""Takes the answer, or the error; None if it would take longer, or a writer does: then a thread must find it."""

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
        self._waiting: deque[tuple[Quick, Request, Give]] = deque()
        self._patience = _PATIENCE
        self._usual = SHORT  # so it is closed until calls were measured

    @property
    def is_open(self) -> bool:
        """Whether calls may be answered here."""
        return self._usual < SHORT

    def take(self, quick: Quick, request: Request, give: Give) -> None:
        """Answer a call, soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._work)
        self._waiting.append((quick, request, give))

    def measured(self, quick: Quick, request: Request) -> Any:
        """The answer, in any thread. What it takes decides whether the lane is open."""
        start = time.thread_time()
        answer = quick(request)
        if answer is not None:
            self._note(1, time.thread_time() - start)
        return answer

    def _work(self) -> None:
        """Find answers for a while, one right after the other, and then hand them over."""
        found, answered, end = [], 0, time.perf_counter() + _SLICE
        start = time.thread_time()
        with waiting_at_most(self._patience):
            while self._waiting and time.perf_counter() < end:
                quick, request, give = self._waiting.popleft()
                answer = self._answer(quick, request)
                found.append((give, answer))
                if self._patience == 0:
                    break  # a writer is at work, whom nobody else waits for
                answered += answer is not None
        if answered:
            self._note(answered, time.thread_time() - start)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._work)
        for give, answer in found:
            give(answer)

    def _answer(self, quick: Quick, request: Request) -> Any:
        try:
            request.go_on()
            answer = quick(request)
        except BusyError:
            self._patience = 0.0
            return None
        except Exception as error:  # noqa: BLE001 - whoever waits for the answer gets it
            answer = error
        self._patience = _PATIENCE
        return answer

    def _note(self, calls: int, seconds: float) -> None:
        """So many calls have taken so many seconds of a processor together."""
        self._usual += min(1.0, _WEIGHT * calls) * (seconds / calls - self._usual)
