"""Handlers for recommendations, over a real socket."""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.service.serving import Service, items_of, make_shop, serving

from unbasket.domain.ids import Id


def test_recommendations(service: Service) -> None:
    response = service("GET", "/v1/users/ann/recommendations?n=3")
    expected = service.engine.recommend("ann", 3)
    assert (response["user"], response["popular"]) == ("ann", False)
    assert [(each["item"], each["score"]) for each in response["recommendations"]] == expected
    assert response["recommendations"][0] == {
        "item": "milk",
        "score": expected[0].score,
        "name": "Oat milk",
        "category": "Dairy",
    }


def test_options_of_recommendations(service: Service) -> None:
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


def test_filters(service: Service) -> None:
    engine, path = service.engine, "/v1/users/ann/recommendations"
    assert items_of(service("GET", f"{path}?only=wine&only=bread&only=17&n=1")) == ["wine"]
    assert items_of(service("GET", f"{path}?only=17")) == [item for item, _ in engine.recommend("ann", only=[17])]
    assert set(items_of(service("GET", f"{path}?category=Alcohol&category=Dairy"))) == {"milk", "wine", "gin"}
    assert items_of(service("GET", f"{path}?category=Alcohol&only=gin&only=milk")) == ["gin"]
    assert items_of(service("GET", f"{path}?category=Nothing%20here")) == []
    unknown = service("GET", "/v1/users/zoe/recommendations?category=Alcohol&exclude=wine")
    assert (unknown["popular"], items_of(unknown)) == (True, ["gin"])


def test_a_cart(service: Service) -> None:
    engine, path, digest = service.engine, "/v1/users/ann/recommendations", service.engine.digest()
    response = service("GET", f"{path}?cart=tea&cart=new%20here")
    expected = engine.recommend("ann", cart=["tea", "new here"])
    assert [(each["item"], each["score"]) for each in response["recommendations"]] == expected
    assert "tea" not in items_of(response)
    unknown = service("GET", "/v1/users/zoe/recommendations?cart=tea")
    assert (unknown["popular"], items_of(unknown)) == (
        False,
        [item for item, _ in engine.recommend("zoe", cart=["tea"])],
    )
    assert service.code("GET", f"{path}?cart=tea&explain=true", 400) == "invalid_query"
    assert engine.digest() == digest


def test_a_visitor(service: Service) -> None:
    engine, digest = service.engine, service.engine.digest()
    body = {"baskets": [["milk", "never sold"], [17]], "cart": ["tea"], "n": 2, "only_new": True, "exclude": ["gin"]}
    response = service("POST", "/v1/recommendations", json=body)
    expected = engine.recommend_for([["milk", "never sold"], [17]], 2, cart=["tea"], only_new=True, exclude=["gin"])
    assert [(each["item"], each["score"]) for each in response["recommendations"]] == expected
    assert response["popular"] is False
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
def test_an_invalid_visitor(service: Service, body: object) -> None:
    assert service.code("POST", "/v1/recommendations", 400, json=body) == "invalid_body"


def test_further_fields(service: Service) -> None:
    service.engine.describe({"item": ["milk"], "name": ["Oat milk"], "category": ["Dairy"], "price": [1.25]})
    fields = "fields=price&fields=color&fields=name"
    expected = {"price": 1.25, "color": None, "name": "Oat milk"}
    for response in (
        service("GET", f"/v1/users/ann/recommendations?n=1&only=milk&{fields}"),
        service("GET", f"/v1/users/ann/recommendations?n=1&{fields}"),
        service("GET", f"/v1/users/zoe/recommendations?n=1&{fields}"),
        service("POST", "/v1/recommendations", json={"n": 1, "fields": ["price", "color", "name"]}),
    ):
        assert [each["fields"] for each in response["recommendations"]] == [expected]


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
def test_the_fallback_for_unknown_users(tmp_path: Path, settings: dict[str, Any], expected: list[Id]) -> None:
    with serving(make_shop(tmp_path / "shop.db"), **settings) as service:
        now = time.time() if settings.get("time_unit") != "day" else time.time() / 86400
        service.engine.learn("dan", ["lately"], basket=1, time=int(now))
        for response in (
            service("GET", "/v1/users/zoe/recommendations?n=2"),
            service("POST", "/v1/recommendations", json={"n": 2}),
        ):
            assert (response["popular"], items_of(response)) == (True, expected)
        preview = service("POST", "/v1/users/dan/preview?n=2", json={"forget": {}})
        assert [each["item"] for each in preview["after"]] == [item for item in expected if item != "lately"]
        service("DELETE", "/v1/users/dan")
        after = service("GET", "/v1/users/dan/recommendations?n=2")["recommendations"]
        assert after == preview["after"]
        filtered = service("GET", "/v1/users/zoe/recommendations?category=Dairy")
        assert items_of(filtered) == ([] if {"fallback", "fallback_days"} & set(settings) else ["milk"])


