"""Every call over a real socket."""

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.service.serving import Service, make_shop, serving

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.service.errors import CODES
from unbasket.service.routes import ROUTES
from unbasket.store import Receipt, audit

DOCS = Path(__file__).parents[2] / "docs" / "http.md"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(make_shop(tmp_path / "shop.db")) as running:
        yield running


def part(name: str) -> str:
    """A text as a part of a path."""
    return quote(name, safe="")


# Learning -------------------------------------------------------------------------------------------------------


def test_learn_is_idempotent_and_edits(service: Service) -> None:
    path = "/v1/users/dan/baskets/x1"
    assert service("PUT", path, json={"items": ["milk", "tea"]}) == {"result": "added", "basket": "x1"}
    assert service("PUT", path, json={"items": ["tea", "milk"]}) == {"result": "unchanged", "basket": "x1"}
    assert service("PUT", path, json={"items": ["tea"], "time": 5}) == {"result": "replaced", "basket": "x1"}
    assert service.engine.history("dan") == [ub.Basket("x1", 5, ("tea",))]


def test_a_basket_without_an_id(service: Service) -> None:
    response = service.client.post("/v1/users/a%2Fb/baskets", json={"items": ["milk"], "time": None})
    assert response.status_code == 201
    basket = response.json()["basket"]
    assert response.headers["location"] == f"/v1/users/a%2Fb/baskets/{basket}"
    assert [held.basket for held in service.engine.history("a/b")] == [basket]
    assert service("DELETE", response.headers["location"])["removed"] == {"purchases": 1, "baskets": 1, "users": 1}


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".", "a b?c#d", "%2F", "\u00fc\u4e2d\U0001f9c0", "\x00", "17x", '"', "a\nb", "\\", "+"]
)
def test_ids_with_any_characters(service: Service, name: str) -> None:
    path = f"/v1/users/{part(name)}/baskets/{part(name)}"
    if name in (".", ".."):  # clients take these for steps in a path, so they are sent in quotes
        path = path.replace(name, part(json.dumps(name)))
    service("PUT", path, json={"items": [name, "milk"]})
    assert service.engine.history(name) == [ub.Basket(name, None, tuple(sorted([name, "milk"])))]
    gone = service("DELETE", f"{path}/items/{part(json.dumps(name))}")
    assert gone["removed"] == {"purchases": 1, "baskets": 0, "users": 0}


def test_numbers_and_texts(service: Service) -> None:
    assert service("GET", "/v1/users/7")["user"] == 7
    assert service.code("GET", "/v1/users/%227%22", 404) == "unknown_user"
    service("PUT", "/v1/users/%227%22/baskets/1", json={"items": ["tea"]})
    assert (service("GET", "/v1/users/7")["user"], service("GET", "/v1/users/%227%22")["user"]) == (7, "7")
    assert service("GET", "/v1/users/8/recommendations")["user"] == "8"  # there are texts, and no number 8
    assert service("GET", "/v1/users/ann/explanations/17")["item"] == 17
    assert service("PUT", "/v1/users/ann/baskets/3", json={"items": [1]})["basket"] == 3
    assert service("PUT", "/v1/users/bob/baskets/3", json={"items": [1]})["basket"] == "3"


# Events ---------------------------------------------------------------------------------------------------------

EVENTS: list[dict[str, Any]] = [
    {"event": "learn", "user": "eve", "basket": 1, "items": ["milk", "soap"], "time": 3},
    {"event": "learn", "user": "eve", "basket": 2, "items": ["tea"]},
    {"event": "forget", "user": "eve", "basket": 1, "item": "soap"},
    {"event": "forget", "user": "nobody"},
]


@pytest.mark.parametrize("lines", [False, True])
def test_events(service: Service, lines: bool) -> None:
    if lines:
        content = "\n".join(map(json.dumps, EVENTS)).encode() + b"\n\n"
        answer = service("POST", "/v1/events", content=content, headers={"Content-Type": "application/x-ndjson"})
    else:
        answer = service("POST", "/v1/events", json=EVENTS)
    first, second, third, fourth = answer["results"]
    assert first == second == {"result": "added"}
    assert (third["receipt"]["purchases"], fourth["receipt"]["purchases"]) == (1, 0)
    assert answer["seconds"] > 0
    assert [held.items for held in service.engine.history("eve")] == [("milk",), ("tea",)]


