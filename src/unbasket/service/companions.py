"""Companions of the service: work beside the requests, on the same engine, each in a thread of its own."""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from unbasket.service import logs
from unbasket.store import DurableRecommender

if TYPE_CHECKING:
    from prometheus_client import Metric


class Companion(Protocol):
    """Work that begins when the engine is ready, and ends before it is closed."""

    def run(self, rec: DurableRecommender) -> object:
        """Work until `stop`. An error stops the service."""

    def stop(self) -> object:
        """Let `run` finish what it has begun, and return. Called in another thread."""

    def collect(self) -> "Iterable[Metric]":
        """Return metrics, also before `run`."""


class Companions:
    """The companions of one service, and the first error of one."""

    def __init__(self, companions: Sequence[Companion]) -> None:
        self._companions = companions
        self._threads: list[threading.Thread] = []
        self.failure: BaseException | None = None

    def start(self, rec: DurableRecommender, on_failure: Callable[[], object]) -> None:
        """Start all; `on_failure` is called in the thread of one that fails."""
        for companion in self._companions:
            thread = threading.Thread(target=self._run, args=(companion, rec, on_failure), name="companion")
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stop all that were started, one after another."""
        for companion, thread in zip(self._companions, self._threads, strict=False):
            companion.stop()
            thread.join()

    def _run(self, companion: Companion, rec: DurableRecommender, on_failure: Callable[[], object]) -> None:
        try:
            companion.run(rec)
        except BaseException as error:  # noqa: BLE001 - the service raises it in the end
            logs.failure("a companion failed", error, companion=type(companion).__name__)
            self.failure = self.failure or error
            on_failure()
