"""The fast path: requests that take microseconds are answered on the event loop, where a thread would cost more.

Requests that arrive together are one batch: the engine searches on all cores, and finds its data in the processor's
caches. As long as they arrive one at a time, each is answered at once.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from unbasket.errors import BusyError
from unbasket.service.request import Request

BatchHandler = Callable[[list[Request], float | None], Sequence[Any]]
"""Returns the responses to requests of one route; None for each that would take longer. The number is a timeout, for
waiting for a writer."""

MAX_MEAN = 0.5e-3
"""Processor seconds that a request on the fast path may take on average."""

_AWAKE = 1e-4  # seconds that the event loop stays awake after a response: waking up takes longer than a request
_WEIGHT = 0.01  # of the latest request in the mean: a single one of 50 ms disables the fast path
_SLICE = 2e-3  # seconds after which the event loop may run other callbacks
_LOCK_TIMEOUT = 5e-3  # seconds that a batch waits for writers; after a timeout, later batches do not wait at all


class FastPath:
    """The fast path of one route, enabled while its requests are short on average, those in threads included.

    Their time grows with the database, and a large one would block the event loop.
    """

    def __init__(self, handler: BatchHandler) -> None:
        self._handler = handler
        self._waiting: list[tuple[Request, asyncio.Future[Any]]] = []
        self._arrived = 0  # requests since the event loop ran `_run_batch`
        self._come_singly = True  # whether the last time there was one of them
        self._is_awake = False  # whether the event loop will run `_run_batch`
        self._awake_until = 0.0
        self._lock_timeout = _LOCK_TIMEOUT
        self._mean = MAX_MEAN  # disabled until requests were measured

    @property
    def is_enabled(self) -> bool:
        """Whether requests may be handled on the event loop."""
        return self._mean < MAX_MEAN

    async def handle(self, request: Request) -> Any:
        """Return the response, at once or from the next batch; None if a thread must handle the request."""
        loop = asyncio.get_running_loop()
        if not self._is_awake:
            self._is_awake = True
            loop.call_soon(self._run_batch)
        self._arrived += 1
        if self._arrived == 1 and self._come_singly:
            return self._responses([request])[0]
        response = loop.create_future()
        self._waiting.append((request, response))
        return await response

    def measure(self, requests: list[Request], lock_timeout: float | None = None) -> Sequence[Any]:
        """Return the responses, in any thread, and update the mean."""
        start = time.thread_time()
        responses = self._handler(requests, lock_timeout)
        handled = sum(response is not None for response in responses)
        if handled:
            seconds = time.thread_time() - start
            self._mean += min(1.0, _WEIGHT * handled) * (seconds / handled - self._mean)
        return responses

    def _run_batch(self) -> None:
        """Handle the waiting requests, or as many as fit into a time slice on average."""
        now = time.perf_counter()
        if self._arrived:
            self._come_singly, self._arrived, self._awake_until = self._arrived == 1, 0, now + _AWAKE
        batch = self._waiting
        if batch:
            most = max(1, int(_SLICE / self._mean))
            batch, self._waiting = batch[:most], batch[most:]
        self._is_awake = bool(self._waiting) or (self._come_singly and now < self._awake_until)
        if self._is_awake:
            asyncio.get_running_loop().call_soon(self._run_batch)
        if not batch:
            return
        responses = self._responses([request for request, _ in batch])
        for (_, future), response in zip(batch, responses, strict=True):
            if not future.done():  # cancelled when the service ends
                future.set_result(response)

    def _responses(self, requests: list[Request]) -> Sequence[Any]:
        """Return the responses; None for all of a batch that fails: alone, each gets its own response or error."""
        try:
            responses = self.measure(requests, self._lock_timeout)
        except Exception as error:  # noqa: BLE001 - a thread handles each request alone
            self._lock_timeout = 0.0 if isinstance(error, BusyError) else self._lock_timeout
            return [None] * len(requests)
        self._lock_timeout = _LOCK_TIMEOUT
        return responses
