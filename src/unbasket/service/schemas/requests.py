"""Schemas of requests: query parameters, then bodies, with their limits."""

from collections.abc import Iterable
from itertools import chain
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from unbasket.domain.id_text import parse_id
from unbasket.params import MAX_SEED, Grouping
from unbasket.service.schemas import HowMany, Id, Items, Moment, PageSize, Strict, Time
from unbasket.store import Receipt
from unbasket.store.rules import MAX_RULES

Text = Annotated[str, Meta(min_length=1)]
HowLarge = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Decay = Annotated[float, Meta(gt=0, le=1)]
BasketTime = Annotated[
    Moment | None,
    Meta(description="The time of purchase, in the shop's unit; null: now, by the service's clock."),
]

# Path parameters ------------------------------------------------------------------------------------------------

PATH_PARAMETERS = {
    "user": Annotated[Text, Meta(description="The id of a user, URL-encoded.")],
    "basket": Annotated[Text, Meta(description="The id of a basket, unique within its user, URL-encoded.")],
    "item": Annotated[Text, Meta(description="The id of an item, URL-encoded.")],
    "category": Annotated[Text, Meta(description="The name of a category, URL-encoded.")],
    "number": Annotated[int, Meta(ge=1, description="The number of a receipt, from 1 on.")],
}

# Query parameters -----------------------------------------------------------------------------------------------


class NoQuery(Strict, frozen=True):
    """No query parameters."""


class HowManyQuery(Strict, frozen=True):
    """The number of results."""

    n: Annotated[HowMany, Meta(description="The number of results, at most.")] = 10


MAX_EXPLAINED = 100
"""Items per request that can be explained."""

MAX_SHOPPER_ITEMS = 500
"""Items in the cart, or in the basket of a preview, that a request with a shopper's token may have."""


class FilterQuery(Strict, frozen=True):
    """Filters on items. An empty list is no condition."""

    exclude: list[Annotated[Text, Meta(description="An item to leave out.")]] = field(default_factory=list)
    only: list[Annotated[Text, Meta(description="An item to keep; all others are left out.")]] = field(
        default_factory=list
    )
    category: list[Annotated[str, Meta(description="A category to keep; items of others are left out.")]] = field(
        default_factory=list
    )

    def filters(self) -> dict[str, Any]:
        """Return the filters as arguments of the engine."""
        return {
            "exclude": [parse_id(text) for text in self.exclude],
            "only": [parse_id(text) for text in self.only] or None,
            "category": self.category or None,
        }


class RecommendationsQuery(FilterQuery, frozen=True):
    """Filters and number of recommendations, the cart, explanations, and further columns of the catalog."""

    n: Annotated[HowMany, Meta(description=f"The number of items, at most; {MAX_EXPLAINED} with `explain`.")] = 10
    only_new: Annotated[bool, Meta(description="Leave out the items that the user has bought.")] = False
    cart: list[Annotated[Text, Meta(description="An item that the user is about to buy; it is not recommended.")]] = (
        field(default_factory=list)
    )
    explain: Annotated[bool, Meta(description="Explain the score of each item.")] = False
    fields: list[Annotated[Text, Meta(description="A further column of the catalog to return.")]] = field(
        default_factory=list
    )


class PopularQuery(FilterQuery, frozen=True):
    """Filters and number of items, and the time from which baskets count."""

    n: Annotated[HowMany, Meta(description="The number of items, at most.")] = 10
    since: Annotated[Time | None, Meta(description="The time from which baskets count, in the shop's unit.")] = None


class PageQuery(Strict, frozen=True):
    """A page of a list."""

    after: Annotated[str, Meta(description="The `next` of the page before; empty for the first page.")] = ""
    limit: Annotated[PageSize, Meta(description="The number of entries on a page, at most.")] = 100


class UsersQuery(PageQuery, frozen=True):
    """A page of users whose ids start with `prefix`."""

    prefix: Annotated[str, Meta(description="The beginning of the ids; empty for all users.")] = ""


class ItemsQuery(PageQuery, frozen=True):
    """A page of items whose names or ids contain `query`."""

    query: Annotated[str, Meta(description="A part of the names or ids, in any case; empty for all items.")] = ""


