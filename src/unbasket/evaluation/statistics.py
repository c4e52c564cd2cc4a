"""How sure a mean over users is, and whether one model is better than another on the same users."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.metrics import Floats
from unbasket.evaluation.student_t import two_sided_p

_DRAWS_AT_ONCE = 1 << 20  # keeps a block of resamples in the cache, and memory flat for any number of users


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
    t: float
    p_t: float

    def __repr__(self) -> str:
        return (
            f"{self.first_mean:.4f} - {self.second_mean:.4f} = {self.difference}, "
            f"permutation p = {self.p_permutation:.2g}, t = {self.t:.2f}, p = {self.p_t:.2g}"
        )


def bootstrap_mean(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> MeanInterval:
    """The mean with its percentile bootstrap interval: users are drawn with replacement.

    A NaN is a user without a value, who is left out. Equal arguments give equal intervals.

    >>> bootstrap_mean([0.0, 1.0] * 500)
    0.5000 [0.4700, 0.5320] (95%, 1000 users)
    """
    known = _known(np.asarray(values, dtype=np.float64), at_least=1)
    return _intervals([known], confidence, resamples, np.random.default_rng(seed))[0]


def bootstrap_means(
    columns: Sequence[Floats], *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> list[MeanInterval]:
    """`bootstrap_mean` of several scores of the same users, none of them NaN. Users are drawn once for all columns."""
    return _intervals(columns, confidence, resamples, np.random.default_rng(seed))


def compare_paired(
    first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> Comparison:
    """Compare two models by the scores of the same users, in the same order.

    The interval is a bootstrap of the users' differences. The permutation test asks how often a mean
    difference at least this large comes up when each user's two scores are swapped at random; it assumes no
    distribution, and its smallest possible p is 1 / (resamples + 1). The paired t-test is there because
    papers report it.
    """
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != two.shape:
        raise InvalidRequestError(f"the two models have scores of {one.shape} and {two.shape}, not the same users")
    if not np.array_equal(np.isnan(one), np.isnan(two)):
        raise InvalidRequestError("some users have a score (not NaN) under one model only: not the same users")
    one, two = _known(one, at_least=2), _known(two, at_least=2)
    differences = one - two
    rng = np.random.default_rng(seed)
    t, p_t = _paired_t(differences)
    return Comparison(
        first_mean=float(one.mean()),
        second_mean=float(two.mean()),
        difference=_intervals([differences], confidence, resamples, rng)[0],
        p_permutation=_permutation_p(differences, resamples, rng),
        t=t,
        p_t=p_t,
    )


def _known(values: Floats, at_least: int) -> Floats:
    known = values[~np.isnan(values)]
    if values.ndim != 1 or len(known) < at_least:
        raise InvalidRequestError(
            f"scores must be one list with at least {at_least} not NaN; shape {values.shape} has {len(known)}"
        )
    return known


def _intervals(
    columns: Sequence[Floats], confidence: float, resamples: int, rng: np.random.Generator
) -> list[MeanInterval]:
    if not 0 < confidence < 1:
        raise InvalidRequestError(f"confidence must be between 0 and 1, not {confidence}")
    if resamples < 1:
        raise InvalidRequestError(f"resamples must be at least 1, not {resamples}")
    users = len(columns[0])
    draws = (_drawn(users, rows, rng) for rows in _blocks(resamples, users))
    # Column by column: one product for all would differ, in the last digit, from that of a column alone.
    means = np.concatenate([[drawn @ column / users for column in columns] for drawn in draws], axis=1)
    ends = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1).T.tolist()
    return [
        MeanInterval(float(column.mean()), low, high, confidence, users)
        for column, (low, high) in zip(columns, ends, strict=True)
    ]


def _drawn(users: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Resamples x users: how often each user is drawn."""
    draws = rng.integers(users, size=(resamples, users)) + np.arange(resamples)[:, np.newaxis] * users
    return np.bincount(draws.ravel(), minlength=resamples * users).reshape(resamples, users).astype(np.float64)


def _permutation_p(differences: Floats, resamples: int, rng: np.random.Generator) -> float:
    """Swapping a user's two scores flips the sign of their difference. Zeros have no sign and are left out."""
    signed = differences[differences != 0]
    total = signed.sum()
    # A sum that is equal on paper may differ in the last digits by the order of its terms.
    threshold = abs(total) - 1e-12 * np.abs(signed).sum()
    as_large = 0
    for rows in _blocks(resamples, max(len(signed), 1)):
        flipped = rng.integers(2, size=(rows, len(signed)), dtype=np.int8).astype(np.float64)
        as_large += int(np.count_nonzero(np.abs(total - 2 * (flipped @ signed)) >= threshold))
    return (as_large + 1) / (resamples + 1)


def _paired_t(differences: Floats) -> tuple[float, float]:
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    if deviation == 0:
        t = math.copysign(math.inf, mean) if mean else 0.0
    else:
        t = mean / (deviation / math.sqrt(len(differences)))
    return t, two_sided_p(t, len(differences) - 1)


def _blocks(resamples: int, width: int) -> list[int]:
    """Numbers of resamples, each computed at once, that sum to all of them."""
    rows = max(1, _DRAWS_AT_ONCE // width)
    full, rest = divmod(resamples, rows)
    return [rows] * full + [rest] * (rest > 0)
