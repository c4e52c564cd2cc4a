"""Statistics on data with known results."""

import itertools
import math

import numpy as np
import pytest

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.statistics import bootstrap_mean, bootstrap_means, compare_paired


def test_interval_of_normal_data_is_the_theoretical_one() -> None:
    values = np.random.default_rng(1).normal(5, 2, size=4_000)
    interval = bootstrap_mean(values, resamples=4_000)
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half, abs=half * 0.1)
    assert interval.high == pytest.approx(values.mean() + half, abs=half * 0.1)


def test_means_equal_those_computed_one_by_one() -> None:
    columns = list(np.random.default_rng(1).random((5, 1_777)))
    assert bootstrap_means(columns, seed=3) == [bootstrap_mean(column, seed=3) for column in columns]


def test_interval_is_made_of_means_over_drawn_users() -> None:
    values = np.random.default_rng(1).random(300)
    draws = np.random.default_rng(0).integers(300, size=(2_000, 300))
    expected = np.quantile(values[draws].mean(axis=1), [0.025, 0.975])
    interval = bootstrap_mean(values)
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=1e-12)


def test_interval_covers_the_truth_as_often_as_its_confidence() -> None:
    rng = np.random.default_rng(2)
    samples = (rng.random(200) < 0.3 for _ in range(400))
    intervals = [bootstrap_mean(sample, confidence=0.9, resamples=400, seed=s) for s, sample in enumerate(samples)]
    covered = sum(interval.low <= 0.3 <= interval.high for interval in intervals)
    # Binomial(400, 0.9) is within 340 and 380 but for a chance of about 0.1 %.
    assert 340 <= covered <= 380


def test_confidence_widens_the_interval() -> None:
    values = np.random.default_rng(3).random(300)
    narrow, wide = bootstrap_mean(values, confidence=0.5), bootstrap_mean(values, confidence=0.99)
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high


def test_equal_seeds_give_equal_intervals() -> None:
    values = np.random.default_rng(4).random(50)
    assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1)
    assert bootstrap_mean(values, seed=1) != bootstrap_mean(values, seed=2)


def test_resampling_in_blocks_is_complete() -> None:
    """With more draws than fit into one block, the spread of the means must still be the theoretical one."""
    values = np.random.default_rng(5).random(100_000)
    interval = bootstrap_mean(values, resamples=300)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(100_000), rel=0.2)


def test_users_without_a_value_are_left_out() -> None:
    interval = bootstrap_mean([1.0, math.nan, 1.0])
    assert (interval.mean, interval.low, interval.high, interval.users) == (1.0, 1.0, 1.0, 2)


def test_repr_of_an_interval() -> None:
    assert repr(bootstrap_mean([0.25, 0.25])) == "0.2500 [0.2500, 0.2500] (95%, 2 users)"


def test_permutation_test_agrees_with_that_of_scipy() -> None:
    from scipy import stats  # here, since its import would slow down every collection of tests

    rng = np.random.default_rng(6)
    first = rng.random(80)
    second = first + rng.normal(0.02, 0.1, size=80)
    comparison = compare_paired(first, second, resamples=10_000)
    swapped = stats.permutation_test(
        (first, second),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=10_000,
        rng=0,
    )
    assert comparison.p_permutation == pytest.approx(swapped.pvalue, abs=0.02)
    assert comparison.difference.mean == pytest.approx(first.mean() - second.mean())
    assert comparison.first_mean == pytest.approx(first.mean())
    assert comparison.second_mean == pytest.approx(second.mean())


def test_permutation_test_approaches_the_exact_one() -> None:
    """Seven users: all 128 ways to swap can be counted, ties included, which rounding could lose."""
    differences = np.array([0.3, 0.1, 0.2, -0.1, 0.1, 0.3, 0.2])
    flips = itertools.product([1, -1], repeat=len(differences))
    as_large = sum(abs(np.dot(signs, differences)) >= abs(differences.sum()) - 1e-9 for signs in flips)
    comparison = compare_paired(differences, np.zeros(7), resamples=40_000)
    assert comparison.p_permutation == pytest.approx(as_large / 2**7, rel=0.1)


def test_no_effect_is_rarely_significant() -> None:
    rng = np.random.default_rng(7)
    results = [compare_paired(rng.random(60), rng.random(60), resamples=400, seed=seed) for seed in range(300)]
    # Binomial(300, 0.05) is from 4 to 28 but for a chance of about 0.1 %.
    assert 4 <= sum(result.p_permutation <= 0.05 for result in results) <= 28
    assert 4 <= sum(not result.difference.low <= 0 <= result.difference.high for result in results) <= 32


def test_an_effect_is_found() -> None:
    rng = np.random.default_rng(8)
    base = rng.random(500)
    comparison = compare_paired(base + rng.normal(0.05, 0.1, size=500), base, resamples=999)
    assert comparison.p_permutation == pytest.approx(1 / 1000)
    assert 0.03 < comparison.difference.low < 0.05 < comparison.difference.high < 0.07


def test_swapping_the_models_changes_the_sign() -> None:
    rng = np.random.default_rng(9)
    first, second = rng.random(40), rng.random(40)
    one, two = compare_paired(first, second), compare_paired(second, first)
    assert one.difference.mean == pytest.approx(-two.difference.mean)
    assert one.p_permutation == two.p_permutation


def test_equal_models() -> None:
    comparison = compare_paired([0.1, 0.5, 0.9], [0.1, 0.5, 0.9])
    assert comparison.p_permutation == 1.0


def test_pairs_without_a_value_are_left_out() -> None:
    comparison = compare_paired([1.0, math.nan, 3.0], [0.0, math.nan, 1.0])
    assert comparison.difference.users == 2
    assert comparison.difference.mean == 1.5


def test_repr_of_a_comparison() -> None:
    text = repr(compare_paired([0.5, 0.5], [0.25, 0.25]))
    assert text.startswith("0.5000 - 0.2500 = 0.2500 [0.2500, 0.2500] (95%, 2 users), permutation p = 0.")


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidRequestError, match="at least 1"):
        bootstrap_mean([math.nan])
    with pytest.raises(InvalidRequestError, match="shape"):
        bootstrap_mean([[0.1, 0.2]])
    with pytest.raises(InvalidRequestError, match=r"not 1\.5"):
        bootstrap_mean([0.1], confidence=1.5)
    with pytest.raises(InvalidRequestError, match="not 0"):
        bootstrap_mean([0.1], resamples=0)
    with pytest.raises(InvalidRequestError, match="same users"):
        compare_paired([0.1, 0.2], [0.1])
    with pytest.raises(InvalidRequestError, match="one model only"):
        compare_paired([0.1, 0.2], [0.1, math.nan])
    with pytest.raises(InvalidRequestError, match="at least 2"):
        compare_paired([0.1], [0.2])