@pytest.mark.parametrize(
    "bad",
    [
        {"event": "learn", "user": "eve", "basket": 1, "items": []},
        {"event": "learn", "user": "eve", "items": ["a"]},
        {"event": "learn", "user": "", "basket": 1, "items": ["a"]},
        {"event": "learn", "user": "eve", "basket": 2**63, "items": ["a"]},
        {"event": "forget", "user": "eve", "items": ["a"]},
        {"event": "other", "user": "eve"},
        {"user": "eve"},
        None,
        [],
    ],
)
def test_events_are_all_or_nothing(service: Service, bad: object) -> None:
    before = service.engine.digest()
    assert service.code("POST", "/v1/events", 400, json=[*EVENTS, bad]) == "invalid_body"
    lines = "\n".join(map(json.dumps, [*EVENTS, bad])).encode()
    answer = service("POST", "/v1/events", 400, content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert answer["error"]["message"].startswith(f"line {len(EVENTS) + 1} is not as it should be: ")
    assert service.engine.digest() == before
    assert service.engine.receipts() == []


def test_too_large_a_basket_stops_all_events(service: Service) -> None:
    before = service.engine.digest()
    large = {"event": "learn", "user": "eve", "basket": 9, "items": list(range(8193))}
    assert service.code("POST", "/v1/events", 400, json=[*EVENTS, large]) == "invalid_body"
    assert service.engine.digest() == before


def test_no_events(service: Service) -> None:
    assert service("POST", "/v1/events", json=[])["results"] == []


# Forgetting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "removed", "scope"),
    [
        ("/v1/users/ann", (5, 2, 1), "user"),
        ("/v1/users/ann/baskets/2", (3, 1, 0), "basket"),
        ("/v1/users/ann/baskets/2/items/milk", (1, 0, 0), "item of a basket"),
        ("/v1/users/ann/items/milk", (2, 0, 0), "item"),
        ("/v1/users/bob/baskets/b%2F1", (2, 1, 1), "basket"),
        ("/v1/users/nobody", (0, 0, 0), "user"),
    ],
)
def test_forget(service: Service, path: str, removed: tuple[int, int, int], scope: str) -> None:
    answer = service("DELETE", path)
    receipt = Receipt.from_json(json.dumps(answer["receipt"]))
    assert tuple(answer["removed"].values()) == removed == (receipt.purchases, receipt.baskets, receipt.users)
    assert (receipt.scope, receipt.verified) == (scope, True)
    assert answer["seconds"] > 0
    assert audit([receipt]).ok
    again = service("DELETE", path)
    assert again["removed"] == {"purchases": 0, "baskets": 0, "users": 0}
    assert again["receipt"]["before"] == again["receipt"]["after"] == receipt.after


def test_forget_a_category(service: Service) -> None:
    answer = service("DELETE", "/v1/users/ann/categories/Alcohol")
    assert answer["removed"] == {"purchases": 2, "baskets": 0, "users": 0}
    assert [receipt["scope"] for receipt in answer["receipts"]] == ["item", "item"]
    assert {item["item"] for basket in service("GET", "/v1/users/ann")["baskets"] for item in basket["items"]} == {
        "milk",
        "bread",
    }
    assert service("DELETE", "/v1/users/ann/categories/Alcohol")["receipts"] == []
    assert service("DELETE", "/v1/users/nobody/categories/None%20such")["removed"]["purchases"] == 0


# Recommending ---------------------------------------------------------------------------------------------------


def test_recommendations(service: Service) -> None:
    answer = service("GET", "/v1/users/ann/recommendations?n=3")
    expected = service.engine.recommend("ann", 3)
    assert (answer["user"], answer["popular"]) == ("ann", False)
    assert [(each["item"], each["score"]) for each in answer["recommendations"]] == expected
    assert answer["recommendations"][0] == {
        "item": "milk",
        "score": expected[0].score,
        "name": "Oat milk",
        "category": "Dairy",
    }


def test_recommendations_of_a_kind(service: Service) -> None:
    path = "/v1/users/ann/recommendations"
    items = [each["item"] for each in service("GET", f"{path}?only_new=true")["recommendations"]]
    assert set(items) == {"tea"}
    left = service("GET", f"{path}?exclude=milk&exclude=bread&exclude=17")["recommendations"]
    assert {"milk", "bread"}.isdisjoint(each["item"] for each in left)
    [first] = service("GET", f"{path}?n=1&explain=true")["recommendations"]
    why = first["explanation"]
    assert why["score"] == first["score"]
    assert sum(share["share"] for share in why["baskets"]) + why["neighbors_share"] == pytest.approx(why["score"])
    assert service("GET", f"{path}?n=0")["recommendations"] == []


