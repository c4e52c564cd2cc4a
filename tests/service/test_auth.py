"""Authentication and authorization: every role against every route of the table."""

import json
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.service.serving import Service, make_shop, serving

from unbasket.domain.ids import Id
from unbasket.engine.histories import MAX_SUPPRESSIONS
from unbasket.service.api_keys import KeyFile, Role
from unbasket.service.auth import Authenticator
from unbasket.service.clock import Clock
from unbasket.service.empty_receipts import MOST
from unbasket.service.errors import ApiError
from unbasket.service.routes import ROUTES, Route

CALLERS = ("none", *Role, "own", "other")
BODIES: dict[str, Any] = {
    "learn": {"items": ["milk"]},
    "learn_new": {"items": ["milk"]},
    "events": [],
    "verify_proof": {"text": ""},
    "preview": {"forget": {"item": "milk"}},
    "change_params": {"alpha": 0.7},
    "change_ids": {},
    "set_availability": {"hide": ["rum"]},
    "rename": {"to": "zoe"},
    "recommend_to_visitor": {"cart": ["milk"]},
    "retention": {"rules": "[[rule]]\ncategory = 'Alcohol'"},
    "token": {"user": "ann"},
}
GRANTS = {
    "read": {"read"},
    "write": {"write"},
    "privacy": {"privacy", "read"},
    "admin": {"read", "write", "privacy", "admin"},
}


class Guarded:
    """A service with a key of each role."""

    def __init__(self, service: Service, auth: Authenticator, keys: dict[str, str]) -> None:
        self.service, self.engine = service, service.engine
        self.auth = auth
        self.keys = keys

    def token(self, user: Id, seconds: int = 600) -> str:
        return self.auth.issue(user, seconds, self.engine.presence(user))[0]

    def get(self, path: str, key: str | None, method: str = "GET", **kwargs: Any) -> httpx.Response:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return self.service.client.request(method, path, headers=headers, **kwargs)

    def request_as(self, caller: str, route: Route, user: str = "ann") -> httpx.Response:
        """Send a valid request as a caller."""
        key = {"none": None, "own": self.token(user), "other": self.token("bob")}.get(caller) or self.keys.get(caller)
        path = route.path
        for name, value in {"user": user, "basket": "1", "item": "milk", "category": "Alcohol", "number": "1"}.items():
            path = path.replace(f"{{{name}}}", value)
        return self.get(path, key, route.method, json=BODIES.get(route.name))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    key_file, file = KeyFile.new(), folder / "access.toml"
    keys = {str(role): key_file.add(role, [role]) for role in Role}
    key_file.write(file)
    auth = Authenticator(file)
    with serving(make_shop(folder / "shop.db"), auth) as service:
        service.engine.forget("unknown")  # a receipt
        yield Guarded(service, auth, keys)


def allowed(caller: str, route: Route) -> bool:
    if not route.roles:
        return True
    if caller == "none":
        return False
    if caller == "other":
        return route.own and not route.path_params  # such a route is about the caller
    return route.own if caller == "own" else not route.roles.isdisjoint(GRANTS[caller])


@pytest.mark.parametrize(
    ("caller", "route"), list(product(CALLERS, ROUTES)), ids=lambda each: getattr(each, "name", each)
)
def test_roles_and_routes(guarded: Guarded, caller: str, route: Route) -> None:
    if "user" in route.path_params:
        guarded.service.engine.forget("zoe")  # a former ann may have been renamed to zoe
        guarded.service.engine.learn("ann", ["milk", "gin"], basket=1)
    before = guarded.service.engine.digest()
    response = guarded.request_as(caller, route, "zoe" if route.name == "absence" else "ann")
    if allowed(caller, route):
        assert response.status_code == route.status, response.text
    else:
        assert response.status_code == (401 if caller == "none" else 403)
        assert guarded.service.engine.digest() == before
        assert response.json()["error"]["code"] == ("unauthenticated" if caller == "none" else "forbidden")
        assert ("www-authenticate" in response.headers) == (caller == "none")


