"""A search for residue of forgotten data in all files below some folders.

Raw bytes are searched and, since they are compressed, also the contents of archives (snapshots of the state) and
Parquet files. A number is searched in every encoding that Spark and this package use: text, MessagePack, and 8 bytes.
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

_CHUNK = 2**24  # bytes read at a time
_OVERLAP = 1024  # bytes shared by consecutive chunks, at least; more than the longest encoding of a marker
_SHORTEST_NUMBER = 5  # bytes in MessagePack; shorter encodings occur by chance in any file


class Finding(NamedTuple):
    """A marker, and a file or archive member that contains it."""

    marker: Id
    place: str


def audit(folders: Iterable[str | os.PathLike[str]], markers: Iterable[Id]) -> tuple[int, list[Finding]]:
    """Return the number of files searched, and the findings. Files that are deleted meanwhile are skipped.

    A marker is an id as the shop has it: the number 170017 and the text "170017" are stored in different ways.
    """
    wanted = {marker: _pattern(checked(marker, "marker")) for marker in markers}
    files = [Path(root) / name for folder in folders for root, _, names in os.walk(folder) for name in names]
    return len(files), [Finding(marker, place) for file in sorted(files) for place, marker in _search(file, wanted)]


def _pattern(marker: Id) -> re.Pattern[bytes]:
    """Return a pattern of all encodings of an id."""
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
        for place, chunks in _contents(file):
            yield from ((place, marker) for marker in _found(chunks, markers))
    except FileNotFoundError:
        return


def _contents(file: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the raw bytes of the file, and its decompressed contents."""
    with file.open("rb") as stream:
        start = stream.read(4)
        yield str(file), _chunks(stream, start)
    if start == b"PK\x03\x04":
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    yield f"{file}, {name}", _chunks(member, b"")
    elif start == b"PAR1":
        yield f"{file}, values", _values(file)


def _chunks(stream: IO[bytes], start: bytes) -> Iterator[bytes]:
    yield start + stream.read(_CHUNK)
    while chunk := stream.read(_CHUNK):
        yield chunk


def _values(file: Path) -> Iterator[bytes]:
    """Yield all values of a Parquet file as text."""
    for batch in pq.ParquetFile(file).iter_batches():
        for column in batch.columns:
            flat = column.flatten() if isinstance(column, pa.ListArray) else column
            yield "\n".join(map(str, flat.to_pylist())).encode()


def _found(chunks: Iterable[bytes], markers: dict[Id, re.Pattern[bytes]]) -> list[Id]:
    """Return the markers in consecutive chunks, including markers that span two chunks."""
    overlap = max([_OVERLAP, *(len(pattern.pattern) for pattern in markers.values())])
    found: set[Id] = set()
    tail = b""
    for chunk in chunks:
        window = tail + chunk
        found.update(marker for marker, pattern in markers.items() if pattern.search(window))
        tail = window[-overlap:]
    return [marker for marker in markers if marker in found]