def items_of(answer: dict[str, Any]) -> list[Id]:
    return [each["item"] for each in answer["recommendations"]]


def test_filters(service: Service) -> None:
    engine, path = service.engine, "/v1/users/ann/recommendations"
    assert items_of(service("GET", f"{path}?only=wine&only=bread&only=17&n=1")) == ["wine"]
    assert items_of(service("GET", f"{path}?only=17")) == [item for item, _ in engine.recommend("ann", only=[17])]
    assert set(items_of(service("GET", f"{path}?category=Alcohol&category=Dairy"))) == {"milk", "wine", "gin"}
    assert items_of(service("GET", f"{path}?category=Alcohol&only=gin&only=milk")) == ["gin"]
    assert items_of(service("GET", f"{path}?category=Nothing%20here")) == []
    stranger = service("GET", "/v1/users/zoe/recommendations?category=Alcohol&exclude=wine")
    assert (stranger["popular"], items_of(stranger)) == (True, ["gin"])


def test_a_cart(service: Service) -> None:
    engine, path, digest = service.engine, "/v1/users/ann/recommendations", service.engine.digest()
    answer = service("GET", f"{path}?cart=tea&cart=new%20here")
    expected = engine.recommend("ann", cart=["tea", "new here"])
    assert [(each["item"], each["score"]) for each in answer["recommendations"]] == expected
    assert "tea" not in items_of(answer)
    stranger = service("GET", "/v1/users/zoe/recommendations?cart=tea")
    assert (stranger["popular"], items_of(stranger)) == (
        False,
        [item for item, _ in engine.recommend("zoe", cart=["tea"])],
    )
    assert service.code("GET", f"{path}?cart=tea&explain=true", 400) == "invalid_query"
    assert engine.digest() == digest


def test_a_visitor(service: Service) -> None:
    engine, digest = service.engine, service.engine.digest()
    body = {"baskets": [["milk", "never sold"], [17]], "cart": ["tea"], "n": 2, "only_new": True, "exclude": ["gin"]}
    answer = service("POST", "/v1/recommendations", json=body)
    expected = engine.recommend_for([["milk", "never sold"], [17]], 2, cart=["tea"], only_new=True, exclude=["gin"])
    assert [(each["item"], each["score"]) for each in answer["recommendations"]] == expected
    assert answer["popular"] is False
    filters = {"category": ["Dairy"], "only": ["milk", "bread"]}
    chosen = service("POST", "/v1/recommendations", json={"cart": ["tea"], **filters})
    assert items_of(chosen) == ["milk"]
    unknown = service("POST", "/v1/recommendations", json={"n": 1})
    assert (unknown["popular"], items_of(unknown)) == (True, ["milk"])
    assert engine.digest() == digest


@pytest.mark.parametrize(
    "body",
    [{"baskets": [[]]}, {"baskets": ["milk"]}, {"cart": [1.5]}, {"n": -1}, {"category": "Dairy"}, {"user": "ann"}],
)
def test_a_visitor_who_cannot_be(service: Service, body: object) -> None:
    assert service.code("POST", "/v1/recommendations", 400, json=body) == "invalid_body"


def test_further_fields(service: Service) -> None:
    service.engine.describe({"item": ["milk"], "name": ["Oat milk"], "category": ["Dairy"], "price": [1.25]})
    fields = "fields=price&fields=color&fields=name"
    expected = {"price": 1.25, "color": None, "name": "Oat milk"}
    for answer in (
        service("GET", f"/v1/users/ann/recommendations?n=1&only=milk&{fields}"),
        service("GET", f"/v1/users/ann/recommendations?n=1&{fields}"),
        service("GET", f"/v1/users/zoe/recommendations?n=1&{fields}"),
        service("POST", "/v1/recommendations", json={"n": 1, "fields": ["price", "color", "name"]}),
    ):
        assert [each["fields"] for each in answer["recommendations"]] == [expected]


