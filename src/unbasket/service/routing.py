"""From the path of a request to its call. Paths are split before they are decoded: an id may hold a slash."""

from collections.abc import Iterable

from unbasket.service.connection import unescaped
from unbasket.service.errors import ApiError
from unbasket.service.routes import Call


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
        node, values = self._end(raw_path)
        call = node.calls.get(method)
        if call is None:
            methods = ", ".join(sorted(node.calls))
            raise ApiError("method_not_allowed", f"this address has {methods} only", {"allow": methods})
        return call, dict(zip(call.places, map(_decoded, values), strict=True))

    def _end(self, raw_path: bytes) -> tuple[_Node, list[bytes]]:
        """Where a path leads to, and the ids on the way. A word is never an id where a path goes on with that word."""
        node, values = self._root, []
        for part in raw_path.split(b"/")[1:]:
            following = node.words.get(part)
            if following is None:
                if node.any is None or not part:
                    raise _not_found()
                values.append(part)
                following = node.any
            node = following
        if not node.calls:
            raise _not_found()
        return node, values


def _not_found() -> ApiError:
    return ApiError("not_found", "there is no such address; /openapi.json describes all")


def _decoded(part: bytes) -> str:
    try:
        return unescaped(part).decode()
    except UnicodeDecodeError:
        raise ApiError("invalid_path", "a part of the path is not UTF-8 when decoded") from None
