"""Event files of a shop, and random events."""

import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.laws import Allow, Event, Forget, Learn, Rename, ShopEvent, Suppress

from unbasket.domain.ids import Id


class Shop:
    """Files of events, one for each micro-batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0
        folder.mkdir(parents=True)

    def write(self, events: Sequence[ShopEvent]) -> None:
        """Add a file. Spark reads files in the order of their modification times, which are whole seconds here."""
        self._count += 1
        file = self.folder / f"{self._count:05d}.json"
        partial = self.folder.parent / file.name
        partial.write_text("\n".join(json.dumps(fields_of(event)) for event in events))
        os.utime(partial, (self._count, self._count))
        partial.rename(file)


def fields_of(event: ShopEvent) -> dict[str, Any]:
    """Return an event in the documented format."""
    fields = {"event": type(event).__name__.lower(), **event._asdict()}
    return {name: value for name, value in fields.items() if value is not None}


def random_events(
    chance: random.Random, users: Sequence[Id], baskets: Sequence[Id], items: Sequence[Id]
) -> Iterator[Event]:
    """Yield endless events of few users with few baskets: edits, repeats, late baskets and forgets."""
    timed = {user: chance.choice((True, False, None)) for user in users}
    while True:
        user = chance.choice(users)
        if chance.random() < 0.7:
            has_time = chance.random() < 0.5 if timed[user] is None else timed[user]
            bought = tuple(chance.choices(items, k=chance.randint(1, 4)))
            yield Learn(user, bought, chance.choice(baskets), chance.randint(-2, 9) if has_time else None)
        else:
            yield Forget(user, chance.choice((None, *baskets)), chance.choice((None, *items)))


def random_shop_events(
    chance: random.Random, users: Sequence[Id], baskets: Sequence[Id], items: Sequence[Id]
) -> Iterator[ShopEvent]:
    """Yield the same, with suppressions and renames among them."""
    for event in random_events(chance, users, baskets, items):
        kind, user, item = chance.random(), chance.choice(users), chance.choice(items)
        yield (
            event if kind < 0.8 else Suppress(user, item) if kind < 0.88 else Allow(user, item) if kind < 0.9 else event
        )
        if kind > 0.96:
            yield Rename(user, chance.choice(users))
