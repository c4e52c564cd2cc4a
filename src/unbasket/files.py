"""Files that only their owner can read, written atomically and durably."""

import fcntl
import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE
from tempfile import mkdtemp

_PRIVATE = 0o600
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
def replacing(path: Path) -> Iterator[Path]:
    """Yield an empty file to write to, and move it to `path` afterwards; a failed write changes nothing.

    It is in a folder of its own, where no other user can put a file in its way, and where a library may put more files.
    A new file is readable by its owner alone; an existing one keeps its owner and mode.
    """
    path = path.resolve()  # replaces the target of a link, not the link
    with _private_folder(path.parent, f"{path.name}-partial-") as folder:
        partial = folder / path.name
        create(partial)
        yield partial
        if path.exists():
            _copy_owner_and_mode(path, partial)
        fsync(partial)
        os.replace(partial, path)
    fsync(path.parent)


@contextmanager
def _private_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder with a random name, for its owner alone; it is removed afterwards, with all that is in it.

    It is locked meanwhile. A kill leaves it unlocked, and the next call with the same prefix removes it.
    """
    with suppress(OSError):  # the parent may be unreadable, and is not the caller's concern
        _remove_leftovers(parent, prefix)
    folder, lock = _locked_folder(parent, prefix)
    try:
        yield folder
    finally:
        try:
            shutil.rmtree(folder)
        finally:
            os.close(lock)


def _locked_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    """Make a folder and lock it; if another process took it for a leftover before it was locked, make another."""
    while True:
        folder = Path(mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder, _FOLDER)
            with suppress(OSError):  # some file systems can't lock: there, no process takes it for a leftover
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove_leftovers(parent: Path, prefix: str) -> None:
    """Remove the private folders of this user that a kill has left."""
    for folder in parent.glob(f"{glob.escape(prefix)}????????"):
        with suppress(OSError):  # it is a file, or locked
            lock = os.open(folder, _FOLDER)
            try:
                found = os.fstat(lock)
                if (found.st_uid, S_IMODE(found.st_mode)) == (os.geteuid(), 0o700):  # as mkdtemp makes it
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)


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
