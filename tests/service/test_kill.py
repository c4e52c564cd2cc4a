"""Kills under load, a scenario of service and store: acknowledged changes stay, and forgotten ids are in no file."""

import http.client
import random
import signal
import threading
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
from tests.service.process import Service, ask, files_with_any, running

CALLERS = 6
KILLS = 4

History = dict[str, set[str]]  # basket -> items


class Event(NamedTuple):
    """A learn of a basket with `items`, or a forget."""

    user: str
    basket: str | None = None
    item: str | None = None
    items: frozenset[str] | None = None

    @property
    def request(self) -> tuple[str, str, object]:
        parts = [("users", self.user), ("baskets", self.basket), ("items", self.item)]
        path = "/v1/" + "/".join(f"{kind}/{name}" for kind, name in parts if name is not None)
        return ("DELETE", path, None) if self.items is None else ("PUT", path, {"items": sorted(self.items)})

    def apply(self, histories: dict[str, History]) -> dict[str, History]:
        """Return a copy of the histories after the event."""
        history = {basket: set(items) for basket, items in histories.get(self.user, {}).items()}
        if self.items is not None:
            assert self.basket is not None
            history[self.basket] = set(self.items)
        else:
            for basket in [self.basket] if self.basket else list(history):
                if self.item is None:
                    history.pop(basket, None)
                elif basket in history:
                    history[basket].discard(self.item)
        history = {basket: items for basket, items in history.items() if items}
        others = {user: kept for user, kept in histories.items() if user != self.user}
        return others | ({self.user: history} if history else {})


def markers(histories: dict[str, History]) -> set[str]:
    """Return all ids in histories. Every id is used once, so a forget removes it everywhere."""
    found = set(histories)
    for history in histories.values():
        found |= history.keys()
        found.update(*history.values())
    return found


class Caller:
    """The users of one connection, with their acknowledged histories."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.histories: dict[str, History] = {}
        self.waiting: Event | None = None
        self.forgotten: set[str] = set()
        self.acknowledged = self.forgets = 0

    def run(self, service: Service) -> None:
        """Send events until the service is killed."""
        connection = service.connect()
        try:
            while True:
                self.waiting = self._event()
                status, answer = ask(connection, *self.waiting.request)
                assert status == 200, answer
                self._acknowledge(self.waiting)
        except (http.client.HTTPException, OSError):
            connection.close()

    def _acknowledge(self, event: Event) -> None:
        former, self.histories = markers(self.histories), event.apply(self.histories)
        self.forgotten |= former - markers(self.histories)
        self.waiting = None
        self.acknowledged += 1
        self.forgets += event.items is None

    def _event(self) -> Event:
        users = sorted(self.histories)
        if len(users) < 3 or self._random.random() < 0.6:
            user = self._random.choice(users) if len(users) >= 3 else self._marker("user")
            items = frozenset(self._marker("item") for _ in range(self._random.randint(1, 4)))
            return Event(user, self._marker("basket"), items=items)
        user = self._random.choice(users)
        basket = self._random.choice(sorted(self.histories[user]))
        item = self._random.choice(sorted(self.histories[user][basket]))
        levels = [Event(user), Event(user, basket), Event(user, basket, item), Event(user, item=item)]
        return self._random.choice(levels)

    def _marker(self, kind: str) -> str:
        return f"{kind}{self._random.getrandbits(96):024x}"

    def users(self) -> set[str]:
        """Return all users ever learned; the forgotten ones must stay forgotten."""
        pending = {self.waiting.user} if self.waiting else set()
        return {*self.histories, *pending, *(marker for marker in self.forgotten if marker.startswith("user"))}

    def check(self, held: dict[str, History]) -> None:
        """Check that the acknowledged state is stored, with or without the event in progress."""
        possible = [self.histories]
        if self.waiting is not None:
            possible.append(self.waiting.apply(self.histories))
        stored = {user: history for user, history in held.items() if user in self.users()}
        assert stored in possible
        self.forgotten |= markers(self.histories) - markers(stored)
        self.histories, self.waiting = stored, None


def stored_histories(service: Service, users: set[str]) -> dict[str, History]:
    """Return the stored histories of users."""
    held: dict[str, History] = {}
    connection = service.connect()
    for user in users:
        status, answer = ask(connection, "GET", f"/v1/users/{user}")
        assert status in (200, 404), answer
        if status == 200:
            baskets = msgspec.json.decode(answer)["baskets"]
            held[user] = {basket["basket"]: {item["item"] for item in basket["items"]} for basket in baskets}
    connection.close()
    return held


def test_kill_under_load(tmp_path: Path) -> None:
    db, rng = tmp_path / "shop.db", random.Random(1)
    callers = [Caller(rng.getrandbits(32)) for _ in range(CALLERS)]
    for _ in range(KILLS):
        with running(db) as service:
            check(callers, service)
            threads = [threading.Thread(target=caller.run, args=(service,)) for caller in callers]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.5, 1.5))
            assert service.stop(signal.SIGKILL) == -signal.SIGKILL
            for thread in threads:
                thread.join()
        assert_gone(callers, tmp_path)
    with running(db) as service:
        check(callers, service)
        status, answer = service.ask("POST", "/v1/receipts/verify")
        assert (status, msgspec.json.decode(answer)["ok"]) == (200, True)
        assert service.stop() == 0
    assert_gone(callers, tmp_path)
    assert sum(caller.acknowledged for caller in callers) > 100
    assert sum(caller.forgets for caller in callers) > 30


def check(callers: list[Caller], service: Service) -> None:
    """Check the acknowledged state of all callers after a start."""
    held = stored_histories(service, {user for caller in callers for user in caller.users()})
    for caller in callers:
        caller.check(held)


def assert_gone(callers: list[Caller], folder: Path) -> None:
    """Check that forgotten ids are in no file, and no ids at all in the log."""
    patterns = folder.with_name(folder.name + "-markers")
    forgotten = set().union(*(caller.forgotten for caller in callers))
    patterns.write_text("".join(f"{marker}\n" for marker in forgotten))
    assert files_with_any(patterns, folder) == []
    remaining = set().union(*(markers(caller.histories) for caller in callers))
    patterns.write_text("".join(f"{marker}\n" for marker in forgotten | remaining))
    holding = files_with_any(patterns, folder)
    assert holding  # grep does find stored ids
    assert "./service.log" not in holding
