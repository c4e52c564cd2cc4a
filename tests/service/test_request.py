"""Ids in paths."""

import json

import pytest
from tests.service.serving import Service, quoted

import unbasket as ub


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".", "a b?c#d", "%2F", "\u00fc\u4e2d\U0001f9c0", "\x00", "17x", '"', "a\nb", "\\", "+"]
)
def test_ids_with_any_characters(service: Service, name: str) -> None:
    path = f"/v1/users/{quoted(name)}/baskets/4"
    if name in (".", ".."):  # clients normalize dot segments, so these are sent in quotes
        path = path.replace(f"/{name}/", f"/{quoted(json.dumps(name))}/")
    service("PUT", path, json={"items": [name, "milk"]})
    assert service.engine.history(name) == [ub.Basket(4, None, tuple(sorted([name, "milk"])))]
    response = service("DELETE", f"{path}/items/{quoted(json.dumps(name))}")
    assert response["removed"] == {"purchases": 1, "baskets": 0, "users": 0}


def test_an_id_is_one_person_in_every_spelling(service: Service) -> None:
    """The shop has texts as ids of users and items, and numbers as ids of baskets."""
    for user in ("7", "%227%22"):
        assert service("GET", f"/v1/users/{user}")["user"] == "7"
    service("PUT", "/v1/users/%227%22/baskets/%229%22", json={"items": [1, "tea"]})
    service("POST", "/v1/events", json=[{"event": "learn", "user": 7, "basket": "9", "items": ["1", "tea"]}])
    assert [basket.basket for basket in service.engine.history(7)] == [1, 9]
    assert service("GET", "/v1/users/7/recommendations")["user"] == "7"
    assert service("GET", "/v1/users/8/recommendations")["user"] == "8"
    assert service("GET", "/v1/users/ann/explanations/17")["item"] == "17"
    first = service("DELETE", "/v1/users/7")
    assert first["removed"]["users"] == 1
    for user in ("7", "%227%22"):
        again = service("DELETE", f"/v1/users/{user}")
        assert again["removed"] == {"purchases": 0, "baskets": 0, "users": 0}
        assert service.code("GET", f"/v1/users/{user}", 404) == "unknown_user"
    assert [receipt.scope for receipt in service.engine.receipts()] == ["user"] * 2


def test_an_id_of_the_other_type_is_refused(service: Service) -> None:
    for method, path, body in (
        ("PUT", "/v1/users/ann/baskets/A-5", {"items": ["milk"]}),
        ("PUT", "/v1/users/ann/baskets/017", {"items": ["milk"]}),
        ("POST", "/v1/events", [{"event": "forget", "user": "ann", "basket": "A-5"}]),
        ("DELETE", "/v1/users/ann/baskets/A-5", None),
        ("POST", "/v1/users/ann/preview", {"forget": {"basket": "A-5"}}),
    ):
        answer = service(method, path, 400, json=body)["error"]
        assert answer["code"] == "invalid_request"
        assert "not written as a whole number such as 17" in answer["message"]
    assert len(service.engine.history("ann")) == 2


def test_a_basket_without_an_id_gets_one_of_the_type(service: Service) -> None:
    named = service("POST", "/v1/users/ann/baskets", 201, json={"items": ["tea"]})["basket"]
    assert 0 <= named < 2**53
    service("PUT", "/v1/ids", json={"basket": "text"})
    assert service("GET", "/v1/ids") == {"user": "text", "basket": "text", "item": "text"}
    assert str(named) in [basket.basket for basket in service.engine.history("ann")]
    assert len(service("POST", "/v1/users/ann/baskets", 201, json={"items": ["tea"]})["basket"]) == 36
    service("PUT", "/v1/users/ann/baskets/A-5", json={"items": ["milk"]})
    assert service.engine.receipts()[-1].scope == "types of ids"
