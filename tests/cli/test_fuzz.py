"""Corrupted files, given to every command that reads one: a scenario that crosses all commands.

With any file, a command succeeds or answers in one line, with exit code 2 and no files left behind; no traceback, and
no control characters. The seeds are fixed: a case that fails once fails again.
"""

import gzip
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import polars as pl
import pytest
from tests.cli.running import is_plain, run
from typer.testing import CliRunner

from unbasket.cli import app

SALES = "user,basket,item,time,quantity\n" + "".join(
    f"u{n % 5},{n // 2},{n % 7},2026-05-{n % 28 + 1:02},{n % 4 - 1}\n" for n in range(40)
)
ROWS = [
    {"user": n % 5, "basket": f"b{n}", "item": [n % 7, 8 + n % 3], "time": 1_777_593_600 + n, "quantity": 1}
    for n in range(20)
]
LEARNS = [{"event": "learn", "user": n % 5, "basket": n, "items": [n % 7, "x"], "time": n} for n in range(15)]
EVENTS = [*LEARNS, *({"event": "forget", "user": n, "item": n} for n in range(5))]
RULES = """time_unit = "s"

[[rule]]
name = "old"
older_than_days = 730
keep_last_baskets = 2

[[rule]]
name = "alcohol"
category = ["Alcohol"]
users = ["u1", "u2"]
"""
SETTINGS = 'db = "shop.db"\nhost = "127.0.0.1"\nthreads = 4\nrate = 2.5\ntimeout = 30\n'


def lines(records: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def parquet(records: list[dict[str, object]]) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(records).write_parquet(buffer)
    return buffer.getvalue()


class Target(NamedTuple):
    """A command, with `{}` for the corrupted file, and intact files by their names."""

    line: str
    files: dict[str, bytes]
    codes: tuple[int, ...] = (0, 2)
    creates: bool = False


PURCHASES = {
    "sales.csv": SALES.encode(),
    "sales.csv.gz": gzip.compress(SALES.encode(), mtime=0),
    "sales.ndjson": lines(ROWS),
    "sales.parquet": parquet(ROWS),
}
NAMES: list[dict[str, object]] = [{"item": n, "name": f"Item {n}", "category": "Alcohol"} for n in range(7)]
TARGETS = {
    "import": Target("import {} --db new.db", PURCHASES, creates=True),
    "import-options": Target(
        "import {} --db new.db --quantity quantity --skip-bad --time-format %Y-%m-%d", PURCHASES, creates=True
    ),
    "import-events": Target("import {} --db new.db", {"events.ndjson": lines(EVENTS)}, creates=True),
    "import-skipping": Target("import {} --db shop.db --skip-bad", {"events.ndjson": lines(EVENTS)}),
    "items": Target(
        "items {} --db shop.db",
        {
            "items.csv": b"item,name,category\n1,Milk,Dairy\n2,Wine,Alcohol\n9,Gin,Alcohol\n",
            "items.ndjson": lines(NAMES),
            "items.parquet": parquet(NAMES),
        },
    ),
    "forget": Target("forget --file {} --db shop.db", {"requests.csv": b'user,basket,item\nu1,,\nu2,3,\n"u3",,4\n'}),
    "retain": Target("retain {} --db shop.db --now 2027-01-01", {"rules.toml": RULES.encode()}),
    "receipts": Target("receipts verify {}", {"receipts.ndjson": b""}, codes=(0, 1, 2)),
    "evaluate": Target("evaluate {} --params neighbors=2", PURCHASES),
    "tune": Target("tune {} --trials 1", {"sales.csv": SALES.encode()}),
    "settings": Target("serve --config {} --port 70000", {"settings.toml": SETTINGS.encode()}),
    "access": Target("keys list --access {} --db shop.db", {"access.toml": b""}),
}

TOKENS = [
    *(b'"', b"\x00", b"\xff", b"\xc3", b"\x1b[31m", b"\xc2\x9b2J", b"\r", b"\n\n", b";", b"\t", b"\xef\xbb\xbf", b"\\"),
    *(b"[" * 20_000, b'{"a":' * 20_000, b"x" * 200_000, b"a." * 20_000, b"," * 5_000, b'"\n' * 50),
    *(b"9" * 30, b"-1", b"1.5", b"1e999", b"NaN", b"null", b"true", b"[]", b"{}", b'""', b"\\ud800"),
    *(b"%d" % (2**63 - 1), b"__row", b"user", b"time", b"event", b"0000-00-00", b"9999-12-31T23:59:60"),
    *("\u202e".encode(), "𝔘".encode(), "\ufeff".encode()),
]


def insert(data: bytes, random: Random) -> bytes:
    place = random.randint(0, len(data))
    return data[:place] + random.choice(TOKENS) + data[place:]


def overwrite(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data) or 1)
    return data[:place] + bytes([random.randrange(256)]) + data[place + 1 :]


