"""Ids in paths."""

import json

import pytest
from tests.service.serving import Service, quoted

import unbasket as ub


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".", "a b?c#d", "%2F", "\u00fc\u4e2d\U0001f9c0", "\x00", "17x", '"', "a\nb", "\\", "+"]
)
def test_ids_with_any_characters(service: Service, name: str) -> None:
    path = f"/v1/users/{quoted(name)}/baskets/{quoted(name)}"
    if name in (".", ".."):  # clients normalize dot segments, so these are sent in quotes
        path = path.replace(name, quoted(json.dumps(name)))
    service("PUT", path, json={"items": [name, "milk"]})
    assert service.engine.history(name) == [ub.Basket(name, None, tuple(sorted([name, "milk"])))]
    response = service("DELETE", f"{path}/items/{quoted(json.dumps(name))}")
    assert response["removed"] == {"purchases": 1, "baskets": 0, "users": 0}


def test_numbers_and_texts(service: Service) -> None:
    assert service("GET", "/v1/users/7")["user"] == 7
    assert service.code("GET", "/v1/users/%227%22", 404) == "unknown_user"
    service("PUT", "/v1/users/%227%22/baskets/1", json={"items": ["tea"]})
    assert (service("GET", "/v1/users/7")["user"], service("GET", "/v1/users/%227%22")["user"]) == (7, "7")
    assert service("GET", "/v1/users/8/recommendations")["user"] == "8"  # text ids are in use, and there is no number 8
    assert service("GET", "/v1/users/ann/explanations/17")["item"] == 17
    assert service("PUT", "/v1/users/ann/baskets/3", json={"items": [1]})["basket"] == 3
    assert service("PUT", "/v1/users/bob/baskets/3", json={"items": [1]})["basket"] == "3"
