"""Counters of a consumer: for a progress line, and for Prometheus."""

import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unbasket.domain.rejection import Reason

if TYPE_CHECKING:
    from prometheus_client import Metric

_SPAN = 10.0  # seconds of which a rate is the mean


@dataclass
class Counters:
    """Counts since the start. One thread writes them, any may read them."""

    learns: int = 0
    forgets: int = 0
    batches: int = 0
    redelivered: int = 0  # messages that had been applied before
    rejected: Counter[Reason] = field(default_factory=Counter)
    receipts: int = 0  # written to the topic of receipts
    tombstones: int = 0
    lag: int = 0  # messages in the topic that were not read yet
    blocked: int = 0  # batches whose forgotten bytes a reader of the database kept for longer

    @property
    def events(self) -> int:
        """The events that were applied."""
        return self.learns + self.forgets


class Rate:
    """The events per second of the last seconds."""

    def __init__(self) -> None:
        self._seen = deque([(time.monotonic(), 0)])

    def now(self, events: int) -> float:
        """Return the rate, given the count of events until now."""
        moment = time.monotonic()
        self._seen.append((moment, events))
        while len(self._seen) > 2 and self._seen[1][0] <= moment - _SPAN:
            self._seen.popleft()
        since, before = self._seen[0]
        return (events - before) / max(moment - since, 1e-9)


def progress_line(counters: Counters, rate: float) -> str:
    """Return the state of a consumer in one line.

    >>> progress_line(Counters(learns=1200, forgets=3, rejected=Counter({Reason.NOT_JSON: 2}), lag=17), 400.4)
    '1,203 events, 400 per second, 2 rejected, lag 17'
    """
    counts = f"{counters.events:,} events, {rate:,.0f} per second, {counters.rejected.total():,} rejected"
    return f"{counts}, lag {counters.lag:,}"


class CountersCollector:
    """The counters as metrics; register it with a registry of prometheus-client."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def collect(self) -> "Iterator[Metric]":
        """Yield the metrics as they are now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        counters = self._counters
        events = CounterMetricFamily("unbasket_kafka_events", "Events applied.", labels=["event"])
        events.add_metric(["learn"], counters.learns)
        events.add_metric(["forget"], counters.forgets)
        yield events
        rejected = CounterMetricFamily("unbasket_kafka_rejected", "Messages that are no events.", labels=["reason"])
        for reason in Reason:
            rejected.add_metric([reason.name.lower()], counters.rejected[reason])
        yield rejected
        for name, text in (
            ("batches", "Transactions."),
            ("redelivered", "Messages that had been applied before, and were skipped."),
            ("receipts", "Receipts written to their topic."),
            ("tombstones", "Tombstones written for forgotten users."),
            ("blocked", "Batches whose forgotten bytes a reader of the database kept for longer."),
        ):
            yield CounterMetricFamily(f"unbasket_kafka_{name}", text, value=getattr(counters, name))
        yield GaugeMetricFamily("unbasket_kafka_lag", "Messages in the topic not read yet.", value=counters.lag)
