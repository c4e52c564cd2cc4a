"""Progress of long work, for whoever shows it."""

from collections.abc import Callable

Progress = Callable[[int, int], object]
"""Is told how much is done, and how much there is in all."""

ReadingProgress = Callable[[int, int | None], object]
"""The same where the end of a file may not be known: then there is None in all."""
