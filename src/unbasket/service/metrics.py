"""How the service is doing: for Prometheus since the start, for people during the last minute.

Every answer is counted in a histogram with log-spaced bounds, which takes a microsecond and serves both. Labels are
route templates, never ids. What is counted is counted on the event loop: one thread.
"""

import platform
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from resource import getpagesize

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest

from unbasket.domain.results import Forgotten, Learned, Sizes
from unbasket.errors import NotReadyError
from unbasket.service.engine_loader import Shop

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WINDOW = 60
"""Seconds that the figures for people look back."""
BUCKET = 2
"""Seconds to a point of their charts."""

_SHADES = 4  # bounds per doubling; Prometheus gets every fourth
_BOUNDS = [50e-6 * 2 ** (i / _SHADES) for i in range(20 * _SHADES + 1)]  # 50 us to 52 s


class CallFigures(msgspec.Struct, frozen=True):
    """One call during the last minute; seconds, None without an answer in that time."""

    count: int
    rate: float
    p50: float | None
    p90: float | None
    p99: float | None


class Bucket(msgspec.Struct, frozen=True):
    """Two seconds that are over: recommendations and events per second, and the seconds that recommendations took."""

    recommendations_per_second: float
    events_per_second: float
    p50: float | None
    p90: float | None
    p99: float | None


class Figures(msgspec.Struct, frozen=True):
    """The service during the last minute, and its size now. Calls are named "GET /v1/items"; buckets of two seconds
    come oldest first.
    """

    uptime: float
    memory: int
    users: int
    baskets: int
    items: int
    purchases: int
    entries: int
    learned: int
    forgotten: int
    events_per_second: float
    recommendations_per_second: float
    calls: dict[str, CallFigures]
    buckets: list[Bucket]


class _Second:
    """What happened within one second."""

    __slots__ = ("counts", "number")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.counts = [0] * size


class _Window:
    """Counts of the last minute, a slot per second: old ones are overwritten when their turn comes."""

    _SLOTS = WINDOW + BUCKET  # a minute of whole buckets, and the bucket that is being filled

    def __init__(self, size: int) -> None:
        self._size = size
        self._seconds = [_Second(-self._SLOTS, size) for _ in range(self._SLOTS)]

    def add(self, place: int, amount: int = 1) -> None:
        number = int(time.monotonic())
        second = self._seconds[number % self._SLOTS]
        if second.number != number:
            second.number, second.counts = number, [0] * self._size
        second.counts[place] += amount

    def total(self) -> list[int]:
        oldest = int(time.monotonic()) - WINDOW
        return _added(self._size, (second.counts for second in self._seconds if second.number > oldest))

    def buckets(self, now: float) -> list[list[int]]:
        """Counts of each two seconds of the minute before the bucket that is being filled, oldest first."""
        end = int(now) // BUCKET * BUCKET
        return [
            _added(self._size, (each.counts for each in self._seconds if first <= each.number < first + BUCKET))
            for first in range(end - WINDOW, end, BUCKET)
        ]


class _Call:
    """The answers to one call."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.seconds = 0.0
        self.statuses: dict[int, int] = {}
        self.window = _Window(len(_BOUNDS) + 1)

    def add(self, status: int, seconds: float) -> None:
        place = bisect_left(_BOUNDS, seconds)
        self.counts[place] += 1
        self.seconds += seconds
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.window.add(place)

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts, as Prometheus has them."""
        counts, sums, total = list(self.counts), [], 0
        for place, count in enumerate(counts):
            total += count
            if place == len(_BOUNDS):
                sums.append(("+Inf", float(total)))
            elif place % _SHADES == 0:
                sums.append((f"{_BOUNDS[place]:.6g}", float(total)))
        return sums

    def figures(self, span: float) -> CallFigures:
        counts = self.window.total()
        total = sum(counts)
        return CallFigures(total, total / span, *_percentiles(counts))