def test_a_guest_becomes_an_account(service: Service) -> None:
    service("PUT", "/v1/users/guest/baskets/g1", json={"items": ["tea", "gin"]})
    service("PUT", "/v1/users/guest/suppressed/rum")
    held = service("GET", "/v1/users/ann")["baskets"]
    answer = service("POST", "/v1/users/guest/rename", json={"to": "ann"})
    assert (answer["user"], answer["purchases"], answer["baskets"]) == ("ann", 2, 1)
    receipt = answer["receipt"]
    assert (receipt["scope"], receipt["users"], receipt["purchases"], receipt["verified"]) == ("id", 1, 0, True)
    account = service("GET", "/v1/users/ann")
    assert [basket["basket"] for basket in account["baskets"]] == [*(basket["basket"] for basket in held), "g1"]
    assert [item["item"] for item in account["suppressed"]] == ["rum"]
    assert service("GET", "/v1/users/guest", 404)["error"]["code"] == "unknown_user"
    assert service("POST", "/v1/users/guest/rename", 404, json={"to": "ann"})["error"]["code"] == "unknown_user"
    service("PUT", "/v1/users/guest/baskets/g1", json={"items": ["tea"]})
    before = service.engine.digest()
    error = service("POST", "/v1/users/guest/rename", 400, json={"to": "ann"})["error"]
    assert (error["code"], "both have a basket 'g1'" in error["message"]) == ("invalid_request", True)
    assert service("POST", "/v1/users/ann/rename", 400, json={"to": "ann"})["error"]["code"] == "invalid_request"
    assert service.engine.digest() == before
    assert service("POST", "/v1/receipts/verify")["ok"] is True


def test_a_user_is_never_recommended_what_they_suppress(service: Service) -> None:
    def recommended() -> list[Id]:
        return items_of(service("GET", "/v1/users/ann/recommendations"))

    everything = recommended()
    assert "milk" in everything
    assert service("PUT", "/v1/users/ann/suppressed/milk") == {"item": "milk", "suppressed": True, "changed": True}
    assert service("PUT", "/v1/users/ann/suppressed/milk")["changed"] is False
    assert recommended() == [item for item in everything if item != "milk"]
    before = service("POST", "/v1/users/ann/preview", json={"forget": {"item": "wine"}})["before"]
    assert [each["item"] for each in before] == recommended()
    assert [each["item"] for each in service("GET", "/v1/users/ann")["suppressed"]] == ["milk"]
    assert service("PUT", "/v1/users/nobody/suppressed/milk", 404)["error"]["code"] == "unknown_user"
    assert service("DELETE", "/v1/users/nobody/suppressed/milk")["changed"] is False
    assert service("DELETE", "/v1/users/ann/suppressed/milk") == {"item": "milk", "suppressed": False, "changed": True}
    assert recommended() == everything
    service.engine.suppress("ann", 4711)  # a number that nobody has bought
    assert service("DELETE", "/v1/users/ann/suppressed/4711") == {"item": 4711, "suppressed": False, "changed": True}


def test_what_is_out_of_stock_is_recommended_to_nobody(service: Service) -> None:
    def recommended() -> list[Id]:
        return items_of(service("GET", "/v1/users/ann/recommendations"))

    everything = recommended()
    assert "milk" in everything
    assert service("POST", "/v1/items/availability", json={"hide": ["milk", "rum", 99]}) == {"hidden": 3, "shown": 0}
    assert recommended() == [item for item in everything if item != "milk"]
    assert service("GET", "/v1/items/availability?limit=2") == {"hidden": [99, "milk"], "next": "milk"}
    assert service("GET", "/v1/items/availability?after=milk") == {"hidden": ["rum"], "next": None}
    assert "milk" not in items_of(service("POST", "/v1/recommendations", json={"cart": ["wine"]}))
    assert "milk" not in [each["item"] for each in service("GET", "/v1/popular")["items"]]
    answer = service("POST", "/v1/items/availability", status=400, json={"hide": ["wine"], "show": ["wine"]})
    assert answer["error"]["code"] == "invalid_request"
    assert service("POST", "/v1/items/availability", json={"show": ["milk", "rum", 99, "tea"]}) == {
        "hidden": 0,
        "shown": 3,
    }
    assert recommended() == everything


