"""docs/cli.md is complete and its examples are true: a test of the page against all commands."""

import doctest
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import PROGRAM
from typer.testing import CliRunner

from unbasket.cli import app
from unbasket.cli.app import COMMANDS, load

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
QUICKSTART = TEXT[TEXT.index("## Quickstart") : TEXT.index("## What all commands share")]
BLOCK = re.compile(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)

# Durations, moments, and the hexadecimal digits of requests, keys and fingerprints
PASSING = re.compile(r"\b(\d+\.\d+ s\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|[0-9a-f]{32,}\b|[0-9a-f]{8}\b)")


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name."""
    waiting: list[tuple[str, Any]] = [(name, load(name)) for name in COMMANDS]
    while waiting:
        name, command = waiting.pop()
        if hasattr(command, "commands"):
            waiting += [(f"{name} {part}".strip(), child) for part, child in command.commands.items()]
        else:
            yield name, command


ALL = dict(commands())


@pytest.mark.parametrize("name", ALL)
def test_every_command_and_option_is_there(name: str) -> None:
    assert re.search(rf"\b{name}\b", TEXT)
    for parameter in ALL[name].params:
        for option in parameter.opts:
            assert not option.startswith("-") or re.search(rf"(?<![\w-]){option}(?![\w-])", TEXT), (name, option)


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield commands and their output; write the files that come before them."""
    for kind, title, body in BLOCK.findall(text):
        if title:
            Path(title).write_text(body, encoding="utf-8")
        elif kind == "console":
            for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                line, _, output = step.partition("\n")
                yield line, output


def same(expected: str, printed: str) -> bool:
    """Compare what is printed with the page, where times and random numbers are those of some other day."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    expected, printed = (PASSING.sub("...", text) for text in (expected, printed))
    return doctest.OutputChecker().check_output(expected, printed, flags)


@pytest.mark.parametrize("name", ["", *COMMANDS, *ALL])
def test_flags_have_no_type_in_the_help(name: str) -> None:
    text = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"}).stdout
    assert re.search(r"--help\s+Show this message and exit", text)
    assert "<bool>" not in text


def test_the_quickstart_shows_real_times() -> None:
    assert re.search(r"^\d+\.\d s$", QUICKSTART, re.MULTILINE)
    assert not re.search(r"^\.\.\. s$", TEXT, re.MULTILINE)


def test_the_examples_print_their_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = []
    for line, expected in steps(TEXT):
        lines.append(line)
        command, _, stdin = line.partition(" < ")
        content = Path(stdin).read_bytes() if stdin else None
        printed = CliRunner().invoke(app, shlex.split(command)[1:], input=content).output
        assert same(expected, printed), f"$ {line}\n{printed}"
    assert len(lines) > 20, lines


def test_the_quickstart_in_a_real_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = []
    for line, expected in steps(QUICKSTART):
        lines.append(line)
        done = subprocess.run(
            [*PROGRAM, *shlex.split(line)[1:]], capture_output=True, text=True, check=False, env=os.environ
        )
        assert done.returncode == 0, done.stderr
        assert same(expected, done.stdout), f"$ {line}\n{done.stdout}"
    assert len(lines) >= 5, lines
