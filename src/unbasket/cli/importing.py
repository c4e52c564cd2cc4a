"""`unbasket import`: purchases, or events, from files into a database."""

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, NamedTuple

import polars as pl
import typer

from unbasket.cli.data import BasketColumn, ItemColumn, TimeColumn, UserColumn
from unbasket.cli.events import holds_events, read_events
from unbasket.cli.model import Alpha, BasketDecay, GroupDecay, Grouping, GroupSize, Neighbors, asked
from unbasket.cli.progress import progress_bar
from unbasket.cli.shop import Db, open_or_create
from unbasket.cli.terminal import AsJson, counted, say, say_json
from unbasket.datasets import DatasetError, read_table, statistics
from unbasket.datasets.source import Text, columns_of, files_at
from unbasket.errors import InvalidParamsError, InvalidRequestError
from unbasket.events import Event
from unbasket.params import Params
from unbasket.results import Forgotten, Learned
from unbasket.store import DurableRecommender


class Format(StrEnum):
    """What standard input may be."""

    CSV = "csv"
    NDJSON = "ndjson"


class _Columns(NamedTuple):
    user: str
    basket: str
    item: str
    time: str | None
    time_format: str | None
    separator: str


def import_purchases(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV (also .csv.gz), Parquet or NDJSON: a row per purchase, or per basket with a list of items. "
            "A folder: all such files in it, in the order of their names, as one. -: standard input. "
            'NDJSON may also hold events, such as {"event": "learn", "user": 1, "basket": 2, "items": [3]} and '
            '{"event": "forget", "user": 1}: they happen in their order.',
        ),
    ],
    db: Db,
    user: UserColumn = None,
    basket: BasketColumn = None,
    item: ItemColumn = None,
    time: TimeColumn = None,
    time_format: Annotated[
        str | None,
        typer.Option(help="How times are written if not in ISO 8601, such as '%d.%m.%Y %H:%M'.", metavar="FORMAT"),
    ] = None,
    separator: Annotated[str, typer.Option(help="Between the fields of a CSV file.")] = ",",
    text_format: Annotated[
        Format | None,
        typer.Option("--format", help="Of standard input. By default, NDJSON if it starts with { and CSV otherwise."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out rows that are no purchases, and count them.")
    ] = False,
    group_size: GroupSize = None,
    basket_decay: BasketDecay = None,
    group_decay: GroupDecay = None,
    neighbors: Neighbors = None,
    alpha: Alpha = None,
    grouping: Grouping = None,
    as_json: AsJson = False,
) -> None:
    """Import purchases into a database, which is created if it does not exist.

    All of it is imported or, on an error, nothing. Baskets without a time keep the order of the file; those that are
    known already are replaced.
    """
    started = monotonic()
    params = asked(
        group_size=group_size,
        basket_decay=basket_decay,
        group_decay=group_decay,
        neighbors=neighbors,
        alpha=alpha,
        grouping=grouping,
    )
    origin = _standard_input(text_format) if file == "-" else Path(file)
    if file != "-" and text_format is not None:
        raise InvalidRequestError("--format is for standard input (-); the ending of a file tells its format")
    files = files_at(origin)
    if any(map(holds_events, files)):
        report = _import_events(files, db, params, skip_bad=skip_bad)
    else:
        columns = _Columns(user or "user", basket or "basket", item or "item", time, time_format, separator)
        report = _import_table(origin, files, db, params, columns, skip_bad=skip_bad)
    report["seconds"] = round(monotonic() - started, 3)
    if as_json:
        say_json({"database": str(db), **report})
    else:
        _show(db, report)


def _standard_input(text_format: Format | None) -> Text:
    content = sys.stdin.buffer.read()
    if content.startswith((b"\x1f\x8b", b"PAR1")):
        raise DatasetError(
            "standard input: CSV or NDJSON is expected, not a compressed or a Parquet file: name the file"
        )
    is_json = content.lstrip().startswith(b"{") if text_format is None else text_format is Format.NDJSON
    return Text("standard input", "ndjson" if is_json else "csv", content)


