"""The privacy threshold: what it shows of scores and counts."""

from typing import Any

import pytest

import unbasket as ub


def test_scores_are_rounded_up_to_hundredths() -> None:
    privacy = ub.PrivacyThreshold()
    shown = {0.0: 0.0, 1e-9: 0.01, 0.01: 0.01, 0.07: 0.07, 0.29: 0.29, 0.2901: 0.3, 0.57: 0.57, 0.995: 1.0, 1.0: 1.0}
    assert {exact: privacy.score(exact) for exact in shown} == shown
    assert all(privacy.score(number / 100) == number / 100 for number in range(200))


def test_counts_are_rounded_down() -> None:
    privacy = ub.PrivacyThreshold(buyers=10)
    assert [privacy.count(count) for count in (0, 9, 10, 19, 20, 1758)] == [0, 0, 10, 10, 20, 1750]


@pytest.mark.parametrize(
    "fields", [{"buyers": 0}, {"neighbors": 0}, {"buyers": -1}, {"neighbors": 2.5}, {"buyers": "9"}]
)
def test_a_threshold_of_no_one(fields: dict[str, Any]) -> None:
    [(name, value)] = fields.items()
    with pytest.raises(ub.InvalidRequestError, match=f"{name} of a privacy threshold .* at least 1: {value!r}"):
        ub.PrivacyThreshold(**fields)
