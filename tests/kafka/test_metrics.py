"""Counters: the rate, and what Prometheus reads."""

from collections import Counter

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from unbasket.domain.rejection import Reason
from unbasket.kafka import Counters, CountersCollector
from unbasket.kafka.metrics import Rate


def test_the_rate_is_that_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    rate = Rate()
    now = 102.0
    assert rate.now(10) == 5
    for second in range(103, 120):
        now = float(second)
        steady = rate.now(10 + 7 * (second - 102))
    assert steady == pytest.approx(7)


def test_metrics_are_the_counters_of_the_moment() -> None:
    counters, registry = Counters(), CollectorRegistry()
    registry.register(CountersCollector(counters))
    counters.learns, counters.forgets, counters.lag = 5, 2, 17
    counters.rejected = Counter({Reason.NOT_JSON: 3})
    text = generate_latest(registry).decode()
    assert 'unbasket_kafka_events_total{event="learn"} 5.0' in text
    assert 'unbasket_kafka_events_total{event="forget"} 2.0' in text
    assert 'unbasket_kafka_rejected_total{reason="not_json"} 3.0' in text
    assert 'unbasket_kafka_rejected_total{reason="no_key"} 0.0' in text
    assert "unbasket_kafka_lag 17.0" in text
    assert counters.events == 7
