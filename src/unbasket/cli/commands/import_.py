"""`unbasket import`: purchases, or events, from files into a database."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, cast

import msgspec
import typer

from unbasket.cli._shared.database import OptionalDb, open_or_create
from unbasket.cli._shared.options import ModelOptions, with_options
from unbasket.cli._shared.purchase_files import (
    ReadingOptions,
    account,
    as_option,
    left_out,
    naming_options,
    skipped_facts,
    table_counts,
    table_facts,
)
from unbasket.cli._shared.terminal import AsJson, counted, progress_bar, say, say_json, say_table, warn
from unbasket.datasets.dataset import SkippedRows
from unbasket.datasets.detection import Column, detect_format
from unbasket.datasets.lines import shown
from unbasket.datasets.source import Text, files_at, is_csv
from unbasket.datasets.table import read_purchase_table
from unbasket.domain.decoding import decode_json
from unbasket.domain.events import Event, parse_event
from unbasket.domain.results import Forgotten, Learned, ReadingProgress
from unbasket.domain.times import as_dates
from unbasket.errors import DatasetError, InvalidEventError, InvalidParamsError, InvalidRequestError, UnbasketError
from unbasket.params import Params
from unbasket.store import DurableRecommender

LARGE = 100_000  # users from which on a pool is suggested
SUGGESTED = 20_000  # users in it
_NDJSON = (".ndjson", ".jsonl")


class Format(StrEnum):
    """The formats of standard input."""

    CSV = "csv"
    NDJSON = "ndjson"


@with_options(reading=ReadingOptions, model=ModelOptions)
def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV (also .csv.gz), Parquet or NDJSON, with a row for each purchase, or for each basket with a list "
            "of items. A folder stands for all such files in it, in the order of their names; - for standard input. "
            'NDJSON may also hold events, which are applied in their order, such as {"event": "learn", "user": 1, '
            '"basket": 2, "items": [3]} and {"event": "forget", "user": 1}.',
        ),
    ],
    reading: ReadingOptions,
    model: ModelOptions,
    db: OptionalDb = None,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            help="Import nothing. Detect how FILE is written, show how it would be read and what would be left out, "
            "and print the command that imports it so.",
        ),
    ] = False,
    text_format: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Format of standard input. By default, NDJSON if it starts with {, and CSV otherwise."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import purchases into a database, which is created if it does not exist.

    FILE is imported as a whole or, if there is an error, not at all. Baskets without a time keep the order of the file.
    A basket that is known already is replaced.
    """
    started = monotonic()
    origin = _standard_input(text_format) if file == "-" else Path(file)
    if file != "-" and text_format is not None:
        raise InvalidRequestError("--format is for standard input (-); the format of a file is known by its ending")
    files = files_at(origin)
    if preview:
        _preview(origin, reading, as_json=as_json)
        return
    if db is None:
        raise InvalidRequestError("--db FILE names the database to import into. It is created if it does not exist")
    if any(map(_holds_events, files)):
        report, lines = _import_events(files, db, model, skip_bad=reading.skip_bad)
    else:
        report, lines = _import_table(origin, db, model, reading)
    seconds = monotonic() - started
    if as_json:
        say_json({"database": str(db), **report, "seconds": round(seconds, 3)})
    else:
        for line in (*lines, f"{seconds:.1f} s"):
            say(line)


def _standard_input(text_format: Format | None) -> Text:
    content = sys.stdin.buffer.read()
    if content.startswith((b"\x1f\x8b", b"PAR1")):
        raise DatasetError(
            "standard input must be CSV or NDJSON, not a compressed or a Parquet file: give the name of such a file"
        )
    is_json = content.lstrip().startswith(b"{") if text_format is None else text_format is Format.NDJSON
    return Text("standard input", "ndjson" if is_json else "csv", content)


def _preview(origin: Path | Text, reading: ReadingOptions, *, as_json: bool) -> None:
    """Show how a file is read, what would be imported and left out, and the command that does exactly that."""
    if any(map(_holds_events, files_at(origin))):
        raise InvalidRequestError(f"{origin} holds events, which are written in one way: --preview is for tables")
    with naming_options(), progress_bar("reading") as report:
        table_format, columns, other = detect_format(origin, reading.given())
        table = read_purchase_table(origin, table_format._replace(skip_bad=True), report)
    chosen = table_format._replace(skip_bad=bool(table.skipped))
    options = {name: value for name, value in chosen._asdict().items() if value != chosen._field_defaults[name]}
    if options.get("time") == "time":
        del options["time"]  # the default of the command
    name = "-" if isinstance(origin, Text) else shlex.quote(str(origin))
    command = " ".join(["unbasket import", name, *(as_option(*option) for option in options.items()), "--db shop.db"])
    if as_json:
        say_json({"options": options, "other_time_format": other, **table_facts(table), "command": command})
        return
    say(f"{origin}: {'separated by ' + shown(table_format.separator) if is_csv(files_at(origin)[0]) else 'a table'}")
    say_table(("column", "holds", "first value", "read as"), map(_shown_column, columns))
    if table_format.time_format is not None:
        also = "" if other is None else f". All of them could also be {other!r}: please check"
        say(f"Dates are written as {table_format.time_format!r}{also}")
    for line in (f"{table_counts(table)} would be imported", *account(table)):
        say(line)
    say("To import exactly this:")
    say(command)


