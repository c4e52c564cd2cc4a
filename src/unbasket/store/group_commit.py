"""Callers in many threads share the work of one: group commit."""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

Request = TypeVar("Request")


class _Place(Generic[Request]):
    """A request in the queue. Its caller sleeps on `wake` until the request was served, or until it is time for the
    caller to serve (`leads`); either way, the caller then waits no longer (`left`).
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.wake = Lock()
        self.wake.acquire()
        self.leads = False
        self.left = False


class Batches(Generic[Request]):
    """A queue whose first caller serves everybody who came while the previous one was at work.

    It has no thread of its own, so a caller who is alone pays for no switch of threads.
    """

    def __init__(self) -> None:
        self._queue: deque[_Place[Request]] = deque()
        self._guard = Lock()
        self._at_work = False

    def enter(self) -> bool:
        """Whether nobody is at work. If so, the caller may work now, for its own request, and then calls `leave`."""
        with self._guard:
            alone, self._at_work = not self._at_work, True
        return alone

    def leave(self) -> None:
        """Hand over to one of those who came meanwhile."""
        with self._guard:
            for place in self._queue:
                if not place.left:
                    place.leads = True
                    place.wake.release()
                    return
            self._queue.clear()
            self._at_work = False

    def submit(self, request: Request, serve: Callable[[list[Request]], None]) -> None:
        """Return when the request was served, by this caller's `serve` or by another's.

        If the caller is interrupted while waiting, the request may be served or not.
        """
        with self._guard:
            alone, self._at_work = not self._at_work, True
            if not alone:
                place = _Place(request)
                self._queue.append(place)
        if alone:
            self._work([request], [], serve)
        else:
            self._wait(place, serve)

    def _wait(self, place: _Place[Request], serve: Callable[[list[Request]], None]) -> None:
        try:
            place.wake.acquire()
        finally:
            with self._guard:
                place.left = True
                places = list(self._queue) if place.leads else []
                if place.leads:
                    self._queue.clear()
            if place.leads:
                self._work([each.request for each in places], places, serve)

    def _work(
        self, requests: list[Request], places: list[_Place[Request]], serve: Callable[[list[Request]], None]
    ) -> None:
        """Serve all who wait, then hand over to one of those who came meanwhile."""
        try:
            serve(requests)
        finally:
            for place in places:
                if not place.leads:
                    place.wake.release()
            self.leave()
