"""Limits of a shopper's token, each of its routes at the maximum, and long ids: a scenario over a real socket."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.service.serving import Service, make_shop, quoted, serving

import unbasket as ub
from unbasket.engine.histories import MAX_SUPPRESSIONS
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.service.routes import ROUTES, Route
from unbasket.service.schemas.requests import MAX_SHOPPER_ITEMS

KEY_FILE = KeyFile.new()
KEY = KEY_FILE.add("shop", ["admin"])
OWN = [route for route in ROUTES if route.own]
LONGEST = "\u00e9" * 128  # 256 bytes in UTF-8
LONGER = LONGEST + "x"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(make_shop(tmp_path_factory.mktemp("shopper") / "shop.db"), Authenticator(None, KEY_FILE)) as service:
        yield service


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def token_of(service: Service, user: str) -> dict[str, str]:
    return bearer(service.token(Authenticator(None, KEY_FILE), user))


@pytest.fixture
def token(service: Service) -> dict[str, str]:
    return token_of(service, "ann")


def preview(items: int) -> dict[str, Any]:
    return {"learn": {"items": [f"unknown-{number}" for number in range(items)]}}


def cart(items: int) -> str:
    return "&".join(f"cart={number}" for number in range(items))


def test_items_of_a_preview(service: Service, token: dict[str, str]) -> None:
    path = "/v1/users/ann/preview"
    assert len(service("POST", path, json=preview(MAX_SHOPPER_ITEMS), headers=token)["after"]) == 10
    error = service("POST", path, 413, json=preview(MAX_SHOPPER_ITEMS + 1), headers=token)["error"]
    assert error == {
        "code": "too_large",
        "message": "the basket has 501 items: with a shopper's token, send at most 500",
    }
    assert len(service("POST", path, json=preview(8_000), headers=bearer(KEY))["after"]) == 10


def test_items_of_a_cart(service: Service, token: dict[str, str]) -> None:
    path = "/v1/users/ann/recommendations"
    found = service("GET", f"{path}?{cart(MAX_SHOPPER_ITEMS)}", headers=token)
    error = service("GET", f"{path}?{cart(MAX_SHOPPER_ITEMS + 1)}", 400, headers=token)["error"]
    assert error == {
        "code": "invalid_query",
        "message": "the cart has 501 items: with a shopper's token, send at most 500",
    }
    other = service("GET", f"{path}?{cart(900)}", headers=bearer(KEY))
    assert [each["item"] for each in other["recommendations"]] == [each["item"] for each in found["recommendations"]]


def test_bytes_of_a_body(service: Service, token: dict[str, str]) -> None:
    """The largest preview fits: each byte of an id may be escaped in six."""
    path, escaped = "/v1/users/ann/preview", b"\\u0001" * 253
    items = b",".join(b'"%03d%s"' % (number, escaped) for number in range(MAX_SHOPPER_ITEMS))
    largest = b'{"learn": {"items": [%s]}}' % items
    kind = {"Content-Type": "application/json"}
    service("POST", path, content=largest, headers=token | kind)
    padded = largest.ljust(1024 * 1024 + 1)
    error = service("POST", path, 413, content=padded, headers=token | kind)["error"]
    assert error == {"code": "too_large", "message": "the body has more than 1048576 bytes"}
    service("POST", path, content=padded, headers=bearer(KEY) | kind)


def test_a_shopper_suppresses_known_items_only(service: Service, token: dict[str, str]) -> None:
    path = "/v1/users/ann/suppressed"
    service.engine.describe({"item": ["rum"], "name": ["Rum"]}, category=None)
    for item in ("milk", "rum"):  # in a basket, in the catalog
        assert service("PUT", f"{path}/{item}", headers=token)["changed"]
    error = service("PUT", f"{path}/unknown", 400, headers=token)["error"]
    assert error["code"] == "invalid_request"
    assert "item 'unknown' is in no basket and not in the catalog" in error["message"]
    assert service("PUT", f"{path}/unknown", headers=bearer(KEY))["changed"]  # the shop knows its plans
    for item in ("milk", "rum", "unknown"):
        assert service("DELETE", f"{path}/{item}", headers=token)["changed"]


def test_the_suppressions_of_a_user(service: Service, token: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.engine.histories.MAX_SUPPRESSIONS", 1)
    path = "/v1/users/ann/suppressed"
    service("PUT", f"{path}/milk", headers=token)
    for headers in (token, bearer(KEY)):
        error = service("PUT", f"{path}/tea", 400, headers=headers)["error"]
        assert error["code"] == "invalid_request"
        assert "'ann' would have 2 suppressed items, of at most 1. Allow some" in error["message"]
    service("DELETE", f"{path}/milk", headers=token)


# Every route ----------------------------------------------------------------------------------------------------


class Sent(NamedTuple):
    """The parts of a request that its route leaves open."""

    query: str = ""
    body: Any = None
    item: str = LONGEST


def long_items(count: int) -> list[str]:
    return [f"{number:04}" + LONGEST[2:] for number in range(count)]


MAXIMA: dict[str, list[Sent]] = {
    "recommend": [
        Sent(f"n=1000&only_new=true&{cart(MAX_SHOPPER_ITEMS)}"),
        Sent("n=100&explain=true"),
        Sent("&".join(["n=1000", *["exclude=1"] * 999])),
    ],
    "preview": [
        Sent("n=1000", {"learn": {"items": long_items(MAX_SHOPPER_ITEMS)}}),
        Sent("n=1000", {"forget": {"basket": LONGEST, "item": LONGEST, "category": LONGEST}}),
    ],
}
"""The largest requests by the name of a route; of other routes, a request with the longest ids."""

BEYOND: dict[str, list[tuple[Sent, int, str]]] = {
    "recommend": [
        (Sent(cart(MAX_SHOPPER_ITEMS + 1)), 400, "invalid_query"),
        (Sent("n=1001"), 400, "invalid_query"),
        (Sent("n=101&explain=true"), 400, "invalid_query"),
        (Sent("&".join(["exclude=1"] * 1001)), 400, "invalid_query"),
    ],
    "preview": [
        (Sent("n=1001", {"forget": {}}), 400, "invalid_query"),
        (Sent("", preview(MAX_SHOPPER_ITEMS + 1)), 413, "too_large"),
        (Sent("", {"learn": {"items": [LONGER]}}), 400, "invalid_body"),
        (Sent("", {"forget": {"basket": LONGER}}), 400, "invalid_body"),
        (Sent("", {"forget": {"item": LONGER}}), 400, "invalid_body"),
        (Sent("", {"forget": {"category": "x" * 1024 * 1024}}), 413, "too_large"),
    ],
    "suppress": [(Sent(item="unknown"), 400, "invalid_request")],
}
"""Requests that exceed a limit other than that of the ids in the path."""


@pytest.fixture(scope="module")
def full_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the database of a shopper with the longest ids, and one suppression less than allowed."""
    db = tmp_path_factory.mktemp("full") / "shop.db"
    with ub.open(db) as rec:
        rec.learn(LONGEST, [LONGEST, *long_items(1_000)], basket=LONGEST)
        rec.learn("bob", [LONGEST, "milk", "new"], basket="b")
        rec.describe({"item": [LONGEST], "name": ["Tea"], "category": [LONGEST]})
        for item in long_items(MAX_SUPPRESSIONS - 1):
            rec.suppress(LONGEST, item)
    return db


