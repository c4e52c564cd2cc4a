"""What can stand behind the question mark of an address."""

from typing import Annotated, Literal

from msgspec import Meta, field

from unbasket.service.shapes.fields import HowMany, PageSize, Strict


class NoQuery(Strict, frozen=True):
    """No query parameters."""


class HowManyQuery(Strict, frozen=True):
    """How many to list."""

    n: HowMany = 10


MAX_EXPLAINED = 100
"""Items that are recommended with explanations at a time."""


class RecommendationsQuery(Strict, frozen=True):
    """How many items, which to leave out, and whether to say why."""

    n: Annotated[HowMany, Meta(description=f"At most {MAX_EXPLAINED} with `explain`.")] = 10
    only_new: bool = False
    exclude: list[Annotated[str, Meta(min_length=1)]] = field(default_factory=list)
    explain: bool = False


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


class ReceiptsQuery(Strict, frozen=True):
    """A page of receipts in an order, starting behind the one with the number `after`; 0 is the first page."""

    order: Literal["oldest", "newest"] = "oldest"
    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: PageSize = 100
