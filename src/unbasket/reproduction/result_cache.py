"""Results on disk, each with the settings that made it, so that nothing is computed twice."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unbasket.files import write
from unbasket.reproduction.section import Row
from unbasket.reproduction.settings import Settings


@dataclass(frozen=True, slots=True)
class Result:
    """What a part measured on a dataset, how long that took, and with what."""

    settings: dict[str, Any]
    environment: dict[str, str]
    seconds: float
    rows: list[Row]


class Ledger:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "results"

    def find(self, part: str, dataset: str) -> Result | None:
        """The stored result, whatever its settings."""
        path = self._path(part, dataset)
        return Result(**json.loads(path.read_text())) if path.exists() else None

    def has(self, part: str, dataset: str, settings: Settings, environment: dict[str, str]) -> bool:
        """Is there a result of these settings, made with these versions?"""
        found = self.find(part, dataset)
        return found is not None and found.settings == _plain(settings) and found.environment == environment

    def keep(
        self, part: str, dataset: str, settings: Settings, environment: dict[str, str], seconds: float, rows: list[Row]
    ) -> None:
        """Store a result: completely or, if interrupted, not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(part, dataset)
        write(path, json.dumps(asdict(Result(_plain(settings), environment, seconds, rows)), indent=1).encode())

    def _path(self, part: str, dataset: str) -> Path:
        return self._folder / f"{part}-{dataset}.json"


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings as they come back from JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(settings)))
    return plain
