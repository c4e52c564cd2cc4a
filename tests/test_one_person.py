"""One id is one person: random sequences of events, in spellings mixed at random, through every interface.

A scenario across all modules: the engine in memory, the durable one, frames, CSV, events, HTTP and the command line.
After each sequence no id is there twice, and nothing is found of a forgotten user, in any spelling.
"""

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from tests.cli.running import run
from tests.laws import law_of_one_person
from tests.service.serving import Service, quoted, serving

import unbasket as ub
from unbasket.datasets.purchases import narrow_ids
from unbasket.domain.events import parse_event
from unbasket.domain.ids import Id

USERS = ("1", "2", "17", "-3", "017", "A-5", " 17", "1.0")
ITEMS = ("1", "7", "milk", "07")
BASKETS = ("1", "2", "b")


class Shopper:
    """Random events of random people. Texts are ids as people write them; `spelled` makes numbers of some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.users = self.chance.sample(USERS, 3)

    def spelled(self, text: str) -> Id:
        """Return an id as a number, if it is one, or as a text."""
        is_number = re.fullmatch("0|-?[1-9][0-9]*", text)
        return int(text) if is_number and self.chance.random() < 0.5 else text

    def learn(self) -> dict[str, Any]:
        items = [self.spelled(item) for item in self.chance.sample(ITEMS, self.chance.randint(1, 2))]
        user, basket = self.chance.choice(self.users), self.chance.choice(BASKETS)
        return {"user": self.spelled(user), "basket": self.spelled(basket), "items": items}


# Each way to learn and to forget, in an engine and over HTTP, takes the same fields.


def learn_by_call(rec: ub.Recommender, event: dict[str, Any]) -> None:
    rec.learn(event["user"], event["items"], basket=event["basket"])


def learn_by_event(rec: ub.Recommender, event: dict[str, Any]) -> None:
    rec.apply([parse_event({"event": "learn", **event})])


def learn_by_frame(rec: ub.Recommender, event: dict[str, Any]) -> None:
    rows = {"user": event["user"], "basket": event["basket"], "item": event["items"]}
    rec.fit(pd.DataFrame(rows))


def learn_by_csv(rec: ub.Recommender, event: dict[str, Any]) -> None:
    rows = [{"user": str(event["user"]), "basket": str(event["basket"]), "item": str(i)} for i in event["items"]]
    rec.fit(narrow_ids([pl.DataFrame(rows)])[0])


LEARNS: list[Callable[[ub.Recommender, dict[str, Any]], None]] = [
    learn_by_call,
    learn_by_event,
    learn_by_frame,
    learn_by_csv,
]


def learn_over_http(service: Service, event: dict[str, Any], in_path: bool) -> None:
    if in_path:
        path = f"/v1/users/{quoted(str(event['user']))}/baskets/{quoted(str(event['basket']))}"
        response = service.client.put(path, json={"items": event["items"]})
    else:
        response = service.client.post("/v1/events", json=[{"event": "learn", **event}])
    assert response.status_code in (200, 400), response.text


def forget_everywhere(service: Service, memory: ub.Recommender, user: Id, chance: random.Random) -> None:
    """Forget a user in both engines, in the durable one by a random way; a refusal says that there is no such user."""
    for rec in (memory, service.engine):
        try:
            rec.forget(user)
        except ub.InvalidIdError:
            assert user not in rec
    if chance.random() < 0.5:
        assert service.client.delete(f"/v1/users/{quoted(str(user))}").status_code in (200, 400)


def nothing_is_held(service: Service, memory: ub.Recommender, user: str) -> None:
    for rec in (memory, service.engine):
        for spelling in (user, *([int(user)] if re.fullmatch("0|-?[1-9][0-9]*", user) else [])):
            assert spelling not in rec
        assert user not in map(str, rec.users())
    for path in (quoted(user), quoted(json.dumps(user))):
        assert service.client.get(f"/v1/users/{path}").status_code in (400, 404)


def run_sequence(service: Service, memory: ub.Recommender, seed: int) -> None:
    shopper = Shopper(seed)
    chance = shopper.chance
    for _ in range(chance.randint(2, 8)):
        event = shopper.learn()
        for rec in (memory, service.engine):
            with suppress(ub.InvalidIdError):  # refused
                chance.choice(LEARNS)(rec, event)
        if chance.random() < 0.5:
            learn_over_http(service, shopper.learn(), chance.random() < 0.5)
        if chance.random() < 0.1:
            memory.change_ids(user="text")
        if chance.random() < 0.05:
            service.client.put("/v1/ids", json={"user": "text", "item": "text"})
    for rec in (memory, service.engine):
        law_of_one_person(rec)
    for user in shopper.users:
        forget_everywhere(service, memory, shopper.spelled(user), chance)
        nothing_is_held(service, memory, user)
    if chance.random() < 0.5:  # else the next sequence meets its other users
        for rec in (memory, service.engine):
            for held in rec.users():
                rec.forget(held)
            assert rec.id_types()["user"] is None


def run_sequences(tmp_path: Path, seeds: range) -> None:
    with serving(new_shop(tmp_path)) as service:
        memory = ub.Recommender()
        for seed in seeds:
            run_sequence(service, memory, seed)
        assert service.engine.verify().ok
        assert memory.verify().ok
        held = service.engine.users()
    for user in held:
        assert json.loads(run("history", f'"{user}"', "--db", tmp_path / "shop.db", "--json"))


def new_shop(folder: Path) -> Path:
    ub.open(folder / "shop.db").close()
    return folder / "shop.db"


def test_random_sequences(tmp_path: Path) -> None:
    run_sequences(tmp_path, range(150))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_ten_thousand_random_sequences(tmp_path: Path, part: int) -> None:
    run_sequences(tmp_path, range(2500 * part, 2500 * (part + 1)))
