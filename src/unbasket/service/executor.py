"""The executor of requests that may take long: threads with a bounded share for each caller, and one for long work.

A thread that computes blocks all other Python threads, the event loop too. Many such threads would block it most of
the time; a single one that pauses does not slow it down. So long work runs in one thread, a step at a time. Requests
that wait for it occupy no thread of other requests, and callers alternate.
"""

import asyncio
import ctypes
import sys
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Literal, ParamSpec, TypeVar, get_args

from unbasket.core.util import Task
from unbasket.service.errors import ApiError, ClientGoneError
from unbasket.service.request import Request

Given = ParamSpec("Given")
Result = TypeVar("Result")
Steps = Generator[None, None, Result]
"""Long work: runs until each yield without a pause, and returns the response."""
Kind = Literal["reader", "writer"]

_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None  # of glibc
_TRIM_AFTER = 0.5  # seconds: requests that follow each other use the same memory
_PAUSE_FACTOR = 2.0  # a pause takes this times as long as the step before it: long work gets a third of one core


@dataclass
class CallerQueue:
    """One caller's requests in progress. A few have a thread at once; one may wait for the thread of long work."""

    kind: Kind
    threads: asyncio.Semaphore
    long: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class Executor:
    """Threads for readers and for writers, which wait for the disk, and one for long work.

    No caller can block others: one caller gets at most half of the threads of a kind.
    """

    def __init__(self, threads: int) -> None:
        self._share = max(1, threads // 2)
        self._pools = {kind: ThreadPoolExecutor(threads, kind) for kind in get_args(Kind)}
        self._long = ThreadPoolExecutor(1, "long")
        self._resume_at, self._will_trim = 0.0, False
        self._queues: dict[tuple[Kind, str], CallerQueue] = {}

    @contextmanager
    def queue(self, kind: Kind, caller: str, most: int) -> Iterator[CallerQueue]:
        """Count a request among the caller's. Raises if the caller has `most` in progress."""
        queue = self._queues.setdefault((kind, caller), CallerQueue(kind, asyncio.Semaphore(self._share)))
        if queue.length >= most:
            raise ApiError("too_many_requests", f"{most} of your requests are in progress; wait for a response")
        queue.length += 1
        try:
            yield queue
        finally:
            queue.length -= 1
            if not queue.length:
                del self._queues[kind, caller]

    async def run_long(self, queue: CallerQueue, request: Request, work: Callable[[], Any]) -> Any:
        """Return the result of a request's long work."""
        async with queue.long:
            return await _in_thread(self._long, request, partial(self._after_pause, work))

    async def run(self, queue: CallerQueue, request: Request, work: Callable[[], Any]) -> Any:
        """Return the result of a request's work, or of the steps that it returns."""
        async with queue.threads:
            result = await _in_thread(self._pools[queue.kind], request, work)
        while isinstance(result, Generator):
            result = await self.run_long(queue, request, partial(_advance, result))
        return result

    def trim_memory(self) -> None:
        """Return the memory of large requests to the system soon, in the thread of long work."""
        if _TRIM is not None and not self._will_trim:
            self._will_trim = True
            asyncio.get_running_loop().call_later(_TRIM_AFTER, self._trim, _TRIM)

    def _trim(self, trim: Callable[[int], object]) -> None:
        self._will_trim = False
        with suppress(RuntimeError):  # the executor is shut down
            self._long.submit(trim, 0)

    def shutdown(self) -> None:
        """Finish the work in progress."""
        for pool in (*self._pools.values(), self._long):
            pool.shutdown()

    def _after_pause(self, work: Callable[[], Result]) -> Result:
        time.sleep(max(0.0, self._resume_at - time.monotonic()))
        start = time.monotonic()
        try:
            return work()
        finally:
            end = time.monotonic()
            self._resume_at = end + _PAUSE_FACTOR * (end - start)


async def _in_thread(pool: ThreadPoolExecutor, request: Request, work: Callable[[], Any]) -> Any:
    """Return the result of work in a thread; if the system allows no further thread, of work done here."""
    task = Task(partial(_run, request, work))
    with suppress(RuntimeError):  # no thread could be started; the pool may have queued the task, which runs once
        await asyncio.wrap_future(pool.submit(task.run))
    return task.result()


def _run(request: Request, work: Callable[[], Any]) -> Any:
    """Run work unless the client is gone."""
    if request.is_gone:
        raise ClientGoneError
    return work()


def _advance(steps: Steps[Any]) -> Any:
    """Run to the next pause. Returns the steps if there are more, or the result."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    return steps


def in_one_step(work: Callable[Given, Result]) -> Callable[Given, Steps[Result]]:
    """Make a function long work without a pause."""

    @wraps(work)
    def steps(*args: Given.args, **kwargs: Given.kwargs) -> Steps[Result]:
        yield from ()
        return work(*args, **kwargs)

    return steps
