"""What a shop does not offer at the moment: items that are not recommended, though they go on being learned."""

from collections.abc import Iterable, Iterator

from unbasket.domain.ids import Id


class Availability:
    """The hidden items.

    An item is hidden until it is shown, whether anybody has bought it or not: what is out of stock is the shop's own
    knowledge, and neither comes from a purchase nor goes with one.
    """

    def __init__(self) -> None:
        self.changes = 0  # how often something was hidden or shown
        self._hidden: set[Id] = set()

    def __len__(self) -> int:
        return len(self._hidden)

    def __iter__(self) -> Iterator[Id]:
        return iter(self._hidden)

    def hide(self, items: Iterable[Id]) -> list[Id]:
        """Hide items; returns those that were not hidden."""
        changed = [item for item in items if item not in self._hidden]
        self._hidden.update(changed)
        self.changes += 1
        return changed

    def show(self, items: Iterable[Id]) -> list[Id]:
        """Show items; returns those that were hidden."""
        changed = [item for item in items if item in self._hidden]
        self._hidden.difference_update(changed)
        self.changes += 1
        return changed
