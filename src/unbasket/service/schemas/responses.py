"""The bodies of answers."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from unbasket.domain.ids import Id as AnyId
from unbasket.domain.results import Forgotten, Value
from unbasket.service.api_keys import Role
from unbasket.service.metrics import Figures
from unbasket.service.schemas.fields import Count
from unbasket.store import Receipt


class Sparse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of answers that leave out the fields without a value."""


class LearnedAnswer(msgspec.Struct, frozen=True):
    """What a learn did."""

    result: Literal["added", "replaced", "unchanged"]
    basket: AnyId


class Removed(msgspec.Struct, frozen=True):
    """What a forget removed: purchases, and the baskets and users that vanished with them."""

    purchases: Count
    baskets: Count
    users: Count

    @classmethod
    def of(cls, forgotten: Forgotten) -> "Removed":
        """The same in JSON."""
        return cls(*forgotten)


class ForgottenAnswer(msgspec.Struct, frozen=True):
    """A forget: its receipt, and the seconds until its bytes were gone."""

    removed: Removed
    receipt: Receipt
    seconds: float


class ForgottenManyAnswer(msgspec.Struct, frozen=True):
    """Forgets in one batch."""

    removed: Removed
    receipts: list[Receipt]
    seconds: float


class EventResult(Sparse, frozen=True):
    """What an event did: a learn has a result, a forget a receipt."""

    result: Literal["added", "replaced", "unchanged"] | UnsetType = UNSET
    receipt: Receipt | UnsetType = UNSET


class EventsAnswer(msgspec.Struct, frozen=True):
    """What each event did, and the seconds until all of it was on disk, or gone from it."""

    results: list[EventResult]
    seconds: float


class Item(Sparse, frozen=True):
    """An item, with its name and category."""

    item: AnyId
    name: str | None = None
    category: str | None = None


class BasketPart(msgspec.Struct, frozen=True):
    """The share of a score that comes from one of the user's own baskets."""

    basket: AnyId
    time: int | None
    share: float


class ExplanationAnswer(Sparse, frozen=True):
    """Why an item scores what it does: the shares sum to the score. Similar users are counted, never named."""

    item: AnyId
    score: float
    baskets: list[BasketPart]
    neighbors_share: float
    neighbors_with_item: Count
    neighbors: Count
    name: str | None = None
    category: str | None = None


class Recommended(Sparse, frozen=True):
    """A recommended item. To an unknown user, the score is the number of all baskets that have it."""

    item: AnyId
    score: float
    name: str | None = None
    category: str | None = None
    fields: dict[str, Value] | None = None
    explanation: ExplanationAnswer | None = None


class RecommendationsAnswer(msgspec.Struct, frozen=True):
    """Items for the user's next basket, best first. If nothing is held about the user, they are `popular` ones, or
    whatever else the shop has chosen for that.
    """

    user: AnyId
    popular: bool
    recommendations: list[Recommended]


class VisitorAnswer(msgspec.Struct, frozen=True):
    """Items for the visitor's next basket, best first; `popular` ones if there are neither baskets nor a cart."""

    popular: bool
    recommendations: list[Recommended]


class PreviewAnswer(msgspec.Struct, frozen=True):
    """The recommendations now, and after the change. Where no basket is left, they are popular items."""

    before: list[Recommended]
    after: list[Recommended]
    popular_before: bool
    popular_after: bool


class HeldBasket(msgspec.Struct, frozen=True):
    """A basket, with everything held about it."""

    basket: AnyId
    time: int | None
    items: list[Item]


class UserAnswer(msgspec.Struct, frozen=True):
    """Everything held about a user, portable: the same as `unbasket export`."""

    format: Literal["unbasket user"]
    version: Literal[1]
    user: AnyId
    baskets: list[HeldBasket]
    suppressed: list[Item]


class RenamedAnswer(msgspec.Struct, frozen=True):
    """What moved to the other user, the receipt for the id that is gone, and the seconds until its bytes were."""

    user: AnyId
    purchases: Count
    baskets: Count
    receipt: Receipt
    seconds: float


class SuppressedAnswer(msgspec.Struct, frozen=True):
    """Whether an item is suppressed for a user now, and whether that has just changed."""

    item: AnyId
    suppressed: bool
    changed: bool


