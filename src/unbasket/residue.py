"""A search for residue of forgotten data in all files below some folders.

Raw bytes are searched and, since it is compressed, also the contents of Parquet. A number is searched in every
encoding that Spark and this package use: as text, and in 8 bytes.
"""

import mmap
import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from unbasket.domain.ids import Id, checked
from unbasket.errors import InvalidRequestError

__all__ = ["Finding", "audit"]

_SMALL = 2**16  # numbers below occur by chance in any file: most of their bytes are zero


class Finding(NamedTuple):
    """A marker, and a file that contains it."""

    marker: Id
    place: str


def audit(folders: Iterable[str | os.PathLike[str]], markers: Iterable[Id]) -> tuple[int, list[Finding]]:
    """Return the number of files searched, and the findings. Files that are deleted meanwhile are skipped.

    A marker is an id as the shop has it: the number 170017 and the text "170017" are stored in different ways.
    """
    wanted = {marker: _pattern(checked(marker, "marker")) for marker in markers}
    files = [Path(root) / name for folder in folders for root, _, names in os.walk(folder) for name in names]
    return len(files), [
        Finding(marker, place)
        for file in sorted(files)
        for place, content in _contents(file)
        for marker, pattern in wanted.items()
        if pattern.search(content)
    ]


def _pattern(marker: Id) -> re.Pattern[bytes]:
    """Return a pattern of all encodings of an id."""
    if isinstance(marker, str):
        return re.compile(re.escape(marker.encode()))
    if -_SMALL < marker < _SMALL:
        raise InvalidRequestError(
            f"the number {marker} can't be searched for: any file holds its few bytes by chance. Search for other ids "
            f"of the same user, numbers from 65,536 on or text; '\"{marker}\"' is text"
        )
    text = rb"(?<![0-9-])" + re.escape(str(marker).encode()) + rb"(?![0-9])"
    return re.compile(b"|".join([text, *(re.escape(struct.pack(order, marker)) for order in ("<q", ">q"))]))


def _contents(file: Path) -> Iterator[tuple[str, bytes | mmap.mmap]]:
    """Yield the raw bytes of a file, and all values of Parquet as text."""
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield str(file), content
            is_parquet = content[:4] == b"PAR1"
    except (FileNotFoundError, ValueError):  # it was deleted, or is empty
        return
    for batch in pq.ParquetFile(file).iter_batches() if is_parquet else ():
        for column in batch.columns:
            flat = column.flatten() if isinstance(column, pa.ListArray) else column
            yield f"{file}, values", "\n".join(map(str, flat.to_pylist())).encode()
