"""A driver that is killed repeatedly, with its executors, applies every event exactly once.

A scenario of processes, in no module's test.
"""

import os
import random
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.laws import Event, Learn, apply
from tests.spark.driver import PARAMS, start
from tests.spark.shop import Shop, random_events, vectors_in

from unbasket import Recommender
from unbasket.errors import SparkError
from unbasket.spark import Table, settle

KILLS = 6
FILES = 2  # read by a driver before it is killed


@pytest.mark.slow
def test_killed_drivers_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Each driver resumes the stream of the previous one; the last is the session of the other tests."""
    chance, users = random.Random(5), [f"user {i}" for i in range(50)]
    events = random_events(chance, users, ["a", "b", "c", "d", "e", "f", "g"], ["p", "q", "r", "s"])
    engine, shop = Recommender(PARAMS), Shop(tmp_path / "events")
    for number in range((KILLS + 1) * FILES):
        batch: list[Event] = [*islice(events, 60), Learn("counter", (f"item {number}",), f"basket {number}", None)]
        shop.write(batch)
        apply(engine, batch)
    for kill in range(KILLS):
        with running_driver(tmp_path) as driver:
            wait_for(driver, tmp_path, (kill + 1) * FILES - 1)
            time.sleep(chance.random())
    settle(start(spark, tmp_path))
    assert vectors_in(tmp_path / "table") == {user: engine.vector(user) for user in engine.users()}


class running_driver:  # noqa: N801
    """A driver that is killed at the end, with all of its child processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(Path(__file__).with_name("driver.py")), str(self._folder)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)
        return self._process

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def wait_for(driver: subprocess.Popen[bytes], folder: Path, batch: int) -> None:
    """Wait until the table has reached a batch, while the next one is running."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            if Table(str(folder / "table")).batch >= batch:
                return
        except SparkError:
            pass
        assert driver.poll() is None, (folder / "log").read_text()[-2000:]
        time.sleep(0.05)
    raise AssertionError(f"batch {batch} was not reached: {(folder / 'log').read_text()[-2000:]}")
