"""Real data as fixtures."""

import pytest

from unbasket.datasets import load
from unbasket.evaluation.protocols import Holdout


def held_out(name: str) -> Holdout:
    dataset = load(name)
    assert dataset.future is not None
    return Holdout(dataset.history, dataset.future)


@pytest.fixture(scope="session")
def journey() -> Holdout:
    """Return The Complete Journey."""
    return held_out("completejourney")


@pytest.fixture(scope="session")
def tafeng() -> Holdout:
    """Return Ta-Feng, for tests marked with `needs`."""
    return held_out("tafeng")
