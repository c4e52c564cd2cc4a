"""Handlers about one user, over a real socket."""

import json
from typing import Any

import pytest
from tests.service.serving import Service, items_of

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.store import Receipt, audit
from unbasket.store.receipts import subject_of
from unbasket.verifier import ProofError, verify


def test_learn_is_idempotent_and_edits(service: Service) -> None:
    path = "/v1/users/dan/baskets/81"
    assert service("PUT", path, json={"items": ["milk", "tea"]}) == {"result": "added", "basket": 81}
    assert service("PUT", path, json={"items": ["tea", "milk"]}) == {"result": "unchanged", "basket": 81}
    assert service("PUT", path, json={"items": ["tea"], "time": 5}) == {"result": "replaced", "basket": 81}
    assert service.engine.history("dan") == [ub.Basket(81, 5, ("tea",))]


def test_a_basket_without_an_id(service: Service) -> None:
    response = service.client.post("/v1/users/a%2Fb/baskets", json={"items": ["milk"], "time": None})
    assert response.status_code == 201
    basket = response.json()["basket"]
    assert response.headers["location"] == f"/v1/users/a%2Fb/baskets/{basket}"
    assert [held.basket for held in service.engine.history("a/b")] == [basket]
    assert service("DELETE", response.headers["location"])["removed"] == {"purchases": 1, "baskets": 1, "users": 1}


EVENTS: list[dict[str, Any]] = [
    {"event": "learn", "user": "eve", "basket": 1, "items": ["milk", "soap"], "time": 3},
    {"event": "learn", "user": "eve", "basket": 2, "items": ["tea"]},
    {"event": "forget", "user": "eve", "basket": 1, "item": "soap"},
    {"event": "forget", "user": "unknown"},
]