def test_popular_items(service: Service) -> None:
    def popular(query: str) -> list[tuple[Id, int]]:
        return [(each["item"], each["baskets"]) for each in service("GET", f"/v1/popular?{query}")["items"]]

    assert popular("category=Alcohol&category=Drinks&n=2") == [("wine", 2), ("gin", 1)]
    assert popular("only=17&only=milk&exclude=milk") == [(17, 1)]
    assert popular("since=20") == [("gin", 1), ("milk", 1), ("wine", 1)]
    assert service.code("GET", "/v1/popular?since=now", 400) == "invalid_query"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["milk", "bread"]),
        ({"fallback": "nothing"}, []),
        ({"fallback_category": "Alcohol"}, ["wine", "gin"]),
        ({"fallback_days": 30}, ["lately"]),
        ({"fallback_days": 30, "time_unit": "day"}, ["lately"]),
        ({"fallback_days": 30, "fallback_category": "Alcohol"}, []),
    ],
)
def test_the_fallback_of_a_shop(tmp_path: Path, settings: dict[str, Any], expected: list[Id]) -> None:
    with serving(make_shop(tmp_path / "shop.db"), **settings) as service:
        now = time.time() if settings.get("time_unit") != "day" else time.time() / 86400
        service.engine.learn("dan", ["lately"], basket=1, time=int(now))
        for answer in (
            service("GET", "/v1/users/zoe/recommendations?n=2"),
            service("POST", "/v1/recommendations", json={"n": 2}),
        ):
            assert (answer["popular"], items_of(answer)) == (True, expected)
        preview = service("POST", "/v1/users/dan/preview?n=2", json={"forget": {}})
        assert [each["item"] for each in preview["after"]] == [item for item in expected if item != "lately"]
        service("DELETE", "/v1/users/dan")
        after = service("GET", "/v1/users/dan/recommendations?n=2")["recommendations"]
        assert after == preview["after"]
        asked = service("GET", "/v1/users/zoe/recommendations?category=Dairy")
        assert items_of(asked) == ([] if {"fallback", "fallback_days"} & set(settings) else ["milk"])


def test_an_unknown_user_gets_popular_items(service: Service) -> None:
    answer = service("GET", "/v1/users/zoe/recommendations?n=2&exclude=bread")
    assert (answer["user"], answer["popular"]) == ("zoe", True)
    assert [each["item"] for each in answer["recommendations"]] == ["milk", "wine"]
    assert [(each["item"], each["baskets"]) for each in service("GET", "/v1/popular?n=1")["items"]] == [("milk", 4)]


@pytest.mark.parametrize(
    ("change", "really"),
    [
        ({"forget": {"item": "milk"}}, ("DELETE", "/v1/users/ann/items/milk", None)),
        ({"forget": {"basket": 2}}, ("DELETE", "/v1/users/ann/baskets/2", None)),
        ({"forget": {"basket": 2, "item": "wine"}}, ("DELETE", "/v1/users/ann/baskets/2/items/wine", None)),
        ({"forget": {"category": "Alcohol"}}, ("DELETE", "/v1/users/ann/categories/Alcohol", None)),
        ({"forget": {}}, ("DELETE", "/v1/users/ann", None)),
        ({"learn": {"items": ["tea", "new"]}}, ("PUT", "/v1/users/ann/baskets/9", {"items": ["tea", "new"]})),
    ],
)
def test_a_preview_says_what_will_be(
    service: Service, change: dict[str, Any], really: tuple[str, str, dict[str, Any] | None]
) -> None:
    path, digest = "/v1/users/ann/recommendations", service.engine.digest()
    preview = service("POST", "/v1/users/ann/preview", json=change)
    assert service.engine.digest() == digest
    before = service("GET", path)
    assert (preview["before"], preview["popular_before"]) == (before["recommendations"], False)
    method, address, body = really
    service(method, address, json=body)
    after = service("GET", path)
    gone = change.get("forget") == {}
    assert preview["popular_after"] == after["popular"] == gone
    assert preview["after"] == after["recommendations"]


def test_preview_of_an_unknown_user(service: Service) -> None:
    answer = service("POST", "/v1/users/zoe/preview?n=2", json={"learn": {"items": ["milk"]}})
    assert (answer["popular_before"], answer["popular_after"]) == (True, False)
    assert len(answer["after"]) == 2


@pytest.mark.parametrize("body", [{}, {"forget": {}, "learn": {"items": ["a"]}}, {"learn": {}}, {"forget": {"a": 1}}])
def test_bad_previews(service: Service, body: object) -> None:
    assert service.code("POST", "/v1/users/ann/preview", 400, json=body) == "invalid_body"


def test_explanations(service: Service) -> None:
    why = service("GET", "/v1/users/ann/explanations/wine")
    expected = service.engine.explain("ann", "wine")
    assert (why["score"], why["neighbors_share"]) == (expected.score, expected.neighbors_share)
    assert [share["basket"] for share in why["baskets"]] == [2]
    assert (why["name"], why["category"]) == ("Red wine", "Alcohol")
    assert service.code("GET", "/v1/users/zoe/explanations/wine", 404) == "unknown_user"
    assert service("GET", "/v1/users/ann/explanations/nothing")["score"] == 0


# Looking inside -------------------------------------------------------------------------------------------------


