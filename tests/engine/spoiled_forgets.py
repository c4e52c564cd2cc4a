"""A forget that goes wrong: a spoiler changes the model after it was updated, and before the receipt is written.

The shop has three users, all of them hubs; ann's history is long enough for checkpoints.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.engine.state import EngineState
from unbasket.engine.verification import InvariantChecker, Trace

PARAMS = ub.Params(group_size=2, neighbors=5, alpha=0.8)
SHARD_SIZE = 4
SCOPES: dict[str, dict[str, Any]] = {
    "user": {},
    "basket": {"basket": "two"},
    "item of a basket": {"basket": "six", "item": "milk"},
    "item": {"item": "milk"},
}
BASKETS: dict[str, dict[str, list[str]]] = {
    "ann": {
        "one": ["milk", "bread"],
        "two": ["tea"],
        "three": ["milk", "tea"],
        "four": ["bread", "milk"],
        "five": ["salt"],
        "six": ["milk", "salt"],
        "seven": ["tea", "milk"],
    },
    "bob": {"one": ["milk", "bread"], "two": ["tea"]},
    "cat": {"one": ["milk", "tea", "salt"]},
}


def shrink_limits(patch: pytest.MonkeyPatch) -> None:
    """Let short histories count as long, and a shard be full of four users."""
    patch.setattr("unbasket.engine.histories.CHECKPOINT_EVERY", 2)
    patch.setattr("unbasket.engine.histories.LONG", 3)
    patch.setattr("unbasket.engine.state.SHARD_SIZE", SHARD_SIZE)


def open_shop(folder: Path, params: ub.Params = PARAMS) -> Iterator[ub.DurableRecommender]:
    rows = [(user, b, item) for user, baskets in BASKETS.items() for b, items in baskets.items() for item in items]
    with ub.open(folder / "shop.db", params) as rec:
        rec.fit(pl.DataFrame(rows, schema=["user", "basket", "item"], orient="row"))
        rec.learn("ann", ["salt"], basket="eight")
        assert rec.verify().ok
        yield rec


def forget_spoiled(
    rec: ub.DurableRecommender, scope: str, patch: pytest.MonkeyPatch, spoil: Callable[[Trace], object]
) -> ub.Receipt:
    """Forget something of ann, and spoil the model before it is checked."""
    trace = InvariantChecker(rec._state).trace("ann")
    assert trace is not None
    forget = EngineState.forget

    def spoiled(state: EngineState, user: Id, basket: Id | None, item: Id | None) -> ub.Forgotten:
        forgotten = forget(state, user, basket, item)
        spoil(trace)
        return forgotten

    patch.setattr(EngineState, "forget", spoiled)
    rec.forget("ann", **SCOPES[scope])
    [receipt] = rec.receipts()
    assert receipt.scope == scope
    return receipt
