"""Schemas of responses."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from unbasket.domain.ids import Id as AnyId
from unbasket.domain.results import Value
from unbasket.service.api_keys import Role
from unbasket.service.metrics import Stats
from unbasket.service.schemas import Count
from unbasket.store import Receipt


class Sparse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of responses that omit fields without a value."""


LearnResult = Literal["added", "replaced", "unchanged", "learned"]
"""A caller that may not read gets "learned", whatever was there before."""


class LearnedResponse(msgspec.Struct, frozen=True):
    """The result of a learn."""

    result: LearnResult
    basket: AnyId


class Removed(msgspec.Struct, frozen=True):
    """Removed purchases, and the baskets and users that were left without any."""

    purchases: Count
    baskets: Count
    users: Count


class ForgottenResponse(msgspec.Struct, frozen=True):
    """A forget with its receipt, and the seconds until its bytes were erased."""

    removed: Removed
    receipt: Receipt
    seconds: float


class ForgottenManyResponse(msgspec.Struct, frozen=True):
    """Forgets in one batch, with their receipts."""

    removed: Removed
    receipts: list[Receipt]
    seconds: float


class EventResult(Sparse, frozen=True):
    """The outcome of an event: a learn has a result, a forget a receipt."""

    result: LearnResult | UnsetType = UNSET
    receipt: Receipt | UnsetType = UNSET


class EventsResponse(msgspec.Struct, frozen=True):
    """The outcome of each event, and the seconds until all were durable."""

    results: list[EventResult]
    seconds: float


class Item(Sparse, frozen=True):
    """An item, with its name and category."""

    item: AnyId
    name: str | None = None
    category: str | None = None


class BasketPart(msgspec.Struct, frozen=True):
    """The share of a score that comes from one of the user's baskets."""

    basket: AnyId
    time: int | None
    share: float


class ExplanationResponse(Sparse, frozen=True):
    """The shares of an item's score, which sum to it. Neighbors are counted, never named.

    The baskets' shares sum to weight times alpha times factor.

    For a shopper, the score and the neighbors' share are rounded up, counts down, and a count of too few is null.
    """

    item: AnyId
    score: float
    baskets: list[BasketPart]
    neighbors_share: float
    neighbors_with_item: Count | None
    neighbors: Count | None
    weight: float
    alpha: float
    factor: float
    name: str | None = None
    category: str | None = None


class Recommended(Sparse, frozen=True):
    """A recommended item. For an unknown user, the score is the number of baskets with the item."""

    item: AnyId
    score: float
    name: str | None = None
    category: str | None = None
    fields: dict[str, Value] | None = None
    explanation: ExplanationResponse | None = None


class RecommendationsResponse(msgspec.Struct, frozen=True):
    """Items for the user's next basket, best first. For an unknown user they are `popular` ones, or as the fallback
    settings say.
    """

    user: AnyId
    popular: bool
    recommendations: list[Recommended]


class VisitorResponse(msgspec.Struct, frozen=True):
    """Items for the visitor's next basket, best first; `popular` ones without baskets and cart."""

    popular: bool
    recommendations: list[Recommended]


class PreviewResponse(msgspec.Struct, frozen=True):
    """The recommendations before and after a change. Without baskets, they are popular items."""

    before: list[Recommended]
    after: list[Recommended]
    popular_before: bool
    popular_after: bool


class HeldBasket(msgspec.Struct, frozen=True):
    """A stored basket."""

    basket: AnyId
    time: int | None
    items: list[Item]


class UserResponse(msgspec.Struct, frozen=True):
    """Everything stored about a user, portable: the same as `unbasket export`."""

    format: Literal["unbasket user"]
    version: Literal[1]
    user: AnyId
    baskets: list[HeldBasket]
    suppressed: list[Item]


class RenamedResponse(msgspec.Struct, frozen=True):
    """The purchases and baskets moved to the other user, the receipt for the erased id, and the seconds it took."""

    user: AnyId
    purchases: Count
    baskets: Count
    receipt: Receipt
    seconds: float


class SuppressedResponse(msgspec.Struct, frozen=True):
    """Whether an item is suppressed for a user, and whether the request changed that; null for a caller that may not
    read.
    """

    item: AnyId
    suppressed: bool
    changed: bool | None


class SimilarUser(msgspec.Struct, frozen=True):
    """A neighbor, and the Euclidean distance between the vectors."""

    user: AnyId
    distance: float


class SimilarResponse(msgspec.Struct, frozen=True):
    """The nearest users, nearest first."""

    user: AnyId
    similar: list[SimilarUser]


class VerificationResponse(msgspec.Struct, frozen=True):
    """Whether the live model equals, bit by bit, a model trained from the remaining baskets.

    If the user is unknown, `users` is 0, and all records were checked for orphans.
    """

    ok: bool
    users: Count
    mismatches: list[str]


