"""Handlers for a privacy officer, over a real socket."""

import pytest
from tests.service.serving import Service, pages


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


def test_given_receipts(service: Service) -> None:
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
        "warnings": [],
        "summary": "Signatures valid, receipts 2 to 3 are chained, 1 is not here.",
    }
    for forged in ({"purchases": 99}, {"number": 2}, {"number": 2**62}, {"number": -1}, {"key": "00" * 32}):
        verdict = service("POST", "/v1/receipts/verify", json={"receipts": [receipts[2] | forged]})
        number = forged.get("number", 3)
        assert not verdict["ok"]
        assert f"receipt {number}: its signature is not valid: it was changed" in verdict["faults"]
        assert f"receipt {number}: it differs from the stored receipt with this number" in verdict["faults"]
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
def test_invalid_rules(service: Service, rules: str) -> None:
    response = service("POST", "/v1/retention", 400, json={"rules": rules})
    assert response["error"]["code"] == "invalid_rules"
    assert "root:" not in response["error"]["message"]


def test_a_rule_with_a_mistyped_field(service: Service) -> None:
    response = service("POST", "/v1/retention", 400, json={"rules": "[[rule]]\nolder = 30"})
    assert response["error"]["message"] == "Unknown field `older` in rule 1. Did you mean `older_than_days`?"
