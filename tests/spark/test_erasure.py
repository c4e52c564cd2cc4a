"""Forgotten data is erased from every file of the job within the documented number of batches.

A scenario across stream, settings, table and residue.
"""

import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.laws import Event, Forget, Learn
from tests.spark.shop import Shop

from unbasket import Params
from unbasket.spark import ERASED_WITHIN, audit, event_schema, maintain, read_files

USERS = [f"marked-user-{number}" for number in range(40)]
MARKERS = ["marked-user-1", "marked-item"]


def test_markers_are_erased_within_the_bound(spark: SparkSession, work: str, tmp_path: Path) -> None:
    """Some users are forgotten, and an item of all others, with markers in the ids; then the stream idles."""
    shop = Shop(tmp_path / "events")
    shop.write([Learn(user, (f"marked-item-{user}", "milk"), f"b{i}", i) for i in range(5) for user in USERS])
    folders = [str(tmp_path / "checkpoint"), str(tmp_path / "table"), work]
    events = read_files(spark, str(shop.folder), event_schema(), most=1)
    query = maintain(events, Params(alpha=0.8), checkpoint=folders[0]).into_table(folders[1], every="1 second")
    try:
        wait_for(query, 2)
        assert {finding.marker for finding in audit(folders, MARKERS)[1]} == set(MARKERS)  # the audit can see them
        shop.write(forgets())
        forgotten = batch_of_second_file(query)
        start = time.monotonic()
        while findings := audit(folders, MARKERS)[1]:
            assert newest(query) <= forgotten + ERASED_WITHIN, findings
            time.sleep(0.2)
        print(f"erased {newest(query) - forgotten} batches, {time.monotonic() - start:.1f} s later")  # noqa: T201
        searched, findings = audit(folders, ["milk"])
        assert searched > 10
        assert findings  # what remains is still there
    finally:
        query.stop()


def forgets() -> list[Event]:
    marked = [Forget(user, None, None) for user in USERS if MARKERS[0] in user]
    return [*marked, *(Forget(user, None, f"marked-item-{user}") for user in USERS if MARKERS[0] not in user)]


def newest(query: StreamingQuery) -> int:
    """Return the number of the last finished batch."""
    assert query.isActive, query.exception()
    return max((progress.batchId for progress in query.recentProgress), default=-1)


def wait_for(query: StreamingQuery, batch: int) -> None:
    while newest(query) < batch:
        time.sleep(0.1)


def batch_of_second_file(query: StreamingQuery) -> int:
    while True:
        full = [progress.batchId for progress in query.recentProgress if progress.numInputRows]
        if len(full) == 2:
            return int(full[1])
        wait_for(query, newest(query) + 1)
