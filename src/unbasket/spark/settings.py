"""A Spark session with the settings that docs/spark.md relies on for erasure."""

import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from unbasket.errors import SparkError

# Settings of a query, for any session: short logs of offsets, and shuffle files that are removed with their job.
STREAM_SETTINGS = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
}

# Settings of a query whose checkpoint is on a local disk: Spark's default manager runs `chmod` and `readlink` as
# processes, 30 in each batch.
LOCAL_SETTINGS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}

# Settings for a new session only.
_SESSION_SETTINGS = {
    "spark.driver.extraJavaOptions": "-Xss8m",  # Spark parses Python's tracebacks with a recursive regular expression
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
    master: str | None = None, *, work: str | None = None, settings: dict[str, str] | None = None
) -> SparkSession:
    """Create a session for `maintain` and `recommend`; `settings` override the defaults.

    `work` is a folder for Spark's temporary files only: it is emptied first, since a killed driver may have left data.
    """
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise SparkError(
            "Spark needs Java 17 or newer, which was not found. On Debian: apt install openjdk-17-jre-headless; "
            "on macOS: brew install openjdk@17. If it is installed, set JAVA_HOME to its folder"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run the python3 in the path
    chosen = STREAM_SETTINGS | _SESSION_SETTINGS
    if master is not None:
        chosen["spark.master"] = master
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
        Path(work).mkdir(parents=True)
        chosen["spark.local.dir"] = work
    return SparkSession.builder.appName("unbasket").config(map={**chosen, **(settings or {})}).getOrCreate()
