"""One Spark session for all tests: to start one takes seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.spark.driver import PATIENCE, QUICK_START

from unbasket.spark import session


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of Spark's temporary files."""
    return str(tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="session")
def spark(work: str) -> Iterator[SparkSession]:
    running = session("local[2]", work=work, settings={"spark.driver.memory": "2g", **QUICK_START, **PATIENCE})
    yield running
    running.stop()
