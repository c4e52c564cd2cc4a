"""A request from its arrival to its handler, and what all requests share."""

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from aiohttp import web

from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import Id, Kind
from unbasket.domain.privacy import PrivacyThreshold
from unbasket.service.auth import ANONYMOUS, Authenticator
from unbasket.service.empty_receipts import EmptyReceipts
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.metrics import Metrics
from unbasket.service.settings import Settings
from unbasket.store import DurableRecommender


@dataclass(slots=True)
class Shared:
    """The parts of the service that all requests share."""

    loader: EngineLoader
    auth: Authenticator
    metrics: Metrics
    settings: Settings  # replaced when some of them change
    empty_receipts: EmptyReceipts = field(default_factory=EmptyReceipts)


class Request:
    """A request on its way to a response: as it arrived, then with its caller, parameters and body.

    Path parameters are text; query and body have the schemas of the route.
    """

    def __init__(self, shared: Shared, http: web.BaseRequest) -> None:
        self.start = time.perf_counter()
        self.shared, self.http = shared, http
        self.method, self.headers, self.address = http.method, http.headers, http.remote or ""
        self.raw_path = http.rel_url.raw_path.encode("utf-8", "surrogateescape")  # undecoded: an id may have a slash
        self.template = "unknown"  # the path template of the route, for metrics and logs; or "static file"
        self.caller = ANONYMOUS
        self.path: dict[str, str] = {}
        self.query: Any = None
        self.body: Any = None
        self.is_abandoned = False  # because it took too long

    @property
    def is_gone(self) -> bool:
        """Whether a response would be in vain: it comes too late, or the client has disconnected."""
        return self.is_abandoned or self.http.transport is None

    @property
    def privacy(self) -> PrivacyThreshold | None:
        """The privacy threshold for this caller, if there is one: for a shopper."""
        return None if self.caller.shopper is None else self.shared.settings.privacy

    @property
    def rec(self) -> DurableRecommender:
        """The engine."""
        return self.shared.loader.engine

    @property
    def spelled_user(self) -> Id:
        """The user in the path as it is spelled there, which the engine takes as well; for a token, its shopper."""
        return parse_id(self.path["user"]) if self.caller.shopper is None else self.caller.shopper

    @cached_property
    def user(self) -> Id:
        """The user in the path as the engine holds it, or would; the same for the whole request."""
        return self.rec.canonical_id(self.spelled_user, "user")

    def path_id(self, kind: Kind) -> Id:
        """Return an id in the path as the engine holds it, or would."""
        return self.rec.canonical_id(parse_id(self.path[kind]), kind)
