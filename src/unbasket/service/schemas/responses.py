"""Schemas of responses."""

from typing import Annotated, Literal, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from unbasket.domain.ids import Id as AnyId
from unbasket.domain.results import Explanation, Product, Value
from unbasket.service.api_keys import Role
from unbasket.service.schemas import Count
from unbasket.store import Receipt


class Sparse(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of responses that omit fields without a value."""


LearnResult = Literal["added", "replaced", "unchanged", "learned"]
"""A caller that may not read gets "learned", whatever was there before."""


UserId = Annotated[AnyId, Meta(description="The user.")]
BasketId = Annotated[AnyId, Meta(description="The basket.")]
ItemId = Annotated[AnyId, Meta(description="The item.")]
Name = Annotated[str | None, Meta(description="The name of the item, if the shop has described it.")]
CategoryName = Annotated[str | None, Meta(description="The category of the item, if it has one.")]
HeldTime = Annotated[int | None, Meta(description="The time of purchase, in the shop's unit; null without one.")]
ErasureSeconds = Annotated[float, Meta(description="The seconds until the bytes were gone from every file.")]
NextPage = Annotated[str | None, Meta(description="The `after` of the next page; null on the last one.")]
IdType = Annotated[
    Literal["number", "text"] | None, Meta(description="The type of these ids; null: the first one will decide.")
]


_SECRET = "The secret that proves whom the receipt is about, in hex. It is given once and kept nowhere."
RECEIPT_FIELDS = {
    "number": "The number of the receipt, from 1 on.",
    "request": "A random id of the request, in hex.",
    "time": "The time of the forget, in ISO 8601.",
    "scope": "The kind of forget.",
    "subject": "A hash of the user's id under the secret, in hex; empty if it is not about one user.",
    "purchases": "The number of purchases removed.",
    "baskets": "The number of baskets removed.",
    "users": "The number of users removed.",
    "before": "The digest of the model before, in hex.",
    "after": "The digest of the model after, in hex.",
    "verified": "Whether the model equals one that never saw the forgotten data.",
    "detail": "The new public key, or the reason why a rollback was accepted; empty for a forget.",
    "previous": "The hash of the receipt before, in hex.",
    "key": "The public key, in hex.",
    "signature": "The signature of all other fields, in hex.",
}
"""The descriptions of a receipt's fields, for OpenAPI."""


class LearnedResponse(msgspec.Struct, frozen=True):
    """The result of a learn."""

    result: Annotated[LearnResult, Meta(description="The effect; `learned` for a caller that may not read.")]
    basket: BasketId


class Removed(msgspec.Struct, frozen=True):
    """Removed purchases, and the baskets and users that were left without any."""

    purchases: Annotated[Count, Meta(description="The number of purchases, which are items of baskets.")]
    baskets: Annotated[Count, Meta(description="The number of baskets that were left without an item.")]
    users: Annotated[Count, Meta(description="The number of users who were left without a basket.")]


class ForgottenResponse(msgspec.Struct, frozen=True):
    """A forget with its receipt, and the seconds until its bytes were erased."""

    removed: Annotated[Removed, Meta(description="The sizes of what was forgotten.")]
    receipt: Annotated[Receipt, Meta(description="The signed receipt.")]
    secret: Annotated[
        str,
        Meta(description=f"{_SECRET} It is empty if nothing was found and the receipt is that of an earlier request."),
    ]
    seconds: ErasureSeconds


class ForgottenManyResponse(msgspec.Struct, frozen=True):
    """Forgets in one batch, with their receipts."""

    removed: Annotated[Removed, Meta(description="The sizes of what was forgotten.")]
    receipts: Annotated[list[Receipt], Meta(description="A signed receipt of each item.")]
    secrets: Annotated[
        list[str],
        Meta(description="The secret of each receipt, which proves whom it is about, in hex. They are kept nowhere."),
    ]
    seconds: ErasureSeconds


class EventResult(Sparse, frozen=True):
    """The outcome of an event: a learn has a result, a forget a receipt and its secret."""

    result: Annotated[
        LearnResult | UnsetType, Meta(description="The effect of a learn; `learned` for a caller that may not read.")
    ] = UNSET
    receipt: Annotated[Receipt | UnsetType, Meta(description="The signed receipt of a forget.")] = UNSET
    secret: Annotated[str | UnsetType, Meta(description=_SECRET)] = UNSET


class EventsResponse(msgspec.Struct, frozen=True):
    """The outcome of each event, and the seconds until all were durable."""

    results: Annotated[list[EventResult], Meta(description="The outcome of each event, in the order of the request.")]
    seconds: Annotated[float, Meta(description="The seconds until all events were on disk, and forgotten bytes gone.")]


class Item(Sparse, frozen=True):
    """An item, with its name and category."""

    item: ItemId
    name: Name = None
    category: CategoryName = None


class BasketPart(msgspec.Struct, frozen=True):
    """The share of a score that comes from one of the user's baskets."""

    basket: BasketId
    time: HeldTime
    share: Annotated[float, Meta(description="The part of the score that comes from this basket.")]


class ExplanationResponse(Sparse, frozen=True):
    """The shares of an item's score, which sum to it. Neighbors are counted, never named.

    The baskets' shares sum to weight times alpha times factor.

    For a shopper, the score and the neighbors' share are rounded up, counts down, and a count of too few is null.
    """

    item: ItemId
    score: Annotated[float, Meta(description="The score.")]
    baskets: Annotated[
        list[BasketPart], Meta(description="The share of each of the user's baskets with the item, oldest first.")
    ]
    neighbors_share: Annotated[float, Meta(description="The part of the score that comes from similar users.")]
    neighbors_with_item: Annotated[Count | None, Meta(description="The number of similar users who bought the item.")]
    neighbors: Annotated[Count | None, Meta(description="The number of similar users.")]
    weight: Annotated[float, Meta(description="The weight of the item in the user's own baskets.")]
    alpha: Annotated[float, Meta(description="The weight of the own baskets in a score, 0 to 1.")]
    factor: Annotated[float, Meta(description="How readily people buy the item again; 1: as most items.")]
    name: Name = None
    category: CategoryName = None

    @classmethod
    def of(cls, reason: Explanation, product: Product, *, hides_few: bool) -> Self:
        """Return an explanation; one that `hides_few` has no counts of too few neighbors, which are 0 there."""
        return cls(
            reason.item,
            reason.score,
            [BasketPart(*share) for share in reason.baskets],
            reason.neighbors_share,
            None if hides_few and not reason.neighbors_with_item else reason.neighbors_with_item,
            None if hides_few and not reason.neighbors else reason.neighbors,
            reason.weight,
            reason.alpha,
            reason.factor,
            product.name,
            product.category,
        )


class Recommended(Sparse, frozen=True):
    """A recommended item. For an unknown user, the score is the number of baskets with the item."""

    item: ItemId
    score: Annotated[float, Meta(description="The score; of a popular item, the number of baskets with it.")]
    name: Name = None
    category: CategoryName = None
    fields: Annotated[dict[str, Value] | None, Meta(description="The requested columns of the catalog.")] = None
    explanation: Annotated[
        ExplanationResponse | None, Meta(description="The shares of the score, if they were asked for.")
    ] = None


BestFirst = Annotated[list[Recommended], Meta(description="The items, best first.")]


class RecommendationsResponse(msgspec.Struct, frozen=True):
    """Items for the user's next basket, best first. For an unknown user they are `popular` ones, or as the fallback
    settings say.
    """

    user: UserId
    popular: Annotated[bool, Meta(description="Whether they are popular items, since the user is unknown.")]
    recommendations: BestFirst


class VisitorResponse(msgspec.Struct, frozen=True):
    """Items for the visitor's next basket, best first; `popular` ones without baskets and cart."""

    popular: Annotated[
        bool, Meta(description="Whether they are popular items, since there are neither baskets nor a cart.")
    ]
    recommendations: BestFirst


class PreviewResponse(msgspec.Struct, frozen=True):
    """The recommendations before and after a change. Without baskets, they are popular items."""

    before: Annotated[list[Recommended], Meta(description="The recommendations now.")]
    after: Annotated[list[Recommended], Meta(description="The recommendations after the change.")]
    popular_before: Annotated[bool, Meta(description="Whether those before are popular items.")]
    popular_after: Annotated[bool, Meta(description="Whether those after are popular items.")]


class HeldBasket(msgspec.Struct, frozen=True):
    """A stored basket."""

    basket: BasketId
    time: HeldTime
    items: Annotated[list[Item], Meta(description="The items of the basket, by id.")]


class Proof(msgspec.Struct, frozen=True):
    """A proof, which `python -m unbasket.verifier FILE` checks offline: what it says holds at its checkpoint."""

    format: Annotated[Literal["unbasket proof"], Meta(description="The name of the format.")]
    version: Annotated[Literal[1], Meta(description="The version of the format.")]
    checkpoint: Annotated[str, Meta(description="The signed checkpoint, as `GET /v1/checkpoint` returns it.")]
    keys: Annotated[list[Receipt], Meta(description="The receipts of all changes of the signing key.")]


class ReceiptProof(Proof, frozen=True):
    """A proof that a receipt is in the log. With `user` and `secret` added, it also proves whom it is about."""

    kind: Annotated[Literal["receipt"], Meta(description="The kind of proof.")]
    receipt: Annotated[Receipt, Meta(description="The signed receipt.")]
    inclusion: Annotated[
        list[str], Meta(description="The path from the receipt to the root of the tree of receipts, in Base64.")
    ]


class UserPath(Proof, frozen=True):
    """A path in the tree over users."""

    user: UserId
    params: Annotated[str, Meta(description="The hash of the model's parameters, in hex.")]
    others: Annotated[list[str], Meta(description="Hashes of other people at the same place; hardly ever any.")]
    siblings: Annotated[
        list[str | None], Meta(description="The hashes beside the path, from the root on, in hex; null is empty.")
    ]


class AbsenceProof(UserPath, frozen=True):
    """A proof that nothing is held about a user."""

    kind: Annotated[Literal["absence"], Meta(description="The kind of proof.")]


class ProvenBasket(msgspec.Struct, frozen=True):
    """A stored basket, as it is hashed."""

    basket: BasketId
    time: HeldTime
    opens: Annotated[bool, Meta(description="Whether the basket opens a group.")]
    items: Annotated[list[AnyId], Meta(description="The items of the basket.")]


class AccessProof(UserPath, frozen=True):
    """A proof that these baskets and suppressions are all that is held about a user."""

    kind: Annotated[Literal["access"], Meta(description="The kind of proof.")]
    baskets: Annotated[list[ProvenBasket], Meta(description="All baskets, oldest first.")]
    suppressed: Annotated[list[AnyId], Meta(description="The items that are never recommended to the user.")]
    nonce: Annotated[str, Meta(description="The nonce that hides the user's data in the tree, in hex.")]


class UserResponse(msgspec.Struct, frozen=True):
    """Everything stored about a user, portable: the same as `unbasket export`, with a proof that it is everything."""

    format: Annotated[Literal["unbasket user"], Meta(description="The name of the format.")]
    version: Annotated[Literal[1], Meta(description="The version of the format.")]
    user: UserId
    baskets: Annotated[list[HeldBasket], Meta(description="All baskets, oldest first.")]
    suppressed: Annotated[list[Item], Meta(description="The items that are never recommended to the user.")]
    proof: Annotated[AccessProof, Meta(description="The proof, as `unbasket access` writes it.")]


class RenamedResponse(msgspec.Struct, frozen=True):
    """The purchases and baskets moved to the other user, the receipt for the erased id, and the seconds it took."""

    user: UserId
    purchases: Annotated[Count, Meta(description="The number of purchases that moved.")]
    baskets: Annotated[Count, Meta(description="The number of baskets that moved.")]
    receipt: Annotated[Receipt, Meta(description="The signed receipt of the erased id.")]
    secret: Annotated[str, Meta(description=_SECRET)]
    seconds: ErasureSeconds


class SuppressedResponse(msgspec.Struct, frozen=True):
    """Whether an item is suppressed for a user, and whether the request changed that; null for a caller that may not
    read.
    """

    item: ItemId
    suppressed: Annotated[bool, Meta(description="Whether the item is suppressed now.")]
    changed: Annotated[bool | None, Meta(description="Whether that is new; null for a caller that may not read.")]


class SimilarUser(msgspec.Struct, frozen=True):
    """A neighbor, and the Euclidean distance between the vectors."""

    user: UserId
    distance: Annotated[float, Meta(description="The Euclidean distance between the vectors.")]


class SimilarResponse(msgspec.Struct, frozen=True):
    """The nearest users, nearest first."""

    user: UserId
    similar: Annotated[list[SimilarUser], Meta(description="The other users, nearest first.")]


class VerificationResponse(msgspec.Struct, frozen=True):
    """Whether the live model equals, bit by bit, a model trained from the remaining baskets.

    If the user is unknown, `users` is 0, and all records were checked for orphans.
    """

    ok: Annotated[bool, Meta(description="Whether the two models are equal, bit by bit.")]
    users: Annotated[Count, Meta(description="The number of users compared; 0 if the user is unknown.")]
    mismatches: Annotated[list[str], Meta(description="The differences, in sentences.")]


class UsersResponse(msgspec.Struct, frozen=True):
    """A page of users; `next` is the `after` of the next page, null at the end."""

    users: Annotated[list[AnyId], Meta(description="The users of this page, by id.")]
    next: NextPage


class ItemsResponse(msgspec.Struct, frozen=True):
    """A page of items; `next` is the `after` of the next page, null at the end."""

    items: Annotated[list[Item], Meta(description="The items of this page, by id.")]
    next: NextPage


class HiddenResponse(msgspec.Struct, frozen=True):
    """A page of hidden items; `next` is the `after` of the next page, null at the end."""

    hidden: Annotated[list[AnyId], Meta(description="The hidden items of this page, by id.")]
    next: NextPage


class AvailabilityResponse(msgspec.Struct, frozen=True):
    """The numbers of items that are newly hidden and newly shown."""

    hidden: Annotated[Count, Meta(description="The number of items that were not hidden before.")]
    shown: Annotated[Count, Meta(description="The number of items that were hidden before.")]


class Category(msgspec.Struct, frozen=True):
    """A category, and the number of its items."""

    category: Annotated[str, Meta(description="The name of the category.")]
    items: Annotated[Count, Meta(description="The number of items in it.")]


class CategoriesResponse(msgspec.Struct, frozen=True):
    """All categories, by name."""

    categories: Annotated[list[Category], Meta(description="All categories, by name.")]


class PopularItem(Sparse, frozen=True):
    """An item, and the number of baskets with it."""

    item: ItemId
    baskets: Annotated[Count, Meta(description="The number of baskets with the item.")]
    name: Name = None
    category: CategoryName = None


class PopularResponse(msgspec.Struct, frozen=True):
    """The items in most baskets."""

    items: Annotated[list[PopularItem], Meta(description="The items, most popular first.")]


class ReceiptsResponse(msgspec.Struct, frozen=True):
    """A page of receipts; `next` is the `after` of the next page, null at the end.

    `seconds` has the time to erasure of each, null if it was before the service started.
    """

    receipts: Annotated[list[Receipt], Meta(description="The receipts of this page.")]
    seconds: Annotated[
        list[float | None],
        Meta(description="The seconds to erasure of each; null if it was before the service started."),
    ]
    next: Annotated[int | None, Meta(description="The `after` of the next page; null on the last one.")]


Run = Annotated[list[int], Meta(min_length=2, max_length=2)]


class AuditResponse(msgspec.Struct, frozen=True):
    """The verification of receipts, and the public keys that signed them. Stored receipts must be complete; given ones
    may be a part of the chain, and must equal the stored ones.

    `chained` has runs of receipts, first to last number, that follow each other; `missing` has the gaps before later
    ones. `warnings` are about times that run backwards. `summary` is a sentence.
    """

    ok: Annotated[bool, Meta(description="Whether there are no faults.")]
    receipts: Annotated[Count, Meta(description="The number of receipts checked.")]
    keys: Annotated[list[str], Meta(description="The public keys that signed them, in hex.")]
    faults: Annotated[list[str], Meta(description="The faults, in sentences.")]
    chained: Annotated[list[Run], Meta(description="Runs of receipts that follow each other: first and last number.")]
    missing: Annotated[list[Run], Meta(description="Runs of receipts that are missing: first and last number.")]
    warnings: Annotated[list[str], Meta(description="Times that run backwards, in sentences.")]
    summary: Annotated[str, Meta(description="The outcome in a sentence.")]


class ProofVerdict(msgspec.Struct, frozen=True):
    """What a file proves, by the key that it names; or why it does not hold."""

    ok: Annotated[bool, Meta(description="Whether the proof holds.")]
    summary: Annotated[str, Meta(description="What it proves, and the key that signed it; or why it does not hold.")]


class RuleResponse(msgspec.Struct, frozen=True):
    """The purchases that match a rule, and no rule above it."""

    name: Annotated[str, Meta(description="The name of the rule.")]
    users: Annotated[Count, Meta(description="The number of users with matching purchases.")]
    baskets: Annotated[Count, Meta(description="The number of baskets with matching purchases.")]
    purchases: Annotated[Count, Meta(description="The number of matching purchases.")]
    warnings: Annotated[list[str], Meta(description="Doubts about the rule, in sentences.")]


class RetentionResponse(msgspec.Struct, frozen=True):
    """The purchases that the rules match, forgotten if `done`. `share` is their part of all purchases, 0 to 1."""

    done: Annotated[bool, Meta(description="Whether the purchases were forgotten, or only counted.")]
    rules: Annotated[list[RuleResponse], Meta(description="Each rule, in the order of the request.")]
    forgotten: Annotated[Removed, Meta(description="The sizes of what the rules forget together.")]
    share: Annotated[float, Meta(description="The share of all purchases, 0 to 1.")]
    receipts: Annotated[Count, Meta(description="The number of new receipts.")]
    seconds: Annotated[float, Meta(description="The seconds that it took.")]


class ModelParams(msgspec.Struct, frozen=True):
    """The parameters of the model."""

    group_size: Annotated[
        int, Meta(description="Baskets per group, m; with the grouping `count`, the number of groups.")
    ]
    basket_decay: Annotated[float, Meta(description="The decay within a group, r_b, 0 to 1.")]
    group_decay: Annotated[float, Meta(description="The decay from group to group, r_g, 0 to 1.")]
    neighbors: Annotated[int, Meta(description="The number of neighbors, k.")]
    alpha: Annotated[
        float | Literal["learned"], Meta(description="The weight of the own baskets, 0 to 1, or `learned`.")
    ]
    repurchase: Annotated[
        float | None, Meta(description="The evidence that the factor of an item needs, in purchases; null: no factors.")
    ]
    grouping: Annotated[str, Meta(description="The effect of a deletion on the groups: fixed, varying or count.")]
    pool: Annotated[int | None, Meta(description="The number of users among whom neighbors are searched; null: all.")]
    pool_seed: Annotated[int | None, Meta(description="The seed that draws the pool.")]


class LearnedFactor(Sparse, frozen=True):
    """An item, how readily it is bought again (1: as most things), and how many people bought it."""

    item: ItemId
    factor: Annotated[float, Meta(description="How readily people buy the item again; 1: as most items.")]
    buyers: Annotated[Count, Meta(description="The number of people who bought it.")]
    name: Name = None
    category: CategoryName = None


class LearnedWeightsResponse(msgspec.Struct, frozen=True):
    """The alpha in effect, whether it is learned, from how many users, and the items with extreme factors.

    Only items that at least 20 people bought are listed.
    """

    learned: Annotated[bool, Meta(description="Whether the model learns its weights.")]
    alpha: Annotated[float, Meta(description="The weight of the own baskets in effect, 0 to 1.")]
    users: Annotated[Count, Meta(description="The number of users from whom it was learned.")]
    most: Annotated[list[LearnedFactor], Meta(description="The items bought again most readily.")]
    least: Annotated[list[LearnedFactor], Meta(description="The items bought again least readily.")]


class IdTypesResponse(msgspec.Struct, frozen=True):
    """The type of each kind of id; null for a kind that is not held yet, whose first id will decide."""

    user: IdType
    basket: IdType
    item: IdType


class RouteStats(msgspec.Struct, frozen=True):
    """A route during the last minute. Percentiles are seconds, None without a response."""

    count: Annotated[int, Meta(description="The number of responses.")]
    rate: Annotated[float, Meta(description="Responses per second.")]
    p50: Annotated[float | None, Meta(description="The median of the seconds per request; null without any.")]
    p90: Annotated[float | None, Meta(description="The seconds within which 90 % were answered.")]
    p99: Annotated[float | None, Meta(description="The seconds within which 99 % were answered.")]


class Bucket(msgspec.Struct, frozen=True):
    """Two past seconds: recommendations and events per second, and percentiles of the seconds per recommendation."""

    recommendations_per_second: Annotated[float, Meta(description="Recommendations per second.")]
    events_per_second: Annotated[float, Meta(description="Events per second.")]
    p50: Annotated[float | None, Meta(description="The median of the seconds per recommendation; null without any.")]
    p90: Annotated[float | None, Meta(description="The seconds within which 90 % were answered.")]
    p99: Annotated[float | None, Meta(description="The seconds within which 99 % were answered.")]


class StatsResponse(msgspec.Struct, frozen=True):
    """The service during the last minute, its size now, and the parameters of the model. `calls` has keys such as "GET
    /v1/items"; `buckets` of two seconds are oldest first.
    """

    uptime: Annotated[float, Meta(description="The seconds since the start.")]
    memory: Annotated[int, Meta(description="The resident memory of the process, in bytes.")]
    users: Annotated[int, Meta(description="The number of users.")]
    baskets: Annotated[int, Meta(description="The number of baskets.")]
    items: Annotated[int, Meta(description="The number of items.")]
    purchases: Annotated[int, Meta(description="The number of purchases, which are items of baskets.")]
    entries: Annotated[int, Meta(description="The number of weights in the index.")]
    learned: Annotated[int, Meta(description="The number of baskets learned since the start.")]
    forgotten: Annotated[int, Meta(description="The number of forgets since the start.")]
    events_per_second: Annotated[float, Meta(description="Events per second in the last minute.")]
    recommendations_per_second: Annotated[float, Meta(description="Recommendations per second in the last minute.")]
    calls: Annotated[
        dict[str, RouteStats], Meta(description="Each route, such as `GET /v1/items`, in the last minute.")
    ]
    buckets: Annotated[list[Bucket], Meta(description="The last minute in buckets of two seconds, oldest first.")]
    params: Annotated[ModelParams, Meta(description="The parameters of the model.")]


class TokenResponse(msgspec.Struct, frozen=True):
    """A token, and its expiry in seconds since 1970."""

    token: Annotated[str, Meta(description="The token, for `Authorization: Bearer`.")]
    user: UserId
    expires: Annotated[int, Meta(description="The expiry, in seconds since 1970.")]


class MeResponse(msgspec.Struct, frozen=True):
    """The caller: a key by its name, or a shopper. Without keys it is neither, with all roles."""

    key: Annotated[str | None, Meta(description="The name of the key; null for a token, and without keys.")]
    shopper: Annotated[AnyId | None, Meta(description="The shopper of a token; null for a key.")]
    roles: Annotated[list[Role], Meta(description="The roles of the caller.")]


class HealthResponse(msgspec.Struct, frozen=True):
    """Liveness of the process."""

    ok: Annotated[Literal[True], Meta(description="Always true.")] = True


class ReadyResponse(msgspec.Struct, frozen=True):
    """Whether the database is loaded, and the progress: done and total."""

    ready: Annotated[bool, Meta(description="Whether the database is loaded.")]
    stage: Annotated[str, Meta(description="The stage of loading.")]
    progress: Annotated[list[Count], Meta(min_length=2, max_length=2, description="Rows done, and rows in all.")]


class ErrorDetail(msgspec.Struct, frozen=True):
    """A code for programs and a message for people."""

    code: Annotated[str, Meta(description="The code, for programs.")]
    message: Annotated[str, Meta(description="The message, for people.")]


class ErrorResponse(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: Annotated[ErrorDetail, Meta(description="The error.")]
