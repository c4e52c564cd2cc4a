"""Background tasks of the service: work beside the requests, on the same engine, each in a thread of its own."""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from unbasket.errors import StoreError
from unbasket.service import logs
from unbasket.store import DurableRecommender

INTERVAL = 300.0
"""Seconds between checkpoints. A witness in a folder has a file for each of them."""


class BackgroundTask(Protocol):
    """Work that begins when the engine is ready, and ends before it is closed."""

    def run(self, rec: DurableRecommender) -> object:
        """Work until `stop`. An error stops the service."""

    def stop(self) -> object:
        """Let `run` finish what it has begun, and return. Called in another thread."""

    def collect(self) -> Iterable[Metric]:
        """Return metrics, also before `run`."""


class CheckpointPublisher:
    """A background task that publishes the checkpoints of an engine which has a witness.

    The first one is published when the database is opened. If the witness can't be reached later, the service goes on:
    the next checkpoint covers what this one would have.
    """

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._published = 0.0

    def run(self, rec: DurableRecommender) -> None:
        """Publish until `stop`, and once more then."""
        self._published = time.time()
        while not self._stopping.wait(INTERVAL):
            self._publish(rec)
        self._publish(rec)

    def stop(self) -> None:
        """Let `run` publish the last one, and return."""
        self._stopping.set()

    def collect(self) -> Iterator[Metric]:
        """Yield the time of the newest checkpoint that the witness has."""
        yield GaugeMetricFamily(
            "unbasket_witnessed_timestamp_seconds", "Time of the last published checkpoint", value=self._published
        )

    def _publish(self, rec: DurableRecommender) -> None:
        try:
            rec.publish_checkpoint()
        except StoreError as error:
            logs.get().error("checkpoint not published", problem=str(error))
        else:
            self._published = time.time()
