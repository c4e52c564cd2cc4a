"""Fuzzing with valid, damaged and random requests from a seed, a scenario of the whole service.

No request fails, hangs or leaves a trace: in the end the model equals one trained from the remaining baskets.
"""

import json
import random
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.service.process import memory, running
from tests.service.serving import make_shop

import unbasket as ub
from unbasket.service.errors import CODES
from unbasket.service.routes import ROUTES

FEW, MANY = 400, 100_000
LARGEST = 64 * 1024
DOCUMENTED = {200, 201} | {code.status for code in CODES.values() if code.status < 500}
GROWTH = 64  # MiB

WORDS = ["ann", "bob", "7", "17", '"17"', "-1", "", " ", ".", "..", "%", "%00", "%ff", "%2F", "\u00e9", "[" * 2_000]
WORDS += ["ann", "bob", "milk", "tea", "1", "2"] * 4
WORDS += ["milk", "b/1", "Alcohol", "1e9", "0x1", "null", "true", "9" * 30, "a" * 3_000, "\U0001f600", "{user}", "\x7f"]
METHODS = ["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "BREW"]
ODD = ["Authorization: Bearer x", "Host: evil", "Origin: http://evil", "Expect: x", "X:"]
QUERIES = ["n", "explain", "only_new", "exclude", "only", "category", "cart", "fields", "since"]
QUERIES += ["after", "limit", "prefix", "query", "order", "x", ""]
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**63,
    -(2**63),
    10**40,
    "",
    "tea",
    "\x00",
    "\ud7ff",
    [],
    {},
    [[]],
    ["tea"],
]
FIELDS = ["items", "time", "event", "user", "basket", "item", "forget", "learn", "rules", "run", "seconds", "receipts"]
RULES = ["[[rule]]\nolder_than_days = 1", "[[rule]]\ncategory = 'Alcohol'", "[[rule]]", "a.b.c = 1", "\x00", "["]


