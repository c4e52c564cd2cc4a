"""A service in a thread of the test, on a real socket, over a small shop."""

import asyncio
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import uvloop

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.service.app import Application
from unbasket.service.auth import Authenticator
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.errors import CODES, ApiError
from unbasket.service.metrics import Metrics
from unbasket.service.request import Shared
from unbasket.service.routes import ROUTES, Router
from unbasket.service.server import Server, free_address
from unbasket.service.settings import Settings
from unbasket.store import DurableRecommender

_router = Router(ROUTES)

PRODUCTS = {
    "item": ["milk", "bread", "tea", "wine", "gin"],
    "name": ["Oat milk", "Rye bread", "Green tea", "Red wine", "Gin"],
    "category": ["Dairy", "Bakery", "Drinks", "Alcohol", "Alcohol"],
}


def make_shop(db: Path) -> Path:
    """Write the database of a shop with four users, names and categories."""
    for suffix, content in _files().items():
        db.with_name(db.name + suffix).write_bytes(content)
    return db


@cache
def _files() -> dict[str, bytes]:
    """Return its files, made once."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "shop.db")
        with ub.open(db, ub.Params(neighbors=2)) as rec:
            rec.learn("ann", ["milk", "bread"], basket=1, time=10)
            rec.learn("ann", ["milk", "wine", "gin"], basket=2, time=20)
            rec.learn("bob", ["milk", "tea"], basket=3)
            rec.learn("cleo", ["bread", 17], basket=1)
            rec.learn(7, ["milk", "wine"], basket=1)
            rec.describe(PRODUCTS).describe({"item": ["17"], "name": ["Eggs"]}, category=None)
        return {suffix: db.with_name(db.name + suffix).read_bytes() for suffix in ("", "-keys")}


def _errors(method: str, address: bytes) -> list[str]:
    """Return the error codes that the table of routes allows for a request."""
    try:
        return _router.find(method, address.partition(b"?")[0])[0].errors
    except ApiError:
        return [code for code, each in CODES.items() if each.occasion in ("any", "address", "path")]


class Service:
    """A running service: its port, its engine, and a client without a key."""

    def __init__(self, port: int, loader: EngineLoader, client: httpx.Client) -> None:
        self.port = port
        self.loader = loader
        self.client = client

    @property
    def engine(self) -> DurableRecommender:
        return self.loader.engine

    def __call__(self, method: str, path: str, status: int = 200, **kwargs: Any) -> Any:
        """Return the JSON response to a request. Checks its status, and the schema of errors."""
        response = self.client.request(method, path, **kwargs)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/json"
        value = response.json()
        if status >= 400:
            assert set(value) == {"error"}
            assert set(value["error"]) == {"code", "message"}
            assert value["error"]["code"] in _errors(method, response.request.url.raw_path)
        return value

    def token(self, auth: Authenticator, user: Id, seconds: int = 600) -> str:
        """Return a new token of a shopper."""
        return auth.issue(user, seconds, self.engine.presence(user))[0]

    def code(self, method: str, path: str, status: int, **kwargs: Any) -> str:
        """Return the error code of a response."""
        return str(self(method, path, status, **kwargs)["error"]["code"])

    def send_raw(self, data: bytes, *, finish: bool = False, seconds: float = 10) -> bytes:
        """Send bytes, and return all bytes that come back."""
        with socket.create_connection(("127.0.0.1", self.port), seconds) as connection:
            connection.sendall(data)
            if finish:
                connection.shutdown(socket.SHUT_WR)
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
        return received


def items_of(response: dict[str, Any]) -> list[Id]:
    """Return the recommended items."""
    return [each["item"] for each in response["recommendations"]]


def pages(service: Service, path: str, name: str) -> list[list[Any]]:
    """Return all pages of a list."""
    found, after = [], None
    while True:
        address = httpx.URL(path) if after is None else httpx.URL(path).copy_merge_params({"after": after})
        response = service("GET", str(address))
        found.append(response[name])
        after = response["next"]
        if after is None:
            return found


def quoted(text: str) -> str:
    """Escape a text as a segment of a path."""
    return quote(text, safe="")


@contextmanager
def slow_engine(
    monkeypatch: pytest.MonkeyPatch, method: str = "popular"
) -> Iterator[tuple[list[int], threading.Event]]:
    """Block a method of the engine until an event. Yields a list with an element per call, and the event."""
    called: list[int] = []
    release = threading.Event()
    original = getattr(DurableRecommender, method)

    def wait(*given: Any, **options: Any) -> Any:
        called.append(1)
        release.wait(20)
        return original(*given, **options)

    monkeypatch.setattr(DurableRecommender, method, wait)
    try:
        yield called, release
    finally:
        release.set()


@contextmanager
def serving(db: Path, auth: Authenticator | None = None, *, loaded: bool = True, **settings: Any) -> Iterator[Service]:
    """Run a service over a database.

    Rates are unlimited unless given, since tests send many requests; there is no privacy threshold, since most shops
    of tests have fewer people, and baskets get no time of the clock.
    """
    loader = EngineLoader(db)
    if loaded:
        loader.load()
    unlimited: dict[str, Any] = {"rate": 0, "public_rate": 0, "privacy_threshold": 0, "default_time": "none"}
    options = Settings(db=db, grace=5, **unlimited | settings)
    app = Application(Shared(loader, auth or Authenticator(), Metrics(loader), options))
    address = free_address("127.0.0.1", 0)
    with (
        running_server(app, options, address) as url,
        httpx.Client(base_url=url, timeout=60, verify=False) as client,
    ):
        yield Service(address[1], loader, client)
    loader.close()


@contextmanager
def running_server(app: Application, settings: Settings, address: tuple[str, int]) -> Iterator[str]:
    """Run a server in a thread. Yields its URL when it listens."""
    listening, servers = threading.Event(), list[tuple[asyncio.AbstractEventLoop, Server]]()

    async def serve() -> None:
        server = Server(app, settings, address)
        servers.append((asyncio.get_running_loop(), server))
        await server.run(listening.set)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert listening.wait(60)
        loop, server = servers[0]
        yield server.url
    finally:
        loop, server = servers[0]
        loop.call_soon_threadsafe(server.stop)
        thread.join()