def cut(data: bytes, random: Random) -> bytes:
    start, stop = sorted(random.randint(0, len(data)) for _ in range(2))
    return data[:start] + data[stop:]


def repeat(data: bytes, random: Random) -> bytes:
    start, stop = sorted(random.randint(0, len(data)) for _ in range(2))
    return data[:stop] + data[start:stop] * random.randint(1, 3) + data[stop:]


def truncate(data: bytes, random: Random) -> bytes:
    return data[: random.randint(0, len(data))]


def shuffle(data: bytes, random: Random) -> bytes:
    parts = data.splitlines(keepends=True)
    random.shuffle(parts)
    return b"".join(parts)


def replace_value(data: bytes, random: Random) -> bytes:
    """Replace one value, which mostly keeps the format intact."""
    delimiter = random.choice((b",", b"\n", b": ", b" = "))
    parts = data.split(delimiter)
    parts[random.randrange(len(parts))] = random.choice(TOKENS)
    return delimiter.join(parts)


MUTATIONS: list[Callable[[bytes, Random], bytes]] = [
    *(insert, insert, overwrite, cut, repeat, truncate, shuffle, replace_value, replace_value)
]


def corrupted(data: bytes, random: Random) -> bytes:
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = random.choice(MUTATIONS)(data, random)
    return data


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a shop, its receipts and its keys."""
    folder = tmp_path_factory.mktemp("shop")
    run("import", "-", "--db", folder / "shop.db", stdin=SALES)
    run("forget", "u4", "--db", folder / "shop.db")
    run("forget", "u0", "--item", 1, "--db", folder / "shop.db")
    run("receipts", "export", folder / "receipts.ndjson", "--db", folder / "shop.db")
    run("keys", "add", "website", "--role", "read", "--access", folder / "access.toml", "--db", folder / "shop.db")
    return folder


def attack(target: Target, shop: Path, folder: Path, random: Random, captured: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(shop, folder)
    name = random.choice(sorted(target.files))
    data = target.files[name] or (shop / name).read_bytes()
    if name.endswith(".gz") and random.random() < 0.7:  # else every change would only corrupt the compression
        data = gzip.compress(corrupted(gzip.decompress(data), random), mtime=0)
    else:
        data = corrupted(data, random)
    (folder / name).write_bytes(data)
    before = sorted(folder.iterdir())
    os.chdir(folder)
    result = CliRunner().invoke(app, target.line.format(name).split())
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in target.codes
    assert is_plain(result.stdout), result.stdout
    assert is_plain(result.stderr), result.stderr
    beside_python = captured.readouterr()
    assert beside_python == ("", "") or name.endswith(".parquet")  # for which Polars prints the damage first, at length
    if result.exit_code == 2:
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert len(result.stderr) < 1100
        assert not target.creates or sorted(folder.iterdir()) == before
    shutil.rmtree(folder)


def attack_often(
    name: str, times: int, shop: Path, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for number in range(times):
        seed = f"{name} {number}"
        try:
            attack(TARGETS[name], shop, folder / "case", Random(seed), capfd)
        except BaseException as error:
            error.add_note(f"seed {seed!r}; the file is in {folder / 'case'}")
            raise


@pytest.mark.parametrize("name", TARGETS)
def test_corrupted_files(
    name: str, shop: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attack_often(name, 30, shop, tmp_path, capfd, monkeypatch)


VALUES = ["", " ", "%", "%Q", "%s", "%H:%M", "\x00", "\x1b[31m", "\udcff", "x" * 5000, "[red]", "__row", "time", "user"]


@pytest.mark.parametrize("option", ["user", "basket", "item", "time", "time-format", "quantity", "separator"])
def test_strange_options(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sales.csv").write_text(SALES, encoding="utf-8")
    for value in VALUES:
        result = CliRunner().invoke(app, ["import", "sales.csv", "--db", "new.db", f"--{option}", value])
        assert result.exception is None or isinstance(result.exception, SystemExit), (value, repr(result.exception))
        assert is_plain(result.output)
        if result.exit_code != 0:
            assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
            assert [file.name for file in tmp_path.iterdir()] == ["sales.csv"]
        for file in tmp_path.glob("new.db*"):
            file.unlink()


def test_a_database_is_not_a_folder(tmp_path: Path) -> None:
    for command in (["history", "x"], ["import", "-"], ["forget", "x"], ["keys", "list"]):
        for name in ("", str(tmp_path)):
            result = CliRunner().invoke(app, [*command, "--db", name], input=SALES)
            assert (result.exit_code, result.stdout) == (2, "")
            assert "Invalid value for '--db'" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_many_corrupted_files(
    name: str, shop: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attack_often(name, 400, shop, tmp_path, capfd, monkeypatch)
