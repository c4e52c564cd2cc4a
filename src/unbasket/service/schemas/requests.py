"""What requests bring in their bodies, and how much of it."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, field

from unbasket.domain.events import Event, Forget, Learn
from unbasket.params import MAX_SEED, Grouping
from unbasket.service.schemas.fields import HowMany, Id, Items, Strict, Time
from unbasket.store import Receipt
from unbasket.store.rules import MAX_RULES

HowLarge = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Decay = Annotated[float, Meta(gt=0, le=1)]


class ChangedParams(Strict, frozen=True):
    """Parameters of the model to change; those that are not named stay."""

    group_size: HowLarge | UnsetType = UNSET
    basket_decay: Decay | UnsetType = UNSET
    group_decay: Decay | UnsetType = UNSET
    neighbors: HowLarge | UnsetType = UNSET
    alpha: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    grouping: Grouping | UnsetType = UNSET
    pool: HowLarge | UnsetType | None = UNSET
    pool_seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | UnsetType | None = UNSET


class NewBasket(Strict, frozen=True):
    """A basket to learn. Without a time, it is the user's latest."""

    items: Items
    time: Time | None = None


class LearnEvent(Strict, frozen=True, tag_field="event", tag="learn"):
    """A basket is learned or edited."""

    user: Id
    basket: Id
    items: Items
    time: Time | None = None

    def event(self) -> Event:
        """As the engine takes it."""
        return Learn(self.user, self.items, self.basket, self.time)


class ForgetEvent(Strict, frozen=True, tag_field="event", tag="forget"):
    """A user, a basket, an item of a basket, or an item of all baskets is forgotten."""

    user: Id
    basket: Id | None = None
    item: Id | None = None

    def event(self) -> Event:
        """As the engine takes it."""
        return Forget(self.user, self.basket, self.item)


MAX_EVENTS, MAX_FORGETS, MAX_RECEIPTS = 10_000, 1_000, 10_000
"""What one request may have: others wait for it. Handlers check it, so that the error can say what to do."""

MAX_READ = 2_000_000
"""Purchases that forgets may read while others wait to write; each reads all of its user's."""

Events = Annotated[
    list[LearnEvent | ForgetEvent],
    Meta(description=f"At most {MAX_EVENTS:,} events, of which at most {MAX_FORGETS:,} forget."),
]


class ForgetPart(Strict, frozen=True):
    """What would be forgotten: purchases that match all the given fields; everything if there are none."""

    basket: Id | None = None
    item: Id | None = None
    category: str | None = None


class LearnPart(Strict, frozen=True):
    """The basket that would be learned as the user's latest."""

    items: Items


class Preview(Strict, frozen=True):
    """A change to try out: one of the two."""

    forget: ForgetPart | UnsetType = UNSET
    learn: LearnPart | UnsetType = UNSET


PreviewBody = Annotated[Preview, Meta(extra_json_schema={"minProperties": 1, "maxProperties": 1})]


MAX_VISITED = 1_000
"""Baskets of a history that is not stored."""


class Visitor(Strict, frozen=True):
    """Somebody without an account: what they bought, oldest first, and what is in the cart; filters as for a user."""

    baskets: Annotated[list[Items], Meta(max_length=MAX_VISITED)] = field(default_factory=list)
    cart: Annotated[list[Id], Meta(max_length=8192)] = field(default_factory=list)
    n: HowMany = 10
    only_new: bool = False
    exclude: list[Id] = field(default_factory=list)
    only: list[Id] | None = None
    category: list[str] | None = None
    fields: list[Annotated[str, Meta(min_length=1)]] = field(default_factory=list)

    def filters(self) -> dict[str, Any]:
        """As arguments of the engine."""
        return {"exclude": self.exclude, "only": self.only, "category": self.category}


MAX_RESTOCKED = 100_000
"""Items that one request may hide and show."""


class Availability(Strict, frozen=True):
    """Items to hide, since they are out of stock, and items to show again."""

    hide: Annotated[list[Id], Meta(max_length=MAX_RESTOCKED)] = field(default_factory=list)
    show: Annotated[list[Id], Meta(max_length=MAX_RESTOCKED)] = field(default_factory=list)


class Renaming(Strict, frozen=True):
    """The user whom another one becomes; nothing needs to be held about them yet."""

    to: Id


class GivenReceipts(Strict, frozen=True):
    """Receipts that somebody has, to be checked and compared with those that are held."""

    receipts: Annotated[list[Receipt], Meta(description=f"At most {MAX_RECEIPTS:,} of them.")]


class RetentionRequest(Strict, frozen=True):
    """Rules in TOML. Without `run`, only what they would forget is counted."""

    rules: Annotated[str, Meta(description=f"At most {MAX_RULES:,} characters.")]
    run: bool = False


class TokenRequest(Strict, frozen=True):
    """Whose token, and for how many seconds."""

    user: Id
    seconds: Annotated[int, Meta(ge=1, le=86400)] = 600
