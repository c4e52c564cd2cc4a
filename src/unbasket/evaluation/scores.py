"""Scores of ranked lists: one row per user, one column per metric."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from unbasket.errors import InvalidFrameError, InvalidRequestError
from unbasket.evaluation._item_sets import Codes, ItemSets
from unbasket.evaluation.metrics import Floats, Hits, find_hits, hit_rate, ndcg, precision, recall


def score_users(
    rankings: pl.DataFrame, history: pl.DataFrame, future: pl.DataFrame, cutoffs: Sequence[int] = (10, 20)
) -> pl.DataFrame:
    """Score each row of `rankings` (user, items) against the user's basket in `future` (user, item).

    Columns are `user` and, for each cutoff n, `recall@n`, `precision@n`, `hit_rate@n`, `ndcg_paper@n`, `ndcg_hu@n` and
    `ndcg_standard@n`; then the same with the prefix `repeat_` (only truth items in the user's `history`) and
    `explore_` (only truth items not in it). A score is null if the user has no such truth items; means skip nulls.
    Rows keep the order of `rankings`.
    """
    if not cutoffs or min(cutoffs) < 1:
        raise InvalidRequestError(f"cutoffs must be whole numbers of at least 1, not {list(cutoffs)}")
    if rankings["user"].n_unique() < len(rankings):
        raise InvalidFrameError("rankings must hold each user once")
    # Lists made from Python objects have 64-bit elements, data often 32-bit; Polars joins equal types only.
    rankings = rankings.cast({"user": future.schema["user"], "items": pl.List(future.schema["item"])})
    users = rankings.select("user").with_row_index("row")
    ranked = _ranked_items(rankings, max(cutoffs))
    items = pl.concat([ranked["item"], future["item"]]).unique().sort()
    codes = pl.DataFrame({"item": items}).with_row_index("code")

    predictions = _predictions(ranked.join(codes, on="item"), len(users), max(cutoffs))
    truth = _item_sets(future, users, codes)
    bought = _item_sets(history.join(future, on=["user", "item"], how="semi"), users, codes)
    columns: dict[str, Floats] = {}
    truths = {"": truth, "repeat_": truth.intersection(bought), "explore_": truth.difference(bought)}
    for prefix, sought in truths.items():
        hits = find_hits(predictions, sought)
        for n in cutoffs:
            columns |= {f"{prefix}{name}@{n}": values for name, values in _metrics(hits, n).items()}
    return rankings.select("user").with_columns(
        pl.Series(name, values, nan_to_null=True) for name, values in columns.items()
    )


def _metrics(hits: Hits, n: int) -> dict[str, Floats]:
    return {
        "recall": recall(hits, n),
        "precision": precision(hits, n),
        "hit_rate": hit_rate(hits, n),
        "ndcg_paper": ndcg(hits, n, "paper"),
        "ndcg_hu": ndcg(hits, n, "hu"),
        "ndcg_standard": ndcg(hits, n, "standard"),
    }


def _ranked_items(rankings: pl.DataFrame, n: int) -> pl.DataFrame:
    """Return (row, rank, item) of the first n items of each list, ranks from 0; an empty list is one null item."""
    return (
        rankings.with_row_index("row")
        .select("row", item=pl.col("items").list.head(n))
        .with_columns(rank=pl.int_ranges(pl.col("item").list.len()))
        .explode("item", "rank")
    )


def _predictions(ranked: pl.DataFrame, users: int, n: int) -> Codes:
    predictions = np.full((users, n), -1, dtype=np.int64)
    predictions[ranked["row"].to_numpy(), ranked["rank"].to_numpy()] = ranked["code"].to_numpy()
    return predictions


def _item_sets(frame: pl.DataFrame, users: pl.DataFrame, codes: pl.DataFrame) -> ItemSets:
    pairs = frame.select("user", "item").join(users, on="user").join(codes, on="item")
    rows, items = (pairs[column].cast(pl.Int64).to_numpy() for column in ("row", "code"))
    return ItemSets.from_pairs(rows, items, len(users))
