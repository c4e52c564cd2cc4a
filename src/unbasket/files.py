"""Files that only their owner can read, that are there completely or not at all, and that survive a power loss."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRIVATE = 0o600


def synchronise(path: Path) -> None:
    """Make sure that a file, or a directory's entries, are on disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def real_path(path: Path) -> Path:
    """Where a file is: beside a link to it, there are none of the files that belong to it."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def create(path: Path) -> None:
    """Make an empty file for its owner alone, whatever the umask; an error if there is a file already."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
    try:
        os.fchmod(file, _PRIVATE)
    finally:
        os.close(file)


@contextmanager
def replacing(path: Path, suffix: str = "-partial") -> Iterator[Path]:
    """An empty file to write to, which takes the place of `path` afterwards; if writing fails, nothing has happened.

    A new file is its owner's alone. One that was there before keeps its owner and its mode.
    """
    path = path.resolve()  # what a link points to is replaced, not the link
    partial = path.with_name(path.name + suffix)
    partial.unlink(missing_ok=True)
    create(partial)
    try:
        yield partial
        if path.exists():
            _take_over(path, partial)
        synchronise(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    synchronise(path.parent)


def write(path: Path, content: bytes) -> None:
    """Write a file. What is not a file, such as a pipe or /dev/null, is written to directly."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with replacing(path) as partial:
        partial.write_bytes(content)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is here with the same folder, and keep others waiting meanwhile."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _take_over(path: Path, partial: Path) -> None:
    """Give a file the owner and the mode of another, or root would lock its owner out."""
    former = path.stat()
    if (former.st_uid, former.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(partial, former.st_uid, former.st_gid)
    partial.chmod(former.st_mode & 0o777)
