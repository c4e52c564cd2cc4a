"""Companions of the service: work beside the requests, on the same engine, each in a thread of its own."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

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
