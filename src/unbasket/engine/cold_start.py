"""Recommendations for users without any baskets."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import NamedTuple

from unbasket.domain.ids import Id
from unbasket.domain.privacy import PrivacyThreshold
from unbasket.domain.results import Basket, ItemCount
from unbasket.domain.times import UNITS, time_before
from unbasket.engine.recommender import Recommender


class ColdStart(NamedTuple):
    """The policy for unknown users: nothing, or popular items, of the last days or of a category if given."""

    nothing: bool = False
    days: int | None = None
    category: str | None = None
    time_unit: str = "s"

    def items(
        self,
        rec: Recommender,
        n: int,
        *,
        exclude: Collection[Id] | None = None,
        only: Collection[Id] | None = None,
        category: str | Collection[str] | None = None,
        privacy: PrivacyThreshold | None = None,
    ) -> list[ItemCount]:
        """Return the n most popular items that meet the filters. `category` overrides the policy's own."""
        if self.nothing:
            return []
        wanted = self.category if category is None else category
        return rec.popular(n, exclude=exclude, only=only, category=wanted, since=self._since(), privacy=privacy)

    def counts(self, basket: Basket) -> bool:
        """Return whether a basket is recent enough to count."""
        since = self._since()
        return since is None or (basket.time is not None and basket.time >= since)

    def _since(self) -> int | None:
        return None if self.days is None else time_before(datetime.now(UTC), self.days, UNITS[self.time_unit])
