"""Files that only their owner can read, written atomically and durably."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRIVATE = 0o600


def fsync(path: Path) -> None:
    """Flush a file, or the names in a directory, to disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def real_path(path: Path) -> Path:
    """Return the target of a link; the files that belong to a database are beside the target."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def create(path: Path) -> None:
    """Create an empty file for its owner alone, regardless of the umask; an existing file is an error."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
    try:
        os.fchmod(file, _PRIVATE)
    finally:
        os.close(file)


@contextmanager
def replacing(path: Path, suffix: str = "-partial") -> Iterator[Path]:
    """Yield an empty file to write to, and rename it to `path` afterwards; a failed write changes nothing.

    A new file is readable by its owner alone; an existing one keeps its owner and mode.
    """
    path = path.resolve()  # replaces the target of a link, not the link
    partial = path.with_name(path.name + suffix)
    partial.unlink(missing_ok=True)
    create(partial)
    try:
        yield partial
        if path.exists():
            _copy_owner_and_mode(path, partial)
        fsync(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    fsync(path.parent)


def write(path: Path, content: bytes) -> None:
    """Write a file atomically; a pipe or a device, such as /dev/null, directly."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with replacing(path) as partial:
        partial.write_bytes(content)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder, across processes."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _copy_owner_and_mode(path: Path, partial: Path) -> None:
    """Copy the owner and mode of a file to its replacement, or root would lock the owner out."""
    old = path.stat()
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(partial, old.st_uid, old.st_gid)
    partial.chmod(old.st_mode & 0o777)
