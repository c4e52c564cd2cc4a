"""Examples for OpenAPI: a request to every route and its response, in a small shop. A test sends each of them."""

from typing import Any

import msgspec


class Example(msgspec.Struct, frozen=True):
    """The response to a request, and the request: path and query parameters, and a body."""

    response: Any
    path: dict[str, str] = msgspec.field(default_factory=dict)
    query: dict[str, Any] = msgspec.field(default_factory=dict)
    body: Any = None


_RECEIPT = {
    "number": 1,
    "request": "5d255a884b8d89c14cc38aa62cf749cd",
    "time": "2026-05-04T09:15:42.224+00:00",
    "scope": "item",
    "subject": "cc63733512f72f1a6fd08e8b25ed57ca",
    "purchases": 1,
    "baskets": 0,
    "users": 0,
    "before": "5973b489d2e9fd90bc30ddf9693f9032036be0038a70ae4db0d4c566ba22f856",
    "after": "a6cc8badac7162aebe2b09e5341ebe3e62b8d26dc875ea2df3aca1274e891579",
    "verified": True,
    "detail": "",
    "previous": "0000000000000000000000000000000000000000000000000000000000000000",
    "key": "c933a9df2a6217f2281198aa443c464c86b0a515760400460860be48e5fbea30",
    "signature": "552f748739cef6fd6bc4cb5b07ca943174169b9ac84872b9ef1fc5176e5eb809"
    "a7964b3154eecc4d1c1ecf933d3d206bb477f96232eacb6b502d9004b439e10c",
}
_SECRET = "0dc2f8a2ba8aa0b1ba4e3ae0a31eb1a7b9dd1ef39e3aa9a0b84bf7fc1b7bd85d"
_CHECKPOINT = """\
unbasket.local/5c0b64f1d8a7e230
1
W64JrZTmDWUSNPXMUFA4zGo6EQiVLtmC2mmM6nDpCTo=
users 9f8be2cf3fb1b3f9a7ff6f64e2a5dbb8a3a5b7bf0b4ef1c5c7d2a1d44b5a3c91
time 2026-05-04T09:15:43+00:00
key c933a9df2a6217f2281198aa443c464c86b0a515760400460860be48e5fbea30

— unbasket.local/5c0b64f1d8a7e230 \
0tF0oSLNtxkC4i5sAvUQYPe5GVYIrtPKdELdSyJcTUWhDP8oYM5yuI7yZ+TyOiXPHO4B2CA7KpY9+UMObV6hqZJ1bwY=
"""
_PROOF = {"format": "unbasket proof", "version": 1, "checkpoint": _CHECKPOINT, "keys": []}
_PATH = {
    "params": "7b1a36e0d0b8bbf4e6f9f0dd5a0ee5c6e74d9f3c3c27a0b9ad3bcf1d6df5a0a2",
    "others": [],
    "siblings": ["f0e39b9c5d7a8d08dc1e6df4a6a3f55c7b26b8b16a0a44e0a5c6f3f0a2c9de11", *[None] * 47],
}

