"""Metrics of a batch of users, and the scores of ranked lists by all of them.

A metric returns one float per user, NaN for a user whose truth is empty. Metrics of repeat purchases and of exploration
are the same functions over `truth.intersection(history)` and `truth.difference(history)`. The mean over users who are
not NaN is then the mean over users who have such items.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbasket.errors import InvalidFrameError, InvalidRequestError
from unbasket.evaluation._item_sets import Codes, Flags, ItemSets

Floats = NDArray[np.float64]
NdcgForm = Literal["paper", "hu", "standard"]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """The input of every metric: which predictions are in the truth, and how large the truth is."""

    found: Flags
    """Users x ranks: whether the prediction at this rank is in the user's truth."""
    truth_sizes: Codes

    def at(self, n: int) -> Flags:
        """Return the first n ranks. More ranks than were predicted are an error, since they would score as misses."""
        ranks = self.found.shape[1]
        if not 1 <= n <= ranks:
            raise InvalidRequestError(f"n must be from 1 to {ranks}, the number of predictions, not {n}")
        return self.found[:, :n]

    def known(self, values: Floats) -> Floats:
        """Return the values, with NaN for users whose truth is empty."""
        return np.where(self.truth_sizes > 0, values, np.nan)


def find_hits(predictions: Codes, truth: ItemSets) -> Hits:
    """Look up predictions (users x ranks, best first, padded with -1) in the users' truth.

    >>> hits = find_hits(np.array([[4, 9, 2], [5, -1, -1]]), ItemSets.from_lists([[2, 4], [1]]))
    >>> recall(hits, 2)
    array([0.5, 0. ])
    """
    if predictions.ndim != 2 or len(predictions) != len(truth):
        raise InvalidRequestError(
            f"predictions must have one row for each of the {len(truth)} users, not shape {predictions.shape}"
        )
    in_order = np.sort(predictions, axis=1)
    twice = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    if twice.any():
        row, rank = np.argwhere(twice)[0]
        raise InvalidRequestError(f"item {in_order[row, rank]} is predicted twice in row {row}")
    return Hits(truth.contains(np.arange(len(predictions))[:, np.newaxis], predictions), truth.sizes)


def recall(hits: Hits, n: int) -> Floats:
    """Return the share of the truth that is among the first n predictions."""
    at_least_one = hits.truth_sizes.clip(min=1)  # no 0/0 for users without truth
    return hits.known(hits.at(n).sum(axis=1) / at_least_one)


def precision(hits: Hits, n: int) -> Floats:
    """Return the share of the first n ranks that hold a truth item. An empty rank is a miss."""
    return hits.known(hits.at(n).mean(axis=1))


def hit_rate(hits: Hits, n: int) -> Floats:
    """Return 1 if any of the first n predictions is in the truth, else 0."""
    return hits.known((hits.at(n).sum(axis=1) > 0).astype(np.float64))


def ndcg(hits: Hits, n: int, form: NdcgForm) -> Floats:
    """Return the normalized discounted cumulative gain in one of three forms.

    Let T be the truth, DCG@j the sum of 1/log2(rank + 1) over the hits among the first j predictions, and IDCG@j the
    same sum over all ranks up to j:

    - "paper": DCG@j / IDCG@j with j = min(n, |T|), so ranks beyond |T| earn nothing;
    - "hu": DCG@n / IDCG@|T|, so a truth larger than n can never score 1;
    - "standard": DCG@n / IDCG@min(n, |T|).
    """
    if form not in get_args(NdcgForm):
        raise InvalidRequestError(f"form must be one of {', '.join(get_args(NdcgForm))}, not {form!r}")
    found, sizes = hits.at(n), hits.truth_sizes
    discounts = 1 / np.log2(np.arange(2, max(n, sizes.max(initial=0)) + 2))
    ideal = np.concatenate(([1.0], np.cumsum(discounts)))  # ideal[0] only avoids 0/0 for users without truth
    reachable = np.minimum(n, sizes)
    if form == "paper":
        found = found & (np.arange(n) < reachable[:, np.newaxis])
    best = ideal[sizes if form == "hu" else reachable]
    return hits.known(found @ discounts[:n] / best)


METRICS: dict[str, Callable[[Hits, int], Floats]] = {
    "recall": recall,
    "precision": precision,
    "hit_rate": hit_rate,
    "ndcg_paper": partial(ndcg, form="paper"),
    "ndcg_hu": partial(ndcg, form="hu"),
    "ndcg_standard": partial(ndcg, form="standard"),
}


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
    coded = ranked.join(codes, on="item")
    predictions = np.full((len(users), max(cutoffs)), -1, dtype=np.int64)
    predictions[coded["row"].to_numpy(), coded["rank"].to_numpy()] = coded["code"].to_numpy()
    truth = _item_sets(future, users, codes)
    bought = _item_sets(history.join(future, on=["user", "item"], how="semi"), users, codes)
    columns: dict[str, Floats] = {}
    truths = {"": truth, "repeat_": truth.intersection(bought), "explore_": truth.difference(bought)}
    for prefix, sought in truths.items():
        hits = find_hits(predictions, sought)
        for n in cutoffs:
            columns |= {f"{prefix}{name}@{n}": metric(hits, n) for name, metric in METRICS.items()}
    return rankings.select("user").with_columns(
        pl.Series(name, values, nan_to_null=True) for name, values in columns.items()
    )


def _ranked_items(rankings: pl.DataFrame, n: int) -> pl.DataFrame:
    """Return (row, rank, item) of the first n items of each list, ranks from 0; an empty list is one null item."""
    return (
        rankings.with_row_index("row")
        .select("row", item=pl.col("items").list.head(n))
        .with_columns(rank=pl.int_ranges(pl.col("item").list.len()))
        .explode("item", "rank")
    )


def _item_sets(frame: pl.DataFrame, users: pl.DataFrame, codes: pl.DataFrame) -> ItemSets:
    pairs = frame.select("user", "item").join(users, on="user").join(codes, on="item")
    rows, items = (pairs[column].cast(pl.Int64).to_numpy() for column in ("row", "code"))
    return ItemSets.from_pairs(rows, items, len(users))
