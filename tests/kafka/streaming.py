"""`unbasket spark run --kafka` as a process, which may kill itself at a chosen point."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.kafka.broker import ROOT, Broker, wait_until

from unbasket.errors import SparkError
from unbasket.spark import State

CONNECTOR = ROOT / "build" / "spark-kafka"
_QUICK_START = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
}
_DIE_AT = """
import os, signal, sys
from tests.spark.driver import die_at
die_at(sys.argv.pop(1), int(sys.argv.pop(1)), lambda: os.killpg(0, signal.SIGKILL))
from unbasket.cli import app
app()
"""


def connector_jars() -> str:
    """Return the jars of Spark's connector, for the setting spark.jars."""
    found = sorted(map(str, CONNECTOR.glob("*.jar")))
    assert found, "the jars of Spark's connector are missing: run `make test-kafka`, which fetches them"
    return ",".join(found)


def arguments(broker: Broker, topic: str, checkpoint: Path, *options: object) -> list[str]:
    """Return the arguments of a command that applies a topic to a checkpoint."""
    source = ("--kafka", "--brokers", broker.address, "--topic", topic, "--jars", CONNECTOR)
    sizes = ("--shards", 2, "--master", "local[2]")
    return [str(part) for part in ("spark", "run", "--checkpoint", checkpoint, *source, *sizes, *options)]


def last_batch(checkpoint: Path) -> int:
    """Return the last batch that is committed, or -1."""
    try:
        return State.read(str(checkpoint)).batch
    except SparkError:
        return -1


class Streaming:
    """A driver. With a point, it kills itself there, in or after that batch."""

    def __init__(self, folder: Path, *command: str, die_at: tuple[str, int]) -> None:
        self._log = folder / "driver.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _DIE_AT, *map(str, die_at), *command],
                env={**os.environ, **_QUICK_START},
                start_new_session=True,
                stdout=log,
                stderr=log,
            )

    def wait_for(self, checkpoint: Path, batch: int) -> None:
        """Wait until a batch is committed."""

        def is_committed() -> bool:
            assert self._process.poll() is None, self.log()
            return last_batch(checkpoint) >= batch

        wait_until(is_committed, 300)

    def kill(self) -> None:
        """Kill the driver with all of its child processes."""
        assert self._process.poll() is None, self.log()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def died(self) -> None:
        """Wait until the driver has killed itself."""
        assert self._process.wait(300) == -signal.SIGKILL, self.log()

    def log(self) -> str:
        return self._log.read_text()[-3000:]
