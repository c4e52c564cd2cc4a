"""Schemas of query parameters."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from unbasket.domain.id_text import LiveIdReader
from unbasket.service.schemas import HowMany, PageSize, Strict, Time


class NoQuery(Strict, frozen=True):
    """No query parameters."""


class HowManyQuery(Strict, frozen=True):
    """The number of results."""

    n: HowMany = 10


MAX_EXPLAINED = 100
"""Items per request that can be explained."""


Text = Annotated[str, Meta(min_length=1)]


class FilterQuery(Strict, frozen=True):
    """Filters on items. An empty list is no condition."""

    exclude: list[Text] = field(default_factory=list)
    only: list[Text] = field(default_factory=list)
    category: list[str] = field(default_factory=list)

    def filters(self, ids: LiveIdReader) -> dict[str, Any]:
        """Return the filters as arguments of the engine."""
        return {
            "exclude": [ids.item(text) for text in self.exclude],
            "only": [ids.item(text) for text in self.only] or None,
            "category": self.category or None,
        }


class RecommendationsQuery(FilterQuery, frozen=True):
    """Filters and number of recommendations, the cart, explanations, and further columns of the catalog."""

    n: Annotated[HowMany, Meta(description=f"At most {MAX_EXPLAINED} with `explain`.")] = 10
    only_new: bool = False
    cart: list[Text] = field(default_factory=list)
    explain: bool = False
    fields: list[Text] = field(default_factory=list)


class PopularQuery(FilterQuery, frozen=True):
    """Filters and number of items, and the time from which baskets count."""

    n: HowMany = 10
    since: Time | None = None


class UsersQuery(Strict, frozen=True):
    """A page of users whose ids start with `prefix`."""

    prefix: str = ""
    after: str = ""
    limit: PageSize = 100


class ItemsQuery(Strict, frozen=True):
    """A page of items whose names or ids contain `query`."""

    query: str = ""
    after: str = ""
    limit: PageSize = 100


class PageQuery(Strict, frozen=True):
    """A page of a list."""

    after: str = ""
    limit: PageSize = 100


class ReceiptsQuery(Strict, frozen=True):
    """A page of receipts in an order, starting after the receipt number `after`; 0 is the first page."""

    order: Literal["oldest", "newest"] = "oldest"
    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: PageSize = 100
