"""A search for what should be gone, in all files below some folders.

Files are read as they are. Archives (snapshots of the state) and Parquet files, which are compressed, are also opened,
and their contents searched.
"""

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

_PIECE = 2**24  # bytes read at a time


class Finding(NamedTuple):
    """A marker, and a file (or a member of an archive) that holds it."""

    marker: str
    place: str


def audit(folders: Iterable[str | os.PathLike[str]], markers: Iterable[str]) -> tuple[int, list[Finding]]:
    """How many files were searched, and where the markers are. Files that vanish meanwhile hold nothing."""
    wanted = list(dict.fromkeys(markers))
    files = [Path(root) / name for folder in folders for root, _, names in os.walk(folder) for name in names]
    return len(files), [Finding(marker, place) for file in sorted(files) for place, marker in _search(file, wanted)]


def _search(file: Path, markers: list[str]) -> Iterator[tuple[str, str]]:
    try:
        for place, pieces in _contents(file):
            yield from ((place, marker) for marker in _found(pieces, markers))
    except FileNotFoundError:
        return


def _contents(file: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The file, and what is compressed in it."""
    with file.open("rb") as stream:
        start = stream.read(4)
        yield str(file), _pieces(stream, start)
    if start == b"PK\x03\x04":
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    yield f"{file}, {name}", _pieces(member, b"")
    elif start == b"PAR1":
        yield f"{file}, values", _values(file)


def _pieces(stream: IO[bytes], start: bytes) -> Iterator[bytes]:
    yield start + stream.read(_PIECE)
    while piece := stream.read(_PIECE):
        yield piece


def _values(file: Path) -> Iterator[bytes]:
    """All values of a Parquet file, as text."""
    for batch in pq.ParquetFile(file).iter_batches():
        for column in batch.columns:
            flat = column.flatten() if isinstance(column, pa.ListArray) else column
            yield "\n".join(map(str, flat.to_pylist())).encode()


def _found(pieces: Iterable[bytes], markers: list[str]) -> list[str]:
    """The markers that are in a sequence of bytes, also across pieces."""
    encoded = {marker: marker.encode() for marker in markers}
    longest = max((len(code) for code in encoded.values()), default=0)
    found: set[str] = set()
    tail = b""
    for piece in pieces:
        window = tail + piece
        found.update(marker for marker, code in encoded.items() if code in window)
        tail = window[-longest:]
    return [marker for marker in markers if marker in found]
