"""The laws, on the durable engine: real files, closed and opened again between events. A scenario of all modules."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.laws import (
    NUMBERED,
    PARAMS,
    SPELLED_IDS,
    TEXT_IDS,
    ShopEvent,
    apply,
    law_of_equality,
    law_of_retraining,
    law_of_the_oracle,
    shards_are_small,
    short_histories_count_as_long,
)
from tests.oracle import Oracle

import unbasket as ub

__all__ = ["shards_are_small", "short_histories_count_as_long"]  # fixtures that all tests here use

SEQUENCES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
REOPENED = st.sets(st.integers(0, 30))
STEPS = st.sampled_from([1, 3, 2**20])


def keep_the_laws(params: ub.Params, events: list[ShopEvent], reopened: set[int], step: int, seed: int) -> None:
    """Check the laws; with a short `step` between positions, baskets are often moved for late ones."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in ("row_codec", "basket_table", "reader"):
            patch.setattr(f"unbasket.store.{module}.STEP", step)
        path = Path(folder) / "shop.db"
        engine = ub.open(path, params)
        oracle = Oracle(engine.params)
        for number, event in enumerate(events):
            apply(engine, [event])
            apply(oracle, [event])
            if number in reopened:
                digest = engine.digest()
                engine.close()
                engine = ub.open(path, params)
                assert engine.digest() == digest
        with engine, ub.open(path, read_only=True) as reader:
            law_of_the_oracle(engine, oracle)
            law_of_equality(engine, reader)
            assert all(receipt.verified for receipt in engine.receipts())
            assert engine.verify(10**14).ok
            law_of_retraining(engine, ub.Recommender, seed)


@SEQUENCES
@given(PARAMS, SPELLED_IDS.shop_events(most=30), REOPENED, STEPS, st.integers(0, 99))
def test_fixed_groups(params: ub.Params, events: list[ShopEvent], reopened: set[int], step: int, seed: int) -> None:
    keep_the_laws(params, events, reopened, step, seed)


@SEQUENCES
@given(NUMBERED, TEXT_IDS.shop_events(most=30), REOPENED, STEPS, st.integers(0, 99))
def test_varying_groups(params: ub.Params, events: list[ShopEvent], reopened: set[int], step: int, seed: int) -> None:
    keep_the_laws(replace(params, grouping="varying"), events, reopened, step, seed)


@SEQUENCES
@given(NUMBERED, TEXT_IDS.shop_events(most=30), REOPENED, STEPS, st.integers(0, 99))
def test_counted_groups(params: ub.Params, events: list[ShopEvent], reopened: set[int], step: int, seed: int) -> None:
    keep_the_laws(replace(params, grouping="count"), events, reopened, step, seed)