EXAMPLES = {
    "PUT /v1/users/{user}/baskets/{basket}": Example(
        {"result": "added", "basket": 3},
        path={"user": "ann", "basket": "3"},
        body={"items": ["milk", "tea"], "time": "2026-05-01T18:30:00Z"},
    ),
    "POST /v1/users/{user}/baskets": Example(
        {"result": "added", "basket": 2266969527319189},
        path={"user": "ann"},
        body={"items": ["milk", "tea"], "time": 1777660200},
    ),
    "POST /v1/events": Example(
        {"results": [{"result": "added"}, {"receipt": _RECEIPT | {"number": 2}, "secret": _SECRET}], "seconds": 0.0045},
        body=[
            {"event": "learn", "user": "ann", "basket": 3, "items": ["milk", "tea"], "time": 1777660200},
            {"event": "forget", "user": "ann", "item": "wine"},
        ],
    ),
    "DELETE /v1/users/{user}": Example(
        {
            "removed": {"purchases": 5, "baskets": 2, "users": 1},
            "receipt": _RECEIPT | {"number": 2, "scope": "user", "purchases": 5, "baskets": 2, "users": 1},
            "secret": _SECRET,
            "seconds": 0.01,
        },
        path={"user": "ann"},
    ),
    "DELETE /v1/users/{user}/baskets/{basket}": Example(
        {
            "removed": {"purchases": 3, "baskets": 1, "users": 0},
            "receipt": _RECEIPT | {"number": 2, "scope": "basket", "purchases": 3, "baskets": 1},
            "secret": _SECRET,
            "seconds": 0.0024,
        },
        path={"user": "ann", "basket": "2"},
    ),
    "DELETE /v1/users/{user}/baskets/{basket}/items/{item}": Example(
        {
            "removed": {"purchases": 1, "baskets": 0, "users": 0},
            "receipt": _RECEIPT | {"number": 2, "scope": "item of a basket"},
            "secret": _SECRET,
            "seconds": 0.0058,
        },
        path={"user": "ann", "basket": "2", "item": "wine"},
    ),
    "DELETE /v1/users/{user}/items/{item}": Example(
        {
            "removed": {"purchases": 1, "baskets": 0, "users": 0},
            "receipt": _RECEIPT | {"number": 2},
            "secret": _SECRET,
            "seconds": 0.0025,
        },
        path={"user": "ann", "item": "wine"},
    ),
    "DELETE /v1/users/{user}/categories/{category}": Example(
        {
            "removed": {"purchases": 2, "baskets": 0, "users": 0},
            "receipts": [_RECEIPT | {"number": 2}, _RECEIPT | {"number": 3}],
            "secrets": [_SECRET, _SECRET],
            "seconds": 0.0327,
        },
        path={"user": "ann", "category": "Alcohol"},
    ),
    "GET /v1/users/{user}/recommendations": Example(
        {
            "user": "ann",
            "popular": False,
            "recommendations": [
                {"item": "milk", "score": 0.7922, "name": "Oat milk", "category": "Dairy"},
                {"item": "wine", "score": 0.3646, "name": "Red wine", "category": "Alcohol"},
            ],
        },
        path={"user": "ann"},
        query={"n": 2, "exclude": ["gin"], "cart": ["tea"]},
    ),
    "POST /v1/recommendations": Example(
        {
            "popular": False,
            "recommendations": [
                {"item": "milk", "score": 0.741, "name": "Oat milk", "category": "Dairy"},
                {"item": "bread", "score": 0.2928, "name": "Rye bread", "category": "Bakery"},
            ],
        },
        body={"baskets": [["milk", "bread"], ["milk"]], "cart": ["tea"], "n": 2},
    ),
    "POST /v1/users/{user}/preview": Example(
        {
            "before": [
                {"item": "milk", "score": 1.0253, "name": "Oat milk", "category": "Dairy"},
                {"item": "wine", "score": 0.5101, "name": "Red wine", "category": "Alcohol"},
            ],
            "after": [
                {"item": "milk", "score": 1.0253, "name": "Oat milk", "category": "Dairy"},
                {"item": "bread", "score": 0.3704, "name": "Rye bread", "category": "Bakery"},
            ],
            "popular_before": False,
            "popular_after": False,
        },
        path={"user": "ann"},
        query={"n": 2},
        body={"forget": {"category": "Alcohol"}},
    ),
    "GET /v1/users/{user}/explanations/{item}": Example(
        {
            "item": "wine",
            "score": 0.5101,
            "baskets": [{"basket": 2, "time": 20, "share": 0.4029}],
            "neighbors_share": 0.1071,
            "neighbors_with_item": 1,
            "neighbors": 2,
            "weight": 0.5128,
            "alpha": 0.7857,
            "factor": 1.0,
            "name": "Red wine",
            "category": "Alcohol",
        },
        path={"user": "ann", "item": "wine"},
    ),
    "GET /v1/users/{user}": Example(
        {
            "format": "unbasket user",
            "version": 1,
            "user": "ann",
            "baskets": [
                {
                    "basket": 1,
                    "time": 10,
                    "items": [
                        {"item": "bread", "name": "Rye bread", "category": "Bakery"},
                        {"item": "milk", "name": "Oat milk", "category": "Dairy"},
                    ],
                },
                {
                    "basket": 2,
                    "time": 20,
                    "items": [
                        {"item": "gin", "name": "Gin", "category": "Alcohol"},
                        {"item": "milk", "name": "Oat milk", "category": "Dairy"},
                        {"item": "wine", "name": "Red wine", "category": "Alcohol"},
                    ],
                },
            ],
            "suppressed": [],
            "proof": _PROOF
            | _PATH
            | {
                "kind": "access",
                "user": "ann",
                "baskets": [
                    {"basket": 1, "time": 10, "opens": False, "items": ["milk", "bread"]},
                    {"basket": 2, "time": 20, "opens": False, "items": ["milk", "wine", "gin"]},
                ],
                "suppressed": [],
                "nonce": "3a3b4f0cf4a9b1c5ddf3f2ad1d3f6f2d35a2a5b9a6ecb6b7c2ce01c7f9e0d4b8",
            },
        },
        path={"user": "ann"},
    ),
    "GET /v1/users/{user}/absence": Example(
        _PROOF | _PATH | {"kind": "absence", "user": "zoe"},
        path={"user": "zoe"},
    ),
    "POST /v1/users/{user}/rename": Example(
        {
            "user": "ann",
            "purchases": 1,
            "baskets": 1,
            "receipt": _RECEIPT | {"number": 2, "scope": "id", "purchases": 0, "users": 1},
            "secret": _SECRET,
            "seconds": 0.0244,
        },
        path={"user": "bob"},
        body={"to": "ann"},
    ),
    "PUT /v1/users/{user}/suppressed/{item}": Example(
        {"item": "wine", "suppressed": True, "changed": True},
        path={"user": "ann", "item": "wine"},
    ),
    "DELETE /v1/users/{user}/suppressed/{item}": Example(
        {"item": "wine", "suppressed": False, "changed": False},
        path={"user": "ann", "item": "wine"},
    ),
    "GET /v1/users/{user}/similar": Example(
        {"user": "ann", "similar": [{"user": "7", "distance": 0.8522}, {"user": "bob", "distance": 0.8522}]},
        path={"user": "ann"},
        query={"n": 2},
    ),
    "POST /v1/users/{user}/verify": Example(
        {"ok": True, "users": 1, "mismatches": []},
        path={"user": "ann"},
    ),
    "GET /v1/users": Example(
        {"users": ["7", "ann"], "next": "ann"},
        query={"prefix": "", "limit": 2},
    ),
    "GET /v1/items": Example(
        {"items": [{"item": "milk", "name": "Oat milk", "category": "Dairy"}], "next": None},
        query={"query": "milk"},
    ),
    "GET /v1/items/availability": Example(
        {"hidden": ["tea"], "next": None},
    ),
    "POST /v1/items/availability": Example(
        {"hidden": 1, "shown": 1},
        body={"hide": ["gin"], "show": ["tea"]},
    ),
    "GET /v1/categories": Example(
        {
            "categories": [
                {"category": "Alcohol", "items": 2},
                {"category": "Bakery", "items": 1},
                {"category": "Dairy", "items": 1},
            ]
        },
    ),
    "GET /v1/popular": Example(
        {
            "items": [
                {"item": "bread", "baskets": 2, "name": "Rye bread", "category": "Bakery"},
                {"item": "wine", "baskets": 2, "name": "Red wine", "category": "Alcohol"},
            ]
        },
        query={"n": 2, "exclude": ["milk"]},
    ),
    "GET /v1/receipts": Example(
        {"receipts": [_RECEIPT], "seconds": [0.0414], "next": None},
        query={"order": "newest", "limit": 1},
    ),
    "GET /v1/receipts/{number}": Example(
        _RECEIPT,
        path={"number": "1"},
    ),
    "GET /v1/receipts/{number}/proof": Example(
        _PROOF | {"kind": "receipt", "receipt": _RECEIPT, "inclusion": []},
        path={"number": "1"},
    ),
    "GET /v1/checkpoint": Example(_CHECKPOINT),
    "POST /v1/receipts/verify": Example(
        {
            "ok": True,
            "receipts": 1,
            "keys": ["c933a9df2a6217f2281198aa443c464c86b0a515760400460860be48e5fbea30"],
            "faults": [],
            "chained": [[1, 1]],
            "missing": [],
            "warnings": [],
            "summary": "Signatures valid, receipt 1 stands alone.",
        },
    ),
    "POST /v1/proofs/verify": Example(
        {"ok": False, "summary": "this is not a proof that this program knows"},
        body={"text": '{"format": "a letter"}'},
    ),
    "POST /v1/retention": Example(
        {
            "done": False,
            "rules": [{"name": "no alcohol", "users": 2, "baskets": 2, "purchases": 3, "warnings": []}],
            "forgotten": {"purchases": 3, "baskets": 0, "users": 0},
            "share": 0.3,
            "receipts": 0,
            "seconds": 0.0144,
        },
        body={"rules": "[[rule]]\nname = 'no alcohol'\ncategory = 'Alcohol'\n", "run": False},
    ),
    "GET /v1/params": Example(
        {
            "group_size": 1,
            "basket_decay": 0.98,
            "group_decay": 0.95,
            "neighbors": 2,
            "alpha": "learned",
            "repurchase": 1.5,
            "grouping": "fixed",
            "pool": None,
            "pool_seed": None,
        },
    ),
    "PUT /v1/params": Example(
        {
            "group_size": 1,
            "basket_decay": 0.98,
            "group_decay": 0.95,
            "neighbors": 100,
            "alpha": "learned",
            "repurchase": 1.5,
            "grouping": "fixed",
            "pool": None,
            "pool_seed": None,
        },
        body={"neighbors": 100},
    ),
    "GET /v1/learned": Example(
        {"learned": True, "alpha": 0.7857, "users": 1, "most": [], "least": []},
    ),
    "GET /v1/ids": Example(
        {"user": "text", "basket": "number", "item": "text"},
    ),
    "PUT /v1/ids": Example(
        {"user": "text", "basket": "text", "item": "text"},
        body={"basket": "text"},
    ),
    "GET /v1/stats": Example(
        {
            "uptime": 86400.5,
            "memory": 198406144,
            "users": 4,
            "baskets": 5,
            "items": 5,
            "purchases": 10,
            "entries": 9,
            "learned": 0,
            "forgotten": 0,
            "events_per_second": 0.0,
            "recommendations_per_second": 0,
            "calls": {
                "GET /v1/users/{user}/recommendations": {
                    "count": 3000,
                    "rate": 50.0,
                    "p50": 0.0004,
                    "p90": 0.0008,
                    "p99": 0.0015,
                }
            },
            "buckets": [
                {
                    "recommendations_per_second": 50.0,
                    "events_per_second": 2.0,
                    "p50": 0.0004,
                    "p90": 0.0008,
                    "p99": 0.0015,
                }
            ],
            "params": {
                "group_size": 1,
                "basket_decay": 0.98,
                "group_decay": 0.95,
                "neighbors": 2,
                "alpha": "learned",
                "repurchase": 1.5,
                "grouping": "fixed",
                "pool": None,
                "pool_seed": None,
            },
        },
    ),
    "GET /v1/me": Example(
        {"key": "back-office", "shopper": None, "roles": ["admin", "privacy", "read", "write"]},
    ),
    "POST /v1/tokens": Example(
        {
            "token": "v2.eyJ1c2VyIjoiYW5uIiwiZXhwaXJlcyI6MTc5NTAxMTc1OSwicHJlc2VuY2UiOlsiMDMyNzU4ZWUyMzE2ZmY1YmQ"
            "4ZTJiMzgwMWY0OGQ0MzMiLDFdfQ.xe39DwoxkI9uyqC5JfVFfRxTyXtp63vC0nuEpgd5eB4",
            "user": "ann",
            "expires": 1777011759,
        },
        body={"user": "ann", "seconds": 600},
    ),
    "GET /healthz": Example(
        {"ok": True},
    ),
    "GET /readyz": Example(
        {"ready": True, "stage": "ready", "progress": [0, 0]},
    ),
    "GET /metrics": Example(
        "# HELP unbasket_users Users stored\n# TYPE unbasket_users gauge\nunbasket_users 4.0\n",
    ),
}
"""An example of each route, by method and path. Hashes, tokens and seconds differ from request to request."""