class ReceiptsQuery(Strict, frozen=True):
    """A page of receipts in an order, starting after the receipt number `after`; 0 is the first page."""

    order: Annotated[Literal["oldest", "newest"], Meta(description="The receipts that come first.")] = "oldest"
    after: Annotated[int, Meta(ge=0, le=2**62, description="The `next` of the page before; 0 for the first page.")] = 0
    limit: Annotated[PageSize, Meta(description="The number of receipts on a page, at most.")] = 100


# Bodies ---------------------------------------------------------------------------------------------------------


class ChangedParams(Strict, frozen=True):
    """Parameters of the model to change; others stay."""

    group_size: Annotated[
        HowLarge | UnsetType, Meta(description="Baskets per group, m; with the grouping `count`, the number of groups.")
    ] = UNSET
    basket_decay: Annotated[Decay | UnsetType, Meta(description="The decay within a group, r_b.")] = UNSET
    group_decay: Annotated[Decay | UnsetType, Meta(description="The decay from group to group, r_g.")] = UNSET
    neighbors: Annotated[HowLarge | UnsetType, Meta(description="The number of neighbors, k.")] = UNSET
    alpha: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | Literal["learned"] | UnsetType,
        Meta(description="The weight of the own baskets, or `learned`: the model computes it."),
    ] = UNSET
    repurchase: Annotated[
        Annotated[float, Meta(ge=0.001, le=1000)] | UnsetType | None,
        Meta(description="The evidence that the factor of an item needs, in purchases; null: no factors."),
    ] = UNSET
    grouping: Annotated[Grouping | UnsetType, Meta(description="The effect of a deletion on the groups.")] = UNSET
    pool: Annotated[
        HowLarge | UnsetType | None,
        Meta(description="The number of users among whom neighbors are searched; null: all."),
    ] = UNSET
    pool_seed: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_SEED)] | UnsetType | None, Meta(description="The seed that draws the pool.")
    ] = UNSET


class ChangedIds(Strict, frozen=True):
    """The kinds of ids that become texts; others stay."""

    user: Annotated[Literal["text"] | None, Meta(description="The new type of the ids of users; null: as it is.")] = (
        None
    )
    basket: Annotated[
        Literal["text"] | None, Meta(description="The new type of the ids of baskets; null: as it is.")
    ] = None
    item: Annotated[Literal["text"] | None, Meta(description="The new type of the ids of items; null: as it is.")] = (
        None
    )


class NewBasket(Strict, frozen=True):
    """A basket to learn. Without a time, it becomes the user's latest."""

    items: Annotated[Items, Meta(description="The items of the basket; repeated ones count once.")]
    time: BasketTime = None

    def ids(self) -> Iterable[Id]:
        return self.items


class LearnEvent(Strict, frozen=True, tag_field="event", tag="learn"):
    """An event that learns or edits a basket."""

    user: Annotated[Id, Meta(description="The user.")]
    basket: Annotated[Id, Meta(description="The basket, unique within its user.")]
    items: Annotated[Items, Meta(description="The items of the basket; repeated ones count once.")]
    time: BasketTime = None

    def ids(self) -> Iterable[Id]:
        return (self.user, self.basket, *self.items)


class ForgetEvent(Strict, frozen=True, tag_field="event", tag="forget"):
    """An event that forgets a user, a basket, an item of a basket, or an item of all baskets."""

    user: Annotated[Id, Meta(description="The user.")]
    basket: Annotated[Id | None, Meta(description="The basket; null: all of the user's baskets.")] = None
    item: Annotated[Id | None, Meta(description="The item; null: all items.")] = None

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

    basket: Annotated[Id | None, Meta(description="The basket; null: all baskets.")] = None
    item: Annotated[Id | None, Meta(description="The item; null: all items.")] = None
    category: Annotated[str | None, Meta(description="The category; null: all categories.")] = None

    def ids(self) -> Iterable[Id | None]:
        return (self.basket, self.item)


class LearnPart(Strict, frozen=True):
    """A basket to learn as the user's latest."""

    items: Annotated[
        Items,
        Meta(description=f"The items of the basket; at most {MAX_SHOPPER_ITEMS} with a shopper's token."),
    ]

    def ids(self) -> Iterable[Id]:
        return self.items


