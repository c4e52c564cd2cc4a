"""Group commit: callers in many threads share the transaction and the sync of one of them."""

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from time import perf_counter
from typing import Generic, TypeVar

from unbasket.domain.events import Allow, Change, Forget, Rename
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten, Renamed
from unbasket.engine.model import EventResult
from unbasket.errors import UnbasketError
from unbasket.store.receipts import Receipt


class Erased(Forgotten):
    """A `Forgotten` whose bytes are gone from every file, the receipt that says so, and how long it took."""

    receipt: Receipt
    seconds: float


class ErasedId(Renamed):
    """A `Renamed` whose old id is gone from every file, the receipt that says so, and how long it took."""

    receipt: Receipt
    seconds: float


class WriteRequest:
    """Events of one caller, who waits for them to be on disk, and their results."""

    def __init__(self, events: Sequence[Change]) -> None:
        self.events = events
        self.start = perf_counter()
        self.results: list[EventResult] = []
        self.error: UnbasketError | None = None
        self.erasures: int | None = None  # erasures before this request, if it still waits for the next one

    @property
    def erases(self) -> bool:
        """Whether acknowledging the request takes an erasure."""
        return any(isinstance(event, Forget | Allow | Rename) for event in self.events)

    @property
    def users(self) -> set[Id]:
        """The users that the events change."""
        return {event.user for event in self.events} | {
            event.other for event in self.events if isinstance(event, Rename)
        }

    @property
    def erased(self) -> list[Erased | ErasedId]:
        """The results of its forgets and renames."""
        return [result for result in self.results if isinstance(result, Erased | ErasedId)]


Request = TypeVar("Request")


class _Waiter(Generic[Request]):
    """A request in the queue. Its caller sleeps on `wake` until the request was served, or until the caller is to
    serve the queue (`leads`); either way, the caller then waits no longer (`left`).
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.wake = Lock()
        self.wake.acquire()
        self.leads = False
        self.left = False


class GroupCommit(Generic[Request]):
    """A queue of requests. While one caller serves, others wait; then one of them serves the whole queue.

    It has no thread of its own, so a single caller pays for no switch of threads.
    """

    def __init__(self) -> None:
        self._queue: deque[_Waiter[Request]] = deque()
        self._guard = Lock()
        self._is_serving = False

    def submit(self, request: Request, serve: Callable[[list[Request]], None]) -> None:
        """Return when the request was served, by this caller's `serve` or by another's.

        If the caller is interrupted while waiting, the request may be served or not.
        """
        with self._guard:
            leads, self._is_serving = not self._is_serving, True
            if not leads:
                waiter = _Waiter(request)
                self._queue.append(waiter)
        if leads:
            self._serve([request], [], serve)
        else:
            self._wait(waiter, serve)

    def _wait(self, waiter: _Waiter[Request], serve: Callable[[list[Request]], None]) -> None:
        try:
            waiter.wake.acquire()
        finally:
            with self._guard:
                waiter.left = True
                waiters = list(self._queue) if waiter.leads else []
                if waiter.leads:
                    self._queue.clear()
            if waiter.leads:
                self._serve([each.request for each in waiters], waiters, serve)

    def _serve(
        self, requests: list[Request], waiters: list[_Waiter[Request]], serve: Callable[[list[Request]], None]
    ) -> None:
        """Serve requests and wake their callers, then let one of those that came meanwhile lead."""
        try:
            serve(requests)
        finally:
            for waiter in waiters:
                if not waiter.leads:
                    waiter.wake.release()
            self._choose_leader()

    def _choose_leader(self) -> None:
        with self._guard:
            for waiter in self._queue:
                if not waiter.left:
                    waiter.leads = True
                    waiter.wake.release()
                    return
            self._queue.clear()
            self._is_serving = False