def test_all_that_is_held(service: Service) -> None:
    held = service("GET", "/v1/users/ann")
    assert (held["format"], held["version"], held["user"]) == ("unbasket user", 1, "ann")
    assert held["baskets"][0] == {
        "basket": 1,
        "time": 10,
        "items": [
            {"item": "bread", "name": "Rye bread", "category": "Bakery"},
            {"item": "milk", "name": "Oat milk", "category": "Dairy"},
        ],
    }
    assert service.code("GET", "/v1/users/zoe", 404) == "unknown_user"


def test_similar_users(service: Service) -> None:
    answer = service("GET", "/v1/users/ann/similar?n=2")
    found = [(each["user"], each["distance"]) for each in answer["similar"]]
    assert found == service.engine.similar_users("ann", 2)
    assert service.code("GET", "/v1/users/zoe/similar", 404) == "unknown_user"


def test_verify(service: Service) -> None:
    assert service("POST", "/v1/users/ann/verify") == {"ok": True, "users": 1, "mismatches": []}
    assert service("POST", "/v1/users/zoe/verify") == {"ok": True, "users": 0, "mismatches": []}


def pages(service: Service, path: str, name: str) -> list[list[Any]]:
    """All pages of a list."""
    found, after = [], None
    while True:
        address = httpx.URL(path) if after is None else httpx.URL(path).copy_merge_params({"after": after})
        answer = service("GET", str(address))
        found.append(answer[name])
        after = answer["next"]
        if after is None:
            return found


def test_pages_of_users(service: Service) -> None:
    service("PUT", "/v1/users/%227%22/baskets/1", json={"items": ["tea"]})
    assert pages(service, "/v1/users?limit=2", "users") == [[7, "7"], ["ann", "bob"], ["cleo"]]
    assert pages(service, "/v1/users?limit=5", "users") == [[7, "7", "ann", "bob", "cleo"]]
    assert pages(service, "/v1/users?limit=1&prefix=7", "users") == [[7], ["7"]]
    assert service("GET", "/v1/users?after=b")["users"] == ["bob", "cleo"]
    assert service("GET", "/v1/users?prefix=zz") == {"users": [], "next": None}


def test_pages_of_items(service: Service) -> None:
    found = pages(service, "/v1/items?limit=4", "items")
    assert [[each["item"] for each in page] for page in found] == [[17, "bread", "gin", "milk"], ["tea", "wine"]]
    assert found[0][0] == {"item": 17, "name": "Eggs"}
    assert [each["item"] for each in service("GET", "/v1/items?query=RED")["items"]] == ["wine"]


def test_categories(service: Service) -> None:
    assert service("GET", "/v1/categories")["categories"] == [
        {"category": "Alcohol", "items": 2},
        {"category": "Bakery", "items": 1},
        {"category": "Dairy", "items": 1},
        {"category": "Drinks", "items": 1},
    ]


def test_receipts(service: Service) -> None:
    for item in ("milk", "wine", "gin"):
        service("DELETE", f"/v1/users/ann/items/{item}")
    found = pages(service, "/v1/receipts?limit=2", "receipts")
    assert [[each["number"] for each in page] for page in found] == [[1, 2], [3]]
    newest = pages(service, "/v1/receipts?limit=2&order=newest", "receipts")
    assert [[each["number"] for each in page] for page in newest] == [[3, 2], [1]]
    assert all(seconds > 0 for seconds in service("GET", "/v1/receipts")["seconds"])
    assert service("GET", "/v1/receipts/2") == found[0][1]
    for number in ("4", "0", "x", "-1", "02"):
        assert service.code("GET", f"/v1/receipts/{number}", 404) == "unknown_receipt"
    verdict = service("POST", "/v1/receipts/verify")
    assert (verdict["ok"], verdict["receipts"], verdict["faults"]) == (True, 3, [])
    assert verdict["summary"] == "Signatures valid, receipts 1 to 3 are chained."


def test_a_receipt_that_somebody_has(service: Service) -> None:
    for item in ("milk", "wine", "gin"):
        service("DELETE", f"/v1/users/ann/items/{item}")
    [receipts] = pages(service, "/v1/receipts", "receipts")
    verdict = service("POST", "/v1/receipts/verify", json={"receipts": receipts[1:]})
    assert verdict == {
        "ok": True,
        "receipts": 2,
        "keys": [receipts[0]["key"]],
        "faults": [],
        "chained": [[2, 3]],
        "missing": [[1, 1]],
        "summary": "Signatures valid, receipts 2 to 3 are chained, 1 is not here.",
    }
    for forged in ({"purchases": 99}, {"number": 2}, {"number": 2**62}, {"number": -1}, {"key": "00" * 32}):
        verdict = service("POST", "/v1/receipts/verify", json={"receipts": [receipts[2] | forged]})
        number = forged.get("number", 3)
        assert not verdict["ok"]
        assert f"receipt {number}: its signature is not valid: it was changed" in verdict["faults"]
        assert f"receipt {number}: it is not the one that is held under this number" in verdict["faults"]
    assert service("POST", "/v1/receipts/verify", json={"receipts": []})["summary"] == "There is no receipt here."