# Shoppers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", [route for route in ROUTES if "{user}" in route.path], ids=lambda route: route.name)
def test_a_shopper_learns_nothing_about_others(guarded: Guarded, route: Route, monkeypatch: pytest.MonkeyPatch) -> None:
    """The response has the same bytes for known and unknown users, and does not use the engine."""
    monkeypatch.setattr(type(guarded.service.loader), "engine", property(_untouchable))
    bodies, headers = set(), set()
    for user in ("ann", "cleo", "7", "8", "17", "unknown", "%227%22", "bob%2F", "Bob", "bob%00", "%20bob"):
        response = guarded.request_as("other", route, user)
        assert response.status_code == 403
        bodies.add(response.content)
        headers.add(tuple(name for name in response.headers if name != "connection"))  # closed if a body is unread
    assert len(bodies) == len(headers) == 1
    assert b"ann" not in bodies.pop()


def _untouchable(_: object) -> None:
    raise AssertionError("the engine was used")


def test_a_shopper_and_their_own_data(guarded: Guarded) -> None:
    engine = guarded.service.engine
    for user in ("dora/1", 41, "41", '"', "zo\u00eb"):  # 41 is the same shopper as "41"
        engine.learn(user, ["milk", "tea"], basket=1)
        token, path = guarded.token(user), f"/v1/users/{quote(str(user), safe='')}"
        assert guarded.get(path, token).json()["user"] == str(user)
        quoted = f"/v1/users/{quote(json.dumps(user), safe='')}"
        assert guarded.get(quoted, token).json()["user"] == str(user)
        assert guarded.get(f"{path}/items/tea", token, "DELETE").json()["removed"]["purchases"] == 1
        assert guarded.get(path, token, "DELETE").json()["removed"]["users"] == 1
        assert guarded.get(path, token).json()["error"]["code"] == "unauthenticated"
        new_token = guarded.token(user)
        assert guarded.get(path, new_token).json()["error"]["code"] == "unknown_user"
        assert guarded.get(f"{path}/recommendations", new_token).json()["popular"] is True


def test_a_shopper_has_no_other_routes(guarded: Guarded) -> None:
    bodies = {guarded.request_as("own", route).content for route in ROUTES if route.roles and not route.own}
    assert bodies == {guarded.get("/v1/users/bob", guarded.token("ann")).content}


def test_the_service_identifies_the_caller(guarded: Guarded) -> None:
    for role, key in guarded.keys.items():
        assert guarded.get("/v1/me", key).json() == {"key": role, "shopper": None, "roles": sorted(GRANTS[role])}
    for shopper in ("ann", 41):
        assert guarded.get("/v1/me", guarded.token(shopper)).json() == {"key": None, "shopper": shopper, "roles": []}
    assert guarded.get("/v1/me", "nonsense").status_code == 401


@pytest.mark.parametrize("end", ["", "x", "."])
def test_forged_tokens(guarded: Guarded, end: str) -> None:
    version, payload, mac = guarded.token("ann").split(".")
    other_payload = guarded.token("bob").split(".")[1]
    other_secret = guarded.service.token(Authenticator(), "ann")
    forged = [
        f"{version}.{other_payload}.{mac}{end}",
        f"{version}.{payload}.{mac[:-1]}{end}",
        f"{version}.{payload}.{end}",
        f"{version}.{payload}{end}",
        f"{version}..{mac}{end}",
        f"v1.{payload}.{mac}{end}",
        f"v2.{end}",
        f"v2..{end}",
        other_secret + end,
    ]
    for token in forged:
        response = guarded.get("/v1/users/ann", token)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthenticated"), token


