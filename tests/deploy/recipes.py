"""The recipes in deploy/, parsed for tests that follow them without Docker and systemd."""

import json
import re
import shlex
from pathlib import Path
from string import Template
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


class Step(NamedTuple):
    """An instruction of a Dockerfile, or an assignment in a systemd unit."""

    name: str
    value: str


class Dockerfile:
    """The instructions of deploy/Dockerfile."""

    def __init__(self) -> None:
        self.text = (DEPLOY / "Dockerfile").read_text()
        lines = "\n".join(line for line in self.text.splitlines() if not line.startswith("#"))
        joined = re.sub(r"\s*\\\n\s*", " ", lines)
        self.steps = [Step(*line.split(maxsplit=1)) for line in joined.splitlines() if line]

    def all(self, name: str) -> list[str]:
        return [step.value for step in self.steps if step.name == name]

    def one(self, name: str) -> str:
        [value] = self.all(name)
        return value

    @property
    def command(self) -> list[str]:
        """The command of a container."""
        return [*json.loads(self.one("ENTRYPOINT")), *json.loads(self.one("CMD"))]

    @property
    def keys_command(self) -> list[str]:
        """The command in its first lines that adds a key."""
        [arguments] = re.findall(r"^# docker run .* unbasket (keys add .*)$", self.text, re.MULTILINE)
        return [*json.loads(self.one("ENTRYPOINT")), *shlex.split(arguments)]

    @property
    def health_command(self) -> list[str]:
        command: list[str] = json.loads(self.one("HEALTHCHECK").partition("CMD ")[2])
        return command

    @property
    def preparations(self) -> list[list[str]]:
        """The programs that run while the image is built."""
        return [shlex.split(run) for run in self.all("RUN") if run.startswith("python -c")]

    @property
    def environment(self) -> dict[str, str]:
        return dict(part.split("=", 1) for part in shlex.split(self.one("ENV")))

    @property
    def extras(self) -> str:
        """The extras of the installed package, such as "[service]"."""
        [extras] = re.findall(r"pip install .*/source(\[[\w,]+\])", "\n".join(self.all("RUN")))
        return str(extras)

    def sources(self) -> list[Path]:
        """Return the files that are copied into the build stage."""
        names = [name for copy in self.all("COPY") if not copy.startswith("--from") for name in copy.split()[:-1]]
        return [ROOT / name for name in names]


class Unit:
    """The assignments of deploy/unbasket.service."""

    def __init__(self) -> None:
        self.text = (DEPLOY / "unbasket.service").read_text()
        lines = [line for line in self.text.splitlines() if "=" in line and not line.startswith("#")]
        self.steps = [Step(*line.split("=", 1)) for line in lines]

    def one(self, name: str) -> str:
        [value] = [step.value for step in self.steps if step.name == name]
        return value

    @property
    def environment(self) -> dict[str, str]:
        return dict(step.value.split("=", 1) for step in self.steps if step.name == "Environment")

    @property
    def keys_command(self) -> str:
        """The command in its first lines that adds a key."""
        [command] = re.findall(r"^#\s+sudo -u unbasket (.* keys add .*)$", self.text, re.MULTILINE)
        return str(command).replace("NAME", "admin")


def settings_example() -> str:
    """Return the settings file that the unit names."""
    return (DEPLOY / "unbasket.toml").read_text()


class FakeRoot:
    """A folder that stands for the root of a recipe's machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def rebased(self, text: str) -> str:
        """Move all paths of the project in a text into the folder."""
        ours = re.compile(r"(?<![\w/.])/(data|source|opt/unbasket|etc/unbasket|var/(?:cache|lib)/unbasket)")
        return ours.sub(lambda found: f"{self.folder}/{found[1]}", text)

    def environment(self, given: dict[str, str]) -> dict[str, str]:
        """Return the variables of a recipe without those of the test: no source tree may be on a path."""
        system = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder)}
        return system | {name: Template(self.rebased(value)).substitute(system) for name, value in given.items()}