class Fuzzer:
    """A generator of random requests, reproducible by its seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def request(self) -> tuple[bytes, bool]:
        """Return a request, and whether it is complete: then there must be a response."""
        make: Callable[[], bytes] = self.chance.choices([self.routed, self.damaged, self.noise], [8, 3, 1])[0]
        return make(), make == self.routed

    def routed(self) -> bytes:
        """Return a request for a route of the table, with valid or invalid values."""
        chance, route = self.chance, self.chance.choice(ROUTES)
        path = route.path
        for name in route.path_params:
            path = path.replace(f"{{{name}}}", quote(chance.choice(WORDS), safe=chance.choice(["", "%/[]{}"])))
        if chance.random() < 0.3:
            pairs = [f"{chance.choice(QUERIES)}={quote(chance.choice(WORDS))}" for _ in range(chance.randint(1, 4))]
            path += "?" + "&".join(pairs)
        method = route.method if chance.random() < 0.9 else chance.choice(METHODS)
        body = self.body(route.name) if route.body is not None or chance.random() < 0.1 else b""
        return self.head(method, path, body) + body

    def head(self, method: str, path: str, body: bytes) -> bytes:
        """Return the head of a request with this body."""
        chance = self.chance
        kind = chance.choices(["application/json", "application/x-ndjson", "text/plain"], [8, 2, 1])[0]
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Type: {kind}"]
        if chance.random() < 0.05:
            lines.append(chance.choice(ODD))
        if body or chance.random() < 0.5:
            lines.append(f"Content-Length: {len(body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogatepass")

    def body(self, name: str) -> bytes:
        """Return a body for the route of this name, for another one, or for none."""
        chance = self.chance
        bodies: dict[str, Callable[[], Any]] = {
            "learn": lambda: {"items": chance.sample(["tea", "milk", 3, "x", None], chance.randint(0, 3))},
            "events": lambda: [self.event() for _ in range(chance.randint(0, 5))],
            "token": lambda: {"user": chance.choice(["ann", 7, ""]), "seconds": chance.choice([1, 600, -1])},
            "retention": lambda: {"rules": chance.choice(RULES), "run": chance.random() < 0.1},
            "set_availability": lambda: {
                "hide": chance.sample(["tea", "milk", 3], 1),
                "show": chance.sample(["x", "rum"], 1),
            },
            "rename": lambda: {"to": chance.choice(["ann", "bob", "guest", 7])},
            "preview": lambda: chance.choice([{"forget": {"item": "milk"}}, {"learn": {"items": ["tea"]}}, {}]),
            "other": lambda: self.value(4),
        }
        fits = name in bodies and chance.random() < 0.7
        value = bodies[name if fits else chance.choice(list(bodies))]()
        if isinstance(value, list) and chance.random() < 0.3:
            return "\n".join(map(json.dumps, value)).encode()
        return json.dumps(value).encode()

    def event(self) -> dict[str, Any]:
        """Return a valid or invalid event."""
        chance = self.chance
        event: dict[str, Any] = {"event": chance.choice(["learn", "forget", "lose"]), "user": chance.choice(["u1", 7])}
        for field in ("basket", "item", "items", "time"):
            if chance.random() < 0.5:
                event[field] = ["tea", "milk"] if field == "items" else chance.choice([1, 2, "x", None, -(2**63)])
        return event

    def value(self, depth: int) -> Any:
        """Return any JSON value."""
        chance = self.chance
        if not depth or chance.random() < 0.4:
            return chance.choice(VALUES)
        if chance.random() < 0.5:
            return [self.value(depth - 1) for _ in range(chance.randint(0, 3))]
        return {chance.choice(FIELDS): self.value(depth - 1) for _ in range(chance.randint(0, 3))}

    def damaged(self) -> bytes:
        """Return a request with some bytes changed, removed or repeated."""
        chance, data = self.chance, bytearray(self.routed())
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(data))
            end = min(len(data), start + chance.randint(1, 20))
            cut = data[start:end]
            changed = [b"", cut * chance.randint(2, 50), chance.randbytes(len(cut)), b"\r\n", b"\x00"]
            data[start:end] = chance.choice(changed)
            if not data:
                break
        return bytes(data[:LARGEST])

    def noise(self) -> bytes:
        """Return random bytes."""
        return self.chance.randbytes(self.chance.randint(0, 2_000))


def sent(port: int, data: bytes, is_complete: bool) -> list[int]:
    """Send bytes, and return the status of each response. An incomplete request is half-closed, so it ends too."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        found = b""
        try:
            connection.sendall(data)
            if not is_complete:
                connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                found += chunk
        except OSError:  # the service has closed or reset the connection
            pass
    return [int(line.split(b" ", 2)[1]) for line in found.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_random_requests(tmp_path: Path, count: int) -> None:
    db, fuzzer = make_shop(tmp_path / "shop.db"), Fuzzer(seed=count)
    statuses: Counter[int] = Counter()
    with running(db) as service:
        for _ in range(FEW // 4):  # warm up
            sent(service.port, *fuzzer.request())
        before = memory(service)
        for _ in range(count):
            data, is_complete = fuzzer.request()
            received = sent(service.port, data, is_complete)
            assert DOCUMENTED.issuperset(received), data
            assert received or not is_complete, data
            statuses.update(received)
        assert memory(service) < before + GROWTH
        assert service.ask("GET", "/healthz")[0] == 200
        assert service.stop() == 0
    assert not [line for line in service.lines() if line["level"] == "error"]
    assert {200, 400, 404, 405} <= statuses.keys()
    assert statuses[200] > count // 10
    _check_model(db)


def _check_model(db: Path) -> None:
    """Check that the model equals one trained from the remaining baskets."""
    with ub.open(db, read_only=True) as rec:
        assert rec.verify().ok
        fresh = ub.Recommender(rec.params, salt=rec.salt)
        for user in rec.users():
            for basket in rec.history(user):
                fresh.learn(user, basket.items, basket=basket.basket, time=basket.time)
            for item in rec.suppressed(user):
                fresh.suppress(user, item)
        fresh.hide(rec.hidden())
        assert fresh.digest() == rec.digest()
        assert {user: rec.recommend(user, 20) for user in rec.users()} == {
            user: fresh.recommend(user, 20) for user in fresh.users()
        }