class UsersResponse(msgspec.Struct, frozen=True):
    """A page of users; `next` is the `after` of the next page, null at the end."""

    users: list[AnyId]
    next: str | None


class ItemsResponse(msgspec.Struct, frozen=True):
    """A page of items; `next` is the `after` of the next page, null at the end."""

    items: list[Item]
    next: str | None


class HiddenResponse(msgspec.Struct, frozen=True):
    """A page of hidden items; `next` is the `after` of the next page, null at the end."""

    hidden: list[AnyId]
    next: str | None


class AvailabilityResponse(msgspec.Struct, frozen=True):
    """The numbers of items that are newly hidden and newly shown."""

    hidden: Count
    shown: Count


class Category(msgspec.Struct, frozen=True):
    """A category, and the number of its items."""

    category: str
    items: Count


class CategoriesResponse(msgspec.Struct, frozen=True):
    """All categories, by name."""

    categories: list[Category]


class PopularItem(Sparse, frozen=True):
    """An item, and the number of baskets with it."""

    item: AnyId
    baskets: Count
    name: str | None = None
    category: str | None = None


class PopularResponse(msgspec.Struct, frozen=True):
    """The items in most baskets."""

    items: list[PopularItem]


class ReceiptsResponse(msgspec.Struct, frozen=True):
    """A page of receipts; `next` is the `after` of the next page, null at the end.

    `seconds` has the time to erasure of each, null if it was before the service started.
    """

    receipts: list[Receipt]
    seconds: list[float | None]
    next: int | None


Run = Annotated[list[int], Meta(min_length=2, max_length=2)]


class AuditResponse(msgspec.Struct, frozen=True):
    """The verification of receipts, and the public keys that signed them. Stored receipts must be complete; given ones
    may be a part of the chain, and must equal the stored ones.

    `chained` has runs of receipts, first to last number, that follow each other; `missing` has the gaps before later
    ones. `warnings` are about times that run backwards. `summary` is a sentence.
    """

    ok: bool
    receipts: Count
    keys: list[str]
    faults: list[str]
    chained: list[Run]
    missing: list[Run]
    warnings: list[str]
    summary: str


class RuleResponse(msgspec.Struct, frozen=True):
    """The purchases that match a rule, and no rule above it."""

    name: str
    users: Count
    baskets: Count
    purchases: Count
    warnings: list[str]


class RetentionResponse(msgspec.Struct, frozen=True):
    """The purchases that the rules match, forgotten if `done`. `share` is their part of all purchases, 0 to 1."""

    done: bool
    rules: list[RuleResponse]
    forgotten: Removed
    share: float
    receipts: Count
    seconds: float


class ModelParams(msgspec.Struct, frozen=True):
    """The parameters of the model."""

    group_size: int
    basket_decay: float
    group_decay: float
    neighbors: int
    alpha: float | Literal["learned"]
    repurchase: float | None
    grouping: str
    pool: int | None
    pool_seed: int | None


class LearnedFactor(Sparse, frozen=True):
    """An item, how readily it is bought again (1: as most things), and how many people bought it."""

    item: AnyId
    factor: float
    buyers: Count
    name: str | None = None
    category: str | None = None


class LearnedWeightsResponse(msgspec.Struct, frozen=True):
    """The alpha in effect, whether it is learned, from how many users, and the items with extreme factors.

    Only items that at least 20 people bought are listed.
    """

    learned: bool
    alpha: float
    users: Count
    most: list[LearnedFactor]
    least: list[LearnedFactor]


class IdTypesResponse(msgspec.Struct, frozen=True):
    """The type of each kind of id; null for a kind that is not held yet, whose first id will decide."""

    user: Literal["number", "text"] | None
    basket: Literal["number", "text"] | None
    item: Literal["number", "text"] | None


class StatsResponse(Stats, frozen=True):
    """The stats of the last minute, and the parameters of the model."""

    params: ModelParams


class TokenResponse(msgspec.Struct, frozen=True):
    """A token, and its expiry in seconds since 1970."""

    token: str
    user: AnyId
    expires: int


class MeResponse(msgspec.Struct, frozen=True):
    """The caller: a key by its name, or a shopper. Without keys it is neither, with all roles."""

    key: str | None
    shopper: AnyId | None
    roles: list[Role]


class HealthResponse(msgspec.Struct, frozen=True):
    """Liveness of the process."""

    ok: Literal[True] = True


class ReadyResponse(msgspec.Struct, frozen=True):
    """Whether the database is loaded, and the progress: done and total."""

    ready: bool
    stage: str
    progress: Annotated[list[Count], Meta(min_length=2, max_length=2)]
