"""Results that only the service has; all others are the engine's."""

from typing import NamedTuple

import msgspec

from unbasket.domain.ids import Id
from unbasket.domain.results import Explanation, Forgotten, Product, Recommendation
from unbasket.store import Receipt


class Recommendations(list[Recommendation]):
    """Recommendations, best first, and what the service knows about their items.

    `popular` says that they are popular items, since the user is unknown; a score is then a number of baskets.
    `products` has the name, the category and the requested fields of each item that the shop has described;
    `explanations` has those that were asked for.
    """

    popular: bool = False
    products: dict[Id, Product]
    explanations: dict[Id, Explanation]


class Preview(NamedTuple):
    """The recommendations before and after a change that was not made."""

    before: Recommendations
    after: Recommendations


class ErasedMany(Forgotten):
    """A `Forgotten` of several forgets: their receipts and secrets, and the seconds until the last byte was gone."""

    receipts: list[Receipt]
    secrets: list[str]
    seconds: float


class ReceiptAudit(msgspec.Struct, frozen=True):
    """The result of checking receipts, as `unbasket.store.Audit`, with `ok` and its summary in a sentence."""

    ok: bool
    receipts: int
    keys: tuple[str, ...]
    faults: tuple[str, ...]
    chained: tuple[tuple[int, int], ...]
    missing: tuple[tuple[int, int], ...]
    warnings: tuple[str, ...]
    summary: str


class ProofVerdict(NamedTuple):
    """Whether a proof holds, and what it proves, or why it does not hold."""

    ok: bool
    summary: str


class RuleMatch(msgspec.Struct, frozen=True):
    """The purchases that match a retention rule and no rule above it."""

    name: str
    users: int
    baskets: int
    purchases: int
    warnings: tuple[str, ...]


class Retention(msgspec.Struct, frozen=True):
    """The purchases that retention rules match, forgotten if `done`. `share` is their part of all purchases, 0 to 1."""

    done: bool
    rules: tuple[RuleMatch, ...]
    forgotten: Forgotten
    share: float
    receipts: int
    seconds: float


class Token(NamedTuple):
    """A shopper's token, and its expiry in seconds since 1970."""

    token: str
    user: Id
    expires: int


class Caller(NamedTuple):
    """The caller: a key by its name, or the shopper of a token; neither if the service has no keys."""

    key: str | None
    shopper: Id | None
    roles: frozenset[str]
