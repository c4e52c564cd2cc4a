"""The key file."""

import json
import os
import stat
from pathlib import Path

import pytest
from tests.cli.running import error, run

from unbasket.errors import AccessError
from unbasket.service.api_keys import KeyFile
from unbasket.service.auth import Authenticator


def test_the_command_line_manages_hashed_keys(db: Path) -> None:
    key = run("keys", "add", "till", "--role", "write", "--role", "read", "--db", db).strip()
    file = db.with_name("shop.db-access.toml")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key.rpartition("_")[2] not in file.read_text()
    assert json.loads(run("keys", "list", "--db", db, "--json")) == [{"name": "till", "roles": ["write", "read"]}]
    assert "already" in error("keys", "add", "till", "--role", "read", "--db", db)
    run("keys", "remove", "till", "--access", file)
    assert json.loads(run("keys", "list", "--db", db, "--json")) == []
    assert "no key 'till'" in error("keys", "remove", "till", "--db", db)
    assert [path.name for path in db.parent.iterdir()] == [file.name]


def test_keys_are_hashed_in_a_private_file(tmp_path: Path) -> None:
    keys, file = KeyFile.new(), tmp_path / "access.toml"
    key = keys.add("shop-1", ["read", "write"])
    keys.write(file)
    text = file.read_text()
    assert key not in text
    assert key.rpartition("_")[2] not in text
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["access.toml"]
    caller = Authenticator(file).identify({"Authorization": f"Bearer {key}"})
    assert caller.name == "key shop-1"
    assert sorted(caller.grants) == ["read", "write"]


def test_invalid_key_files_and_names(tmp_path: Path) -> None:
    keys, file = KeyFile.new(), tmp_path / "access.toml"
    keys.add("a", ["read"])
    for name in ("a", "", "a_b", 'x"', "a" * 65):
        with pytest.raises(AccessError):
            keys.add(name, ["read"])
    with pytest.raises(AccessError):
        keys.add("b", [])
    with pytest.raises(AccessError):
        keys.remove("b")
    with pytest.raises(AccessError):
        keys.write(tmp_path / "missing" / "access.toml")
    for content in (b"\xff", b"secret = 1", b"[[", b"key = []", b"secret = 'zz'"):
        file.write_bytes(content)
        with pytest.raises(AccessError):
            Authenticator(file)