class Preview(Strict, frozen=True):
    """A change to preview: one of the two."""

    forget: Annotated[ForgetPart | UnsetType, Meta(description="The purchases to leave out.")] = UNSET
    learn: Annotated[LearnPart | UnsetType, Meta(description="The basket to add.")] = UNSET

    def ids(self) -> Iterable[Id | None]:
        return chain.from_iterable(part.ids() for part in (self.forget, self.learn) if part)


PreviewBody = Annotated[Preview, Meta(extra_json_schema={"minProperties": 1, "maxProperties": 1})]


MAX_VISITOR_BASKETS = 1_000
"""Baskets of a visitor."""


class Visitor(Strict, frozen=True):
    """A visitor without an account: baskets, oldest first, the cart, and filters."""

    baskets: Annotated[
        list[Items], Meta(max_length=MAX_VISITOR_BASKETS, description="The items of each basket, oldest first.")
    ] = field(default_factory=list)
    cart: Annotated[
        list[Id],
        Meta(max_length=8192, description="The items that the visitor is about to buy; they are not recommended."),
    ] = field(default_factory=list)
    n: Annotated[HowMany, Meta(description="The number of items, at most.")] = 10
    only_new: Annotated[bool, Meta(description="Leave out the items of the baskets.")] = False
    exclude: Annotated[list[Id], Meta(description="The items to leave out.")] = field(default_factory=list)
    only: Annotated[list[Id] | None, Meta(description="The items to keep; null: all items.")] = None
    category: Annotated[list[str] | None, Meta(description="The categories to keep; null: all categories.")] = None
    fields: Annotated[list[Text], Meta(description="The further columns of the catalog to return.")] = field(
        default_factory=list
    )

    def filters(self) -> dict[str, Any]:
        """Return the filters as arguments of the engine."""
        return {"exclude": self.exclude, "only": self.only, "category": self.category}

    def ids(self) -> Iterable[Id]:
        return chain(*self.baskets, self.cart, self.exclude, self.only or ())


MAX_AVAILABILITY_ITEMS = 100_000
"""Items that one request may hide, and that it may show."""


class Availability(Strict, frozen=True):
    """Items to hide because they are out of stock, and items to show again."""

    hide: Annotated[
        list[Id], Meta(max_length=MAX_AVAILABILITY_ITEMS, description="The items to hide: out of stock.")
    ] = field(default_factory=list)
    show: Annotated[list[Id], Meta(max_length=MAX_AVAILABILITY_ITEMS, description="The items to show again.")] = field(
        default_factory=list
    )

    def ids(self) -> Iterable[Id]:
        return chain(self.hide, self.show)


class Renaming(Strict, frozen=True):
    """The user into whom another is merged, known or not."""

    to: Annotated[Id, Meta(description="The user who gets the baskets and suppressions.")]

    def ids(self) -> Iterable[Id]:
        return (self.to,)


class GivenReceipts(Strict, frozen=True):
    """Receipts to verify, and to compare with the stored ones."""

    receipts: Annotated[list[Receipt], Meta(description=f"The receipts to verify, at most {MAX_RECEIPTS:,}.")]


class ProofFile(Strict, frozen=True):
    """The content of a file to verify: a proof, a checkpoint, or receipts."""

    text: Annotated[str, Meta(description="The content of the file.")]


class RetentionRequest(Strict, frozen=True):
    """Retention rules in TOML. Without `run`, matching purchases are only counted."""

    rules: Annotated[str, Meta(description=f"The rules in TOML, at most {MAX_RULES:,} characters.")]
    run: Annotated[bool, Meta(description="Forget the purchases that match, instead of counting them.")] = False


class TokenRequest(Strict, frozen=True):
    """The shopper of a token, and the seconds until it expires."""

    user: Annotated[Id, Meta(description="The shopper.")]
    seconds: Annotated[int, Meta(ge=1, le=86400, description="The seconds until the token expires.")] = 600

    def ids(self) -> Iterable[Id]:
        return (self.user,)
