"""Handlers about all users and items, over a real socket."""

from tests.service.serving import Service, items_of, pages

from unbasket.domain.ids import Id


def test_pages_of_users(service: Service) -> None:
    service("PUT", "/v1/users/77/baskets/1", json={"items": ["tea"]})
    assert pages(service, "/v1/users?limit=2", "users") == [["7", "77"], ["ann", "bob"], ["cleo"]]
    assert pages(service, "/v1/users?limit=5", "users") == [["7", "77", "ann", "bob", "cleo"]]
    assert pages(service, "/v1/users?limit=1&prefix=7", "users") == [["7"], ["77"]]
    assert service("GET", "/v1/users?after=b")["users"] == ["bob", "cleo"]
    assert service("GET", "/v1/users?prefix=zz") == {"users": [], "next": None}


def test_pages_of_items(service: Service) -> None:
    found = pages(service, "/v1/items?limit=4", "items")
    assert [[each["item"] for each in page] for page in found] == [["17", "bread", "gin", "milk"], ["tea", "wine"]]
    assert found[0][0] == {"item": "17", "name": "Eggs"}
    assert [each["item"] for each in service("GET", "/v1/items?query=RED")["items"]] == ["wine"]


def test_categories(service: Service) -> None:
    assert service("GET", "/v1/categories")["categories"] == [
        {"category": "Alcohol", "items": 2},
        {"category": "Bakery", "items": 1},
        {"category": "Dairy", "items": 1},
        {"category": "Drinks", "items": 1},
    ]


def test_hidden_items_are_not_recommended(service: Service) -> None:
    def recommended() -> list[Id]:
        return items_of(service("GET", "/v1/users/ann/recommendations"))

    every_item = recommended()
    assert "milk" in every_item
    assert service("POST", "/v1/items/availability", json={"hide": ["milk", "rum", 99]}) == {"hidden": 3, "shown": 0}
    assert recommended() == [item for item in every_item if item != "milk"]
    assert service("GET", "/v1/items/availability?limit=2") == {"hidden": ["99", "milk"], "next": "milk"}
    assert service("GET", "/v1/items/availability?after=milk") == {"hidden": ["rum"], "next": None}
    assert "milk" not in items_of(service("POST", "/v1/recommendations", json={"cart": ["wine"]}))
    assert "milk" not in [each["item"] for each in service("GET", "/v1/popular")["items"]]
    response = service("POST", "/v1/items/availability", status=400, json={"hide": ["wine"], "show": ["wine"]})
    assert response["error"]["code"] == "invalid_request"
    assert service("POST", "/v1/items/availability", json={"show": ["milk", "rum", 99, "tea"]}) == {
        "hidden": 0,
        "shown": 3,
    }
    assert recommended() == every_item


def test_popular_items(service: Service) -> None:
    def popular(query: str) -> list[tuple[Id, int]]:
        return [(each["item"], each["baskets"]) for each in service("GET", f"/v1/popular?{query}")["items"]]

    assert popular("category=Alcohol&category=Drinks&n=2") == [("wine", 2), ("gin", 1)]
    assert popular("only=17&only=milk&exclude=milk") == [("17", 1)]
    assert popular("since=20") == [("gin", 1), ("milk", 1), ("wine", 1)]
    assert service.code("GET", "/v1/popular?since=now", 400) == "invalid_query"


def test_stats(service: Service) -> None:
    service("GET", "/v1/users/ann/recommendations")
    service("PUT", "/v1/users/ann/baskets/9", json={"items": ["milk"]})
    service("DELETE", "/v1/users/bob")
    stats = service("GET", "/v1/stats")
    assert (stats["users"], stats["baskets"], stats["params"]["neighbors"]) == (3, 5, 2)
    assert stats["calls"]["GET /v1/users/{user}/recommendations"]["count"] == 1
    assert (stats["learned"], stats["forgotten"]) == (1, 1)
