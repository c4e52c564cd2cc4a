from collections.abc import Sequence
from typing import Any, TypeVar

Pair = TypeVar("Pair", bound=tuple[Any, Any])

def named(kind: type[Pair], pairs: Sequence[tuple[int, float]], names: Sequence[Any]) -> list[Pair]: ...
def are_plain(names: list[Any]) -> bool: ...