def _import_table(
    origin: Path | Text,
    files: list[Path | Text],
    db: Path,
    params: dict[str, Any],
    columns: _Columns,
    *,
    skip_bad: bool,
) -> dict[str, Any]:
    frame, skipped = _read(origin, files, columns, skip_bad=skip_bad)
    with _opened(db, params) as rec, progress_bar("importing") as report:
        rec.fit(frame, progress=report)
    counts = statistics(frame)
    return {"users": counts.users, "baskets": counts.baskets, "purchases": counts.purchases, "skipped": skipped}


def _read(
    origin: Path | Text, files: list[Path | Text], columns: _Columns, *, skip_bad: bool
) -> tuple[pl.DataFrame, int]:
    """The purchases, in the order of the files and without the times that a `Dataset` would make up."""
    if columns.time is None and any("time" in columns_of(file, separator=columns.separator) for file in files):
        columns = columns._replace(time="time")
    try:
        with progress_bar("reading") as report:
            dataset = read_table(origin, **columns._asdict(), skip_bad=skip_bad, progress=report)
    except DatasetError as error:
        raise DatasetError(str(error).replace("skip_bad=True", "--skip-bad")) from error  # what it is called here
    names = ["user", "basket", "item"] if columns.time is None else ["user", "basket", "item", "time"]
    return dataset.history.select(names), dataset.skipped


def _import_events(files: list[Path | Text], db: Path, params: dict[str, Any], *, skip_bad: bool) -> dict[str, Any]:
    strange = next((file for file in files if not holds_events(file)), None)
    if strange is not None:
        raise DatasetError(f"{strange} holds no events, but another file of the folder does: import them apart")
    with progress_bar("reading") as report:
        events, skipped = read_events(files, skip_bad=skip_bad, progress=report)
    with _opened(db, params) as rec, progress_bar(f"applying {counted(len(events), 'event')}"):
        results = rec.apply(events)
    return {"events": len(events), **_changes(events, results), "skipped": skipped}


def _changes(events: list[Event], results: list[Learned | Forgotten]) -> dict[str, int]:
    learned = [result for result in results if isinstance(result, Learned)]
    forgotten = [result for result in results if isinstance(result, Forgotten)]
    return {
        "users": len({event.user for event in events}),
        "baskets": sum(result is not Learned.UNCHANGED for result in learned),
        "forgets": len(forgotten),
        "forgotten": sum(result.purchases for result in forgotten),
    }


def _opened(db: Path, params: dict[str, Any]) -> DurableRecommender:
    """The engine, with the parameters that were asked for; what was not named is as it is in the database."""
    is_new = not db.exists() or db.stat().st_size == 0
    rec = open_or_create(db, Params(**params) if is_new else None)
    for name, value in params.items():
        stored = asdict(rec.params)[name]
        if stored != value:
            rec.close()
            option = "--" + name.replace("_", "-")
            raise InvalidParamsError(f"{db} has {option} {stored}, not {value}. Leave it out, or use another database")
    return rec


def _show(db: Path, report: dict[str, Any]) -> None:
    if "events" in report:
        say(
            f"{db}: {counted(report['events'], 'event')} of {counted(report['users'], 'user')}: "
            f"{counted(report['baskets'], 'basket')} learned or changed, "
            f"{counted(report['forgets'], 'forget')} of {counted(report['forgotten'], 'purchase')}"
        )
    else:
        say(
            f"{db}: imported {counted(report['purchases'], 'purchase')} in {counted(report['baskets'], 'basket')} "
            f"of {counted(report['users'], 'user')}"
        )
    if report["skipped"]:
        say(f"Skipped {counted(report['skipped'], 'bad row')}")
    say(f"{report['seconds']:.1f} s")
