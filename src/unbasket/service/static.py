"""The web page: static files of the package, with the headers that keep a browser safe."""

from collections.abc import Iterator
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css", ".html": "text/html"}


class _File(NamedTuple):
    """A file as it is served. Browsers may keep it but ask each time, since a new version has the same address."""

    content: bytes
    type: str
    tag: str

    def answer(self, request: Request) -> Response:
        headers = HEADERS | {"ETag": self.tag, "Cache-Control": "no-cache"}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if self.tag in known or "*" in known:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.type)


def routes() -> list[BaseRoute]:
    """`/`, `/docs` and `/static/...`. Files are read once; only those that exist have a route, so no path leads out."""
    pages = dict(_files(files(__package__).joinpath("web")))
    addresses = {"/": "index.html", "/docs": "docs.html"} | {f"/static/{name}": name for name in pages}
    return [_route(address, pages[name]) for address, name in addresses.items()]


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, _File]]:
    """Read the files of a folder and of the folders in it, by their paths."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, _read(entry)


def _read(file: Traversable) -> _File:
    content = file.read_bytes()
    return _File(
        content, _TYPES[file.name[file.name.rindex(".") :]], f'"{blake2b(content, digest_size=16).hexdigest()}"'
    )


def _route(address: str, file: _File) -> Route:
    async def serve(request: Request) -> Response:
        return file.answer(request)

    return Route(address, serve, methods=["GET"], name=address, include_in_schema=False)
