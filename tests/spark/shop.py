"""Event files of a shop, random events, and the vectors in a table."""

import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.laws import Event, Forget, Learn

from unbasket.domain.ids import Id
from unbasket.spark import Table


class Shop:
    """Files of events, one for each micro-batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0
        folder.mkdir(parents=True)

    def write(self, events: Sequence[Event]) -> None:
        """Add a file. Spark reads files in the order of their modification times, which are whole seconds here."""
        self._count += 1
        file = self.folder / f"{self._count:05d}.json"
        partial = self.folder.parent / file.name
        partial.write_text("\n".join(json.dumps(fields_of(event)) for event in events))
        os.utime(partial, (self._count, self._count))
        partial.rename(file)


def fields_of(event: Event) -> dict[str, Any]:
    """Return an event in the documented format."""
    fields = {"event": "learn" if isinstance(event, Learn) else "forget", **event._asdict()}
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


def vectors_in(table: Path) -> dict[Id, dict[Id, float]]:
    """Read the table without Spark, in the form of `Recommender.vector`."""
    found = Table(str(table))
    rows = [row for name in found.manifest.files.values() for row in pq.read_table(found.path / name).to_pylist()]
    vectors = {row["user"]: dict(zip(row["items"], row["weights"], strict=True)) for row in rows}
    assert len(vectors) == len(rows) == len(found)
    return vectors
