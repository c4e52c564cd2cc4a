"""Files of events: one JSON object per line, as `unbasket.domain.events.parse_event` reads it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from unbasket.datasets.lines import shown
from unbasket.datasets.source import Text
from unbasket.domain.decoding import decode_json
from unbasket.domain.events import Event, parse_event
from unbasket.domain.progress import ReadingProgress
from unbasket.errors import InvalidEventError, UnbasketError

_NDJSON = (".ndjson", ".jsonl")
_SKIP = "--skip-bad leaves out such lines and counts them"


def holds_events(file: Path | Text) -> bool:
    """Whether the first line that is not blank has the field `event`."""
    is_ndjson = file.kind == "ndjson" if isinstance(file, Text) else file.name.lower().endswith(_NDJSON)
    if not is_ndjson:
        return False
    try:
        return "event" in decode_json(next(_lines(file))[1], dict)
    except (msgspec.DecodeError, StopIteration, OSError):  # reading it as a table will say what is wrong
        return False


def read_events(files: Sequence[Path | Text], *, skip_bad: bool, progress: ReadingProgress) -> tuple[list[Event], int]:
    """The events in files, and the number of lines that are not events and were left out."""
    events: list[Event] = []
    skipped = 0
    for file in files:
        for number, line in _lines(file):
            try:
                events.append(_event(line))
            except UnbasketError as error:
                if not skip_bad:
                    raise InvalidEventError(f"{file}, line {number}: {error}. {_SKIP}") from error
                skipped += 1
            if number % 1024 == 0:
                progress(len(events), None)
    return events, skipped


def _event(line: bytes) -> Event:
    try:
        fields = decode_json(line, object)
    except msgspec.DecodeError as error:
        raise InvalidEventError(
            f"this is not JSON ({error}): {shown(line.decode(errors='replace').strip())}"
        ) from error
    return parse_event(cast(Mapping[str, Any], fields))  # which says what is wrong if it is not a mapping


def _lines(file: Path | Text) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    if isinstance(file, Text):
        lines = file.content.splitlines()
        yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())
        return
    with file.open("rb") as stream:
        yield from ((number, line) for number, line in enumerate(stream, 1) if line.strip())