def test_tokens_expire(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    response = guarded.get("/v1/tokens", guarded.keys["privacy"], "POST", json={"user": "ann", "seconds": 60}).json()
    assert response["user"] == "ann"
    assert 0 < response["expires"] - time.time() <= 60
    assert guarded.get("/v1/users/ann/recommendations", response["token"]).status_code == 200
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    assert guarded.get("/v1/users/ann/recommendations", response["token"]).status_code == 401


@pytest.mark.parametrize("body", [{}, {"user": ""}, {"user": "a", "seconds": 0}, {"user": "a", "seconds": 86401}])
def test_invalid_requests_for_tokens(guarded: Guarded, body: object) -> None:
    assert guarded.get("/v1/tokens", guarded.keys["privacy"], "POST", json=body).status_code == 400


def test_an_expired_token_stays_expired_when_the_clock_goes_back(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded.auth, "clock", Clock(None))
    now, token, path = time.time(), guarded.token("ann", 60), "/v1/users/ann/recommendations"
    assert guarded.get(path, token).status_code == 200
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert guarded.get(path, token).status_code == 401
    monkeypatch.setattr(time, "time", lambda: now)
    assert guarded.get(path, token).status_code == 401
    body = {"user": "ann", "seconds": 60}
    response = guarded.get("/v1/tokens", guarded.keys["privacy"], "POST", json=body)  # it would be of no use
    assert (response.status_code, response.json()["error"]["code"]) == (503, "wrong_clock")


# Forgotten shoppers ---------------------------------------------------------------------------------------------


class Shop:
    """A shop with keys that can be closed and opened again."""

    def __init__(self, folder: Path) -> None:
        self.db, self.file = folder / "shop.db", KeyFile.new()
        self.key = {"Authorization": f"Bearer {self.file.add('admin', ['admin'])}"}
        make_shop(self.db)

    def open(self) -> AbstractContextManager[Service]:
        return serving(self.db, Authenticator(None, self.file))

    def token(self, service: Service, user: Id) -> dict[str, str]:
        response = service("POST", "/v1/tokens", 201, json={"user": user}, headers=self.key)
        return {"Authorization": f"Bearer {response['token']}"}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


ENDS: dict[str, Callable[[Service, dict[str, str]], Any]] = {
    "forget": lambda service, key: service("DELETE", "/v1/users/bob", headers=key),
    "last basket": lambda service, key: service("DELETE", "/v1/users/bob/baskets/3", headers=key),
    "last items": lambda service, key: [
        service("DELETE", f"/v1/users/bob/items/{item}", headers=key) for item in ("milk", "tea")
    ],
    "event": lambda service, key: service("POST", "/v1/events", json=[{"event": "forget", "user": "bob"}], headers=key),
    "rename": lambda service, key: service("POST", "/v1/users/bob/rename", json={"to": "robert"}, headers=key),
    "retention": lambda service, key: service(
        "POST", "/v1/retention", json={"rules": "[[rule]]\nitems = ['milk', 'tea']", "run": True}, headers=key
    ),
}
"""All ways by which bob ends."""


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_token_ends_with_its_shopper(shop: Shop, end: str, restarts: bool) -> None:
    """It stays ended after a restart, and when the same id buys again."""
    paths = ("/v1/users/bob", "/v1/users/bob/recommendations", "/v1/me")
    with shop.open() as service:
        bob, ann = shop.token(service, "bob"), shop.token(service, "ann")
        for path in paths:
            service("GET", path, headers=bob)
        service("DELETE", "/v1/users/bob/items/17", headers=bob)  # not in their baskets: nothing ends
        service("GET", "/v1/users/bob", headers=bob)
        ENDS[end](service, shop.key)
        if not restarts:
            _check_ended(service, shop, bob, ann, paths)
    if restarts:
        with shop.open() as service:
            _check_ended(service, shop, bob, shop.token(service, "ann"), paths)
            assert service.code("GET", "/v1/users/ann", 401, headers=ann)  # receipts do not tell whose they are


def _check_ended(
    service: Service, shop: Shop, bob: dict[str, str], ann: dict[str, str], paths: tuple[str, ...]
) -> None:
    for path in paths:
        assert service.code("GET", path, 401, headers=bob) == "unauthenticated"
    service("PUT", "/v1/users/bob/baskets/9", json={"items": ["gin"]}, headers=shop.key)
    for path in paths:
        assert service.code("GET", path, 401, headers=bob) == "unauthenticated"
    new = shop.token(service, "bob")
    assert service("GET", "/v1/users/bob", headers=new)["baskets"][0]["basket"] == 9
    if "ann" in service.engine:
        service("GET", "/v1/users/ann", headers=ann)


def test_a_token_of_a_shopper_without_baskets_ends_too(shop: Shop) -> None:
    """Also if an earlier forget has an empty receipt of the same day."""
    with shop.open() as service:
        for _ in range(2):
            zoe = shop.token(service, "zoe")
            assert service("GET", "/v1/users/zoe/recommendations", headers=zoe)["popular"]
            service("DELETE", "/v1/users/zoe", headers=shop.key)
            assert service.code("GET", "/v1/users/zoe/recommendations", 401, headers=zoe) == "unauthenticated"
        before = service.engine.receipt_count
        for _ in range(20):  # new tokens give no way around the limit of empty receipts
            zoe = shop.token(service, "zoe")
            service.client.delete("/v1/users/zoe", headers=zoe)
        assert service.engine.receipt_count == before + MOST - 2
        service("GET", "/v1/users/zoe/recommendations", headers=zoe)  # nothing was held, and nothing was forgotten


def test_a_token_lives_on_when_its_forget_fails(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.open() as service:
        bob = shop.token(service, "bob")
        with monkeypatch.context() as failing:
            failing.setattr("unbasket.store.writer.Database.commit", _fail)
            service("DELETE", "/v1/users/bob", 503, headers=shop.key)
        assert service("GET", "/v1/users/bob", headers=bob)["baskets"]
        service("DELETE", "/v1/users/bob", headers=bob)
        assert service.code("GET", "/v1/users/bob", 401, headers=bob) == "unauthenticated"


def _fail(_: object) -> None:
    raise sqlite3.OperationalError("disk I/O error")


def test_tokens_of_another_past_are_refused(shop: Shop, tmp_path: Path) -> None:
    """Of a database that was restored from a backup."""
    with shop.open() as service:
        ann, newer = shop.token(service, "ann"), {}
        service.engine.backup(tmp_path / "copy.db")
        service("DELETE", "/v1/users/bob", headers=shop.key)
        newer = shop.token(service, "ann")
    (tmp_path / "copy.db").replace(shop.db)
    with shop.open() as service:
        service("GET", "/v1/users/ann", headers=ann)
        assert service.code("GET", "/v1/users/ann", 401, headers=newer) == "unauthenticated"


# Keys without the role read -------------------------------------------------------------------------------------


def test_a_key_that_only_writes_learns_nothing_about_people(guarded: Guarded) -> None:
    """One answer to each request, whether or not the user, the basket or the suppression is there."""
    guarded.engine.learn("bob", ["milk"], basket=1)
    guarded.engine.suppress("bob", "tea")
    for number in range(MAX_SUPPRESSIONS - 1):
        guarded.engine.suppress("bob", f"item {number}")
    basket, learn = {"items": ["milk"]}, {"event": "learn", "basket": 1, "items": ["milk"]}
    key = guarded.keys["write"]
    for path, body in (
        ("baskets/1", basket),  # twice: it is unchanged then
        ("baskets/1", basket),
        ("baskets/1", {"items": ["tea"]}),
        ("suppressed/tea", None),
        ("suppressed/one-too-many", None),
    ):
        known, unknown = (guarded.get(f"/v1/users/{user}/{path}", key, "PUT", json=body) for user in ("bob", "new"))
        assert (known.status_code, known.content) == (unknown.status_code, unknown.content)
        guarded.engine.forget("new")
    for user in ("bob", "bob", "new"):
        response = guarded.get("/v1/events", key, "POST", json=[{**learn, "user": user}])
        assert response.json()["results"] == [{"result": "learned"}]
    guarded.engine.forget("new")
    guarded.engine.forget("bob")
    read = guarded.get("/v1/users/bob/baskets/1", guarded.keys["admin"], "PUT", json=basket)
    assert read.json()["result"] == "added"


# Keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer x",
        "Bearer \xff",
        "Basic YTpi",
        "admin",
        "Bearer unbasket__",
        "Bearer unbasket_admin_",
        "Bearer unbasket_admin_xyz",
        "Bearer " + "x" * 4_000,
    ],
)
def test_invalid_keys(guarded: Guarded, header: str) -> None:
    response = guarded.service.client.get("/v1/stats", headers={b"Authorization": header.encode("latin-1")})
    assert response.status_code == 401
    assert header[7:] == "" or header[7:] not in response.text


