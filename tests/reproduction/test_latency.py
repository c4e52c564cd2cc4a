"""Latency: every event is undone, and end-to-end times include the recommendation."""

import polars as pl
import pytest

from unbasket.domain.results import Learned
from unbasket.engine.recommender import Recommender
from unbasket.reproduction import latency
from unbasket.reproduction.workloads import Settings

pytestmark = pytest.mark.usefixtures("data")


def run() -> pl.DataFrame:
    return pl.DataFrame(latency.run("tafeng", Settings(latency_events=20), lambda *_: None))


def test_updates_and_recommendations_are_timed() -> None:
    frame = run()
    assert frame["event"].to_list() == ["learn", "forget"]
    assert frame["users"].to_list() == [40, 40]
    assert (frame["end_to_end_p50_ms"] > frame["update_p50_ms"]).all()
    assert (frame["update_p99_ms"] >= frame["update_p50_ms"]).all()
    assert frame["same_digest_afterwards"].all()
    section = latency.present(frame)
    assert section.tables[0].rows[0][-1] == "yes"
    assert section.findings[0] == ("When every event has been undone, the digest is as before.", True)


def test_a_basket_that_is_not_restored_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recommender, "learn", lambda *_, **__: Learned.ADDED)
    monkeypatch.setattr(latency, "_forget_one", lambda *_: (1.0, 2.0))
    frame = pl.DataFrame(latency.run("tafeng", Settings(latency_events=1), lambda *_: None))
    assert not frame["same_digest_afterwards"].any()
    section = latency.present(frame)
    assert section.tables[0].rows[0][-1] == "NO"
    assert section.findings[0] == ("When every event has been undone, the digest is NOT as before.", False)
