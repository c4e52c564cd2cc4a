"""Output on a terminal: names without control characters, errors in one line, progress bars."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from tests.cli.running import PROGRAM, error, is_plain, run
from tests.limits import FEW_FILES, NO_THREADS
from typer.testing import CliRunner

import unbasket as ub
from unbasket.cli._shared.terminal import command, complain, to_json
from unbasket.errors import UnbasketError

RED, ERASE, RTL = "\x1b[31m", "\x9b2J", "\u202e"
EVIL = f"milk{RED}{ERASE}{RTL}\ufeff\U000e0041\r\x07\nError: forged"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    events = [{"event": "learn", "user": f"ann{EVIL}", "basket": f"1{EVIL}", "items": [EVIL, "tea"]}]
    run("import", "-", "--db", tmp_path / "shop.db", stdin="".join(json.dumps(event) + "\n" for event in events))
    names = tmp_path / "items.ndjson"
    names.write_text(json.dumps({"item": "tea", "name": f"Tea{EVIL}", "category": EVIL}) + "\n")
    run("items", names, "--db", tmp_path / "shop.db")
    return tmp_path / "shop.db"


COMMANDS = [["recommend"], ["recommend", "--explain"], ["history"], ["learn", EVIL, "--basket", EVIL], ["export"]]


@pytest.mark.parametrize("line", [*COMMANDS, ["recommend", "--json"], ["history", "--json"], ["forget", "--json"]])
def test_control_characters_are_shown_as_such(db: Path, line: list[str]) -> None:
    printed = run(line[0], f"ann{EVIL}", *line[1:], "--db", db)
    assert is_plain(printed)
    assert "forged" in printed or line[0] == "forget"
    assert "\nError: forged" not in printed


def test_json_keeps_control_characters_escaped(db: Path) -> None:
    assert json.loads(run("export", f"ann{EVIL}", "--db", db))["user"] == f"ann{EVIL}"
    assert json.loads(to_json([EVIL])) == [EVIL]


def test_control_characters_in_errors(db: Path, tmp_path: Path) -> None:
    assert is_plain(error("history", EVIL, "--db", db))
    assert is_plain(error("history", "ann", "--db", tmp_path / f"shop{RED}.db"))
    assert is_plain(error("import", "-", "--db", db, stdin=f"user,basket,item{RED}\n1,2,3\n"))
    assert is_plain(error("import", "-", "--db", db, stdin=f"user,basket,item\n{EVIL},,\n"))


@pytest.mark.parametrize(
    "line", [["learn", "ann", "tea", "--basket", "9"], ["forget", "ann"], ["params", "--set", "neighbors=3"]]
)
def test_errors_give_no_advice_for_python(db: Path, line: list[str]) -> None:
    with ub.open(db):
        said = error(*line, "--db", db)
    assert said.endswith(f"(process {os.getpid()}). Close it there or, if that is a service, ask the service\n")


def test_names_of_all_languages_stay_as_they_are(db: Path) -> None:
    for name in ("Crème brûlée", "牛乳", "शक्‍ति", "👩‍🌾", "1\xa0l"):
        assert name in run("learn", "bob", name, "--basket", 1, "--db", db)


def test_a_terminal_that_knows_ascii_only(db: Path) -> None:
    run("learn", "bob", "Crème brûlée", "--basket", 1, "--db", db)
    done = subprocess.run(
        [*PROGRAM, "history", "bob", "--db", str(db)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"Cr\xe8me br\xfbl\xe9e" in done.stdout


def test_an_error_is_no_longer_than_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    complain("x" * 100_000)
    assert len(capsys.readouterr().err) < 1100


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (MemoryError(), "Error: there is not enough memory for this. Close other programs, or use a larger machine\n"),
        (OSError(28, "No space left on device", "/data/shop.db"), "Error: /data/shop.db: No space left on device\n"),
        (OSError("the disk is gone"), "Error: the disk is gone\n"),
        (UnbasketError("bad input"), "Error: bad input\n"),
    ],
)
def test_a_command_answers_in_one_line(problem: Exception, line: str) -> None:
    app = typer.Typer()

    def fail() -> None:
        raise problem

    app.command()(command(fail))
    result = CliRunner().invoke(app, [])
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", line)


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        command(lambda: divmod(1, 0) and None)()


def test_too_little_memory(tmp_path: Path) -> None:
    """Python runs out of memory while it reads a table."""
    code = (
        "import resource, sys\n"
        "import unbasket.cli.commands.import_  # what the command needs is there\n"
        "from unbasket.cli import app\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 64 * 2**20,) * 2)\n"
        "app()"
    )
    (tmp_path / "e.ndjson").write_text('{"event": "learn", "user": 1, "basket": 2, "items": [%s]}' % ("7," * 10**7))
    done = subprocess.run(
        [sys.executable, "-c", code, "import", str(tmp_path / "e.ndjson"), "--db", str(tmp_path / "shop.db")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: there is not enough memory for this")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "shop.db").exists()


def limited(limits: str, *line: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process with limits."""
    code = f"import unbasket.cli.commands.import_\nfrom unbasket.cli import app\n{limits}\napp()"
    command = [sys.executable, "-c", code, *map(str, line)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


LINES = [
    ["history", "ann"],
    ["recommend", "ann"],
    ["learn", "ann", "tea", "--basket", "2"],
    ["forget", "ann"],
    ["verify"],
]


@pytest.mark.parametrize("line", LINES)
def test_commands_need_no_second_thread(tmp_path: Path, line: list[str]) -> None:
    db = made(tmp_path)
    done = limited(NO_THREADS, *line, "--db", db)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_that_needs_threads(tmp_path: Path) -> None:
    done = limited(NO_THREADS, "serve", "--db", made(tmp_path), "--port", 0)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: the system allows no more threads")


@pytest.mark.parametrize("line", LINES[1:3])
def test_too_few_files(tmp_path: Path, line: list[str]) -> None:
    """With any number of files that is not enough for the database: one line, which says so."""
    db = made(tmp_path)
    refused = 0
    for files in (5, 7, 9):
        done = limited(FEW_FILES, files, *line, "--db", db)
        assert done.returncode in (0, 2), done.stderr
        if done.returncode == 2:
            refused += 1
            assert done.stdout == ""
            assert done.stderr.count("\n") == 1
            assert "oo many" in done.stderr
            assert "open" in done.stderr
    assert refused > 0


def made(folder: Path) -> Path:
    """Return a new database with a user."""
    db = folder / "shop.db"
    with ub.open(db) as rec:
        rec.learn("ann", ["milk"], basket=1)
    return db


def test_bars_name_the_current_step(tmp_path: Path) -> None:
    """On a terminal, each step of an import is named, even the one that follows when its bar is full."""
    rows = "".join(f"{user},{basket},{user % 50}\n" for user in range(2000) for basket in range(3))
    (tmp_path / "sales.csv").write_text("user,basket,item\n" + rows)
    line = [*PROGRAM, "import", "sales.csv", "--db", "shop.db"]
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=child, env=environment)
    os.close(child)
    drawn = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        drawn += part
    assert process.communicate()[0].startswith(b"shop.db: imported 6,000 purchases")
    steps = (b"reading", b"opening the database", b"importing", b"building the model", b"writing the database")
    places = [drawn.rfind(step) for step in steps]  # opening builds a model too, of what was there
    assert -1 not in places
    assert places == sorted(places)