def _shown_column(column: Column) -> tuple[str, str, str, str]:
    read = as_dates([cast(int, column.read)])[0] if column.holds == "time" and column.read is not None else column.read
    return column.name, column.holds, shown(column.written, 30), shown(str(read), 30)[1:-1]


def _import_table(
    origin: Path | Text, db: Path, model: ModelOptions, reading: ReadingOptions
) -> tuple[dict[str, Any], list[str]]:
    """Import a table; return what happened, for programs and as lines for people."""
    with naming_options(), progress_bar("reading") as report:
        table = read_purchase_table(origin, reading.table_format(origin), report)
    with _opened(db, model) as rec, progress_bar("importing", then="building the model") as report:
        rec.fit(table.frame, progress=report)
    lines = [f"{db}: imported {table_counts(table)}", *account(table)]
    if any(each.reason.startswith("unreadable") for each in table.skipped):
        lines.append("`unbasket import --preview FILE` detects how values are written")
    return table_facts(table), lines


def _import_events(
    files: list[Path | Text], db: Path, model: ModelOptions, *, skip_bad: bool
) -> tuple[dict[str, Any], list[str]]:
    other = next((file for file in files if not _holds_events(file)), None)
    if other is not None:
        raise DatasetError(f"{other} holds no events, but another file of the folder does: import them separately")
    with progress_bar("reading") as report:
        events, skipped = _read_events(files, skip_bad=skip_bad, progress=report)
    with _opened(db, model) as rec, progress_bar(f"applying {counted(len(events), 'event')}"):
        results = rec.apply(events)
    learned = [result for result in results if isinstance(result, Learned)]
    forgotten = [result for result in results if isinstance(result, Forgotten)]
    counts = {
        "events": len(events),
        "users": len({str(event.user) for event in events}),
        "baskets": sum(result is not Learned.UNCHANGED for result in learned),
        "forgets": len(forgotten),
        "forgotten": sum(result.purchases for result in forgotten),
    }
    line = (
        f"{db}: {counted(counts['events'], 'event')} of {counted(counts['users'], 'user')}: "
        f"{counted(counts['baskets'], 'basket')} learned or changed, "
        f"{counted(counts['forgets'], 'forget')} of {counted(counts['forgotten'], 'purchase')}"
    )
    return {**counts, **skipped_facts(skipped)}, [line, *left_out(skipped, None)]


def _holds_events(file: Path | Text) -> bool:
    """Return whether the first line that is not blank has the field `event`."""
    is_ndjson = file.kind == "ndjson" if isinstance(file, Text) else file.name.lower().endswith(_NDJSON)
    if not is_ndjson:
        return False
    try:
        return "event" in decode_json(next(_lines(file))[1], dict)
    except (msgspec.DecodeError, StopIteration, OSError):  # reading it as a table reports the error
        return False


def _read_events(
    files: list[Path | Text], *, skip_bad: bool, progress: ReadingProgress
) -> tuple[list[Event], tuple[SkippedRows, ...]]:
    """Read events, one JSON object per line. Return them and the bad lines that were skipped."""
    events: list[Event] = []
    bad: list[tuple[str, str]] = []
    for file in files:
        for number, line in _lines(file):
            try:
                events.append(_event(line))
            except UnbasketError as error:
                if not skip_bad:
                    remedy = "--skip-bad leaves out such lines and counts them"
                    raise InvalidEventError(f"{file}, line {number}: {error}. {remedy}") from error
                bad.append((f"{file}, line {number}", str(error)))
            if number % 1024 == 0:
                progress(len(events), None)
    return events, (SkippedRows("not an event", len(bad), *bad[0]),) if bad else ()


def _event(line: bytes) -> Event:
    try:
        fields = decode_json(line, object)
    except msgspec.DecodeError as error:
        text = line.decode(errors="replace").strip()
        raise InvalidEventError(f"this is not JSON ({error}): {shown(text)}") from error
    return parse_event(cast(Mapping[str, Any], fields))  # raises if it is not a mapping


def _lines(file: Path | Text) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers."""
    with nullcontext(file.content.splitlines()) if isinstance(file, Text) else file.open("rb") as lines:
        yield from ((number, line) for number, line in enumerate(lines, 1) if line.strip())


@contextmanager
def _opened(db: Path, model: ModelOptions) -> Iterator[DurableRecommender]:
    """Open or create a database. An existing database must have the parameters that are given."""
    given, is_new = model.given(), not db.exists() or db.stat().st_size == 0
    with open_or_create(db, Params(**given) if is_new else None) as rec:
        for name, value in given.items():
            stored = asdict(rec.params)[name]
            if stored != value:
                option = "--" + name.replace("_", "-")
                raise InvalidParamsError(
                    f"{db} has {option} {stored}, not {value}. Leave the option out, or use another database"
                )
        yield rec
        if rec.params.pool is None and len(rec) >= LARGE:
            warn(
                f"{db} has {len(rec):,} users, and a recommendation compares one with all of them. In a new database "
                f"with --pool {SUGGESTED}, it compares with {SUGGESTED:,}: quicker, nearly as good; see docs/pool.md"
            )