class SimilarUser(msgspec.Struct, frozen=True):
    """Another user, and the Euclidean distance between the vectors."""

    user: AnyId
    distance: float


class SimilarAnswer(msgspec.Struct, frozen=True):
    """The nearest users, nearest first."""

    user: AnyId
    similar: list[SimilarUser]


class VerificationAnswer(msgspec.Struct, frozen=True):
    """Whether the live model equals, bit by bit, one trained from what remains.

    With 0 `users`, the one asked for is not there: then every record was checked to belong to somebody who is.
    """

    ok: bool
    users: Count
    mismatches: list[str]


class UsersAnswer(msgspec.Struct, frozen=True):
    """A page of users; `next` is the `after` of the next page, null at the end."""

    users: list[AnyId]
    next: str | None


class ItemsAnswer(msgspec.Struct, frozen=True):
    """A page of items; `next` is the `after` of the next page, null at the end."""

    items: list[Item]
    next: str | None


class HiddenAnswer(msgspec.Struct, frozen=True):
    """A page of hidden items; `next` is the `after` of the next page, null at the end."""

    hidden: list[AnyId]
    next: str | None


class RestockedAnswer(msgspec.Struct, frozen=True):
    """How many items were hidden, and how many shown, that had not been so before."""

    hidden: Count
    shown: Count


class Category(msgspec.Struct, frozen=True):
    """A category, and how many items are in it."""

    category: str
    items: Count


class CategoriesAnswer(msgspec.Struct, frozen=True):
    """All categories, by name."""

    categories: list[Category]


class PopularItem(Sparse, frozen=True):
    """An item, and the number of baskets that have it."""

    item: AnyId
    baskets: Count
    name: str | None = None
    category: str | None = None


class PopularAnswer(msgspec.Struct, frozen=True):
    """The items in most baskets."""

    items: list[PopularItem]


class ReceiptsAnswer(msgspec.Struct, frozen=True):
    """A page of receipts; `next` is the `after` of the next page, null at the end.

    `seconds` is the time to erasure of each, null if that was before the service was started.
    """

    receipts: list[Receipt]
    seconds: list[float | None]
    next: int | None


Run = Annotated[list[int], Meta(min_length=2, max_length=2)]


class AuditAnswer(msgspec.Struct, frozen=True):
    """Whether receipts are as they were signed, and the public keys that signed them: of all that are held, none may be
    missing; those of a request may be a part of the chain, and must be the ones that are held.

    In `chained`, from one number to another, each receipt follows the one before it; those `missing` were not given,
    though later ones were. `summary` says it in a sentence.
    """

    ok: bool
    receipts: Count
    keys: list[str]
    faults: list[str]
    chained: list[Run]
    missing: list[Run]
    summary: str


class RuleAnswer(msgspec.Struct, frozen=True):
    """What one rule forgets, and no rule above it."""

    name: str
    users: Count
    baskets: Count
    purchases: Count
    warnings: list[str]


class RetentionAnswer(msgspec.Struct, frozen=True):
    """What the rules forget, or, when `done`, have forgotten with so many receipts. `share` is the part of all
    purchases in the shop, from 0 to 1.
    """

    done: bool
    rules: list[RuleAnswer]
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
    alpha: float
    grouping: str
    pool: int | None
    pool_seed: int | None


class StatsAnswer(Figures, frozen=True):
    """How the service is doing: the last minute, sizes, and the parameters of the model."""

    params: ModelParams


class TokenAnswer(msgspec.Struct, frozen=True):
    """A token, and the moment (seconds since 1970) at which it ends."""

    token: str
    user: AnyId
    expires: int


class MeAnswer(msgspec.Struct, frozen=True):
    """Who asks: a key by its name, or a shopper. If the service has no keys, it is neither, with all roles."""

    key: str | None
    shopper: AnyId | None
    roles: list[Role]


class HealthAnswer(msgspec.Struct, frozen=True):
    """The process answers."""

    ok: Literal[True] = True


class ReadyAnswer(msgspec.Struct, frozen=True):
    """Whether the shop is loaded, and how far it is: done, and in all."""

    ready: bool
    stage: str
    progress: Annotated[list[Count], Meta(min_length=2, max_length=2)]
