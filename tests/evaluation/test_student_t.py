import math

import pytest

from unbasket.evaluation.student_t import two_sided_p


@pytest.mark.parametrize("degrees", [1, 2, 5, 10, 57, 1_000, 13_948, 1_000_000])
@pytest.mark.parametrize("t", [1e-9, 1e-3, 0.5, 1.0, 1.7, 1.8, 2.5, 6.0, 30.0])
def test_p_equals_that_of_scipy(t: float, degrees: int) -> None:
    from scipy import stats  # not above, where every process that collects tests would wait for it

    expected = 2 * stats.t.sf(t, degrees)
    assert two_sided_p(t, degrees) == pytest.approx(expected, rel=1e-8)
    assert two_sided_p(-t, degrees) == two_sided_p(t, degrees)


def test_the_extremes() -> None:
    assert two_sided_p(0.0, 7) == 1.0
    assert two_sided_p(math.inf, 7) == two_sided_p(-math.inf, 7) == 0.0


def test_one_degree_of_freedom_is_cauchys_distribution() -> None:
    assert two_sided_p(1.0, 1) == pytest.approx(0.5)
