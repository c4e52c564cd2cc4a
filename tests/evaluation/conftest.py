"""Real data as a fixture."""

import pytest

from unbasket.datasets import load
from unbasket.evaluation.protocols import Holdout


@pytest.fixture(scope="session")
def tafeng() -> Holdout:
    dataset = load("tafeng")
    assert dataset.future is not None
    return Holdout(dataset.history, dataset.future)
