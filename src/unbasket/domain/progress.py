"""Callbacks that report the progress of long operations."""

from collections.abc import Callable

Progress = Callable[[int, int], object]
"""Called with (done, total)."""

ReadingProgress = Callable[[int, int | None], object]
"""Called with (done, total), or None for a total that is unknown."""
