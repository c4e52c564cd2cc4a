"""The privacy threshold over HTTP: for each route that a shopper or a visitor may use, and for no key.

A scenario over a real socket. Eve has a token. She knows that ann, and no one else, buys cigars.
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from tests.service.serving import Service, items_of, serving

import unbasket as ub
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator, Caller
from unbasket.service.handlers.recommendations import recommend_batch
from unbasket.service.metrics import Metrics
from unbasket.service.request import Request, Shared
from unbasket.service.routes import ROUTES
from unbasket.service.schemas.requests import RecommendationsQuery
from unbasket.service.settings import Settings

KEY_FILE = KeyFile.new()
KEY = {"Authorization": f"Bearer {KEY_FILE.add('shop', ['admin'])}"}
SECRETS = {"rum", "cards"}  # ann's alone


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, chance = tmp_path_factory.mktemp("privacy") / "shop.db", random.Random(0)
    with ub.open(path, ub.Params(neighbors=40)) as rec:
        for user in range(60):
            for basket in range(2):
                items = chance.sample(["milk", "bread", "tea", "eggs", "rice"], 3)
                rec.learn(f"user {user}", items, basket=basket, time=basket)
        for basket in range(2):
            rec.learn("ann", ["cigars", *sorted(SECRETS)], basket=basket, time=basket)
        rec.learn("eve", ["own thing"], basket=1, time=1)
        rec.learn("eva", ["own thing", "cigars"], basket=1, time=1)
    return path


@pytest.fixture(scope="module")
def service(db: Path) -> Iterator[Service]:
    with serving(db, Authenticator(None, KEY_FILE), privacy_threshold=10) as service:
        yield service


@pytest.fixture
def eve(service: Service) -> dict[str, str]:
    return token_of(service, "eve")


def token_of(service: Service, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {service.token(Authenticator(None, KEY_FILE), user)}"}


def test_it_is_on_by_default() -> None:
    settings = Settings(db=Path("shop.db"))
    assert settings.privacy == ub.PrivacyThreshold(buyers=10, neighbors=5)
    assert Settings(db=Path("shop.db"), privacy_threshold=3).privacy == ub.PrivacyThreshold(buyers=3, neighbors=2)
    assert Settings(db=Path("shop.db"), privacy_threshold=0).privacy is None


def test_every_route_of_shoppers_is_considered() -> None:
    """A new route that a token may use must be tested here, or say nothing about others."""
    about_others = {"recommend", "preview", "explain", "suppress"}
    forgets = {"forget_user", "forget_basket", "forget_basket_item", "forget_item", "forget_category"}
    own_data = forgets | {"show", "absence", "allow"}
    assert {route.name for route in ROUTES if route.own} == about_others | own_data | {"verify", "me"}


@pytest.mark.parametrize("filters", ["", "&only=rum&only=cards&only=milk", "&only_new=true", "&exclude=milk"])
def test_a_cart(service: Service, eve: dict[str, str], filters: str) -> None:
    path = f"/v1/users/eve/recommendations?n=1000{filters}&cart="
    assert set(items_of(service("GET", path + "cigars", headers=KEY))) >= SECRETS
    assert service("GET", path + "cigars", headers=eve) == service("GET", path + "nothing", headers=eve)


def test_a_cart_of_a_shopper_without_baskets(service: Service) -> None:
    path, token = "/v1/users/new/recommendations?n=1000&cart=", token_of(service, "new")
    assert set(items_of(service("GET", path + "cigars", headers=KEY))) >= SECRETS
    assert service("GET", path + "cigars", headers=token) == service("GET", path + "nothing", headers=token)


@pytest.mark.parametrize("field", ["cart", "baskets"])
def test_a_visitor(service: Service, field: str) -> None:
    """Whatever the key: the shop passes on what a visitor sends."""

    def ask(item: str) -> Any:
        body = {field: [item] if field == "cart" else [[item], ["milk"]], "n": 1000, "only_new": True}
        return service("POST", "/v1/recommendations", json=body, headers=KEY)

    assert ask("cigars") == ask("nothing")
    assert not SECRETS & set(items_of(ask("cigars")))
    assert "milk" in items_of(ask("tea")) or field == "baskets"


def test_a_preview(service: Service, eve: dict[str, str]) -> None:
    def ask(item: str, headers: dict[str, str]) -> Any:
        body = {"learn": {"items": [item]}}
        response = service("POST", "/v1/users/eve/preview?n=1000", json=body, headers=headers)
        return [{**each, "item": "?" if each["item"] == item else each["item"]} for each in response["after"]]

    assert {each["item"] for each in ask("cigars", KEY)} >= SECRETS
    assert ask("cigars", eve) == ask("nothing", eve)


def test_the_own_history(service: Service) -> None:
    """Eva has bought cigars, and eve has not; all else is equal."""
    asked = {
        user: [
            service("GET", f"/v1/users/{user}/recommendations?n=1000&only_new=true", headers=headers)["recommendations"]
            for headers in (KEY, token_of(service, user))
        ]
        for user in ("eva", "eve")
    }
    assert asked["eva"][0] != asked["eve"][0]
    assert asked["eva"][1] == asked["eve"][1]


def test_scores_and_orders(service: Service) -> None:
    path, token = "/v1/users/user%201/recommendations?n=1000", token_of(service, "user 1")
    exact, shown = (service("GET", path, headers=headers)["recommendations"] for headers in (KEY, token))
    assert [each["item"] for each in shown] == [
        each["item"] for each in exact if each["item"] not in SECRETS | {"cigars"}
    ]
    assert all(each["score"] == round(each["score"], 2) > 0 for each in shown)


def test_explanations(service: Service) -> None:
    eva = token_of(service, "eva")
    exact, shown = (service("GET", "/v1/users/eva/explanations/rum", headers=headers) for headers in (KEY, eva))
    assert exact["neighbors_with_item"] == 1
    assert exact["factor"] != 1
    hidden = {"score": 0.0, "neighbors_share": 0.0, "neighbors_with_item": None, "neighbors": 40, "factor": 1.0}
    assert shown == exact | hidden
    exact, shown = (service("GET", "/v1/users/eva/explanations/milk", headers=headers) for headers in (KEY, eva))
    assert exact["neighbors_with_item"] >= 10
    assert shown["neighbors_with_item"] in (10, 20, 30, 40)
    assert shown["neighbors_share"] == round(shown["neighbors_share"], 2) > 0
    path = "/v1/users/eva/recommendations?n=100&explain=true"
    counts = [
        each["explanation"]["neighbors_with_item"] for each in service("GET", path, headers=eva)["recommendations"]
    ]
    assert all(count is None or (count >= 10 and count % 10 == 0) for count in counts)


def test_popular_items(service: Service, eve: dict[str, str]) -> None:
    """To a shopper or a visitor without baskets, and in the preview of a shopper who forgets all of theirs."""
    token = token_of(service, "new")
    lists = [
        service("GET", "/v1/users/new/recommendations?n=1000", headers=token)["recommendations"],
        service("POST", "/v1/recommendations", json={"n": 1000}, headers=KEY)["recommendations"],
        service("POST", "/v1/users/eve/preview?n=1000", json={"forget": {}}, headers=eve)["after"],
    ]
    exact = service("GET", "/v1/users/new/recommendations?n=1000", headers=KEY)["recommendations"]
    assert len(exact) > 5
    expected = [(each["item"], each["score"] - each["score"] % 10) for each in exact if each["score"] >= 10]
    for shown in lists:
        assert [(each["item"], each["score"]) for each in shown] == expected
    only = "/v1/users/new/recommendations?only=cigars"
    assert service("GET", only, headers=token)["recommendations"] == []


def test_a_suppression_does_not_tell_whether_a_rare_item_is_sold(service: Service, eve: dict[str, str]) -> None:
    for item in ("cigars", "nothing"):
        assert service.code("PUT", f"/v1/users/eve/suppressed/{item}", 400, headers=eve) == "invalid_request"
    for user, item in (("eve", "milk"), ("eve", "own%20thing"), ("eva", "cigars")):
        path, headers = f"/v1/users/{user}/suppressed/{item}", token_of(service, user)
        assert service("PUT", path, headers=headers)["changed"]
        assert service("DELETE", path, headers=headers)["changed"]


def test_the_fast_path_keeps_shoppers_apart_from_keys(service: Service) -> None:
    """In one batch, a key and a token for the same user get different answers."""
    shared = Shared(service.loader, Authenticator(), Metrics(service.loader), Settings(db=service.loader.db))
    callers = [Caller("key shop"), Caller("shopper eva", shopper="eva"), Caller("key shop")]
    batch = [Request(shared, make_mocked_request("GET", "/")) for _ in callers]
    for request, caller in zip(batch, callers, strict=True):
        request.caller, request.path, request.query = caller, {"user": "eva"}, RecommendationsQuery()
    first, second, third = recommend_batch(batch, None)
    assert first is not None
    assert second is not None
    assert first == third
    assert first != second == recommend_batch(batch[1:2], None)[0]


def test_without_a_threshold(service: Service, tmp_path: Path) -> None:
    service.engine.backup(tmp_path / "shop.db")
    shutil.copy(service.engine._keys, tmp_path / "shop.db-keys")
    with serving(tmp_path / "shop.db", Authenticator(None, KEY_FILE), privacy_threshold=0) as other:
        path, eve = "/v1/users/eve/recommendations?n=1000&cart=cigars", token_of(other, "eve")
        assert other("GET", path, headers=eve) == other("GET", path, headers=KEY)
        visitor = other("POST", "/v1/recommendations", json={"cart": ["cigars"], "n": 1000}, headers=KEY)
        assert set(items_of(visitor)) >= SECRETS