@pytest.fixture
def full(full_shop: Path, tmp_path: Path) -> Iterator[Service]:
    for suffix in ("", "-keys"):
        shutil.copy(f"{full_shop}{suffix}", tmp_path / f"shop.db{suffix}")
    with serving(tmp_path / "shop.db", Authenticator(None, KEY_FILE)) as service:
        yield service


def address(route: Route, sent: Sent, **longer: str) -> str:
    values = dict.fromkeys(("user", "basket", "category"), LONGEST) | {"item": sent.item} | longer
    path = route.path
    for name in route.path_params:
        path = path.replace(f"{{{name}}}", quoted(values[name]))
    return f"{path}?{sent.query}" if sent.query else path


@pytest.mark.parametrize("route", OWN, ids=lambda route: route.name)
def test_every_route_at_its_maximum(full: Service, route: Route) -> None:
    if route.name == "absence":
        full.engine.forget(LONGEST)
    for sent in MAXIMA.get(route.name, [Sent()]):
        full(route.method, address(route, sent), route.status, json=sent.body, headers=token_of(full, LONGEST))
    assert full.engine.verify().ok


@pytest.mark.parametrize("route", OWN, ids=lambda route: route.name)
def test_every_route_beyond_its_maximum(full: Service, route: Route) -> None:
    before = full.engine.digest()
    for sent, status, code in BEYOND.get(route.name, []):
        found = full.code(route.method, address(route, sent), status, json=sent.body, headers=token_of(full, LONGEST))
        assert found == code
    for name in {"user", "basket", "item"}.intersection(route.path_params):
        path, headers = address(route, Sent(), **{name: LONGER}), token_of(full, LONGER if name == "user" else LONGEST)
        error = full(route.method, path, 400, headers=headers)["error"]
        assert error["code"] == "invalid_path"
        assert "has 257 bytes in UTF-8, of at most 256 (max_id_bytes)" in error["message"]
    assert full.engine.digest() == before


