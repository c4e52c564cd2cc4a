"""The static files of the web page, with their security headers."""

from pathlib import Path

_HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-cache",  # browsers revalidate: a new version has the same address
}
_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css", ".html": "text/html"}


def static_files() -> dict[bytes, tuple[bytes, dict[str, str]]]:
    """Return the files and their headers by path: `/`, `/docs` and `/static/...`. No other file can be read."""
    folder = Path(__file__).with_name("web")
    found = {
        path.relative_to(folder).as_posix(): (
            path.read_bytes(),
            {**_HEADERS, "content-type": f"{_TYPES[path.suffix]}; charset=utf-8"},
        )
        for path in folder.rglob("*")
        if path.is_file()
    }
    addresses = {"/": "index.html", "/docs": "docs.html"} | {f"/static/{name}": name for name in found}
    return {address.encode(): found[name] for address, name in addresses.items()}
