"""Baselines of the field beside the most frequent items: UP-CF@r, and the repetition module of TREx.

Ties are broken as in `baselines`: by popularity among the candidates, then by item id. The default parameters are the
best of a small grid on the validation users of Ta-Feng as the University of Amsterdam prepared it.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from unbasket.domain.results import Progress
from unbasket.evaluation._item_sets import Codes
from unbasket.evaluation.histories import in_order, of_users
from unbasket.evaluation.metrics import Floats
from unbasket.evaluation.models import SteppedRanker
from unbasket.evaluation.protocols import Split


@dataclass(frozen=True, slots=True)
class UpCf:
    """User popularity-based collaborative filtering with recency (Faggioli, Polato, Aiolli, UMAP 2020).

    A user's popularity of an item is the share of the last r baskets with it. Its prediction is the sum over users v of
    sim(u, v)^q times v's popularity, where sim is the asymmetric cosine of the sets of items,
    |I_u & I_v| / (|I_u|^alpha |I_v|^(1 - alpha)), and 1 for the user; all users are neighbors. The code of reference is
    `miferroudjene/RACF` (NextBasketRecFramework.py: uwPopMat, upcf).
    """

    recency: int = 5
    locality: float = 2.0
    asymmetry: float = 0.5

    def rank(self, history: pl.DataFrame, split: Split, n: int, progress: Progress) -> pl.DataFrame:
        """Rank the items of each query user."""
        purchases = _Purchases(history, split)
        users, items, shares = purchases.recent_shares(self.recency)
        buyers, sizes = purchases.buyers(), purchases.sizes()
        weights = sizes ** (self.asymmetry - 1)
        lists = []
        for done, user in enumerate(purchases.queries, 1):
            own = np.unique(purchases.ages_of(user)[0])
            common = np.bincount(np.concatenate([buyers[item] for item in own]), minlength=len(sizes))
            similarity = common * weights * sizes[user] ** -self.asymmetry
            similarity[~purchases.are_candidates] = 0.0
            similarity[user] = 1.0
            near = similarity**self.locality
            scores = np.bincount(items, weights=near[users] * shares, minlength=purchases.item_count)
            lists.append(purchases.best(scores.astype(np.float64), n))
            progress(done, len(split.queries))
        return purchases.rankings(lists)


@dataclass(frozen=True, slots=True)
class TrexRepetition:
    """The repetition module of TREx (`lynEcho/Repbias_NBR`, methods/trex/repeat.py, equations 3, 5, 6 and 7).

    An item's score is how recently and often the user bought it, the sum of beta^age over the baskets with it, times
    how much it is bought again: the sum over its buyers of (times bought - 1)^alpha, over the number of buyers, plus
    the mean over all items over (buyers + 1). It lists only what the user has bought.
    """

    alpha: float = 0.3
    beta: float = 0.9

    def rank(self, history: pl.DataFrame, split: Split, n: int, progress: Progress) -> pl.DataFrame:
        """Rank the items of each query user."""
        purchases = _Purchases(history, split)
        repeat = purchases.repeat_scores(self.alpha)
        lists = []
        for done, user in enumerate(purchases.queries, 1):
            items, ages = purchases.ages_of(user)
            interest = np.bincount(items, weights=self.beta**ages, minlength=purchases.item_count)
            lists.append(purchases.best(interest * repeat, n))
            progress(done, len(split.queries))
        return purchases.rankings(lists)


FIELD_BASELINES: dict[str, SteppedRanker] = {"UP-CF@r": UpCf(), "TREx repetition": TrexRepetition()}


class _Purchases:
    """Purchases of candidates and queries by codes of users and items; an item once per basket, with its age."""

    def __init__(self, history: pl.DataFrame, split: Split) -> None:
        self._split = split
        self._users = pl.DataFrame({"user": pl.concat([split.candidates, split.queries]).unique().sort()})
        frame = in_order(of_users(history, self._users["user"])).select("user", "basket", "item")
        frame = frame.unique(maintain_order=True).sort("user", maintain_order=True)
        newest_first = pl.col("basket").rle_id().over("user")
        self._frame = frame.select(
            user=pl.col("user").rank("dense").cast(pl.Int64) - 1,
            item=pl.col("item").rank("dense").cast(pl.Int64) - 1,
            age=(newest_first.max().over("user") - newest_first).cast(pl.Int64),
        )
        self._items = frame["item"].unique().sort()
        self.are_candidates = self._users["user"].is_in(split.candidates.implode()).to_numpy()
        codes = self._users.with_row_index("code")
        queries = pl.DataFrame({"user": split.queries}).join(codes, on="user", how="left", maintain_order="left")
        self.queries = queries["code"].to_numpy().astype(np.int64)
        self._purchases = self._frame.to_numpy().T
        self._starts = np.searchsorted(self._purchases[0], np.arange(len(self._users) + 1))
        of_candidates = self.are_candidates[self._purchases[0]]
        self._popularity = np.bincount(self._purchases[1][of_candidates], minlength=self.item_count)

    @property
    def item_count(self) -> int:
        return len(self._items)

    def ages_of(self, user: int) -> tuple[Codes, Codes]:
        """Return a user's items, once per basket, and how many newer baskets there are."""
        _, items, ages = self._purchases[:, self._starts[user] : self._starts[user + 1]]
        return items, ages

    def sizes(self) -> Floats:
        """Return the number of distinct items of each user."""
        pairs = self._frame.select("user", "item").unique()
        return np.bincount(pairs["user"].to_numpy(), minlength=len(self._users)).astype(np.float64)

    def buyers(self) -> list[Codes]:
        """Return the users who have bought each item."""
        pairs = self._frame.select("item", "user").unique().sort("item", "user")
        ends = np.searchsorted(pairs["item"].to_numpy(), np.arange(1, self.item_count))
        return np.split(pairs["user"].to_numpy(), ends)

    def recent_shares(self, last: int) -> tuple[Codes, Codes, Floats]:
        """Return (user, item, share of the user's last baskets with the item) as three arrays."""
        baskets = (pl.col("age").max() + 1).over("user").clip(upper_bound=last)
        recent = self._frame.with_columns(baskets=baskets).filter(pl.col("age") < last)
        shares = recent.group_by("user", "item").agg(share=pl.len() / pl.col("baskets").first())
        user, item, share = (shares[name].to_numpy() for name in ("user", "item", "share"))
        return user, item, share

    def repeat_scores(self, alpha: float) -> Floats:
        """Return how much each item is bought again by candidates."""
        of_candidates = self._frame.filter(self.are_candidates[self._purchases[0]])
        times = of_candidates.group_by("user", "item").len("times")
        again = pl.when(pl.col("times") > 1).then((pl.col("times").cast(pl.Float64) - 1).pow(alpha)).otherwise(0.0)
        found = times.group_by("item").agg(score=again.sum() / pl.len(), buyers=pl.len())
        scores, buyers = np.zeros(self.item_count), np.zeros(self.item_count)
        scores[found["item"].to_numpy()], buyers[found["item"].to_numpy()] = found["score"], found["buyers"]
        filled: Floats = scores + scores.mean() / (buyers + 1)
        return filled

    def best(self, scores: Floats, n: int) -> Codes:
        """Return the n items of the highest scores above 0."""
        items = np.flatnonzero(scores > 0)
        return items[np.lexsort((items, -self._popularity[items], -scores[items]))[:n]]

    def rankings(self, lists: list[Codes]) -> pl.DataFrame:
        """Return a row (user, items) per query user."""
        return pl.DataFrame({"user": self._split.queries, "items": [self._items.gather(best) for best in lists]})
