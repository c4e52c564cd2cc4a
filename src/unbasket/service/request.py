"""The request that handlers receive, authorized and decoded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from unbasket.domain.id_text import LiveIdReader, parse_id
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten, Learned
from unbasket.engine.cold_start import ColdStart
from unbasket.service.auth import Authenticator, Caller
from unbasket.service.empty_receipts import EmptyReceipts
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.errors import ClientGoneError
from unbasket.service.metrics import Metrics
from unbasket.store import DurableRecommender


@dataclass(slots=True)
class Request:
    """A request: path parameters as text, query and body in the schemas of the route."""

    loader: EngineLoader
    auth: Authenticator
    metrics: Metrics
    empty_receipts: EmptyReceipts
    caller: Caller
    path: dict[str, str]
    query: Any
    is_gone: Callable[[], bool]
    """Whether the client has disconnected."""
    fallback: ColdStart
    """The recommendations for unknown users."""
    sent: bytes = b""
    media_type: str = ""
    body: Any = None
    """The decoded `sent`, once the handler runs."""
    results: list[Learned | Forgotten] = field(default_factory=list)
    """Results of events, to be counted on the event loop."""
    _user: Id | None = None

    def check_connected(self) -> None:
        """Raise if the client has disconnected. Called before each step of long work."""
        if self.is_gone():
            raise ClientGoneError

    @property
    def rec(self) -> DurableRecommender:
        """The engine."""
        return self.loader.engine

    @property
    def user(self) -> Id:
        """The user in the path; for a token, always its shopper."""
        if self._user is None:  # a cached_property of Python 3.11 would lock all requests
            shopper = self.caller.shopper
            self._user = LiveIdReader(self.rec).user(self.path["user"]) if shopper is None else shopper
        return self._user

    def possible_users(self) -> tuple[Id, ...]:
        """Return the ids that the user in the path may mean; the first one that is stored is meant."""
        if self.caller.shopper is not None:
            return (self.caller.shopper,)
        text = self.path["user"]
        parsed = parse_id(text)
        return (parsed,) if isinstance(parsed, str) else (parsed, text)

    @property
    def basket(self) -> Id:
        """The basket in the path."""
        return LiveIdReader(self.rec).basket(self.user, self.path["basket"])

    @property
    def item(self) -> Id:
        """The item in the path."""
        return LiveIdReader(self.rec).item(self.path["item"])