def test_events_need_the_roles_of_their_kinds(guarded: Guarded) -> None:
    learn = {"event": "learn", "user": "eli", "basket": 1, "items": ["tea"]}
    forget = {"event": "forget", "user": "eli"}
    statuses = {
        (role, len(events)): guarded.get("/v1/events", guarded.keys[role], "POST", json=events).status_code
        for role in ("write", "privacy", "admin")
        for events in ([learn], [forget, forget], [learn, forget, forget])
    }
    assert statuses == {
        ("write", 1): 200,
        ("write", 2): 403,
        ("write", 3): 403,
        ("privacy", 1): 403,
        ("privacy", 2): 200,
        ("privacy", 3): 403,
        ("admin", 1): 200,
        ("admin", 2): 200,
        ("admin", 3): 200,
    }


def test_a_removed_key_stops_working(tmp_path: Path) -> None:
    file, key_file = tmp_path / "access.toml", KeyFile.new()
    key = key_file.add("a", ["admin"])
    key_file.write(file)
    with serving(make_shop(tmp_path / "shop.db"), Authenticator(file)) as service:
        service("GET", "/v1/stats", headers={"Authorization": f"Bearer {key}"})
        other = key_file.add("b", ["read"])
        key_file.remove("a")
        key_file.write(file)
        time.sleep(1.1)
        assert service.code("GET", "/v1/stats", 401, headers={"Authorization": f"Bearer {key}"}) == "unauthenticated"
        service("GET", "/v1/popular", headers={"Authorization": f"Bearer {other}"})
        file.unlink()
        time.sleep(1.1)
        assert (
            service.code("GET", "/v1/popular", 401) == "unauthenticated"
        )  # no keys at all do not make every caller an admin
        service(
            "GET", "/v1/popular", headers={"Authorization": f"Bearer {other}"}
        )  # a deleted file locks no caller out