@pytest.mark.parametrize("lines", [False, True])
def test_events(service: Service, lines: bool) -> None:
    if lines:
        content = "\n".join(map(json.dumps, EVENTS)).encode() + b"\n\n"
        response = service("POST", "/v1/events", content=content, headers={"Content-Type": "application/x-ndjson"})
    else:
        response = service("POST", "/v1/events", json=EVENTS)
    first, second, third, fourth = response["results"]
    assert first == second == {"result": "added"}
    assert (third["receipt"]["purchases"], fourth["receipt"]["purchases"]) == (1, 0)
    assert response["seconds"] > 0
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
    response = service("POST", "/v1/events", 400, content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert response["error"]["message"].startswith(f"line {len(EVENTS) + 1} is not as it should be: ")
    assert service.engine.digest() == before
    assert service.engine.receipts() == []


def test_too_large_a_basket_stops_all_events(service: Service) -> None:
    before = service.engine.digest()
    large = {"event": "learn", "user": "eve", "basket": 9, "items": list(range(8193))}
    assert service.code("POST", "/v1/events", 400, json=[*EVENTS, large]) == "invalid_body"
    assert service.engine.digest() == before


def test_no_events(service: Service) -> None:
    assert service("POST", "/v1/events", json=[])["results"] == []


@pytest.mark.parametrize(
    ("path", "removed", "scope"),
    [
        ("/v1/users/ann", (5, 2, 1), "user"),
        ("/v1/users/ann/baskets/2", (3, 1, 0), "basket"),
        ("/v1/users/ann/baskets/2/items/milk", (1, 0, 0), "item of a basket"),
        ("/v1/users/ann/items/milk", (2, 0, 0), "item"),
        ("/v1/users/bob/baskets/3", (2, 1, 1), "basket"),
        ("/v1/users/unknown", (0, 0, 0), "user"),
    ],
)
def test_forget(service: Service, path: str, removed: tuple[int, int, int], scope: str) -> None:
    response = service("DELETE", path)
    receipt = Receipt.from_json(json.dumps(response["receipt"]))
    assert tuple(response["removed"].values()) == removed == (receipt.purchases, receipt.baskets, receipt.users)
    assert (receipt.scope, receipt.verified) == (scope, True)
    assert response["seconds"] > 0
    assert audit([receipt]).ok
    user = path.split("/")[3]
    assert subject_of(user, bytes.fromhex(response["secret"])) == receipt.subject
    again = service("DELETE", path)
    assert again["removed"] == {"purchases": 0, "baskets": 0, "users": 0}
    assert again["receipt"]["before"] == again["receipt"]["after"] == receipt.after


def test_forget_a_category(service: Service) -> None:
    response = service("DELETE", "/v1/users/ann/categories/Alcohol")
    assert response["removed"] == {"purchases": 2, "baskets": 0, "users": 0}
    assert [receipt["scope"] for receipt in response["receipts"]] == ["item", "item"]
    assert [receipt["subject"] for receipt in response["receipts"]] == [
        subject_of("ann", bytes.fromhex(secret)) for secret in response["secrets"]
    ]
    assert {item["item"] for basket in service("GET", "/v1/users/ann")["baskets"] for item in basket["items"]} == {
        "milk",
        "bread",
    }
    assert service("DELETE", "/v1/users/ann/categories/Alcohol")["receipts"] == []
    assert service("DELETE", "/v1/users/unknown/categories/None%20such")["removed"]["purchases"] == 0


def test_a_guest_is_merged_into_an_account(service: Service) -> None:
    service("PUT", "/v1/users/guest/baskets/91", json={"items": ["tea", "gin"]})
    service("PUT", "/v1/users/guest/suppressed/rum")
    held = service("GET", "/v1/users/ann")["baskets"]
    response = service("POST", "/v1/users/guest/rename", json={"to": "ann"})
    assert (response["user"], response["purchases"], response["baskets"]) == ("ann", 2, 1)
    receipt = response["receipt"]
    assert (receipt["scope"], receipt["users"], receipt["purchases"], receipt["verified"]) == ("id", 1, 0, True)
    account = service("GET", "/v1/users/ann")
    assert [basket["basket"] for basket in account["baskets"]] == [*(basket["basket"] for basket in held), 91]
    assert [item["item"] for item in account["suppressed"]] == ["rum"]
    assert service("GET", "/v1/users/guest", 404)["error"]["code"] == "unknown_user"
    assert service("POST", "/v1/users/guest/rename", 404, json={"to": "ann"})["error"]["code"] == "unknown_user"
    service("PUT", "/v1/users/guest/baskets/91", json={"items": ["tea"]})
    before = service.engine.digest()
    error = service("POST", "/v1/users/guest/rename", 400, json={"to": "ann"})["error"]
    assert (error["code"], "both have a basket 91" in error["message"]) == ("invalid_request", True)
    assert service("POST", "/v1/users/ann/rename", 400, json={"to": "ann"})["error"]["code"] == "invalid_request"
    assert service.engine.digest() == before
    assert service("POST", "/v1/receipts/verify")["ok"] is True


def test_suppressed_items_are_not_recommended(service: Service) -> None:
    def recommended() -> list[Id]:
        return items_of(service("GET", "/v1/users/ann/recommendations"))

    every_item = recommended()
    assert "milk" in every_item
    assert service("PUT", "/v1/users/ann/suppressed/milk") == {"item": "milk", "suppressed": True, "changed": True}
    assert service("PUT", "/v1/users/ann/suppressed/milk")["changed"] is False
    assert recommended() == [item for item in every_item if item != "milk"]
    before = service("POST", "/v1/users/ann/preview", json={"forget": {"item": "wine"}})["before"]
    assert [each["item"] for each in before] == recommended()
    assert [each["item"] for each in service("GET", "/v1/users/ann")["suppressed"]] == ["milk"]
    assert service("PUT", "/v1/users/unknown/suppressed/milk", 404)["error"]["code"] == "unknown_user"
    assert service("DELETE", "/v1/users/unknown/suppressed/milk")["changed"] is False
    assert service("DELETE", "/v1/users/ann/suppressed/milk") == {"item": "milk", "suppressed": False, "changed": True}
    assert recommended() == every_item
    service.engine.suppress("ann", 4711)  # an unknown item
    assert service("DELETE", "/v1/users/ann/suppressed/4711") == {"item": "4711", "suppressed": False, "changed": True}


def test_everything_stored_about_a_user(service: Service) -> None:
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
    response = service("GET", "/v1/users/ann/similar?n=2")
    found = [(each["user"], each["distance"]) for each in response["similar"]]
    assert found == service.engine.similar_users("ann", 2)
    assert service.code("GET", "/v1/users/zoe/similar", 404) == "unknown_user"


def test_verify(service: Service) -> None:
    assert service("POST", "/v1/users/ann/verify") == {"ok": True, "users": 1, "mismatches": []}
    assert service("POST", "/v1/users/zoe/verify") == {"ok": True, "users": 0, "mismatches": []}


def test_the_proof_of_what_is_held(service: Service) -> None:
    """Checked by the verifier, which has the file and the id only."""
    service("PUT", "/v1/users/ann/suppressed/gin")
    held = service("GET", "/v1/users/ann")
    proof = held["proof"]
    assert ": 2 baskets" in verify(json.dumps(proof))
    assert [(each["basket"], each["time"]) for each in proof["baskets"]] == [
        (each["basket"], each["time"]) for each in held["baskets"]
    ]
    assert [sorted(each["items"]) for each in proof["baskets"]] == [
        [item["item"] for item in each["items"]] for each in held["baskets"]
    ]
    assert (proof["user"], proof["suppressed"]) == ("ann", ["gin"])
    for name, forged in (("baskets", proof["baskets"][1:]), ("suppressed", []), ("user", "bob")):
        with pytest.raises(ProofError):
            verify(json.dumps(proof | {name: forged}))


def test_the_proof_of_absence(service: Service) -> None:
    error = service("GET", "/v1/users/ann/absence", 400)["error"]
    assert error["message"] == "2 baskets are held about user 'ann'. Forget them first"
    service("DELETE", "/v1/users/ann")
    proof = service("GET", "/v1/users/ann/absence")
    assert "committed to hold nothing about 'ann'" in verify(json.dumps(proof))
    with pytest.raises(ProofError):
        verify(json.dumps(proof | {"user": "bob"}))  # who is there
