"""Metrics of a batch of users: one float per user, NaN for a user whose truth is empty.

Metrics of repeat purchases and of exploration are the same functions over `truth.intersection(history)` and
`truth.difference(history)`. The mean over users who are not NaN is then the mean over users who have such items.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from unbasket.errors import InvalidRequestError
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
    rows = np.arange(len(predictions))[:, np.newaxis]
    return Hits(truth.contains(rows, predictions), truth.sizes)


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
    found = hits.at(n)
    sizes = hits.truth_sizes
    discounts = 1 / np.log2(np.arange(2, max(n, sizes.max(initial=0)) + 2))
    ideal = np.concatenate(([1.0], np.cumsum(discounts)))  # ideal[0] only avoids 0/0 for users without truth
    reachable = np.minimum(n, sizes)
    if form == "paper":
        found = found & (np.arange(n) < reachable[:, np.newaxis])
        best = ideal[reachable]
    elif form == "hu":
        best = ideal[sizes]
    elif form == "standard":
        best = ideal[reachable]
    else:
        raise InvalidRequestError(f"form must be one of {', '.join(get_args(NdcgForm))}, not {form!r}")
    return hits.known(found @ discounts[:n] / best)
