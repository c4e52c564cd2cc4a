"""Metrics: since the start for Prometheus, of the last minute for `GET /v1/stats`.

Every response is counted in a histogram with log-spaced bounds, which takes a microsecond and serves both. Labels are
path templates, never ids. Responses are counted on the event loop, events in the threads of their requests.
"""

import platform
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import accumulate
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Metric, ProcessCollector, core
from prometheus_client.registry import Collector

from unbasket.domain.results import Forgotten, Learned, Sizes
from unbasket.errors import NotReadyError
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.schemas.responses import Bucket, ModelParams, RouteStats, StatsResponse

Counts = NDArray[np.int64]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WINDOW = 60
"""Seconds that the stats look back."""
BUCKET = 2
"""Seconds per bucket of the stats."""

_BINS_PER_OCTAVE = 4  # Prometheus gets every fourth bound
_BOUNDS = [50e-6 * 2 ** (i / _BINS_PER_OCTAVE) for i in range(20 * _BINS_PER_OCTAVE + 1)]  # 50 us to 52 s


class _Histogram:
    """Counts by bin, since the start and of the last minute by bucket of two seconds. Any thread may read them."""

    def __init__(self, size: int = len(_BOUNDS) + 1) -> None:
        self._totals = [0] * size
        self._buckets: dict[int, list[int]] = {}
        self.seconds = 0.0
        self.statuses: dict[int, int] = {}

    def add(self, bin_: int) -> None:
        self._totals[bin_] += 1
        number = int(time.monotonic()) // BUCKET
        counts = self._buckets.get(number)
        if counts is None:
            recent = {past: counts for past, counts in self._buckets.items() if past >= number - WINDOW // BUCKET}
            counts = [0] * len(self._totals)
            self._buckets = {**recent, number: counts}
        counts[bin_] += 1

    def window(self, now: float) -> Counts:
        """Return a row for each bucket of the last minute, oldest first, and one for the current bucket."""
        buckets, none, current = self._buckets, [0] * len(self._totals), int(now) // BUCKET
        return np.array([buckets.get(each, none) for each in range(current - WINDOW // BUCKET, current + 1)])

    def cumulative(self) -> list[tuple[str, float]]:
        """Return cumulative counts for Prometheus."""
        bounds = [f"{bound:.6g}" for bound in _BOUNDS[::_BINS_PER_OCTAVE]] + ["+Inf"]
        totals = list(accumulate(self._totals, initial=0.0))[1:]
        return list(zip(bounds, [*totals[:-1:_BINS_PER_OCTAVE], totals[-1]], strict=True))


class Metrics:
    """The metrics of the service."""

    def __init__(self, loader: EngineLoader, others: Iterable[Collector] = ()) -> None:
        """`others` collect metrics of their own."""
        self._loader = loader
        self._routes: dict[tuple[str, str], _Histogram] = {}
        self._events = {result.value: 0 for result in Learned} | {"forgotten": 0}
        self._removed = 0
        self._applied = _Histogram(1)
        self._counting = Lock()  # of events
        self._started = time.monotonic()
        self.registry = CollectorRegistry(auto_describe=False)
        for collector in (self, *others):
            self.registry.register(collector)
        self._process = ProcessCollector(registry=self.registry)

    def observe(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count a response. `path` is a template."""
        histogram = self._routes.get((path, method))
        if histogram is None:
            histogram = self._routes[path, method] = _Histogram()
        histogram.add(bisect_left(_BOUNDS, seconds))
        histogram.seconds += seconds
        histogram.statuses[status] = histogram.statuses.get(status, 0) + 1

    def count_events(self, results: Iterable[Learned | Forgotten]) -> None:
        """Count events by their results, in any thread."""
        with self._counting:
            for result in results:
                if isinstance(result, Forgotten):
                    self._events["forgotten"] += 1
                    self._removed += result.purchases
                else:
                    self._events[result.value] += 1
                self._applied.add(0)

    def stats(self, params: ModelParams) -> StatsResponse:
        """Return the stats of the last minute, with the parameters of the model."""
        now = time.monotonic()
        span = min(max(now - self._started, 1), WINDOW + now % BUCKET)
        windows = {key: route.window(now) for key, route in list(self._routes.items())}
        events, recommendations, calls = self._applied.window(now), _Histogram().window(now), {}
        for (path, method), window in windows.items():
            count = int(window.sum())
            calls[f"{method} {path}"] = RouteStats(count, count / span, *_percentiles(window.sum(axis=0)))
            if path.endswith("/recommendations"):
                recommendations += window
        memory = [each.samples[0].value for each in self._process.collect() if "resident_memory" in each.name]
        return StatsResponse(
            **self._sizes()._asdict(),
            uptime=now - self._started,
            memory=int(sum(memory)),  # 0 where the system does not tell
            learned=sum(self._events[result.value] for result in Learned),
            forgotten=self._events["forgotten"],
            events_per_second=float(events.sum()) / span,
            recommendations_per_second=float(recommendations.sum()) / span,
            calls=calls,
            buckets=[
                Bucket(float(counts.sum()) / BUCKET, float(learned.sum()) / BUCKET, *_percentiles(counts))
                for counts, learned in zip(recommendations[:-1], events[:-1], strict=True)
            ],
            params=params,
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for the registry."""
        program = {"version": version("unbasket"), "python": platform.python_version()}
        yield core.InfoMetricFamily("unbasket_build", "The program", value=program)
        ready = float(self._loader.ready)
        yield core.GaugeMetricFamily("unbasket_ready", "1 if the database is loaded, else 0", value=ready)
        for name, value in self._sizes()._asdict().items():
            yield core.GaugeMetricFamily(f"unbasket_{name}", _SIZES[name], value=value)
        events = core.CounterMetricFamily("unbasket_events", "Events by result", labels=["result"])
        for result, count in self._events.items():
            events.add_metric([result], count)
        yield events
        yield core.CounterMetricFamily("unbasket_removed_purchases", "Purchases forgotten", value=self._removed)
        name, labels = "unbasket_http_request_duration_seconds", ["route", "method"]
        seconds = core.HistogramMetricFamily(name, "Time from a request to its response", labels=labels)
        requests = core.CounterMetricFamily("unbasket_http_requests", "Requests by status", labels=[*labels, "status"])
        for key, route in list(self._routes.items()):
            seconds.add_metric(list(key), route.cumulative(), route.seconds)
            for status, count in list(route.statuses.items()):
                requests.add_metric([*key, str(status)], count)
        yield seconds
        yield requests

    def _sizes(self) -> Sizes:
        try:
            return self._loader.engine.sizes()
        except NotReadyError:
            return Sizes(0, 0, 0, 0, 0)


_SIZES = {
    "users": "Users stored",
    "items": "Items in at least one basket",
    "baskets": "Baskets stored",
    "purchases": "Items of all baskets",
    "entries": "Nonzero weights of all user vectors: the size of the index",
}


def _percentiles(counts: Counts) -> list[float | None]:
    """Interpolate the seconds below which 50, 90 and 99 % lie; None without counts."""
    total = counts.sum()
    if not total:
        return [None] * 3
    wanted = np.nextafter(total * np.array([0.5, 0.9, 0.99]), 0)  # at the end of a bin, not after the empty ones
    found: list[float | None] = np.interp(wanted, [0, *counts.cumsum()], [0.0, *_BOUNDS, _BOUNDS[-1]]).tolist()
    return found