class Metrics:
    """All that is counted."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._calls: dict[tuple[str, str], _Call] = {}
        self._events = {result.value: 0 for result in Learned} | {"forgotten": 0}
        self._removed = 0
        self._window = _Window(1)
        self._started = time.monotonic()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def observe(self, call: str, method: str, status: int, seconds: float) -> None:
        """Count an answer. `call` is a route template."""
        found = self._calls.get((call, method))
        if found is None:
            found = self._calls[call, method] = _Call()
        found.add(status, seconds)

    def happened(self, results: Iterable[Learned | Forgotten]) -> None:
        """Count events, by what they did."""
        for result in results:
            if isinstance(result, Forgotten):
                self._events["forgotten"] += 1
                self._removed += result.purchases
            else:
                self._events[result.value] += 1
            self._window.add(0)

    def exposition(self) -> bytes:
        """The text that Prometheus reads; see CONTENT_TYPE. Slow enough for a thread."""
        return generate_latest(self._registry)

    def figures(self) -> Figures:
        """The last minute, for GET /v1/stats."""
        uptime = time.monotonic() - self._started
        span = min(max(uptime, 1), WINDOW)
        calls = {f"{method} {call}": found.figures(span) for (call, method), found in list(self._calls.items())}
        sizes = self._sizes()
        return Figures(
            uptime=uptime,
            memory=resident_memory(),
            users=sizes.users,
            baskets=sizes.baskets,
            items=sizes.items,
            purchases=sizes.purchases,
            entries=sizes.entries,
            learned=sum(self._events[result.value] for result in Learned),
            forgotten=self._events["forgotten"],
            events_per_second=self._window.total()[0] / span,
            recommendations_per_second=sum(figures.rate for call, figures in calls.items() if _recommends(call)),
            calls=calls,
            buckets=self._buckets(),
        )

    def _buckets(self) -> list[Bucket]:
        now = time.monotonic()
        calls = [found.window.buckets(now) for (call, _), found in list(self._calls.items()) if _recommends(call)]
        found = []
        for number, [events] in enumerate(self._window.buckets(now)):
            counts = _added(len(_BOUNDS) + 1, (buckets[number] for buckets in calls))
            found.append(Bucket(sum(counts) / BUCKET, events / BUCKET, *_percentiles(counts)))
        return found

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for."""
        yield InfoMetricFamily(
            "unbasket_build",
            "The program",
            value={"version": version("unbasket"), "python": platform.python_version()},
        )
        ready = GaugeMetricFamily("unbasket_ready", "1 if questions are answered, 0 while loading")
        ready.add_metric([], float(self._shop.ready))
        yield ready
        for name, value in self._sizes()._asdict().items():
            yield GaugeMetricFamily(f"unbasket_{name}", _SIZES[name], value=value)
        events = CounterMetricFamily("unbasket_events", "Learned and forgotten, by what it did", labels=["result"])
        for result, count in self._events.items():
            events.add_metric([result], count)
        yield events
        yield CounterMetricFamily("unbasket_removed_purchases", "Purchases forgotten", value=self._removed)
        yield from self._answers()

    def _answers(self) -> Iterator[Metric]:
        labels = ["call", "method"]
        seconds = HistogramMetricFamily("unbasket_answer_seconds", "Time from a request to its answer", labels=labels)
        answers = CounterMetricFamily("unbasket_answers", "Answers by status", labels=[*labels, "status"])
        for key, call in list(self._calls.items()):
            seconds.add_metric(list(key), call.buckets(), call.seconds)
            for status, count in list(call.statuses.items()):
                answers.add_metric([*key, str(status)], count)
        yield seconds
        yield answers

    def _sizes(self) -> Sizes:
        try:
            return self._shop.engine.sizes()
        except NotReadyError:
            return Sizes(0, 0, 0, 0, 0)


_SIZES = {
    "users": "Users held",
    "items": "Items that somebody has",
    "baskets": "Baskets held",
    "purchases": "Items of baskets held",
    "entries": "Weights of items in users' vectors: the size of the index",
}


def resident_memory() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()
    except OSError:
        return 0


def _recommends(call: str) -> bool:
    return call.endswith("/recommendations")


def _added(size: int, parts: Iterable[list[int]]) -> list[int]:
    """Counts of the same places, added up."""
    return [sum(column) for column in zip([0] * size, *parts, strict=True)]


def _percentiles(counts: list[int]) -> Iterator[float | None]:
    total = sum(counts)
    return (_percentile(counts, total, part) for part in (0.5, 0.9, 0.99))


def _percentile(counts: list[int], total: int, part: float) -> float | None:
    """The value below which this part of all lies, as if values were spread evenly between bounds."""
    wanted, below = part * total, 0
    for place, count in enumerate(counts):
        if count and below + count >= wanted:
            low = _BOUNDS[place - 1] if place else 0.0
            high = _BOUNDS[min(place, len(_BOUNDS) - 1)]
            return low + (high - low) * (wanted - below) / count
        below += count
    return None
