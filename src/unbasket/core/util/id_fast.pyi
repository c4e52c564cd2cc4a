from collections.abc import Sequence
from typing import Any, TypeVar

_Pair = TypeVar("_Pair", bound=tuple[Any, Any])

def named(kind: type[_Pair], pairs: Sequence[tuple[int, float]], names: Sequence[Any]) -> list[_Pair]: ...
def are_plain(names: list[Any]) -> bool: ...
