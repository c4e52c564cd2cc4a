"""The time of day for the expiry of tokens: it never goes back, so an expired token stays expired."""

import math
import time
from pathlib import Path

from unbasket.files import write
from unbasket.service import logs

INTERVAL = 60.0
"""Seconds between two writes of the highest time to its file."""

_TOLERANCE = 60.0  # seconds that a clock may be set back without a warning


class Clock:
    """The highest time that was seen, by this process or, with a file, by an earlier one.

    A clock that goes back makes this one stand still. A token that is issued meanwhile may expire early, never late.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._highest = self._written = _read(path) if path is not None else 0.0
        self._has_warned = False

    def now(self) -> float:
        """Return the highest time seen, in seconds since 1970."""
        self._highest = max(self._highest, time.time())
        return self._highest

    def keep(self) -> None:
        """Write the highest time to the file, if it grew. An error is logged: tokens work without the file.

        If the clock went back, it is logged once, with what to do.
        """
        highest = self.now()
        behind = highest - time.time()
        if behind > _TOLERANCE and not self._has_warned:
            logs.get().warning(
                "the clock went back, so tokens expire early. Set it; if the time before was wrong, stop the service, "
                "remove the file and start again",
                seconds=round(behind),
                file=str(self._path),
            )
        self._has_warned = behind > _TOLERANCE
        if self._path is None or highest <= self._written:
            return
        try:
            write(self._path, b"%d\n" % math.ceil(highest))
            self._written = highest
        except OSError as error:
            logs.get().error("the highest time seen could not be written", file=str(self._path), problem=str(error))


def _read(path: Path) -> float:
    """Return the time in a file; 0 if there is none, or not a time."""
    try:
        return int(path.read_text())
    except (OSError, ValueError) as error:
        if not isinstance(error, FileNotFoundError):
            logs.get().error("the highest time seen could not be read", file=str(path), problem=str(error))
        return 0.0
