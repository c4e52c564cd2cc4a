"""A checked request, as handlers see it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from unbasket.domain.id_text import LiveIdReader, parse_id
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten, Learned
from unbasket.engine.cold_start import ColdStart
from unbasket.service.auth import Caller, Security
from unbasket.service.empty_receipts import Repeats
from unbasket.service.engine_loader import Shop
from unbasket.service.errors import ClientGoneError
from unbasket.service.metrics import Metrics
from unbasket.store import DurableRecommender


@dataclass(slots=True)
class Request:
    """Who asks for what: ids in the path as text, the query and the body in the shapes of the call."""

    shop: Shop
    security: Security
    metrics: Metrics
    repeats: Repeats
    caller: Caller
    path: dict[str, str]
    query: Any
    is_gone: Callable[[], bool]
    """Whether nobody waits for the answer any more."""
    fallback: ColdStart
    """What somebody unknown is recommended."""
    sent: bytes = b""
    media_type: str = ""
    body: Any = None
    """What was sent, of this media type, as it is decoded in the thread of the handler."""
    results: list[Learned | Forgotten] = field(default_factory=list)
    """What events did; the figures count them in another thread."""
    _user: Id | None = None

    def go_on(self) -> None:
        """Before work, and between its pieces if it is long: an error if it would be for nobody."""
        if self.is_gone():
            raise ClientGoneError

    @property
    def rec(self) -> DurableRecommender:
        """The engine."""
        return self.shop.engine

    @property
    def user(self) -> Id:
        """The user in the path. For a shopper, that is always the shopper, whatever else the text could mean."""
        if self._user is None:  # not a cached_property: of Python 3.11, it makes all requests wait for each other
            self._user = self._who()
        return self._user

    def possible_users(self) -> tuple[Id, ...]:
        """Whom the user in the path may be: the first of them about whom anything is held, if there is one."""
        if self.caller.shopper is not None:
            return (self.caller.shopper,)
        text = self.path["user"]
        spelled = parse_id(text)
        return (spelled,) if isinstance(spelled, str) else (spelled, text)

    def _who(self) -> Id:
        if self.caller.shopper is not None:
            return self.caller.shopper
        return LiveIdReader(self.rec).user(self.path["user"])

    @property
    def basket(self) -> Id:
        """The basket in the path."""
        return LiveIdReader(self.rec).basket(self.user, self.path["basket"])

    @property
    def item(self) -> Id:
        """The item in the path."""
        return LiveIdReader(self.rec).item(self.path["item"])