def test_a_key_added_while_file_descriptors_run_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the file cannot be opened, the old keys stay valid; afterwards the new one is valid too."""
    file, key_file = tmp_path / "access.toml", KeyFile.new()
    first = {"Authorization": f"Bearer {key_file.add('first', ['read'])}"}
    key_file.write(file)
    monkeypatch.setattr("unbasket.service.auth._RELOAD_INTERVAL", 0.0)
    auth = Authenticator(file)
    second = {"Authorization": f"Bearer {key_file.add('second', ['read'])}"}
    key_file.write(file)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        assert auth.identify(first).name == "key first"
        with pytest.raises(ApiError, match="not valid"):
            auth.identify(second)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert auth.identify(second).name == "key second"
    assert auth.identify(first).name == "key first"


def test_without_keys_every_caller_but_a_shopper_is_an_admin(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        token = service("POST", "/v1/tokens", 201, json={"user": "ann"})["token"]
        headers = {"Authorization": f"Bearer {token}"}
        assert service("GET", "/v1/users/ann", headers=headers)["user"] == "ann"
        assert service.code("GET", "/v1/users/bob", 403, headers=headers) == "forbidden"
        assert service.code("GET", "/v1/users/bob", 401, headers={"Authorization": "Bearer x"}) == "unauthenticated"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.1.evil"])
def test_without_keys_other_hosts_are_rejected(tmp_path: Path, host: str) -> None:
    """By DNS rebinding, a page of another site would be an admin."""
    with serving(make_shop(tmp_path / "shop.db")) as service:
        assert service.code("GET", "/v1/stats", 403, headers={"Host": host}) == "wrong_host"
        for loopback in ("localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]:8000", "127.1.2.3"):
            service("GET", "/v1/popular", headers={"Host": loopback})


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port of this machine
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_without_keys_pages_of_other_sites_are_rejected(tmp_path: Path, headers: dict[str, str]) -> None:
    """A form of another site can send a POST without a body, without a preflight request."""
    with serving(make_shop(tmp_path / "shop.db")) as service:
        path, host = "/v1/users/ann/verify", {"Host": "localhost"}
        assert service.code("POST", path, 403, headers=host | headers) == "cross_site"
        for own in ({"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}, {"Sec-Fetch-Site": "none"}, {}):
            assert service("POST", path, headers=host | own)["ok"]


def test_with_keys_the_origin_does_not_matter(guarded: Guarded) -> None:
    """Behind a proxy, the origin of the page differs from the host of the service."""
    headers = {"Authorization": f"Bearer {guarded.keys['privacy']}", "Origin": "https://shop.example"}
    assert guarded.service.client.post("/v1/users/ann/verify", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/docs/", "/static/", "/openapi.json/", "/static/main.js/"])
def test_no_path_redirects(guarded: Guarded, path: str) -> None:
    response = guarded.service.client.get(path, headers={"Host": "evil.example"})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
    assert "location" not in response.headers
