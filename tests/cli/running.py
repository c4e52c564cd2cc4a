"""Functions that run commands as typed in a shell."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unicodedata import category

from typer.testing import CliRunner

from unbasket.cli import app

PROGRAM = [sys.executable, "-c", "from unbasket.cli import app; app()"]
SALES = "user,basket,item,time\nann,1,10,100\nann,1,11,100\nann,2,10,200\nbob,1,10,150\nbob,1,12,150\n7,1,13,9\n"


def interruptible() -> dict[str, Any]:
    """Return options of `Popen` for a child that is to be ended by signals.

    In the background, some of them may be ignored. Coverage is not measured: it would wait for its own lock for ever if
    a signal came while it holds that.
    """

    def reset_signals() -> None:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return {"preexec_fn": reset_signals, "env": environment}


def run(*arguments: object, stdin: str | bytes | None = None, code: int = 0) -> str:
    """Run a command, check its exit code, and return its output."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout


def warnings(*arguments: object) -> str:
    """Run a command that succeeds; return its standard error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stderr


def error(*arguments: object, stdin: str | bytes | None = None) -> str:
    """Run a command with bad input; return the one line of its error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr


def is_plain(text: str) -> bool:
    """Return whether a text is free of characters that a terminal would obey, or hide."""
    return all(
        line.isprintable() or not {"Cc", "Cf", "Cs", "Zl", "Zp"} & set(map(category, line)) for line in text.split("\n")
    )


def files_with(marker: str, folder: Path) -> list[str]:
    """Return the files that contain a text, found by another process: closing a file here would drop SQLite's locks."""
    found = subprocess.run(["grep", "-rlaF", marker, "."], cwd=folder, capture_output=True, text=True, check=False)
    return sorted(found.stdout.split())


def recommended(*arguments: object) -> list[object]:
    """Return the items that `unbasket recommend` prints."""
    return [item["item"] for item in json.loads(run("recommend", *arguments, "--json"))["items"]]
