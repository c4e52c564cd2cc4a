"""Schemas of requests: query parameters, then bodies, with their limits."""

from collections.abc import Iterable
from itertools import chain
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from unbasket.domain.events import Event, Forget, Learn
from unbasket.domain.id_text import parse_id
from unbasket.params import MAX_SEED, Grouping
from unbasket.service.schemas import HowMany, Id, Items, PageSize, Strict, Time
from unbasket.store import Receipt
from unbasket.store.rules import MAX_RULES

Text = Annotated[str, Meta(min_length=1)]
HowLarge = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Decay = Annotated[float, Meta(gt=0, le=1)]

# Query parameters -----------------------------------------------------------------------------------------------


class NoQuery(Strict, frozen=True):
    """No query parameters."""


class HowManyQuery(Strict, frozen=True):
    """The number of results."""

    n: HowMany = 10


MAX_EXPLAINED = 100
"""Items per request that can be explained."""

MAX_SHOPPER_ITEMS = 500
"""Items in the cart, or in the basket of a preview, that a request with a shopper's token may have."""


class FilterQuery(Strict, frozen=True):
    """Filters on items. An empty list is no condition."""

    exclude: list[Text] = field(default_factory=list)
    only: list[Text] = field(default_factory=list)
    category: list[str] = field(default_factory=list)

    def filters(self) -> dict[str, Any]:
        """Return the filters as arguments of the engine."""
        return {
            "exclude": [parse_id(text) for text in self.exclude],
            "only": [parse_id(text) for text in self.only] or None,
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


class PageQuery(Strict, frozen=True):
    """A page of a list."""

    after: str = ""
    limit: PageSize = 100


class UsersQuery(PageQuery, frozen=True):
    """A page of users whose ids start with `prefix`."""

    prefix: str = ""


class ItemsQuery(PageQuery, frozen=True):
    """A page of items whose names or ids contain `query`."""

    query: str = ""


class ReceiptsQuery(Strict, frozen=True):
    """A page of receipts in an order, starting after the receipt number `after`; 0 is the first page."""

    order: Literal["oldest", "newest"] = "oldest"
    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: PageSize = 100


# Bodies ---------------------------------------------------------------------------------------------------------


class ChangedParams(Strict, frozen=True):
    """Parameters of the model to change; others stay."""

    group_size: HowLarge | UnsetType = UNSET
    basket_decay: Decay | UnsetType = UNSET
    group_decay: Decay | UnsetType = UNSET
    neighbors: HowLarge | UnsetType = UNSET
    alpha: Annotated[float, Meta(ge=0, le=1)] | Literal["learned"] | UnsetType = UNSET
    repurchase: Annotated[float, Meta(ge=0.001, le=1000)] | UnsetType | None = UNSET
    grouping: Grouping | UnsetType = UNSET
    pool: HowLarge | UnsetType | None = UNSET
    pool_seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | UnsetType | None = UNSET


class ChangedIds(Strict, frozen=True):
    """The kinds of ids that become texts; others stay."""

    user: Literal["text"] | None = None
    basket: Literal["text"] | None = None
    item: Literal["text"] | None = None


class NewBasket(Strict, frozen=True):
    """A basket to learn. Without a time, it becomes the user's latest."""

    items: Items
    time: Time | None = None

    def ids(self) -> Iterable[Id]:
        return self.items


class LearnEvent(Strict, frozen=True, tag_field="event", tag="learn"):
    """An event that learns or edits a basket."""

    user: Id
    basket: Id
    items: Items
    time: Time | None = None

    def event(self) -> Event:
        """Return the engine's event."""
        return Learn(self.user, self.items, self.basket, self.time)

    def ids(self) -> Iterable[Id]:
        return (self.user, self.basket, *self.items)


class ForgetEvent(Strict, frozen=True, tag_field="event", tag="forget"):
    """An event that forgets a user, a basket, an item of a basket, or an item of all baskets."""

    user: Id
    basket: Id | None = None
    item: Id | None = None

    def event(self) -> Event:
        """Return the engine's event."""
        return Forget(self.user, self.basket, self.item)

    def ids(self) -> Iterable[Id | None]:
        return (self.user, self.basket, self.item)


MAX_EVENTS, MAX_FORGETS, MAX_RECEIPTS = 10_000, 1_000, 10_000
"""Limits per request, since others wait for it. Handlers check them, with an error that says what to do."""

MAX_READ = 2_000_000
"""Purchases that the forgets of a request may read while other writers wait; each reads all of its user's."""

Events = Annotated[
    list[LearnEvent | ForgetEvent],
    Meta(description=f"At most {MAX_EVENTS:,} events, of which at most {MAX_FORGETS:,} forget."),
]


class ForgetPart(Strict, frozen=True):
    """Purchases to forget: those that match all given fields, or all without any."""

    basket: Id | None = None
    item: Id | None = None
    category: str | None = None

    def ids(self) -> Iterable[Id | None]:
        return (self.basket, self.item)


class LearnPart(Strict, frozen=True):
    """A basket to learn as the user's latest."""

    items: Annotated[Items, Meta(description=f"At most {MAX_SHOPPER_ITEMS} items with a shopper's token.")]

    def ids(self) -> Iterable[Id]:
        return self.items


class Preview(Strict, frozen=True):
    """A change to preview: one of the two."""

    forget: ForgetPart | UnsetType = UNSET
    learn: LearnPart | UnsetType = UNSET

    def ids(self) -> Iterable[Id | None]:
        return chain.from_iterable(part.ids() for part in (self.forget, self.learn) if part)


PreviewBody = Annotated[Preview, Meta(extra_json_schema={"minProperties": 1, "maxProperties": 1})]


MAX_VISITOR_BASKETS = 1_000
"""Baskets of a visitor."""


class Visitor(Strict, frozen=True):
    """A visitor without an account: baskets, oldest first, the cart, and filters."""

    baskets: Annotated[list[Items], Meta(max_length=MAX_VISITOR_BASKETS)] = field(default_factory=list)
    cart: Annotated[list[Id], Meta(max_length=8192)] = field(default_factory=list)
    n: HowMany = 10
    only_new: bool = False
    exclude: list[Id] = field(default_factory=list)
    only: list[Id] | None = None
    category: list[str] | None = None
    fields: list[Text] = field(default_factory=list)

    def filters(self) -> dict[str, Any]:
        """Return the filters as arguments of the engine."""
        return {"exclude": self.exclude, "only": self.only, "category": self.category}

    def ids(self) -> Iterable[Id]:
        return chain(*self.baskets, self.cart, self.exclude, self.only or ())


MAX_AVAILABILITY_ITEMS = 100_000
"""Items that one request may hide, and that it may show."""


class Availability(Strict, frozen=True):
    """Items to hide because they are out of stock, and items to show again."""

    hide: Annotated[list[Id], Meta(max_length=MAX_AVAILABILITY_ITEMS)] = field(default_factory=list)
    show: Annotated[list[Id], Meta(max_length=MAX_AVAILABILITY_ITEMS)] = field(default_factory=list)

    def ids(self) -> Iterable[Id]:
        return chain(self.hide, self.show)


class Renaming(Strict, frozen=True):
    """The user into whom another is merged, known or not."""

    to: Id

    def ids(self) -> Iterable[Id]:
        return (self.to,)


class GivenReceipts(Strict, frozen=True):
    """Receipts to verify, and to compare with the stored ones."""

    receipts: Annotated[list[Receipt], Meta(description=f"At most {MAX_RECEIPTS:,} of them.")]


class RetentionRequest(Strict, frozen=True):
    """Retention rules in TOML. Without `run`, matching purchases are only counted."""

    rules: Annotated[str, Meta(description=f"At most {MAX_RULES:,} characters.")]
    run: bool = False


class TokenRequest(Strict, frozen=True):
    """The shopper of a token, and the seconds until it expires."""

    user: Id
    seconds: Annotated[int, Meta(ge=1, le=86400)] = 600

    def ids(self) -> Iterable[Id]:
        return (self.user,)
