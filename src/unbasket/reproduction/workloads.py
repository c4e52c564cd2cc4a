"""Histories that grow and shrink under the clock."""

from dataclasses import dataclass

import polars as pl

from unbasket.datasets import load
from unbasket.datasets.published import OF_THE_PAPER
from unbasket.params import Params
from unbasket.reproduction.baselines import USER

SINGLE_ITEM = "single-item"
"""The paper's stream (section 6.2): one user, one item, the basket {1} again and again."""

PARAMS = Params(group_size=2, basket_decay=0.9, group_decay=0.7, neighbors=300, alpha=0.7)
"""The paper's parameters of section 6.3, for a user who has no neighbors. For section 6.2 it gives none."""

SHOP_PARAMS = Params(group_size=7, basket_decay=0.9, group_decay=0.7, neighbors=50, alpha=0.7)
"""For a shop of 100 customers, half of whom are neighbors."""


def params_of(dataset: str) -> Params:
    """The parameters that a dataset is run with."""
    if dataset == SINGLE_ITEM:
        return PARAMS
    return Params.paper(dataset) if dataset in OF_THE_PAPER else SHOP_PARAMS


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The baskets of one user, oldest first, and the other users of the shop; items count from 0."""

    params: Params
    baskets: list[list[int]]
    dimension: int
    others: pl.DataFrame


def read(name: str, most: int) -> Stream:
    """The single-item stream, or the customer with the longest history of a dataset; at most so many baskets."""
    if name == SINGLE_ITEM:
        return Stream(PARAMS, [[0]] * most, 1, pl.DataFrame())
    history = load(name).history
    items = history.select("item").unique().sort("item").with_row_index("code")
    history = history.join(items, on="item").select("user", "basket", "time", item=pl.col("code").cast(pl.Int64))
    counts = history.group_by("user").agg(baskets=pl.col("basket").n_unique())
    longest = counts.sort("baskets", "user", descending=[True, False])["user"][0]
    own = history.filter(pl.col("user") == longest).group_by("time", "basket").agg("item").sort("time", "basket")
    others = history.filter(pl.col("user") != longest)
    assert USER not in others["user"], "the stream's user must be new to the shop"
    return Stream(SHOP_PARAMS, own["item"].head(most).to_list(), items.height, others)
