"""Confidence intervals of means over users, and paired comparisons of two models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.metrics import Floats

_DRAWS_AT_ONCE = 1 << 20  # keeps a block of resamples in the cache, and memory constant for any number of users


@dataclass(frozen=True, slots=True, repr=False)
class MeanInterval:
    """A mean over users and its confidence interval."""

    mean: float
    low: float
    high: float
    confidence: float
    users: int

    def __repr__(self) -> str:
        return f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}] ({self.confidence:.0%}, {self.users} users)"


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two models on the same users. The difference is the first minus the second."""

    first_mean: float
    second_mean: float
    difference: MeanInterval
    p_permutation: float

    def __repr__(self) -> str:
        means = f"{self.first_mean:.4f} - {self.second_mean:.4f}"
        return f"{means} = {self.difference}, permutation p = {self.p_permutation:.2g}"


def bootstrap_mean(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> MeanInterval:
    """Return the mean with its percentile bootstrap interval: users are drawn with replacement.

    NaN marks a user without a value, who is left out. Equal arguments give equal intervals.

    >>> bootstrap_mean([0.0, 1.0] * 500)
    0.5000 [0.4700, 0.5320] (95%, 1000 users)
    """
    known = _known(np.asarray(values, dtype=np.float64), at_least=1)
    return bootstrap_means([known], confidence=confidence, resamples=resamples, seed=seed)[0]


def bootstrap_means(
    columns: Sequence[Floats],
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int | np.random.Generator = 0,
) -> list[MeanInterval]:
    """Return the `bootstrap_mean` of several columns of the same users, without NaN. All columns share the draws."""
    if not 0 < confidence < 1:
        raise InvalidRequestError(f"confidence must be between 0 and 1, not {confidence}")
    if resamples < 1:
        raise InvalidRequestError(f"resamples must be at least 1, not {resamples}")
    users, rng = len(columns[0]), np.random.default_rng(seed)
    draws = (_draw_counts(users, rows, rng) for rows in _blocks(resamples, users))
    # Column by column: one product for all columns would differ in the last digit from that of a single column.
    means = np.concatenate([[drawn @ column / users for column in columns] for drawn in draws], axis=1)
    ends = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1).T.tolist()
    return [
        MeanInterval(float(column.mean()), low, high, confidence, users)
        for column, (low, high) in zip(columns, ends, strict=True)
    ]


def compare_paired(
    first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> Comparison:
    """Compare two models by the scores of the same users, in the same order.

    The interval is a bootstrap of the users' differences. The p-value is that of a paired permutation test: how often a
    mean difference at least this large occurs when each user's two scores are swapped at random. The test assumes no
    distribution; its smallest possible p is 1 / (resamples + 1).
    """
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != two.shape:
        raise InvalidRequestError(f"the two models have scores of {one.shape} and {two.shape}, not the same users")
    if not np.array_equal(np.isnan(one), np.isnan(two)):
        raise InvalidRequestError("some users have a score (not NaN) under one model only: not the same users")
    one, two = _known(one, at_least=2), _known(two, at_least=2)
    differences = one - two
    rng = np.random.default_rng(seed)
    return Comparison(
        first_mean=float(one.mean()),
        second_mean=float(two.mean()),
        difference=bootstrap_means([differences], confidence=confidence, resamples=resamples, seed=rng)[0],
        p_permutation=_permutation_p(differences, resamples, rng),
    )


def _known(values: Floats, at_least: int) -> Floats:
    known = values[~np.isnan(values)]
    if values.ndim != 1 or len(known) < at_least:
        raise InvalidRequestError(
            f"scores must be one list with at least {at_least} not NaN; shape {values.shape} has {len(known)}"
        )
    return known


def _draw_counts(users: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return, as resamples x users, how often each user is drawn."""
    draws = rng.integers(users, size=(resamples, users)) + np.arange(resamples)[:, np.newaxis] * users
    return np.bincount(draws.ravel(), minlength=resamples * users).reshape(resamples, users).astype(np.float64)


def _permutation_p(differences: Floats, resamples: int, rng: np.random.Generator) -> float:
    """Return the two-sided p-value. A swap flips the sign of a difference; zeros have no sign and are left out."""
    signed = differences[differences != 0]
    total = signed.sum()
    # Sums that are equal mathematically may differ in the last digits by the order of their terms.
    threshold = abs(total) - 1e-12 * np.abs(signed).sum()
    as_large = 0
    for rows in _blocks(resamples, max(len(signed), 1)):
        flipped = rng.integers(2, size=(rows, len(signed)), dtype=np.int8).astype(np.float64)
        as_large += int(np.count_nonzero(np.abs(total - 2 * (flipped @ signed)) >= threshold))
    return (as_large + 1) / (resamples + 1)


def _blocks(resamples: int, width: int) -> list[int]:
    rows = max(1, _DRAWS_AT_ONCE // width)
    full, rest = divmod(resamples, rows)
    return [rows] * full + [rest] * (rest > 0)
