"""Metrics of a batch of users, and the scores of ranked lists by all of them.

A metric of hits returns one float per user, NaN for a user whose truth is empty. Metrics of repeat purchases and of
exploration are the same functions over `truth.intersection(history)` and `truth.difference(history)`. The mean over
users who are not NaN is then the mean over users who have such items. Metrics of lists need no truth.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbasket.domain.ids import Id
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


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """The input of metrics that need no truth: what is known of each predicted item, users x ranks."""

    repeats: Flags
    """Whether the user has bought the item before."""
    surprise: Floats
    """-log2 of the share of users who have bought the item; NaN at an empty rank."""
    categories: Codes
    """The item's category, -1 for an empty rank or an item without one."""


def repetition_ratio(lists: Lists, n: int) -> Floats:
    """Return the share of the first n ranks with an item that the user has bought before. An empty rank has none."""
    shares: Floats = lists.repeats[:, :n].mean(axis=1)
    return shares


def novelty(lists: Lists, n: int) -> Floats:
    """Return the mean surprise, in bits, of the items at the first n ranks; 0 for an empty list."""
    surprise = lists.surprise[:, :n]
    shown = ~np.isnan(surprise)
    means: Floats = np.where(shown, surprise, 0.0).sum(axis=1) / shown.sum(axis=1).clip(min=1)
    return means


def diversity(lists: Lists, n: int) -> Floats:
    """Return the number of distinct categories at the first n ranks over n: DS, the diversity score."""
    ordered = np.sort(lists.categories[:, :n], axis=1)
    first_of_its_kind = np.diff(ordered, axis=1, prepend=-1) > 0
    shares: Floats = (first_of_its_kind & (ordered >= 0)).sum(axis=1) / n
    return shares


LIST_METRICS: dict[str, Callable[[Lists, int], Floats]] = {
    "repetition": repetition_ratio,
    "novelty": novelty,
    "diversity": diversity,
}

UserMetric = Callable[[list[Id], set[Id], set[Id]], float | None]
"""A metric of your own: (the first n items, the next basket, all that the user has bought) -> a number, or None."""


def score_users(
    rankings: pl.DataFrame,
    history: pl.DataFrame,
    future: pl.DataFrame,
    cutoffs: Sequence[int] = (10, 20),
    *,
    categories: pl.DataFrame | None = None,
    metrics: Mapping[str, UserMetric] | None = None,
) -> pl.DataFrame:
    """Score each row of `rankings` (user, items) against the user's basket in `future` (user, item).

    Columns are `user` and, for each cutoff n, `recall@n`, `precision@n`, `hit_rate@n`, `ndcg_paper@n`, `ndcg_hu@n` and
    `ndcg_standard@n`; then the same with the prefix `repeat_` (only truth items in the user's `history`) and
    `explore_` (only truth items not in it). A score is null if the user has no such truth items; means skip nulls.
    Then `repetition@n`, `novelty@n` and, with `categories` (item, category), `diversity@n`, and a column
    for each of your own `metrics`. Rows keep the order of `rankings`.
    """
    return Scorer(history, future, cutoffs, categories=categories, metrics=metrics).score(rankings)


class Scorer:
    """Scores rankings of the same users; see `score_users`."""

    def __init__(
        self,
        history: pl.DataFrame,
        future: pl.DataFrame,
        cutoffs: Sequence[int] = (10, 20),
        *,
        categories: pl.DataFrame | None = None,
        metrics: Mapping[str, UserMetric] | None = None,
    ) -> None:
        if not cutoffs or min(cutoffs) < 1:
            raise InvalidRequestError(f"cutoffs must be whole numbers of at least 1, not {list(cutoffs)}")
        self._bought = history.select("user", "item").unique()
        self._future = future.select("user", "item").unique()
        self._cutoffs = cutoffs
        self._has_categories = categories is not None
        self._metrics = metrics or {}
        buyers = self._bought.group_by("item").len("buyers")
        self._items = self._future.select("item").unique().join(buyers, on="item", how="full", coalesce=True)
        if categories is not None:
            numbered = categories.with_columns(category=pl.col("category").rank("dense").cast(pl.Int64))
            self._items = self._items.join(numbered, on="item", how="full", coalesce=True)
        self._users = max(1, self._bought["user"].n_unique())

    def score(self, rankings: pl.DataFrame) -> pl.DataFrame:
        """Return a row of scores for each row of `rankings`."""
        if rankings["user"].n_unique() < len(rankings):
            raise InvalidFrameError("rankings must hold each user once")
        # Lists made from Python objects have 64-bit elements, data often 32-bit; Polars joins equal types only.
        schema = self._future.schema
        rankings = rankings.cast({"user": schema["user"], "items": pl.List(schema["item"])})
        users, most = rankings.select("user").with_row_index("row"), max(self._cutoffs)
        ranked = _ranked_items(rankings, most)
        items = ranked.select("item").drop_nulls().unique().join(self._items, on="item", how="full", coalesce=True)
        codes = items.sort("item").with_row_index("code")
        coded = ranked.join(codes.select("item", "code"), on="item")
        predictions = np.full((len(users), most), -1, dtype=np.int64)
        predictions[coded["row"].to_numpy(), coded["rank"].to_numpy()] = coded["code"].to_numpy()
        truth, bought = (_item_sets(frame, users, codes) for frame in (self._future, self._bought))
        columns: dict[str, Floats] = {}
        truths = {"": truth, "repeat_": truth.intersection(bought), "explore_": truth.difference(bought)}
        for prefix, sought in truths.items():
            hits = find_hits(predictions, sought)
            for n in self._cutoffs:
                columns |= {f"{prefix}{name}@{n}": metric(hits, n) for name, metric in METRICS.items()}
        columns |= self._of_lists(predictions, bought, codes)
        scores = rankings.select("user").with_columns(
            pl.Series(name, values, nan_to_null=True) for name, values in columns.items()
        )
        return scores.with_columns(self._of_users(rankings)) if self._metrics else scores

    def _of_lists(self, predictions: Codes, bought: ItemSets, codes: pl.DataFrame) -> dict[str, Floats]:
        """Return the columns of LIST_METRICS. An item that is in no history counts as bought by one user."""
        buyers = codes["buyers"].fill_null(1).to_numpy() if "buyers" in codes.columns else np.ones(len(codes))
        surprise = np.append(-np.log2(buyers / self._users), np.nan)  # the last one is for empty ranks, at -1
        kinds = codes["category"].fill_null(-1).to_numpy() if self._has_categories else np.empty(0, np.int64)
        lists = Lists(
            bought.contains(np.arange(len(predictions))[:, np.newaxis], predictions),
            surprise[predictions],
            np.append(kinds, -1)[predictions] if self._has_categories else predictions,
        )
        names = [name for name in LIST_METRICS if name != "diversity" or self._has_categories]
        return {f"{name}@{n}": LIST_METRICS[name](lists, n) for n in self._cutoffs for name in names}

    def _of_users(self, rankings: pl.DataFrame) -> list[pl.Series]:
        """Return the columns of the caller's own metrics."""
        truth, bought = (
            {user: set(items) for user, items in frame.group_by("user").agg("item").iter_rows()}
            for frame in (self._future, self._bought)
        )
        lists = [
            (items, truth.get(user, set()), bought.get(user, set()))
            for user, items in rankings.select("user", "items").iter_rows()
        ]
        return [
            pl.Series(f"{name}@{n}", [metric(items[:n], *sets) for items, *sets in lists], pl.Float64, nan_to_null=True)
            for n in self._cutoffs
            for name, metric in self._metrics.items()
        ]


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
