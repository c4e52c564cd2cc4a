"""Which items may be recommended, as a caller says it."""

from collections.abc import Collection
from typing import NamedTuple, Self

from unbasket.domain.ids import Id
from unbasket.domain.validation import checked_selection
from unbasket.errors import InvalidRequestError


class Filters(NamedTuple):
    """Items to leave out; the only ones to choose from; the categories to choose from. None is no condition.

    An item must meet all conditions. Some items and categories may be unknown: nothing is known of what was forgotten.
    A frozen set is checked when its items are looked up, since that is done once.
    """

    exclude: list[Id]
    only: list[Id] | frozenset[Id] | None
    categories: list[str] | None

    @classmethod
    def checked(
        cls, exclude: Collection[Id] | None, only: Collection[Id] | None, category: str | Collection[str] | None
    ) -> Self | None:
        """The filters, or an error that names what is wrong with them; None if there are none."""
        if exclude is None and only is None and category is None:
            return None
        return cls(
            checked_selection(exclude or [], "exclude"),
            only if only is None or isinstance(only, frozenset) else checked_selection(only, "only"),
            None if category is None else _categories(category),
        )


def _categories(category: str | Collection[str]) -> list[str]:
    names = [category] if isinstance(category, str) else category
    if not hasattr(names, "__iter__") or not all(isinstance(name, str) for name in names):
        raise InvalidRequestError(f"category must be a name or a list of names, not {category!r}")
    return list(dict.fromkeys(names))
