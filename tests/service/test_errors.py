"""Errors over HTTP."""

import re
from pathlib import Path

import pytest
from tests.service.serving import make_shop, serving

import unbasket as ub
from unbasket.service.errors import CODES
from unbasket.store import DurableRecommender
from unbasket.store.wal import Wal

DOCS = Path(__file__).parents[2] / "docs" / "http.md"


def test_every_code_is_documented() -> None:
    text = DOCS.read_text()
    for code, (status, *_) in CODES.items():
        assert re.search(rf"\| {status} \|[^|]*`{code}`", text), code


def test_a_bug_is_a_500_without_details(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        monkeypatch.setattr(DurableRecommender, "popular", lambda *_: [][1])
        response = service("GET", "/v1/popular", 500)
        assert response["error"] == {"code": "internal", "message": "the service had an error, which its log describes"}
        assert service("GET", "/v1/users/ann/recommendations")["user"] == "ann"


def test_a_failed_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome is unknown, and the response says so; later writes are rejected."""
    with serving(make_shop(tmp_path / "shop.db")) as service:

        def fail(_: Wal) -> None:
            raise OSError(5, "no room left on device")  # EIO, not ENOSPC

        with monkeypatch.context() as patch:
            patch.setattr(Wal, "sync", fail)
            response = service("DELETE", "/v1/users/ann", 500)["error"]
        assert response["code"] == "uncertain"
        assert "it may have happened, or not" in response["message"]
        assert "nothing was changed" not in response["message"]
        assert service.code("DELETE", "/v1/users/bob", 503) == "store_failed"
    with ub.open(tmp_path / "shop.db", read_only=True) as rec:
        assert "bob" in rec


def test_a_full_disk(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path / "shop.db")) as service:
        execute = service.engine._journal._database._connection.execute
        pages = execute("PRAGMA page_count").fetchone()[0]
        execute(f"PRAGMA max_page_count = {pages}")
        body = {"items": [f"{number:0200}" for number in range(500)]}
        response = service("PUT", "/v1/users/ann/baskets/9", 507, json=body)
        assert response["error"]["code"] == "disk_full"
        assert str(tmp_path) not in response["error"]["message"]
        assert len(service("GET", "/v1/users/ann")["baskets"]) == 2
        execute("PRAGMA max_page_count = 1000000")
        service("PUT", "/v1/users/ann/baskets/9", json=body)
