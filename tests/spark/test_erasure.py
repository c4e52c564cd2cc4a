"""Forgotten data is erased from every file of the job within the documented number of batches.

A scenario across stream, settings, shard and residue.
"""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.laws import Allow, Forget, Learn, Rename, ShopEvent, Suppress
from tests.spark.shop import Shop

from unbasket import Params
from unbasket.residue import audit
from unbasket.spark import State, event_schema, maintain, read_files, watch

USERS = [f"marked-user-{number}" for number in range(40)]
MARKERS = ["marked-user-1", "marked-item", "marked-wish"]
STRIPES = 4


@pytest.mark.parametrize("run", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 20))])
def test_markers_are_erased_within_the_bound(spark: SparkSession, work: str, tmp_path: Path, run: int) -> None:
    """Some users are forgotten or renamed, and an item of all others, with markers in the ids; then it idles."""
    shop = Shop(tmp_path / "events")
    learns = [Learn(user, (f"marked-item-{user}", "milk"), f"b{i}", i) for i in range(5) for user in USERS]
    shop.write([*learns, *(Suppress(user, "marked-wish") for user in USERS if MARKERS[0] in user)])
    folders = [str(tmp_path / "checkpoint"), work]
    events = read_files(spark, str(shop.folder), event_schema(), most=1)
    stream = maintain(events, Params(alpha=0.8), checkpoint=folders[0], shards=1 + run % 3, stripes=STRIPES)
    query = stream.into(lambda changes, _: changes.count(), every="1 second")
    try:
        wait_for(query, 1 + run % STRIPES)
        assert {finding.marker for finding in audit(folders, MARKERS)[1]} == set(MARKERS)  # the audit can see them
        shop.write(forgets())
        forgotten = batch_of_forgets(query)
        start = time.monotonic()
        while True:
            done = newest(query)
            findings = audit(folders, MARKERS)[1]
            if not findings:
                break
            assert done < forgotten + STRIPES - 1, findings
            time.sleep(0.1)
        print(f"erased {newest(query) - forgotten} batches, {time.monotonic() - start:.1f} s later")  # noqa: T201
        assert audit(folders, ["milk"])[1]  # what remains is still there
        assert State.read(folders[0]).users == len(USERS) - 9
    finally:
        query.stop()


def forgets() -> list[ShopEvent]:
    """Return events after which no marker remains: nine users are forgotten, and two renamed."""
    marked = [user for user in USERS if MARKERS[0] in user]
    return [
        *(Forget(user, None, None) for user in marked[:9]),
        *(Forget(user, None, f"marked-item-{user}") for user in USERS),
        *(Allow(user, "marked-wish") for user in marked),
        *(Rename(user, user.removeprefix("marked-")) for user in marked[9:]),
    ]


def newest(query: StreamingQuery) -> int:
    """Return the number of the last finished batch."""
    assert query.isActive, query.exception()
    return max((progress.batchId for progress in query.recentProgress), default=-1)


def wait_for(query: StreamingQuery, batch: int) -> None:
    while newest(query) < batch:
        time.sleep(0.1)


def batch_of_forgets(query: StreamingQuery) -> int:
    """Wait for the second batch with events; return its number."""
    full = (report.batch for report in watch(query) if report is not None and report.events)
    next(full)
    return next(full)
