"""A search for what should be gone, in all files below some folders.

Files are read as they are. Archives (snapshots of the state) and Parquet files, which are compressed, are also opened,
and their contents searched. A number is looked for in every form in which Spark and we store one: as text, as
MessagePack, and as 8 bytes.
"""

import os
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from unbasket.domain.ids import Id, checked
from unbasket.errors import InvalidRequestError

_PIECE = 2**24  # bytes read at a time
_LONGEST_FORM = 1024  # of a marker, at least: pieces overlap by that much
_SHORTEST_NUMBER = 5  # bytes in MessagePack; those of shorter ones are found by chance, everywhere


class Finding(NamedTuple):
    """A marker, and a file (or a member of an archive) that holds it."""

    marker: Id
    place: str


def audit(folders: Iterable[str | os.PathLike[str]], markers: Iterable[Id]) -> tuple[int, list[Finding]]:
    """How many files were searched, and where the markers are. Files that vanish meanwhile hold nothing.

    A marker is an id as the shop has it: the number 170017 and the text "170017" are stored in different ways.
    """
    wanted = {marker: _pattern(checked(marker, "marker")) for marker in markers}
    files = [Path(root) / name for folder in folders for root, _, names in os.walk(folder) for name in names]
    return len(files), [Finding(marker, place) for file in sorted(files) for place, marker in _search(file, wanted)]


def _pattern(marker: Id) -> re.Pattern[bytes]:
    """All forms in which an id is stored."""
    if isinstance(marker, str):
        return re.compile(re.escape(marker.encode()))
    packed = msgspec.msgpack.encode(marker)
    if len(packed) < _SHORTEST_NUMBER:
        raise InvalidRequestError(
            f"the number {marker} can't be searched for: it is stored in {len(packed)} bytes, which any file holds by "
            f"chance. Search for other ids of the same user, numbers from 65,536 on or text; '\"{marker}\"' is text"
        )
    text = rb"(?<![0-9-])" + re.escape(str(marker).encode()) + rb"(?![0-9])"
    return re.compile(
        b"|".join([text, *map(re.escape, (packed, struct.pack("<q", marker), struct.pack(">q", marker)))])
    )


def _search(file: Path, markers: dict[Id, re.Pattern[bytes]]) -> Iterator[tuple[str, Id]]:
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


def _found(pieces: Iterable[bytes], markers: dict[Id, re.Pattern[bytes]]) -> list[Id]:
    """The markers that are in a sequence of bytes, also across pieces."""
    overlap = max([_LONGEST_FORM, *(len(pattern.pattern) for pattern in markers.values())])
    found: set[Id] = set()
    tail = b""
    for piece in pieces:
        window = tail + piece
        found.update(marker for marker, pattern in markers.items() if pattern.search(window))
        tail = window[-overlap:]
    return [marker for marker in markers if marker in found]
