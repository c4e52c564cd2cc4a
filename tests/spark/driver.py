"""A process that runs a stream until it is killed: python driver.py FOLDER MASTER [POINT BATCH].

With a point, it kills itself there, in or after that batch.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from unbasket import Params
from unbasket.files import write
from unbasket.spark import event_schema, maintain, read_files, session
from unbasket.spark.batch import Maintainer
from unbasket.spark.state import State
from unbasket.spark.storage import Folder

# Java's fast compiler only: no test runs long enough for the optimizing one to pay off.
QUICK_START = {"spark.driver.extraJavaOptions": "-Xss8m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

# A busy machine is not a failure: Spark's default timeouts are 15 and 120 seconds.
TIMEOUTS = {"spark.python.authenticate.socketTimeout": "600s", "spark.network.timeout": "600s"}

PARAMS = Params(group_size=3, basket_decay=0.9, group_decay=0.7, alpha=0.8)


def start(spark: SparkSession, folder: Path) -> StreamingQuery:
    """Start or resume the stream of a folder's events; the changes of each batch go into a file with its number."""
    (folder / "sink").mkdir(exist_ok=True)

    def sink(changes: DataFrame, batch: int) -> None:
        rows = [(row.user, row.change, row["items"], row.weights) for row in changes.collect()]
        if rows:
            write(folder / "sink" / str(batch), json.dumps(sorted(rows)).encode())

    events = read_files(spark, str(folder / "events"), event_schema(), most=1)
    return maintain(events, PARAMS, checkpoint=str(folder / "checkpoint")).into(sink, every="0 seconds")


POINTS: dict[str, tuple[type, str, bool]] = {
    "before the tasks": (Maintainer, "_update", False),
    "after the tasks": (Maintainer, "_update", True),
    "before the manifest": (Folder, "create", False),
    "after the manifest": (State, "commit", True),
    "before the sink": (State, "clean", True),
    "after the sink": (Maintainer, "__call__", True),
}
"""A function, and whether to die after it."""


def die_at(point: str, batch: int, die: Callable[[], object]) -> Callable[[], None]:
    """Call `die` at a point in this batch or a later one. Returns a function that undoes this."""
    owner, name, after = POINTS[point]
    function, begun = vars(owner)[name], vars(Maintainer)["__call__"]
    reached: list[int] = []

    def call(self: Any, *arguments: Any) -> Any:
        if reached and not after:
            die()
        result = function(self, *arguments)
        if reached and after:
            die()
        return result

    def begin(self: Any, events: DataFrame, number: int) -> None:
        reached.extend([number] if number >= batch else [])
        (call if name == "__call__" else begun)(self, events, number)

    setattr(owner, name, call)
    setattr(Maintainer, "__call__", begin)  # noqa: B010

    def undo() -> None:
        setattr(Maintainer, "__call__", begun)  # noqa: B010
        setattr(owner, name, function)

    return undo


def main(folder: Path, master: str, *where: str) -> None:
    spark = session(master, work=str(folder / "work"), settings={**QUICK_START, **TIMEOUTS})
    if where:
        die_at(where[0], int(where[1]), lambda: os.killpg(0, signal.SIGKILL))
    start(spark, folder).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
