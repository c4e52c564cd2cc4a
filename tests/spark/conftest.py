"""One Spark session for all tests, since its start takes seconds."""

import random
from collections.abc import Iterator
from itertools import islice

import pytest
from pyspark.sql import SparkSession
from tests.laws import apply
from tests.spark.driver import QUICK_START, TIMEOUTS
from tests.spark.scoring import PARAMS
from tests.spark.shop import random_events

from unbasket import Recommender
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


@pytest.fixture(scope="module")
def engine() -> Recommender:
    """Fit many users with the same few baskets, for ties of distances and scores; one item is in most."""
    rec = Recommender(PARAMS)
    users, items = [f"user {i}" for i in range(200)], [*range(12), 3, 3, 3]
    apply(rec, list(islice(random_events(random.Random(8), users, ["a", "b"], items), 1500)))
    rec.learn("long", range(12), basket="all")
    return rec
