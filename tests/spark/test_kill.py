"""Drivers, executors and workers that are killed: every event is applied exactly once.

A scenario of processes, in no module's test.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.laws import ShopEvent, apply
from tests.spark.driver import PARAMS, POINTS, start
from tests.spark.scoring import vectors_in
from tests.spark.shop import Shop, random_shop_events

from unbasket import Recommender
from unbasket.errors import SparkError
from unbasket.spark import State, histories, settle

pytestmark = pytest.mark.slow
LOCAL = "local[2]"


class Scenario:
    """A shop, its stream's folder, and an engine with the same events."""

    def __init__(self, folder: Path, files: int, seed: int = 5) -> None:
        self.folder, self.chance, self.rec = folder, random.Random(seed), Recommender(PARAMS)
        shop, users = Shop(folder / "events"), [f"user {i}" for i in range(50)]
        events = random_shop_events(self.chance, users, ["a", "b", "c", "d", "e", "f"], ["p", "q", "r", "s"])
        for _ in range(files):
            batch: list[ShopEvent] = list(islice(events, 60))
            shop.write(batch)
            apply(self.rec, batch)

    @property
    def batch(self) -> int:
        """The last batch that is committed."""
        try:
            return State.read(str(self.folder / "checkpoint")).batch
        except SparkError:
            return -1

    @contextmanager
    def driver(self, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
        """Start a driver, and kill it at the end with all of its child processes."""
        command = [sys.executable, str(Path(__file__).with_name("driver.py")), str(self.folder), *map(str, arguments)]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def wait_for(self, driver: subprocess.Popen[bytes], batch: int) -> None:
        """Wait until a batch is committed."""
        end = time.monotonic() + 300
        while self.batch < batch:
            assert driver.poll() is None, self.log()
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)

    def log(self) -> str:
        return (self.folder / "log").read_text()[-3000:]

    def check(self, spark: SparkSession) -> None:
        """Finish the stream in this process, and compare all with the engine."""
        settle(start(spark, self.folder))
        state, expected = State.read(str(self.folder / "checkpoint")), {u: self.rec.vector(u) for u in self.rec.users()}
        assert vectors_in(histories(spark, state.folder.checkpoint), PARAMS) == expected
        assert set(state.folder.names()) == {state.manifest, *state.files}, "a stray file"
        sink: dict[Any, Any] = {}
        for file in sorted((self.folder / "sink").iterdir(), key=lambda file: int(file.name)):
            for user, change, items, weights in json.loads(file.read_text()):
                if change != "rejected":
                    sink.pop(user, None)
                if change == "updated":
                    sink[user] = dict(zip(items, weights, strict=True))
        assert sink == expected


@pytest.mark.parametrize("run", range(4))
def test_drivers_killed_at_random(spark: SparkSession, tmp_path: Path, run: int) -> None:
    """Each of 5 drivers resumes the stream of the previous one; the last is the session of the other tests."""
    scenario = Scenario(tmp_path, files=7, seed=run)
    for _ in range(5):
        with scenario.driver(LOCAL) as driver:
            scenario.wait_for(driver, scenario.batch + 1)
            time.sleep(scenario.chance.random())
    scenario.check(spark)


def test_drivers_killed_at_chosen_points(spark: SparkSession, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, files=2 * len(POINTS))
    for number, point in enumerate(POINTS):
        with scenario.driver(LOCAL, point, 2 * number) as driver:
            assert driver.wait(300) == -signal.SIGKILL, scenario.log()
    scenario.check(spark)


class Cluster:
    """A standalone master and two workers with one core each, as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.master = f"spark://127.0.0.1:{self._port}"
        self._processes = [self._start("master.Master", "--port", str(self._port), "--webui-port", "0")]
        self.workers = [self.worker(), self.worker()]

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker."""
        work = self._folder / "workers"
        options = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work))
        return self._start("worker.Worker", *options, self.master)

    def _start(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        command = [
            str(home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{name}",
            "--host",
            "127.0.0.1",
            *options,
        ]
        environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        with (self._folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)

    def executors(self) -> list[int]:
        """Return the processes of executors, which workers start."""
        workers = {process.pid for process in self.workers}
        return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if _parent(stat) in workers]

    def stop(self) -> None:
        """Kill all processes; executors end with their worker."""
        for process in [*self.workers, *self._processes]:
            kill(process)


def _parent(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:  # the process has just ended
        return 0


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_cluster_that_loses_executors_a_worker_and_drivers(spark: SparkSession, tmp_path: Path) -> None:
    """State and events are in a folder that all share. Five executors die in batches, then a worker, then a driver."""
    scenario, cluster = Scenario(tmp_path, files=16), Cluster(tmp_path)
    try:
        with scenario.driver(cluster.master) as driver:
            for _ in range(5):
                scenario.wait_for(driver, scenario.batch + 1)
                time.sleep(scenario.chance.random())
                os.kill(scenario.chance.choice(cluster.executors()), signal.SIGKILL)
            scenario.wait_for(driver, scenario.batch + 1)
            kill(cluster.workers[0])
            scenario.wait_for(driver, scenario.batch + 1)
            cluster.workers[0] = cluster.worker()
            scenario.wait_for(driver, scenario.batch + 1)
        assert len(cluster.executors()) in range(3)
        with scenario.driver(cluster.master) as driver:
            scenario.wait_for(driver, 15)
    finally:
        cluster.stop()
    scenario.check(spark)
