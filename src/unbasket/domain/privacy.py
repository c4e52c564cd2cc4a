"""The privacy threshold: how many people must stand behind what a caller learns about others."""

import math
from dataclasses import dataclass

from unbasket.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class PrivacyThreshold:
    """The least numbers of people behind an answer, for callers who may not learn what a single other person bought.

    - Neighbors are found by items with at least that many `buyers`: a rare item in a cart singles out no one.
    - An item's weights among the neighbors count if at least that many `neighbors` have it. So an item that the caller
      never bought is recommended only then.
    - The learned factor of an item with fewer buyers counts as 1: it would tell how often they bought the item again.
    - Scores are rounded up to hundredths, and counts down to multiples of `buyers`; smaller ones are not shown.
    """

    buyers: int = 10
    neighbors: int = 5

    def __post_init__(self) -> None:
        for name in ("buyers", "neighbors"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InvalidRequestError(
                    f"{name} of a privacy threshold must be a whole number of at least 1: {value!r}"
                )

    def score(self, exact: float) -> float:
        """Return a score as it is shown; above 0 if it was."""
        return max(1, math.ceil(round(exact * 100, 6))) / 100 if exact > 0 else 0.0

    def count(self, exact: int) -> int:
        """Return a count as it is shown: 0 stands for too few."""
        return exact - exact % self.buyers
