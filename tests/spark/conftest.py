"""One Spark session for all tests, since its start takes seconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.spark.driver import QUICK_START, TIMEOUTS

from unbasket.spark import session


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create the folder of Spark's temporary files."""
    return str(tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="session")
def spark(work: str) -> Iterator[SparkSession]:
    running = session("local[2]", work=work, settings={"spark.driver.memory": "2g", **QUICK_START, **TIMEOUTS})
    yield running
    running.stop()
