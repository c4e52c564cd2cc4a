"""The verbs of the client over a real socket, against the engine behind it."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from tests.service.serving import Service, serving

import unbasket as ub
from unbasket.client import Caller, Client, ServiceError
from unbasket.errors import AccessError
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator
from unbasket.service.routes import ROUTES, Route
from unbasket.store.receipts import subject_of
from unbasket.verifier import FIELDS, verify

DOCS = Path(__file__).parents[2] / "docs" / "http.md"
LEFT_OUT = {
    "GET /healthz": "for an orchestrator's probe",
    "GET /readyz": "for an orchestrator's probe; the client waits and repeats on 503",
    "GET /metrics": "for Prometheus",
}
RULES = "[[rule]]\nname = 'no gin'\nitems = ['gin']\n"


def test_learning(client: Client, service: Service) -> None:
    assert client.learn("dan", ["tea", "milk"], basket=9, time=date(2026, 5, 1)) == ub.Learned.ADDED
    assert client.learn("dan", ["tea", "milk"], basket=9) == ub.Learned.UNCHANGED
    assert client.learn("dan", ["tea"], basket=9) == ub.Learned.REPLACED
    assert service.engine.history("dan") == [ub.Basket(9, 1777593600, ("tea",))]
    new = client.learn_new("dan", ["wine"], time="2026-05-02")
    assert client.history("dan") == service.engine.history("dan")
    assert client.history("dan")[-1] == ub.Basket(new, 1777680000, ("wine",))


def test_forgetting(client: Client, service: Service) -> None:
    item = client.forget("ann", basket=2, item="gin")
    assert item == (1, 0, 0)
    assert (item.receipt.scope, item.receipt.verified) == ("item of a basket", True)
    assert client.forget("ann", item="milk") == (2, 0, 0)
    assert client.forget("ann", basket=1) == (1, 1, 0)
    assert client.forget("ann") == (1, 1, 1)
    assert client.forget("ann") == (0, 0, 0)
    category = client.forget_category(7, "Alcohol")
    assert category == (1, 0, 0)
    assert list(client.receipts()) == service.engine.receipts()
    assert list(client.receipts("newest"))[-1] == client.receipt(1) == item.receipt
    assert category.receipts == [client.receipt(6)]
    assert subject_of("7", bytes.fromhex(category.secrets[0])) == category.receipts[0].subject
    assert client.verify_receipts().ok
    assert client.verify_receipts([item.receipt]).chained == ((1, 1),)
    assert client.verify("ann") == ub.Verification(ok=True, users=0, mismatches=())


def test_proofs(client: Client) -> None:
    erased = client.forget("bob")
    about_bob = client.prove_receipt(1) | {"user": "bob", "secret": erased.secret}
    for proof in (client.prove("ann"), client.prove_absence("bob"), about_bob):
        assert verify(json.dumps(proof), erased.receipt.key)
        assert client.verify_proof(json.dumps(proof)) == (True, verify(json.dumps(proof)))
    assert verify(client.checkpoint(), erased.receipt.key)
    assert client.verify_proof("{}") == (
        False,
        "this is not a receipt: it must have the fields " + ", ".join(FIELDS) + ", and no others",
    )


def test_recommending(client: Client, service: Service) -> None:
    engine = service.engine
    found = client.recommend("ann", 3)
    assert found == engine.recommend("ann", 3)
    assert (found.popular, found.products["milk"].name, found.explanations) == (False, "Oat milk", {})
    assert client.recommend("ann", exclude=["milk"], only_new=True) == engine.recommend(
        "ann", exclude=["milk"], only_new=True
    )
    assert client.recommend("ann", only=["milk", 17]) == engine.recommend("ann", only=["milk", 17])
    assert client.recommend("ann", only=[]) == client.recommend("ann", category=()) == []
    assert client.recommend("ann", category="Alcohol", cart=["tea"]) == engine.recommend(
        "ann", category="Alcohol", cart=["tea"]
    )
    explained = client.recommend("ann", 2, explain=True, fields=["name"])
    assert explained.explanations == {item: engine.explain("ann", item) for item, _ in explained}
    assert explained.products["milk"].further == {"name": "Oat milk"}
    stranger = client.recommend("zoe", 1)
    assert (stranger, stranger.popular) == ([("milk", 4.0)], True)


def test_recommending_to_a_visitor(client: Client, service: Service) -> None:
    engine = service.engine
    assert client.recommend_for([["milk"], {"tea"}], 3) == engine.recommend_for([["milk"], ["tea"]], 3)
    options = {"exclude": ["milk"], "only_new": True, "category": ["Alcohol", "Bakery"], "cart": ["tea"]}
    assert client.recommend_for([["milk"]], **options) == engine.recommend_for([["milk"]], **options)  # type: ignore[arg-type]
    assert client.recommend_for([["milk"]], only=[]) == []
    assert client.recommend_for([], 1).popular


def test_previews_and_explanations(client: Client, service: Service) -> None:
    before, after = client.preview_learn("ann", ["tea"], 3)
    assert before == service.engine.recommend("ann", 3)
    assert after != before
    forgotten = client.preview_forget("ann", 3, item="milk")
    client.forget("ann", item="milk")
    assert forgotten.after == service.engine.recommend("ann", 3)
    assert client.preview_forget("ann").after.popular
    assert client.explain("ann", "wine") == service.engine.explain("ann", "wine")
    assert client.similar_users("ann", 2) == service.engine.similar_users("ann", 2)


def test_reading(client: Client, service: Service) -> None:
    engine = service.engine
    assert client.popular(3) == engine.popular(3)
    assert client.popular(only=["tea"], since=15) == engine.popular(only=["tea"], since=15)
    assert list(client.users()) == engine.users()
    assert list(client.users("c")) == ["cleo"]
    assert [product.item for product in client.items()] == engine.items()
    assert [product.name for product in client.items("rye")] == ["Rye bread"]
    assert client.categories() == {"Alcohol": 2, "Bakery": 1, "Dairy": 1, "Drinks": 1}
    assert client.export("ann")["format"] == "unbasket user"
    assert client.stats()["users"] == 4


def test_pages_follow_each_other(client: Client, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.client.client._PAGE", 1)
    client.forget("bob")
    client.forget("cleo")
    assert list(client.users()) == ["7", "ann"]
    assert [receipt.number for receipt in client.receipts()] == [1, 2]
    assert [receipt.number for receipt in client.receipts("newest")] == [2, 1]
    assert [product.item for product in client.items()] == service.engine.items()


def test_renaming_and_suppressing(client: Client, service: Service) -> None:
    renamed = client.rename("bob", "zoe")
    assert renamed == (2, 1)
    assert renamed.receipt.scope == "id"
    assert subject_of("bob", bytes.fromhex(renamed.secret)) == renamed.receipt.subject
    assert (client.suppress("zoe", "milk"), client.suppress("zoe", "milk")) == (True, False)
    assert client.suppressed("zoe") == service.engine.suppressed("zoe") == ["milk"]
    assert (client.allow("zoe", "milk"), client.allow("zoe", "milk")) == (True, False)


def test_availability(client: Client) -> None:
    assert client.hide(["milk", "gin"]) == 2
    assert list(client.hidden()) == ["gin", "milk"]
    assert client.show(["gin", "tea"]) == 1
    assert client.set_availability(hide=["gin"], show=["milk"]) == ub.AvailabilityChange(1, 1)


def test_the_model(client: Client, service: Service) -> None:
    assert client.params() == service.engine.params
    assert client.learned() == service.engine.learned()
    client.change_params(ub.Params(neighbors=3, alpha=0.7, repurchase=None))
    assert client.params() == service.engine.params
    assert client.params().neighbors == 3
    assert client.learned() is None
    assert client.id_types() == {"user": "text", "basket": "number", "item": "text"}
    client.change_ids(basket="text")
    assert client.id_types()["basket"] == "text"


def test_retention(client: Client, service: Service) -> None:
    planned = client.retain(RULES)
    assert (planned.done, planned.rules[0].name, planned.forgotten.purchases) == (False, "no gin", 1)
    assert "gin" in service.engine.items()
    assert client.retain(RULES, run=True).receipts == 1
    assert "gin" not in service.engine.items()


@pytest.mark.parametrize("name", ["a/b", "..", ".", "17", '"17"', "ä ö", "100%", "%2F", "a?b#c", "a+b", "\n"])
def test_ids_arrive_as_they_are(tmp_path: Path, name: str) -> None:
    ub.open(tmp_path / "shop.db").close()
    with serving(tmp_path / "shop.db") as service, Client(str(service.client.base_url)) as client:
        client.learn(name, [name, "x"], basket=name, time=1)
        assert service.engine.history(name) == [ub.Basket(name, 1, tuple(sorted([name, "x"])))]
        assert client.recommend(name, only=[name])[0].item == name
        assert client.explain(name, name).item == name
        assert client.forget(name, basket=name, item=name).purchases == 1


def test_numbers_are_not_texts_in_a_new_shop(tmp_path: Path) -> None:
    ub.open(tmp_path / "shop.db").close()
    with serving(tmp_path / "shop.db") as service, Client(str(service.client.base_url)) as client:
        client.learn(17, [2**62], basket="17")
        assert client.id_types() == {"user": "number", "basket": "text", "item": "number"}
        assert [each.item for each in client.recommend(17)] == [2**62]


INVALID: list[tuple[type[ub.UnbasketError], Callable[[Client], object]]] = [
    (ub.InvalidIdError, lambda client: client.learn("", ["milk"], basket=1)),
    (ub.InvalidBasketError, lambda client: client.learn("ann", [], basket=1)),
    (ub.InvalidIdError, lambda client: client.forget("ann", item="")),
    (ub.InvalidRequestError, lambda client: client.recommend("ann", only="milk")),
]


@pytest.mark.parametrize(("error", "call"), INVALID)
def test_bad_input_is_not_sent(
    client: Client, used_routes: set[Route], error: type[ub.UnbasketError], call: Callable[[Client], object]
) -> None:
    with pytest.raises(error):
        call(client)
    assert used_routes == set()


def test_keys(tmp_path: Path) -> None:
    ub.open(tmp_path / "shop.db").close()
    keys = KeyFile.new()
    till_key, officer_key = keys.add("till", ["write"]), keys.add("officer", ["privacy"])
    with serving(tmp_path / "shop.db", Authenticator(None, keys)) as service:
        url = str(service.client.base_url)
        with Client(url, till_key) as till:
            assert till.me() == Caller("till", None, frozenset({"write"}))
            assert till.learn("ann", ["milk"], basket=1) is None
            assert till.suppress("ann", "milk") is None
            assert till.apply([ub.Learn("ann", ["tea"], 2, None)]) == [None]
            with pytest.raises(AccessError, match="role") as denied:
                till.forget("ann")
            assert isinstance(denied.value, ServiceError)
            assert (denied.value.code, denied.value.status) == ("forbidden", 403)
        with Client(url, officer_key) as officer:
            token = officer.token("ann", seconds=60)
        with Client(url, token.token) as shopper:
            assert shopper.me().shopper == "ann"
            assert len(shopper.history("ann")) == 2
            assert shopper.forget("ann").users == 1


def test_every_route_has_a_method(client: Client, used_routes: set[Route]) -> None:
    """Call every method, and see which routes are used."""
    client.learn("dan", ["tea"], basket=1)
    client.learn_new("dan", ["tea"])
    with client.batch() as batch:
        batch.learn("eve", ["tea"], basket=2)
    client.recommend("ann")
    client.recommend_for([["milk"]])
    client.preview_learn("ann", ["tea"])
    client.explain("ann", "milk")
    client.export("ann")
    client.rename("eve", "dan")
    client.suppress("ann", "tea")
    client.allow("ann", "tea")
    client.similar_users("ann")
    client.verify("ann")
    for listed in (client.users(), client.items(), client.hidden(), client.receipts()):
        list(listed)
    client.hide(["milk"])
    client.categories()
    client.popular()
    client.receipt(1)  # of the rename
    client.prove_receipt(1)
    client.prove_absence("eve")
    client.verify_proof(client.checkpoint())
    client.verify_receipts()
    client.retain(RULES)
    client.token("ann")
    client.change_params(client.params())
    client.learned()
    client.change_ids(basket="text")
    client.id_types()
    client.stats()
    client.me()
    client.forget_category("ann", "Alcohol")
    client.forget("ann", basket=1, item="bread")
    client.forget("ann", item="tea")
    client.forget("ann", basket=1)
    client.forget("ann")
    used = {route.line for route in used_routes}
    assert used.isdisjoint(LEFT_OUT)
    assert used | LEFT_OUT.keys() == {route.line for route in ROUTES}


def test_the_example_of_the_documentation(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = re.findall(r'```python title="client.py"\n(.*?)```', DOCS.read_text(encoding="utf-8"), re.DOTALL)
    exec(code.replace("https://recommendations.example", str(service.client.base_url)), {"key": None})
    assert "True" in capsys.readouterr().out.splitlines()
    assert len(service.engine.history("ann")) == 99


def test_without_httpx_an_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['httpx'] = None; import unbasket.client"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stderr.splitlines()[-1].endswith("the client needs httpx: pip install 'unbasket[client]'")
