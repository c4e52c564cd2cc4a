"""Files that must not be lost."""

import os
from pathlib import Path


def synchronise(path: Path) -> None:
    """Make sure that a file, or a directory's entries, are on disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