def test_an_unknown_user_gets_popular_items(service: Service) -> None:
    response = service("GET", "/v1/users/zoe/recommendations?n=2&exclude=bread")
    assert (response["user"], response["popular"]) == ("zoe", True)
    assert [each["item"] for each in response["recommendations"]] == ["milk", "wine"]
    assert [(each["item"], each["baskets"]) for each in service("GET", "/v1/popular?n=1")["items"]] == [("milk", 4)]


@pytest.mark.parametrize(
    ("change", "actual"),
    [
        ({"forget": {"item": "milk"}}, ("DELETE", "/v1/users/ann/items/milk", None)),
        ({"forget": {"basket": 2}}, ("DELETE", "/v1/users/ann/baskets/2", None)),
        ({"forget": {"basket": 2, "item": "wine"}}, ("DELETE", "/v1/users/ann/baskets/2/items/wine", None)),
        ({"forget": {"category": "Alcohol"}}, ("DELETE", "/v1/users/ann/categories/Alcohol", None)),
        ({"forget": {}}, ("DELETE", "/v1/users/ann", None)),
        ({"learn": {"items": ["tea", "new"]}}, ("PUT", "/v1/users/ann/baskets/9", {"items": ["tea", "new"]})),
    ],
)
def test_a_preview_equals_the_result_of_the_change(
    service: Service, change: dict[str, Any], actual: tuple[str, str, dict[str, Any] | None]
) -> None:
    path, digest = "/v1/users/ann/recommendations", service.engine.digest()
    preview = service("POST", "/v1/users/ann/preview", json=change)
    assert service.engine.digest() == digest
    before = service("GET", path)
    assert (preview["before"], preview["popular_before"]) == (before["recommendations"], False)
    method, address, body = actual
    service(method, address, json=body)
    after = service("GET", path)
    gone = change.get("forget") == {}
    assert preview["popular_after"] == after["popular"] == gone
    assert preview["after"] == after["recommendations"]


def test_preview_of_an_unknown_user(service: Service) -> None:
    response = service("POST", "/v1/users/zoe/preview?n=2", json={"learn": {"items": ["milk"]}})
    assert (response["popular_before"], response["popular_after"]) == (True, False)
    assert len(response["after"]) == 2


@pytest.mark.parametrize("body", [{}, {"forget": {}, "learn": {"items": ["a"]}}, {"learn": {}}, {"forget": {"a": 1}}])
def test_invalid_previews(service: Service, body: object) -> None:
    assert service.code("POST", "/v1/users/ann/preview", 400, json=body) == "invalid_body"


def test_explanations(service: Service) -> None:
    why = service("GET", "/v1/users/ann/explanations/wine")
    expected = service.engine.explain("ann", "wine")
    assert (why["score"], why["neighbors_share"]) == (expected.score, expected.neighbors_share)
    assert [share["basket"] for share in why["baskets"]] == [2]
    assert (why["name"], why["category"]) == ("Red wine", "Alcohol")
    assert service.code("GET", "/v1/users/zoe/explanations/wine", 404) == "unknown_user"
    assert service("GET", "/v1/users/ann/explanations/nothing")["score"] == 0
