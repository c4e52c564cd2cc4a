"""The service is killed under load: what it acknowledged stays, and what it forgot is in no file, its log included."""

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
    """Something that a shopper wants: to have `items` learned as a basket, or something forgotten."""

    user: str
    basket: str | None = None
    item: str | None = None
    items: frozenset[str] | None = None

    @property
    def request(self) -> tuple[str, str, object]:
        parts = [("users", self.user), ("baskets", self.basket), ("items", self.item)]
        path = "/v1/" + "/".join(f"{kind}/{name}" for kind, name in parts if name is not None)
        return ("DELETE", path, None) if self.items is None else ("PUT", path, {"items": sorted(self.items)})

    def happen(self, histories: dict[str, History]) -> dict[str, History]:
        """The histories after it; those given stay as they are."""
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
    """All ids in histories. Every id is used once, so that it vanishes with what it names."""
    found = set(histories)
    for history in histories.values():
        found |= history.keys()
        found.update(*history.values())
    return found


class Caller:
    """Shoppers of one connection, and what the service has told them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.histories: dict[str, History] = {}
        self.waiting: Event | None = None
        self.forgotten: set[str] = set()
        self.acknowledged = self.forgets = 0

    def talk(self, service: Service) -> None:
        """Send events until the service is gone."""
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
        former, self.histories = markers(self.histories), event.happen(self.histories)
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
        """Everybody of whom something was ever learned: those who are forgotten must stay so."""
        asked = {self.waiting.user} if self.waiting else set()
        return {*self.histories, *asked, *(marker for marker in self.forgotten if marker.startswith("user"))}

    def check(self, held: dict[str, History]) -> None:
        """What was acknowledged is held, with or without the event that nobody answered."""
        possible = [self.histories]
        if self.waiting is not None:
            possible.append(self.waiting.happen(self.histories))
        mine = {user: history for user, history in held.items() if user in self.users()}
        assert mine in possible
        self.forgotten |= markers(self.histories) - markers(mine)
        self.histories, self.waiting = mine, None


def all_held(service: Service, users: set[str]) -> dict[str, History]:
    """What the service says it holds of users."""
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
            threads = [threading.Thread(target=caller.talk, args=(service,)) for caller in callers]
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
    """After a start: all that was acknowledged is as it was."""
    held = all_held(service, {user for caller in callers for user in caller.users()})
    for caller in callers:
        caller.check(held)


def assert_gone(callers: list[Caller], folder: Path) -> None:
    """What was forgotten is in no file, and the log names nobody at all."""
    patterns = folder.with_name(folder.name + "-markers")
    forgotten = set().union(*(caller.forgotten for caller in callers))
    patterns.write_text("".join(f"{marker}\n" for marker in forgotten))
    assert files_with_any(patterns, folder) == []
    remaining = set().union(*(markers(caller.histories) for caller in callers))
    patterns.write_text("".join(f"{marker}\n" for marker in forgotten | remaining))
    holding = files_with_any(patterns, folder)
    assert holding  # they would have been found
    assert "./service.log" not in holding
