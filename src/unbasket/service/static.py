"""The static files of the web page, with their security headers."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

_HEADERS = (
    ("content-security-policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-cache"),  # browsers revalidate: a new version has the same address
)
_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css", ".html": "text/html"}


class StaticFile(NamedTuple):
    """A file with its headers."""

    content: bytes
    headers: dict[str, str]


def static_files() -> dict[bytes, StaticFile]:
    """Return the files by path: `/`, `/docs` and `/static/...`. Only existing files have one, so none can escape."""
    found = dict(_read(files(__package__).joinpath("web")))
    addresses = {"/": "index.html", "/docs": "docs.html"} | {f"/static/{name}": name for name in found}
    return {address.encode(): found[name] for address, name in addresses.items()}


def _read(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, StaticFile]]:
    """Read the files of a folder and of the folders in it, by their paths."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        else:
            kind = _TYPES[entry.name[entry.name.rindex(".") :]]
            headers = dict(_HEADERS) | {"content-type": f"{kind}; charset=utf-8"}
            yield prefix + entry.name, StaticFile(entry.read_bytes(), headers)