RULES = """
time_unit = "day"
[[rule]]
name = "no alcohol"
category = "Alcohol"
"""


def test_retention(service: Service) -> None:
    plan = service("POST", "/v1/retention", json={"rules": RULES})
    assert (plan["done"], plan["receipts"]) == (False, 0)
    assert plan["rules"] == [{"name": "no alcohol", "users": 2, "baskets": 2, "purchases": 3, "warnings": []}]
    assert plan["forgotten"] == {"purchases": 3, "baskets": 0, "users": 0}
    assert "wine" in service.engine.items()
    done = service("POST", "/v1/retention", json={"rules": RULES, "run": True})
    assert (done["done"], done["forgotten"], done["receipts"]) == (True, plan["forgotten"], 3)
    assert plan["share"] == done["share"] == 3 / 11
    assert "wine" not in service.engine.items()


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "x = 1",
        "[[rule]]",
        "[[rule]]\nolder_than_days = 0",
        "[[rule]]\ncategory = 'a'\nitems = ['b']",
        "[[rule]]\ncategory = 'a'\nusers = '/etc/passwd'",
        "[[rule]]\nolder_than_days = 1",
        "\x00",
        "[" * 3000,
    ],
)
def test_bad_rules(service: Service, rules: str) -> None:
    answer = service("POST", "/v1/retention", 400, json={"rules": rules})
    assert answer["error"]["code"] == "invalid_rules"
    assert "root:" not in answer["error"]["message"]


def test_a_rule_with_a_mistyped_field(service: Service) -> None:
    answer = service("POST", "/v1/retention", 400, json={"rules": "[[rule]]\nolder = 30"})
    assert answer["error"]["message"] == "Unknown field `older` in rule 1. Did you mean `older_than_days`?"


def test_other_parameters(service: Service) -> None:
    before = service("GET", "/v1/users/ann/recommendations")
    params = service("GET", "/v1/params")
    assert params["neighbors"] == 2
    assert service("PUT", "/v1/params", json={"alpha": 0.1}) == params | {"alpha": 0.1}
    assert service("GET", "/v1/params") == params | {"alpha": 0.1}
    assert service("GET", "/v1/users/ann/recommendations") != before
    assert service.code("PUT", "/v1/params", 400, json={"alpha": 2}) == "invalid_body"
    assert service.code("PUT", "/v1/params", 400, json={"grouping": "varying"}) == "invalid_request"
    assert service.code("PUT", "/v1/params", 400, json={"k": 2}) == "invalid_body"
    assert service("PUT", "/v1/params", json={}) == params | {"alpha": 0.1}


def test_stats(service: Service) -> None:
    service("GET", "/v1/users/ann/recommendations")
    service("PUT", "/v1/users/ann/baskets/9", json={"items": ["milk"]})
    service("DELETE", "/v1/users/bob")
    stats = service("GET", "/v1/stats")
    assert (stats["users"], stats["baskets"], stats["params"]["neighbors"]) == (3, 5, 2)
    assert stats["calls"]["GET /v1/users/{user}/recommendations"]["count"] == 1
    assert (stats["learned"], stats["forgotten"]) == (1, 1)


