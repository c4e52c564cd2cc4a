"""The fast path: requests that take microseconds are handled on the event loop, where a thread would cost more.

Requests that arrive at the same time are handled in one batch: the engine uses all cores for it, and finds its data
in the processor's caches.
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

BatchHandler = Callable[[list[Request]], Sequence[Any]]
"""Returns the responses to requests of one route; None for each that would take longer."""
Callback = Callable[[Any], object]
"""Receives the response or the error. None tells that a thread must handle the request alone: it takes longer, a writer
holds the lock, or its batch has failed."""

MAX_MEAN = 0.5e-3
"""Processor seconds that a request on the fast path may take on average."""

_WEIGHT = 0.01  # of the latest request in the mean: a single one of 50 ms disables the fast path
_SLICE = 2e-3  # seconds after which the event loop may run other callbacks
_LOCK_TIMEOUT = 5e-3  # seconds that a batch waits for writers; after a timeout, later batches do not wait at all


class FastPath:
    """The fast path of one route, enabled while its requests are short on average, those in threads included.

    Their time grows with the database, and a large one would block the event loop.
    """

    def __init__(self, handler: BatchHandler) -> None:
        self._handler = handler
        self._waiting: deque[tuple[Request, Callback]] = deque()
        self._lock_timeout = _LOCK_TIMEOUT
        self._mean = MAX_MEAN  # disabled until requests were measured

    @property
    def is_enabled(self) -> bool:
        """Whether requests may be submitted."""
        return self._mean < MAX_MEAN

    def submit(self, request: Request, callback: Callback) -> None:
        """Handle a request in the next batch."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._run_batch)
        self._waiting.append((request, callback))

    def measure(self, requests: list[Request]) -> Sequence[Any]:
        """Return the responses, in any thread, and update the mean."""
        start = time.thread_time()
        responses = self._handler(requests)
        handled = sum(response is not None for response in responses)
        if handled:
            seconds = time.thread_time() - start
            self._mean += min(1.0, _WEIGHT * handled) * (seconds / handled - self._mean)
        return responses

    def _run_batch(self) -> None:
        """Handle the waiting requests, or as many as fit into a time slice on average."""
        requests: list[Request] = []
        callbacks: list[Callback] = []
        while self._waiting and len(requests) * self._mean < _SLICE:
            request, callback = self._waiting.popleft()
            if request.is_gone():
                callback(ClientGoneError())
            else:
                requests.append(request)
                callbacks.append(callback)
        responses = self._responses(requests) if requests else []
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._run_batch)
        for callback, response in zip(callbacks, responses, strict=True):
            callback(response)

    def _responses(self, requests: list[Request]) -> Sequence[Any]:
        try:
            with waiting_at_most(self._lock_timeout):
                self._lock_timeout = _LOCK_TIMEOUT
                return self.measure(requests)
        except BusyError:
            self._lock_timeout = 0.0
        except Exception as error:  # noqa: BLE001 - only the request that caused the error gets it
            if len(requests) == 1:
                return [error]
        return [None] * len(requests)
