"""A cache of results on disk, each with the settings and the environment that produced it."""

import json
import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from unbasket.files import write
from unbasket.reproduction.section import Row
from unbasket.reproduction.workloads import Settings


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of an experiment on a dataset, with its settings, environment and duration."""

    settings: dict[str, Any]
    environment: dict[str, str]
    seconds: float
    rows: list[Row]


class ResultCache:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "results"

    def find(self, experiment: str, dataset: str) -> Result | None:
        """Return the stored result with any settings, or None."""
        path = self._path(experiment, dataset)
        return Result(**json.loads(path.read_text())) if path.exists() else None

    def has(self, experiment: str, dataset: str, settings: Settings, environment: dict[str, str]) -> bool:
        """Return whether there is a result with these settings and this environment."""
        found = self.find(experiment, dataset)
        return found is not None and found.settings == _as_json(settings) and found.environment == environment

    def store(self, experiment: str, dataset: str, settings: Settings, versions: dict[str, str], seconds: float,
              rows: list[Row]) -> None:  # fmt: skip
        """Store a result atomically."""
        self._folder.mkdir(parents=True, exist_ok=True)
        result = Result(_as_json(settings), versions, seconds, rows)
        write(self._path(experiment, dataset), json.dumps(asdict(result), indent=1).encode())

    def _path(self, experiment: str, dataset: str) -> Path:
        return self._folder / f"{experiment}-{dataset}.json"


def environment() -> dict[str, str]:
    """Return package and library versions, Python, and the number of cores."""
    packages = {name: version(name) for name in ("unbasket", "numpy", "polars")}
    return packages | {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count()),
    }


def _as_json(settings: Settings) -> dict[str, Any]:
    """Return the settings as read back from JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(settings)))
    return plain