def test_stats_fall_to_nothing_when_the_load_does(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 1000.5
    monkeypatch.setattr("unbasket.service.metrics.time", SimpleNamespace(monotonic=lambda: moment))
    for _ in range(6):
        service("GET", "/v1/users/ann/recommendations")
    service("PUT", "/v1/users/ann/baskets/9", json={"items": ["milk"]})
    assert _rates(service) == [(0, 0)] * 30  # nothing is said of two seconds that are not over
    moment += 2
    assert _rates(service) == [(0, 0)] * 29 + [(3, 0.5)]
    moment += 2
    assert _rates(service) == [(0, 0)] * 28 + [(3, 0.5), (0, 0)]
    newest = service("GET", "/v1/stats")["buckets"]
    assert (newest[-1]["p50"], newest[-1]["p99"]) == (None, None)
    assert 0 < newest[-2]["p50"] <= newest[-2]["p90"] <= newest[-2]["p99"]
    moment += 56
    service("GET", "/v1/users/ann/recommendations")  # in no slot that still counts
    assert _rates(service) == [(3, 0.5)] + [(0, 0)] * 29
    moment += 2
    assert _rates(service) == [(0, 0)] * 29 + [(0.5, 0)]


def _rates(service: Service) -> list[tuple[float, float]]:
    buckets = service("GET", "/v1/stats")["buckets"]
    return [(bucket["recommendations_per_second"], bucket["events_per_second"]) for bucket in buckets]


def test_without_keys_whoever_asks_may_do_everything(service: Service) -> None:
    assert service("GET", "/v1/me") == {"key": None, "shopper": None, "roles": ["admin", "privacy", "read", "write"]}


# Operations -----------------------------------------------------------------------------------------------------


def test_operations(service: Service) -> None:
    assert service("GET", "/healthz") == {"ok": True}
    assert service("GET", "/readyz")["ready"] is True
    metrics = service.client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert "unbasket_users 4.0" in metrics.text
    for path in ("/", "/docs"):
        assert service.client.get(path).headers["content-type"].startswith("text/html")


def test_not_ready_yet(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path / "shop.db"), loaded=False) as service:
        assert service("GET", "/healthz") == {"ok": True}
        response = service.client.get("/readyz")
        assert (response.status_code, response.json()["ready"]) == (503, False)
        for method, path in (("GET", "/v1/users/ann"), ("DELETE", "/v1/users/ann"), ("GET", "/v1/stats")):
            assert service.code(method, path, 503) == "not_ready"
        assert service.code("GET", "/v1/users/ann/recommendations", 503) == "not_ready"
        service.loader.load()
        assert service("GET", "/v1/users/ann")["user"] == "ann"


def test_what_was_answered_is_on_disk(service: Service, tmp_path: Path) -> None:
    service("PUT", "/v1/users/dan/baskets/x", json={"items": ["milk"]})
    service("DELETE", "/v1/users/ann")
    copy = ub.open(tmp_path / "shop.db", read_only=True)
    assert copy.users() == [7, "bob", "cleo", "dan"]


def test_many_callers_at_once(service: Service) -> None:
    failures: list[str] = []

    def call(number: int) -> None:
        with httpx.Client(base_url=str(service.client.base_url), timeout=60) as client:
            for turn in range(10):
                path = f"/v1/users/u{number}/baskets/{turn}"
                answers = (
                    client.put(path, json={"items": ["milk", number]}),
                    client.get(f"/v1/users/u{number}/recommendations"),
                    client.delete(path) if turn % 3 == 0 else client.get("/healthz"),
                )
                failures.extend(answer.text for answer in answers if answer.status_code != 200)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert service.engine.verify().ok
    assert all(len(service.engine.history(f"u{number}")) == 6 for number in range(8))


# Documentation --------------------------------------------------------------------------------------------------


def test_every_call_is_documented() -> None:
    text = DOCS.read_text()
    for call in ROUTES:
        assert f"`{call.method} {call.path}`" in text


def test_every_code_is_documented() -> None:
    text = DOCS.read_text()
    for code, (status, *_) in CODES.items():
        assert re.search(rf"\| {status} \|[^|]*`{code}`", text), code


def test_the_examples_are_real(tmp_path: Path) -> None:
    """Each is a request and its answer, and they follow each other; dots stand for anything."""
    examples = re.findall(r"```http\n(.*?)\n\n(\d+)\n(.*?)\n```", DOCS.read_text(), re.DOTALL)
    assert len(examples) > 10
    ub.open(tmp_path / "shop.db", ub.Params(neighbors=2)).close()
    with serving(tmp_path / "shop.db") as service:
        for request, status, answer in examples:
            line, _, body = request.partition("\n")
            method, path = line.split(" ", 1)
            kind = "application/x-ndjson" if path == "/v1/events" and not body.startswith("[") else "application/json"
            response = service.client.request(method, path, content=body, headers={"Content-Type": kind})
            assert response.status_code == int(status), (line, response.text)
            assert is_like(response.json(), json.loads(answer)), (line, response.text)


def is_like(value: Any, example: Any) -> bool:
    """Whether a value is as in an example."""
    if example == "...":
        return True
    if isinstance(example, dict) and isinstance(value, dict):
        shown = {name: value.get(name) for name in example} if example.pop("...", None) else value
        return shown.keys() == example.keys() and all(is_like(shown[name], example[name]) for name in example)
    if isinstance(example, list) and isinstance(value, list):
        return len(value) == len(example) and all(map(is_like, value, example))
    if isinstance(example, float) and isinstance(value, float):
        return abs(value - example) < 0.0001
    return bool(value == example)
