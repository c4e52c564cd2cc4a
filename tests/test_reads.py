"""A question never writes: no method that reads, and no route that reads, takes the writing lock.

A scenario across the engines and the service. A new public method or route has to be listed here, or is tried as well.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.serving import Service, make_shop, serving

import unbasket as ub
from unbasket.core.util import ReadWriteLock
from unbasket.service.routes import ROUTES, Route
from unbasket.store import DurableRecommender

NEW = [f"new-{number}" for number in range(20)]  # items that no basket holds

READS: dict[str, Callable[[Any, Path], object]] = {
    "params": lambda rec, _: rec.params,
    "catalog": lambda rec, _: [rec.catalog.get("wine"), rec.catalog.members("Alcohol"), rec.catalog.categories()],
    "recommend": lambda rec, _: [
        rec.recommend("ann", cart=NEW, exclude=NEW, only=[*NEW, "wine"], category="Alcohol", only_new=True),
        rec.recommend("new user", cart=[*NEW, "milk"]),
    ],
    "recommend_many": lambda rec, _: rec.recommend_many(exclude=NEW),
    "recommend_frame": lambda rec, _: rec.recommend_frame(["ann"], columns=["name"]),
    "recommend_for": lambda rec, _: [
        rec.recommend_for([["milk"], NEW], user="ann", cart=["new"], exclude=["other"]),
        rec.recommend_for([NEW], only_new=True, only=frozenset(NEW)),
    ],
    "recommend_batch": lambda rec, _: rec.recommend_batch(["ann", "new"], timeout=10),
    "popular": lambda rec, _: [rec.popular(exclude=NEW), rec.popular(since=15)],
    "vector": lambda rec, _: rec.vector("ann"),
    "similar_users": lambda rec, _: rec.similar_users("ann"),
    "explain": lambda rec, _: rec.explain("ann", "new"),
    "explain_many": lambda rec, _: rec.explain_many("ann", [*NEW, "milk"]),
    "learned": lambda rec, _: rec.learned(),
    "history": lambda rec, _: rec.history("ann"),
    "groups": lambda rec, _: rec.groups("ann"),
    "users": lambda rec, _: rec.users(),
    "items": lambda rec, _: rec.items(),
    "has_item": lambda rec, _: rec.has_item("new"),
    "id_types": lambda rec, _: rec.id_types(),
    "canonical_id": lambda rec, _: rec.canonical_id("new", "item"),
    "comes_last": lambda rec, _: rec.comes_last("new", 99, 1),
    "sizes": lambda rec, _: [rec.sizes(), len(rec), "new user" in rec, repr(rec), rec._repr_html_()],
    "suppressed": lambda rec, _: rec.suppressed("ann"),
    "hidden": lambda rec, _: rec.hidden(),
    "verify": lambda rec, _: [rec.verify(), rec.verify("ann"), rec.verify("new user")],
    "digest": lambda rec, _: rec.digest(),
    "receipts": lambda rec, _: rec.receipts(),
    "receipt_count": lambda rec, _: rec.receipt_count,
    "seconds_to_erasure": lambda rec, _: rec.seconds_to_erasure,
    "presence": lambda rec, _: rec.presence("ann"),
    "was_forgotten": lambda rec, _: rec.was_forgotten("ann", rec.presence("ann")._replace(receipts=0)),
    "salt": lambda rec, _: rec.salt,
    "cursors": lambda rec, _: rec.cursors(),
    "signing_key": lambda rec, _: rec.signing_key,
    "checkpoint": lambda rec, _: rec.checkpoint(),
    "prove": lambda rec, _: rec.prove("ann"),
    "prove_absence": lambda rec, _: rec.prove_absence("new user"),
    "prove_receipt": lambda rec, _: rec.prove_receipt(1),
    "prove_consistency": lambda rec, _: rec.prove_consistency(rec.checkpoint()),
    "backup": lambda rec, folder: rec.backup(folder / "copy.db"),
}
WRITES = (
    {"fit", "learn", "forget", "apply", "describe", "rename", "suppress", "allow", "hide", "show", "set_availability"}
    | {"change_params", "change_ids"}
    | {"close"}
)
DURABLE_WRITES = {"apply_checked", "publish_checkpoint", "accept_rollback", "rotate_key"}
DURABLE = {"receipts", "receipt_count", "seconds_to_erasure", "backup", "presence", "was_forgotten", "cursors"} | {
    *("signing_key", "checkpoint", "prove", "prove_absence", "prove_receipt", "prove_consistency")
}
IN_MEMORY = READS.keys() - DURABLE

READING_ROUTES = [route for route in ROUTES if route.runs_on != "writer"]
PATH = {"user": "ann", "item": "new", "number": "1"}
REQUESTS: dict[str, list[tuple[str, Any]]] = {
    "recommend": [("", None), ("?n=5&explain=true", None), ("?cart=new&exclude=other&only=new&category=none", None)],
    "recommend_to_visitor": [("", {"baskets": [NEW], "cart": NEW}), ("", {"cart": ["milk"], "exclude": NEW})],
    "preview": [("", {"learn": {"items": NEW}}), ("", {"forget": {"item": "new"}}), ("", {"forget": {}})],
    "popular": [("", None), ("?since=15", None)],
    "verify_receipts": [("", None), ("", {"receipts": []})],
    "token": [("", {"user": "new user"})],
    "verify_proof": [("", {"text": "{}"})],
}
"""Queries and bodies by the name of a route; others need neither."""


class WatchedLock:
    """A lock that counts its writers."""

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock
        self.writers = 0

    @property
    def reading(self) -> Any:
        return self._lock.reading

    def reading_within(self, timeout: float | None) -> Any:
        return self._lock.reading_within(timeout)

    @property
    def writing(self) -> Any:
        self.writers += 1
        return self._lock.writing


def watched(rec: ub.Recommender) -> WatchedLock:
    lock = WatchedLock(rec._model.lock)
    rec._model.lock = lock  # type: ignore[assignment]
    return lock


def fill(rec: ub.Recommender) -> None:
    rec.learn("ann", ["milk", "wine"], basket=1, time=10)
    rec.learn("ann", ["milk", "tea"], basket=2, time=20)
    rec.learn("bob", ["milk", "tea"], basket=1)
    rec.describe({"item": ["wine"], "name": ["Wine"], "category": ["Alcohol"]})
    rec.suppress("ann", "tea")
    rec.hide(["gin"])
    rec.forget("bob", item="tea")


@pytest.fixture(params=["learned", "varying"])
def params(request: pytest.FixtureRequest) -> ub.Params:
    learned = ub.Params(neighbors=1)
    return learned if request.param == "learned" else learned.changed(alpha=0.7, grouping="varying")


@pytest.mark.parametrize("engine", [ub.Recommender, DurableRecommender])
def test_every_public_name_is_listed(engine: type[ub.Recommender]) -> None:
    names = {name for name in dir(engine) if not name.startswith("_")}
    reads = READS.keys() if engine is DurableRecommender else IN_MEMORY
    assert {*reads, *WRITES} - names <= {"close"}
    assert names <= {*reads, *WRITES, *DURABLE_WRITES}


def test_the_watch_sees_a_writer(params: ub.Params) -> None:
    rec = ub.Recommender(params)
    fill(rec)
    lock = watched(rec)
    rec.learn("ann", ["milk"], basket=3)
    assert lock.writers == 1


@pytest.mark.parametrize("name", sorted(IN_MEMORY))
def test_reads_in_memory(params: ub.Params, name: str, tmp_path: Path) -> None:
    rec = ub.Recommender(params)
    fill(rec)
    lock = watched(rec)
    READS[name](rec, tmp_path)
    assert lock.writers == 0


@pytest.mark.parametrize("name", sorted(READS))
def test_reads_of_a_durable_engine(params: ub.Params, name: str, tmp_path: Path) -> None:
    with ub.open(tmp_path / "shop.db", params) as rec:
        fill(rec)
        lock = watched(rec)
        READS[name](rec, tmp_path)
        assert lock.writers == 0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(make_shop(tmp_path_factory.mktemp("reads") / "shop.db")) as service:
        service("DELETE", "/v1/users/cleo/items/17")  # the first receipt
        yield service


@pytest.mark.parametrize("route", READING_ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_routes_that_read(service: Service, route: Route) -> None:
    path = route.path.format(**PATH)
    lock = watched(service.engine)
    for query, body in REQUESTS.get(route.name, [("", None)]):
        response = service.client.request(route.method, path + query, json=body)
        expected = 400 if route.name == "absence" else route.status  # the user is there
        assert response.status_code == expected, response.text
    assert lock.writers == 0
