"""A Spark session whose settings keep the promises of docs/spark.md."""

import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from unbasket.errors import SparkError

_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"

# What a query needs, settable on any session. Old versions of the state are removed with the second batch after them.
# The files of the state store hold nothing that was deleted (compaction at every commit, no changelog) and nothing
# compressed, so that an audit can read them. Shuffle files are removed with the job that wrote them.
STATE_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "0",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
    f"{_ROCKSDB}.compactOnCommit": "true",
    f"{_ROCKSDB}.changelogCheckpointing.enabled": "false",
    f"{_ROCKSDB}.compression": "none",
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
}

# What only a new session can be given.
_SESSION_SETTINGS = {
    "spark.driver.extraJavaOptions": "-Xss8m",  # Spark reads Python's tracebacks by a recursive regular expression
    "spark.cleaner.periodicGC.interval": "5s",  # for the shuffle files of jobs that were interrupted
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def session(
    master: str | None = None, *, work: str | None = None, partitions: int = 2, settings: dict[str, str] | None = None
) -> SparkSession:
    """A session for `maintain` and `recommend`; `settings` of your own override ours.

    `work` is a folder for Spark's temporary files and nothing else: it is emptied first, since a killed driver may have
    left data there.
    """
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run whatever python3 is in the path
    builder = SparkSession.builder.appName("unbasket")
    if master is not None:
        builder = builder.master(master)
    chosen = {**STATE_SETTINGS, **_SESSION_SETTINGS, "spark.sql.shuffle.partitions": str(partitions)}
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
        Path(work).mkdir(parents=True)
        chosen["spark.local.dir"] = work
    for name, value in (chosen | (settings or {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_java() -> None:
    """Raise an error that says how to install Java, if there is none."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise SparkError(
            "Spark needs Java 17 or newer, and there is none. On Debian: apt install openjdk-17-jre-headless; "
            "on macOS: brew install openjdk@17. If you have one, set JAVA_HOME to its folder"
        )
