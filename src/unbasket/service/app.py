"""The Starlette application: the web page with its security headers, the OpenAPI document, and the API beside them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from unbasket.service.api import HEADERS, PENALTY, Api
from unbasket.service.auth import Authenticator
from unbasket.service.connection import Connection
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.errors import ApiError
from unbasket.service.metrics import Metrics
from unbasket.service.openapi import document
from unbasket.service.routes import JSON, ROUTES
from unbasket.service.settings import Settings

_API_PREFIXES = tuple({route.path.encode() if route.path.count("/") == 1 else b"/v1/" for route in ROUTES})

_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css", ".html": "text/html"}


def create_app(
    loader: EngineLoader, auth: Authenticator, metrics: Metrics | None = None, settings: Settings | None = None
) -> "Application":
    """Create the application of an engine, which may still be loading."""
    return Application(Api(loader, auth, metrics or Metrics(loader), settings or Settings(db=loader.db)))


class Application(Starlette):
    """Starlette for the page and the OpenAPI document. The API bypasses it: its routing costs as much as our work."""

    def __init__(self, api: Api) -> None:
        self._api = api
        described = msgspec.json.encode(document(ROUTES))

        async def openapi(_: Request) -> Response:
            return Response(described, headers=HEADERS, media_type=JSON)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            keeping = asyncio.create_task(api.keep_time())
            yield
            keeping.cancel()
            api.close()

        super().__init__(
            routes=[Route("/openapi.json", openapi, methods=["GET"]), *_page_routes()],
            exception_handlers={HTTPException: _on_http_exception},
            lifespan=lifespan,
        )
        self.router.redirect_slashes = False  # it would redirect to any Host that a request names

    def apply(self, settings: Settings) -> None:
        """Use other values of the settings that can change at run time."""
        self._api.apply(settings)

    def handle(self, connection: Connection, scope: Scope) -> None:
        """Start to handle a request."""
        if scope["raw_path"].startswith(_API_PREFIXES):
            self._api.handle(connection, scope)
        else:
            connection.run(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request for the page."""
        try:
            if scope["type"] == "http":
                self._api.count_anonymous(scope)
        except ApiError as error:
            await asyncio.sleep(PENALTY)
            await _error_response(error)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def _on_http_exception(_: Request, error: Exception) -> Response:
    """Return an error of Starlette as our JSON."""
    assert isinstance(error, HTTPException)
    known = {404: "not_found", 405: "method_not_allowed"}
    return _error_response(ApiError(known.get(error.status_code, "internal"), error.detail, dict(error.headers or {})))


def _error_response(error: ApiError) -> Response:
    return Response(msgspec.json.encode(error.response()), error.status, HEADERS | error.headers, JSON)


class _File(NamedTuple):
    """A static file. Browsers may cache it but must revalidate, since a new version has the same address."""

    content: bytes
    type: str
    tag: str

    async def serve(self, request: Request) -> Response:
        headers = _PAGE_HEADERS | {"ETag": self.tag, "Cache-Control": "no-cache"}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if self.tag in known or "*" in known:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.type)


def _page_routes() -> list[BaseRoute]:
    """Return routes for `/`, `/docs` and `/static/...`. Only existing files have one, so no path can escape."""
    pages = dict(_files(files(__package__).joinpath("web")))
    addresses = {"/": "index.html", "/docs": "docs.html"} | {f"/static/{name}": name for name in pages}
    return [
        Route(address, pages[name].serve, methods=["GET"], name=address, include_in_schema=False)
        for address, name in addresses.items()
    ]


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, _File]]:
    """Read the files of a folder and of the folders in it, by their paths."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            content = entry.read_bytes()
            kind, digest = _TYPES[entry.name[entry.name.rindex(".") :]], blake2b(content, digest_size=16).hexdigest()
            yield prefix + entry.name, _File(content, kind, f'"{digest}"')
