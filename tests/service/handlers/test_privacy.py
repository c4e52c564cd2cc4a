"""Handlers for a privacy officer, over a real socket."""

import json

import pytest
from tests.service.serving import Service, pages

from unbasket.verifier import ProofError, read_checkpoint, verify


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


def test_the_proof_of_a_receipt(service: Service) -> None:
    """Every file that comes over HTTP is checked by the verifier, which has nothing else."""
    service("DELETE", "/v1/users/ann/items/wine")
    forgotten = service("DELETE", "/v1/users/bob")
    response = service.client.get("/v1/receipts/2/proof")
    assert "Receipt 2 is in the log: user forgotten" in verify(response.text, forgotten["receipt"]["key"])
    proof = response.json()
    assert proof["receipt"] == forgotten["receipt"]
    about = proof | {"user": "bob", "secret": forgotten["secret"]}
    assert "about 'bob'" in verify(json.dumps(about))
    for forged in (about | {"user": "ann"}, proof | {"receipt": service("GET", "/v1/receipts/1")}):
        with pytest.raises(ProofError):
            verify(json.dumps(forged))
    for number in ("3", "0", "x", "02"):
        assert service.code("GET", f"/v1/receipts/{number}/proof", 404) == "unknown_receipt"


def test_a_checkpoint(service: Service) -> None:
    old = service.client.get("/v1/checkpoint")
    assert old.headers["content-type"] == "text/plain; charset=utf-8"
    key = service("DELETE", "/v1/users/ann")["receipt"]["key"]
    assert "Checkpoint of unbasket.local/" in verify(old.text, key)
    assert read_checkpoint(service.client.get("/v1/checkpoint").text).size == 1
    consistency = service.engine.prove_consistency(old.text)
    assert "and has 1 more" in verify(json.dumps(consistency), key, since=old.text)


def test_a_file_is_verified_in_words(service: Service) -> None:
    service("DELETE", "/v1/users/ann")
    proof = service.client.get("/v1/receipts/1/proof").text
    verdict = service("POST", "/v1/proofs/verify", json={"text": proof})
    assert verdict == {"ok": True, "summary": verify(proof)}
    forged = proof.replace('"purchases":5', '"purchases":4')
    verdict = service("POST", "/v1/proofs/verify", json={"text": forged})
    assert (verdict["ok"], "signature" in verdict["summary"]) == (False, True)
    access = service("GET", "/v1/users/bob")["proof"]
    shapeless: list[dict[str, object]] = [
        {"checkpoint": 1},
        {"siblings": 1},
        {"user": {}},
        {"user": 10**400},
        {"keys": 5},
    ]
    for changed in shapeless:
        text = json.dumps(access | changed)
        assert service("POST", "/v1/proofs/verify", json={"text": text})["ok"] is False
    for text in ("", "[" * 100_000, "9" * 5000, "null", "\ud800"):
        response = service.client.post("/v1/proofs/verify", content=json.dumps({"text": text}), headers=JSON)
        assert response.status_code in (200, 400)


JSON = {"Content-Type": "application/json"}
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
