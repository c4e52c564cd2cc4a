"""Workloads: the sizes of the experiments, and the histories that grow and shrink in them."""

from dataclasses import dataclass

import polars as pl

from unbasket.datasets import load
from unbasket.datasets.published import OF_THE_PAPER
from unbasket.params import Params
from unbasket.reproduction.baselines import USER

SINGLE_ITEM = "single-item"
"""The paper's stream (section 6.2): one user, one item, the basket {1} again and again."""

PARAMS = Params(group_size=2, basket_decay=0.9, group_decay=0.7, neighbors=300, alpha=0.7)
"""The paper's parameters of section 6.3, for a user without neighbors. Section 6.2 states no parameters."""

SHOP_PARAMS = Params(group_size=7, basket_decay=0.9, group_decay=0.7, neighbors=50, alpha=0.7)
"""For a shop of 100 customers: half of them are neighbors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that determine results, apart from data and machine. Defaults are those of the full run."""

    seed: int = 0
    quick: bool = False
    """Skip datasets that take long, unless they are named."""
    user_shares: tuple[float, ...] = (0.001, 0.01, 0.05, 0.2)
    """Table 2: shares of users who forget a tenth of their baskets. The first is the paper's."""
    draws: int = 5
    """Table 2: number of random draws of users, with the seeds `seed`, `seed` + 1 and so on."""
    basket_shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """Grouping: shares of all baskets that are forgotten."""
    stream_baskets: int = 2_000
    """Figures (a) and (b): maximum length of a history."""
    drift_baskets: int = 1_000
    """Figure (c): baskets before the first deletion."""
    latency_events: int = 2_000


def quick_settings(seed: int) -> Settings:
    """Return the settings of a run of under two minutes: fewer datasets, deletions and baskets."""
    return Settings(
        seed=seed,
        quick=True,
        user_shares=(0.001, 0.2),
        draws=3,
        basket_shares=(0.1, 0.5),
        stream_baskets=400,
        drift_baskets=400,
        latency_events=500,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The baskets of one user, oldest first, and the other users of the shop; items count from 0."""

    params: Params
    baskets: list[list[int]]
    dimension: int
    others: pl.DataFrame


def params_of(dataset: str) -> Params:
    """Return the parameters of a dataset."""
    if dataset == SINGLE_ITEM:
        return PARAMS
    return Params.paper(dataset) if dataset in OF_THE_PAPER else SHOP_PARAMS


def read(name: str, limit: int) -> Stream:
    """Return the single-item stream, or the longest history of a dataset; at most `limit` baskets."""
    if name == SINGLE_ITEM:
        return Stream(PARAMS, [[0]] * limit, 1, pl.DataFrame())
    history = load(name).history
    items = history.select("item").unique().sort("item").with_row_index("code")
    history = history.join(items, on="item").select("user", "basket", "time", item=pl.col("code").cast(pl.Int64))
    counts = history.group_by("user").agg(baskets=pl.col("basket").n_unique())
    longest = counts.sort("baskets", "user", descending=[True, False])["user"][0]
    own = history.filter(pl.col("user") == longest).group_by("time", "basket").agg("item").sort("time", "basket")
    others = history.filter(pl.col("user") != longest)
    assert USER not in others["user"], "the stream's user must be new to the shop"
    return Stream(SHOP_PARAMS, own["item"].head(limit).to_list(), items.height, others)
