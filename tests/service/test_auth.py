"""Who may do what: every role against every call, from the table itself."""

import json
import os
import resource
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.service.serving import Service, make_shop, serving

from unbasket.domain.ids import Id
from unbasket.errors import AccessError
from unbasket.service.api_keys import KeyFile, Role
from unbasket.service.auth import Authenticator
from unbasket.service.errors import ApiError
from unbasket.service.routes import ROUTES, Route

CALLERS = ("none", *Role, "own", "other")
BODIES: dict[str, Any] = {
    "learn": {"items": ["milk"]},
    "learn_new": {"items": ["milk"]},
    "events": [],
    "preview": {"forget": {"item": "milk"}},
    "change_params": {"alpha": 0.7},
    "change_availability": {"hide": ["rum"]},
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
        self.service = service
        self.auth = auth
        self.keys = keys

    def token(self, user: Id, seconds: int = 600) -> str:
        return self.auth.issue(user, seconds)[0]

    def get(self, path: str, key: str | None, method: str = "GET", **kwargs: Any) -> httpx.Response:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return self.service.client.request(method, path, headers=headers, **kwargs)

    def as_caller(self, who: str, call: Route, user: str = "ann") -> httpx.Response:
        """A good request by somebody."""
        key = {"none": None, "own": self.token(user), "other": self.token("bob")}.get(who) or self.keys.get(who)
        path = call.path
        for place, value in {"user": user, "basket": "1", "item": "milk", "category": "Alcohol", "number": "1"}.items():
            path = path.replace(f"{{{place}}}", value)
        return self.get(path, key, call.method, json=BODIES.get(call.name))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    access, file = KeyFile.new(), folder / "access.toml"
    keys = {str(role): access.add(role, [role]) for role in Role}
    access.write(file)
    auth = Authenticator.load(file)
    with serving(make_shop(folder / "shop.db"), auth) as service:
        service.engine.forget("nobody")  # a receipt
        yield Guarded(service, auth, keys)


def allowed(who: str, call: Route) -> bool:
    if not call.roles:
        return True
    if who == "none":
        return False
    if who == "other":
        return call.own and not call.places  # then it is about whoever asks
    return call.own if who == "own" else not call.roles.isdisjoint(GRANTS[who])


@pytest.mark.parametrize(("who", "call"), list(product(CALLERS, ROUTES)), ids=lambda each: getattr(each, "name", each))
def test_the_matrix(guarded: Guarded, who: str, call: Route) -> None:
    if "user" in call.places:
        guarded.service.engine.forget("zoe")  # whom ann may have become
        guarded.service.engine.learn("ann", ["milk", "gin"], basket=1)
    before = guarded.service.engine.digest()
    response = guarded.as_caller(who, call)
    if allowed(who, call):
        assert response.status_code == call.status, response.text
    else:
        assert response.status_code == (401 if who == "none" else 403)
        assert guarded.service.engine.digest() == before
        assert response.json()["error"]["code"] == ("unauthenticated" if who == "none" else "forbidden")
        assert ("www-authenticate" in response.headers) == (who == "none")


def test_every_role_is_known_and_every_call_needs_one() -> None:
    assert {role for call in ROUTES for role in call.roles} == set(Role)
    assert [call.path for call in ROUTES if not call.roles] == ["/healthz", "/readyz"]
    assert [call.path for call in ROUTES if call.own and "{user}" not in call.path] == ["/v1/me"]


# Shoppers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [call for call in ROUTES if "{user}" in call.path], ids=lambda call: call.name)
def test_a_shopper_learns_nothing_of_others(guarded: Guarded, call: Route, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes whether or not the other one exists, before the engine is asked for anything."""
    monkeypatch.setattr(type(guarded.service.loader), "engine", property(_untouchable))
    bodies, headers = set(), set()
    for user in ("ann", "cleo", "7", "8", "17", "nobody", "%227%22", "bob%2F", "Bob", "bob%00", "%20bob"):
        response = guarded.as_caller("other", call, user)
        assert response.status_code == 403
        bodies.add(response.content)
        headers.add(tuple(name for name, _ in response.headers.items()))
    assert len(bodies) == len(headers) == 1
    assert b"ann" not in bodies.pop()


def _untouchable(_: object) -> None:
    raise AssertionError("the engine was asked")


def test_a_shopper_and_his_own_data(guarded: Guarded) -> None:
    engine = guarded.service.engine
    for user in ("dora/1", 41, "41", '"', "zo\u00eb"):
        engine.learn(user, ["milk", "tea"], basket=1)
        token, path = guarded.token(user), f"/v1/users/{quote(str(user), safe='')}"
        assert guarded.get(path, token).json()["user"] == user  # 41 and "41" are two shoppers at one address
        quoted = f"/v1/users/{quote(json.dumps(user), safe='')}"
        assert guarded.get(quoted, token).json()["user"] == user
        assert guarded.get(f"{path}/items/tea", token, "DELETE").json()["removed"]["purchases"] == 1
        assert guarded.get(path, token, "DELETE").json()["removed"]["users"] == 1
        assert guarded.get(path, token).json()["error"]["code"] == "unknown_user"
        assert guarded.get(f"{path}/recommendations", token).json()["popular"] is True


def test_a_shopper_has_no_other_calls(guarded: Guarded) -> None:
    bodies = {guarded.as_caller("own", call).content for call in ROUTES if call.roles and not call.own}
    assert bodies == {guarded.get("/v1/users/bob", guarded.token("ann")).content}


def test_the_service_says_who_asks(guarded: Guarded) -> None:
    for role, key in guarded.keys.items():
        assert guarded.get("/v1/me", key).json() == {"key": role, "shopper": None, "roles": sorted(GRANTS[role])}
    for shopper in ("ann", 41):
        assert guarded.get("/v1/me", guarded.token(shopper)).json() == {"key": None, "shopper": shopper, "roles": []}
    assert guarded.get("/v1/me", "nonsense").status_code == 401


@pytest.mark.parametrize("end", ["", "x", "."])
def test_forged_tokens(guarded: Guarded, end: str) -> None:
    version, payload, mac = guarded.token("ann").split(".")
    other_payload = guarded.token("bob").split(".")[1]
    other_secret = Authenticator.off().issue("ann", 600)[0]
    forged = [
        f"{version}.{other_payload}.{mac}{end}",
        f"{version}.{payload}.{mac[:-1]}{end}",
        f"{version}.{payload}.{end}",
        f"{version}.{payload}{end}",
        f"{version}..{mac}{end}",
        f"v2.{payload}.{mac}{end}",
        f"v1.{end}",
        f"v1..{end}",
        other_secret + end,
    ]
    for token in forged:
        response = guarded.get("/v1/users/ann", token)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthenticated"), token


def test_tokens_end(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = guarded.get("/v1/tokens", guarded.keys["privacy"], "POST", json={"user": "ann", "seconds": 60}).json()
    assert answer["user"] == "ann"
    assert 0 < answer["expires"] - time.time() <= 60
    assert guarded.get("/v1/users/ann/recommendations", answer["token"]).status_code == 200
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    assert guarded.get("/v1/users/ann/recommendations", answer["token"]).status_code == 401


@pytest.mark.parametrize("body", [{}, {"user": ""}, {"user": "a", "seconds": 0}, {"user": "a", "seconds": 86401}])
def test_bad_requests_for_tokens(guarded: Guarded, body: object) -> None:
    assert guarded.get("/v1/tokens", guarded.keys["privacy"], "POST", json=body).status_code == 400


# TokenBuckets ----------------------------------------------------------------------------------------------------------


def test_each_key_and_each_shopper_has_a_rate_of_its_own(tmp_path: Path) -> None:
    access = KeyFile.new()
    busy, quiet = access.add("busy", ["read"]), access.add("quiet", ["read"])
    auth = Authenticator(None, access)
    with serving(make_shop(tmp_path / "shop.db"), auth, rate=1, public_rate=1) as service:

        def statuses(key: str, path: str = "/v1/popular") -> list[int]:
            headers = {"Authorization": f"Bearer {key}"}
            return [service.client.get(path, headers=headers).status_code for _ in range(6)]

        assert statuses(busy).count(429) >= 3
        assert statuses("guessed").count(401) <= 3  # who guesses is slowed down,
        assert statuses(quiet)[:2] == [200, 200]  # and nobody else at their address
        for user in ("ann", "bob"):
            assert statuses(auth.issue(user, 60)[0], f"/v1/users/{user}")[:2] == [200, 200]


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
        "Bearer " + "x" * 10_000,
    ],
)
def test_bad_keys(guarded: Guarded, header: str) -> None:
    response = guarded.service.client.get("/v1/stats", headers={b"Authorization": header.encode("latin-1")})
    assert response.status_code == 401
    assert header[7:] == "" or header[7:] not in response.text


def test_events_need_the_roles_of_what_they_do(guarded: Guarded) -> None:
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


def test_keys_are_stored_hashed_and_for_the_owner_only(tmp_path: Path) -> None:
    access, file = KeyFile.new(), tmp_path / "access.toml"
    key = access.add("shop-1", ["read", "write"])
    access.write(file)
    text = file.read_text()
    assert key not in text
    assert key.rpartition("_")[2] not in text
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["access.toml"]
    caller = Authenticator.load(file).identify({b"authorization": f"Bearer {key}".encode()})
    assert caller.name == "key shop-1"
    assert sorted(caller.grants) == ["read", "write"]


def test_bad_files_and_names_of_keys(tmp_path: Path) -> None:
    access, file = KeyFile.new(), tmp_path / "access.toml"
    access.add("a", ["read"])
    for name in ("a", "", "a_b", 'x"', "a" * 65):
        with pytest.raises(AccessError):
            access.add(name, ["read"])
    with pytest.raises(AccessError):
        access.add("b", [])
    with pytest.raises(AccessError):
        access.remove("b")
    with pytest.raises(AccessError):
        access.write(tmp_path / "missing" / "access.toml")
    for content in (b"\xff", b"secret = 1", b"[[", b"key = []", b"secret = 'zz'"):
        file.write_bytes(content)
        with pytest.raises(AccessError):
            Authenticator.load(file)


def test_a_removed_key_stops_working(tmp_path: Path) -> None:
    file, access = tmp_path / "access.toml", KeyFile.new()
    key = access.add("a", ["admin"])
    access.write(file)
    with serving(make_shop(tmp_path / "shop.db"), Authenticator.load(file)) as service:
        service("GET", "/v1/stats", headers={"Authorization": f"Bearer {key}"})
        other = access.add("b", ["read"])
        access.remove("a")
        access.write(file)
        time.sleep(1.1)
        assert service.code("GET", "/v1/stats", 401, headers={"Authorization": f"Bearer {key}"}) == "unauthenticated"
        service("GET", "/v1/popular", headers={"Authorization": f"Bearer {other}"})
        file.unlink()
        time.sleep(1.1)
        assert service.code("GET", "/v1/popular", 401) == "unauthenticated"  # not: everybody is an admin now
        service("GET", "/v1/popular", headers={"Authorization": f"Bearer {other}"})  # a slip locks nobody out


def test_a_key_that_is_added_while_descriptors_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file can't be opened then: the keys so far stay valid, and the new one is as soon as it can be read."""
    file, access = tmp_path / "access.toml", KeyFile.new()
    first = {b"authorization": f"Bearer {access.add('first', ['read'])}".encode()}
    access.write(file)
    monkeypatch.setattr("unbasket.service.auth._LOOK_AGAIN", 0.0)
    auth = Authenticator.load(file)
    second = {b"authorization": f"Bearer {access.add('second', ['read'])}".encode()}
    access.write(file)
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


def test_without_keys_everybody_is_an_admin_but_a_shopper_is_not(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        token = service("POST", "/v1/tokens", 201, json={"user": "ann"})["token"]
        headers = {"Authorization": f"Bearer {token}"}
        assert service("GET", "/v1/users/ann", headers=headers)["user"] == "ann"
        assert service.code("GET", "/v1/users/bob", 403, headers=headers) == "forbidden"
        assert service.code("GET", "/v1/users/bob", 401, headers={"Authorization": "Bearer x"}) == "unauthenticated"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.1.evil"])
def test_without_keys_other_names_are_refused(tmp_path: Path, host: str) -> None:
    """A web page elsewhere may let its name point to this machine, and would be an admin."""
    with serving(make_shop(tmp_path / "shop.db")) as service:
        assert service.code("GET", "/v1/stats", 403, headers={"Host": host}) == "wrong_host"
        for here in ("localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]:8000", "127.1.2.3"):
            service("GET", "/v1/popular", headers={"Host": here})


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
def test_without_keys_pages_of_other_sites_are_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    """A form of theirs needs nobody's consent to send a POST without a body."""
    with serving(make_shop(tmp_path / "shop.db")) as service:
        path, host = "/v1/users/ann/verify", {"Host": "localhost"}
        assert service.code("POST", path, 403, headers=host | headers) == "cross_site"
        for own in ({"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}, {"Sec-Fetch-Site": "none"}, {}):
            assert service("POST", path, headers=host | own)["ok"]


def test_with_keys_the_key_tells_who_asks(guarded: Guarded) -> None:
    """Behind a proxy, the page's own origin is not the service's."""
    headers = {"Authorization": f"Bearer {guarded.keys['privacy']}", "Origin": "https://shop.example"}
    assert guarded.service.client.post("/v1/users/ann/verify", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/docs/", "/static/", "/openapi.json/", "/static/main.js/"])
def test_nobody_is_sent_elsewhere(guarded: Guarded, path: str) -> None:
    response = guarded.service.client.get(path, headers={"Host": "evil.example"})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
    assert "location" not in response.headers
