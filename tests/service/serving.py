"""The service on a real socket, over a small shop."""

import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import uvicorn

import unbasket as ub
from unbasket.service.app import create_app
from unbasket.service.auth import Authenticator
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.errors import CODES, ApiError
from unbasket.service.routes import ROUTES
from unbasket.service.routing import Router
from unbasket.service.server import configuration
from unbasket.service.settings import Settings

_router = Router(ROUTES)

PRODUCTS = {
    "item": ["milk", "bread", "tea", "wine", "gin"],
    "name": ["Oat milk", "Rye bread", "Green tea", "Red wine", "Gin"],
    "category": ["Dairy", "Bakery", "Drinks", "Alcohol", "Alcohol"],
}


def make_shop(db: Path) -> Path:
    """A shop of four, with names and categories."""
    for suffix, content in _files().items():
        db.with_name(db.name + suffix).write_bytes(content)
    return db


@cache
def _files() -> dict[str, bytes]:
    """Its files, made once."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "shop.db")
        with ub.open(db, ub.Params(neighbors=2)) as rec:
            rec.learn("ann", ["milk", "bread"], basket=1, time=10)
            rec.learn("ann", ["milk", "wine", "gin"], basket=2, time=20)
            rec.learn("bob", ["milk", "tea"], basket="b/1")
            rec.learn("cleo", ["bread", 17], basket=1)
            rec.learn(7, ["milk", "wine"], basket=1)
            rec.describe(PRODUCTS).describe({"item": [17], "name": ["Eggs"]}, category=None)
        return {suffix: db.with_name(db.name + suffix).read_bytes() for suffix in ("", "-keys")}


def _errors(method: str, address: bytes) -> list[str]:
    """The codes of the errors that a request may be answered with, by the table of calls."""
    try:
        return _router.find(method, address.partition(b"?")[0])[0].errors
    except ApiError:
        return [code for code, each in CODES.items() if each.occasion in ("any", "address", "path")]


class Service:
    """A running service: its address, its shop, and a client without a key."""

    def __init__(self, port: int, shop: EngineLoader, client: httpx.Client) -> None:
        self.port = port
        self.shop = shop
        self.client = client

    def __call__(self, method: str, path: str, status: int = 200, **kwargs: Any) -> Any:
        """The answer to a request, which must have this status; checks the shape of errors."""
        response = self.client.request(method, path, **kwargs)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/json"
        value = response.json()
        if status >= 400:
            assert set(value) == {"error"}
            assert set(value["error"]) == {"code", "message"}
            assert value["error"]["code"] in _errors(method, response.request.url.raw_path)
        return value

    def code(self, method: str, path: str, status: int, **kwargs: Any) -> str:
        """The code of the error that a request gets."""
        return str(self(method, path, status, **kwargs)["error"]["code"])

    def sent(self, data: bytes, *, finish: bool = False, seconds: float = 10) -> bytes:
        """What comes back for these very bytes."""
        with socket.create_connection(("127.0.0.1", self.port), seconds) as connection:
            connection.sendall(data)
            if finish:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        return answer


@contextmanager
def serving(db: Path, auth: Authenticator | None = None, *, loaded: bool = True, **settings: Any) -> Iterator[Service]:
    """A service over a database. Tests ask more often than callers may, so rates are off unless they are given."""
    shop = EngineLoader(db)
    if loaded:
        shop.load()
    unlimited: dict[str, Any] = {"rate": 0, "public_rate": 0}
    options = Settings(db=db, grace=5, **unlimited | settings)
    app = create_app(shop, auth or Authenticator.off(), settings=options)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = uvicorn.Server(configuration(app, options))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=False) as client:
            yield Service(port, shop, client)
    finally:
        server.should_exit = True
        thread.join()
        shop.close()
        listener.close()
