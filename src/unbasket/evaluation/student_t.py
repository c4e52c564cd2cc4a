"""Student's t distribution, so that a paired t-test needs no SciPy."""

import math

_TINY = 1e-300
_ENOUGH = 1e-15
_MAX_STEPS = 10_000


def two_sided_p(t: float, degrees: int) -> float:
    """The probability of a |t| at least this large with that many degrees of freedom, if there is no effect.

    >>> round(two_sided_p(2.228, 10), 4)  # the 5 % value of every table
    0.05
    """
    if math.isinf(t):
        return 0.0
    # 1 - degrees / (degrees + t^2) loses all digits for a small t, so both parts are computed.
    part, rest = degrees / (degrees + t * t), t * t / (degrees + t * t)
    return _incomplete_beta(degrees / 2, 0.5, part, rest)


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function I_x(a, b), where rest = 1 - x."""
    if x == 0 or rest == 0:
        return 1.0 if rest == 0 else 0.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    front = math.exp(log_front)
    # The fraction converges fast on this side of the mean; on the other, I_x(a, b) = 1 - I_(1-x)(b, a).
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, rest) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Abramowitz and Stegun, equation 26.5.8, by Lentz's method."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 / _away_from_zero(1 + numerator * d)
            c = _away_from_zero(1 + numerator / c)
            value *= c * d
        if abs(c * d - 1) < _ENOUGH:
            return value
    raise ArithmeticError(f"the incomplete beta function did not converge for a={a}, b={b}, x={x}")


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
