"""Fixtures of the engine's tests."""

import pytest
from tests.engine.small_shop import small_shop

import unbasket as ub


@pytest.fixture
def shop() -> ub.Recommender:
    return small_shop()
