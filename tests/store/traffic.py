"""Random traffic for a durable engine, and the ids that must be on disk afterwards.

Every id is drawn once and is long, so its bytes, or a part of them, can be searched in files.
"""

import random
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import unbasket as ub
from unbasket.domain.events import Event, Forget, Learn
from unbasket.domain.ids import Id
from unbasket.params import Grouping

Request = list[Event]
"""The events of one call: a single one, or a batch for `apply`."""


class Traffic:
    """Random requests of a few users. It tracks their baskets, so most forgets hit something."""

    def __init__(self, seed: int, users: int = 4) -> None:
        self._random = random.Random(seed)
        self._shared = [self._id("i") for _ in range(6)]
        self._size = users
        self._baskets: dict[Id, dict[Id, list[Id]]] = {}
        self._timed: dict[Id, bool] = {}

    def request(self) -> Request:
        """Draw the next request: one event, or now and then a batch."""
        return [self._event() for _ in range(self._random.choice([1, 1, 1, 1, 1, 1, 1, 5]))]

    def _event(self) -> Event:
        users = list(self._baskets)
        if not users or self._random.random() < 0.65:
            return self._learn()
        user = self._random.choice(users)
        basket = self._random.choice(list(self._baskets[user]))
        item = self._random.choice(self._baskets[user][basket])
        kind = self._random.random()
        if kind < 0.15:
            return self._forget(user, None, None)
        if kind < 0.45:
            return self._forget(user, basket, None)
        if kind < 0.7:
            return self._forget(user, basket, item)
        return self._forget(user, None, item if kind < 0.95 else self._id("i"))

    def _learn(self) -> Event:
        chance = self._random.random
        if len(self._baskets) < self._size and chance() < 0.4:
            user: Id = self._id("u")
            self._timed[user] = chance() < 0.7
        elif not self._baskets:
            return self._learn()
        else:
            user = self._random.choice(list(self._baskets))
        baskets = self._baskets.setdefault(user, {})
        basket = self._random.choice(list(baskets)) if baskets and chance() < 0.2 else self._id("b")
        items: list[Id] = [
            *self._random.sample(self._shared, 2),
            *(self._id("i") for _ in range(self._random.randrange(3))),
        ]
        baskets[basket] = items
        return Learn(user, items, basket, self._random.randrange(50) if self._timed[user] else None)

    def _forget(self, user: Id, basket: Id | None, item: Id | None) -> Event:
        baskets = self._baskets[user]
        for name in [basket] if basket is not None else list(baskets):
            baskets[name] = [other for other in baskets[name] if item is not None and other != item]
            if not baskets[name]:
                del baskets[name]
        if not baskets:
            del self._baskets[user]
        return Forget(user, basket, item)

    def _id(self, kind: str) -> str:
        return f"{kind}{self._random.getrandbits(68):017x}"


def params_of(grouping: Grouping) -> ub.Params:
    """Return learned weights for fixed groups, which need groups of one, and a number for alpha otherwise."""
    return ub.Params() if grouping == "fixed" else ub.Params(group_size=3, grouping=grouping, alpha=0.8)


def submit(engine: ub.Recommender, request: Request) -> None:
    """Carry out a request by the method that fits."""
    match request:
        case [Learn(user, items, basket, time)]:
            engine.learn(user, items, basket=basket, time=time)
        case [Forget(user, basket, item)]:
            engine.forget(user, basket=basket, item=item)
        case _:
            engine.apply(request)


def replayed(engine: ub.Recommender, requests: Iterable[Request]) -> ub.Recommender:
    """Return an engine in memory, with the parameters and salt of another, that has carried out these requests."""
    engine = ub.Recommender(engine.params, salt=engine.salt)
    for request in requests:
        submit(engine, request)
    return engine


def ids_of(requests: Iterable[Request]) -> set[Id]:
    """Return all ids in requests."""
    ids: set[Id] = set()
    for request in requests:
        for event in request:
            ids |= {event.user, event.basket or "", *(event.items if isinstance(event, Learn) else [event.item or ""])}
    return ids - {""}


def held_ids(engine: ub.Recommender) -> set[Id]:
    """Return all ids that an engine holds."""
    ids: set[Id] = set(engine.items()) | set(engine.users())
    return ids | {basket.basket for user in engine.users() for basket in engine.history(user)}


def found_in(folder: Path, ids: Iterable[Id], scratch: Path) -> set[Id]:
    """Return the ids that are in a file of a folder, whole or as their first or last twelve characters.

    Another process reads: if this one closed a file that SQLite has open here, SQLite would lose its locks.
    """
    parts = {part: name for name in ids for part in (str(name)[:12], str(name)[-12:])}
    if not parts:
        return set()
    scratch.write_text("\n".join(parts))
    files = [path for path in folder.iterdir() if path.is_file()]
    command: Sequence[str | Path] = ["grep", "-a", "-o", "-h", "-F", "-f", scratch, "--", *files]
    done = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {parts[line] for line in done.stdout.splitlines()}