def test_a_suppression_too_many(full: Service) -> None:
    path, headers = f"/v1/users/{quoted(LONGEST)}/suppressed", token_of(full, LONGEST)
    assert full("PUT", f"{path}/milk", headers=headers)["changed"]
    error = full("PUT", f"{path}/new", 400, headers=headers)["error"]
    assert error["code"] == "invalid_request"
    assert "would have 1,001 suppressed items, of at most 1,000" in error["message"]


# Ids of every caller --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("PUT /v1/users/ann/baskets/9", {"items": ["milk", LONGER]}),
        ("POST /v1/users/ann/baskets", {"items": [LONGER]}),
        ("POST /v1/events", [{"event": "learn", "user": LONGER, "basket": 9, "items": ["milk"]}]),
        ("POST /v1/events", [{"event": "learn", "user": "ann", "basket": LONGER, "items": ["milk"]}]),
        ("POST /v1/events", [{"event": "learn", "user": "ann", "basket": 9, "items": [LONGER]}]),
        ("POST /v1/events", [{"event": "forget", "user": "ann"}, {"event": "forget", "user": LONGER}]),
        ("POST /v1/recommendations", {"baskets": [["milk"], [LONGER]]}),
        ("POST /v1/recommendations", {"cart": [LONGER]}),
        ("POST /v1/recommendations", {"exclude": [LONGER]}),
        ("POST /v1/recommendations", {"only": [LONGER]}),
        ("POST /v1/items/availability", {"hide": [LONGER]}),
        ("POST /v1/items/availability", {"show": [LONGER]}),
        ("POST /v1/users/ann/rename", {"to": LONGER}),
        ("POST /v1/tokens", {"user": LONGER}),
    ],
    ids=str,
)
def test_long_ids_in_bodies(service: Service, line: str, body: Any) -> None:
    before, (method, path) = service.engine.digest(), line.split()
    error = service(method, path, 400, json=body, headers=bearer(KEY))["error"]
    assert error["code"] == "invalid_body"
    assert "has 257 bytes in UTF-8, of at most 256 (max_id_bytes)" in error["message"]
    assert service.engine.digest() == before


def test_the_longest_id_in_quotes_and_in_events(service: Service) -> None:
    """The limit is that of the id, not of its spelling."""
    path = f"/v1/users/{quoted(chr(34) + LONGEST + chr(34))}"
    line = f'{{"event": "learn", "user": "{LONGEST}", "basket": 9, "items": ["milk"]}}'
    headers = bearer(KEY) | {"Content-Type": "application/x-ndjson"}
    service("POST", "/v1/events", content=line, headers=headers)
    assert service("GET", path, headers=bearer(KEY))["user"] == LONGEST
    service("DELETE", path, headers=bearer(KEY))
    assert (
        service.code("POST", "/v1/events", 400, content=line.replace(LONGEST, LONGER), headers=headers)
        == "invalid_body"
    )


@pytest.mark.parametrize(("surrogates", "code"), [(86, "invalid_path"), (85, "invalid_request")])
def test_long_ids_that_are_not_unicode(service: Service, surrogates: int, code: str) -> None:
    name = quoted(chr(34) + "\\ud800" * surrogates + chr(34))
    assert service.code("DELETE", f"/v1/users/{name}", 400, headers=bearer(KEY)) == code


def test_a_shop_with_longer_ids(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path / "shop.db"), max_id_bytes=1_000) as service:
        name = "x" * 1_000
        service("PUT", f"/v1/users/{name}/baskets/9", json={"items": [name]})
        assert service.code("GET", f"/v1/users/{name}x", 400) == "invalid_path"
