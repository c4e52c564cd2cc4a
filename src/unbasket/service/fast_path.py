"""The express lane: calls that take microseconds, answered on the event loop, since a thread would cost more.

Those that came together are answered together. The engine does so on all cores, and finds in the processor's caches
what the call before has left there; so does the code that reads requests and writes answers.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from unbasket.engine.locks import waiting_at_most
from unbasket.errors import BusyError
from unbasket.service.errors import ClientGoneError
from unbasket.service.request import Request

Quick = Callable[[list[Request]], Sequence[Any]]
"""Answers calls of one kind that came together; with None, if that would take longer."""
Give = Callable[[Any], object]
"""Takes the answer, or the error. None if it would take longer, if a writer does, or if something goes wrong with
several calls: then a thread must find it, for each of them alone."""

SHORT = 0.5e-3
"""Seconds of a processor that calls in the lane may take on average."""

_WEIGHT = 0.01  # of the latest call in the average: a single one of 50 ms closes the lane
_SLICE = 2e-3  # seconds after which others have their turn on the event loop
_PATIENCE = 5e-3  # seconds that calls wait for writers, together; until these are done, those after them not at all


class ExpressLane:
    """The lane of one kind of call. It is open while these are short on average; those in threads are measured too.

    How long a call takes depends on the size of the shop, and in a large one nobody may wait for it on the loop.
    """

    def __init__(self, quick: Quick) -> None:
        self._quick = quick
        self._waiting: deque[tuple[Request, Give]] = deque()
        self._patience = _PATIENCE
        self._usual = SHORT  # so it is closed until calls were measured

    @property
    def is_open(self) -> bool:
        """Whether calls may be answered here."""
        return self._usual < SHORT

    def take(self, request: Request, give: Give) -> None:
        """Answer a call, soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._work)
        self._waiting.append((request, give))

    def measured(self, requests: list[Request]) -> Sequence[Any]:
        """The answers, in any thread. What they take decides whether the lane is open."""
        start = time.thread_time()
        answers = self._quick(requests)
        answered = sum(answer is not None for answer in answers)
        if answered:
            seconds = time.thread_time() - start
            self._usual += min(1.0, _WEIGHT * answered) * (seconds / answered - self._usual)
        return answers

    def _work(self) -> None:
        """Answer the calls that came together, or as many of them as usually take no longer than a slice."""
        requests: list[Request] = []
        takers: list[Give] = []
        while self._waiting and len(requests) * self._usual < _SLICE:
            request, give = self._waiting.popleft()
            if request.is_gone():
                give(ClientGoneError())
            else:
                requests.append(request)
                takers.append(give)
        answers = self._answers(requests) if requests else []
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._work)
        for give, answer in zip(takers, answers, strict=True):
            give(answer)

    def _answers(self, requests: list[Request]) -> Sequence[Any]:
        try:
            with waiting_at_most(self._patience):
                self._patience = _PATIENCE
                return self.measured(requests)
        except BusyError:
            self._patience = 0.0
        except Exception as error:  # noqa: BLE001 - whoever waits for the answer gets it, but nobody else
            if len(requests) == 1:
                return [error]
        return [None] * len(requests)
