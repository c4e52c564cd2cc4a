"""From the path of a request to its call. Paths are split before they are decoded: an id may hold a slash."""

from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from unbasket.service.calls import Call
from unbasket.service.errors import ApiError


class _Node:
    """A place in the tree of paths: what follows a word, what follows an id, and the calls that end here."""

    def __init__(self) -> None:
        self.words: dict[bytes, _Node] = {}
        self.any: _Node | None = None
        self.calls: dict[str, Call] = {}


class Router:
    """All paths of a table of calls."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._root = _Node()
        for call in calls:
            node = self._root
            for part in call.path.split("/")[1:]:
                if part.startswith("{"):
                    node.any = node.any or _Node()
                    node = node.any
                else:
                    node = node.words.setdefault(part.encode(), _Node())
            node.calls[call.method] = call

    def find(self, method: str, raw_path: bytes) -> tuple[Call, dict[str, str]]:
        """The call that a method and a path, as it was sent, mean, and the texts in the path's places."""
        found = _end(self._root, raw_path.split(b"/"), 1, ())
        if found is None:
            raise ApiError("not_found", "there is no such address; /openapi.json describes all")
        node, values = found
        call = node.calls.get(method)
        if call is None:
            methods = ", ".join(sorted(node.calls))
            raise ApiError("method_not_allowed", f"this address has {methods} only", {"allow": methods})
        return call, dict(zip(call.places, map(_decoded, values), strict=True))


def _end(node: _Node, parts: list[bytes], at: int, values: tuple[bytes, ...]) -> tuple[_Node, tuple[bytes, ...]] | None:
    """Where a path leads to from the part `at` on, with the ids on the way: words come before ids."""
    if at == len(parts):
        return (node, values) if node.calls else None
    part = parts[at]
    found = _end(node.words[part], parts, at + 1, values) if part in node.words else None
    if found is None and node.any is not None and part:
        return _end(node.any, parts, at + 1, (*values, part))
    return found


def _decoded(part: bytes) -> str:
    try:
        return (unquote_to_bytes(part) if b"%" in part else part).decode()
    except UnicodeDecodeError:
        raise ApiError("invalid_path", "a part of the path is not UTF-8 when decoded") from None
