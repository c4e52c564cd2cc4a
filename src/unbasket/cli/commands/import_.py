"""`unbasket import`: purchases, or events, from files into a database."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from unbasket.cli._shared.data import Reading, left_out, read_purchases
from unbasket.cli._shared.database import Db, open_or_create
from unbasket.cli._shared.events import holds_events, read_events
from unbasket.cli._shared.model import Model
from unbasket.cli._shared.options import with_options
from unbasket.cli._shared.progress import progress_bar
from unbasket.cli._shared.terminal import AsJson, counted, say, say_json, warn
from unbasket.datasets import DatasetError, statistics
from unbasket.datasets.source import Text, files_at
from unbasket.domain.events import Event
from unbasket.domain.results import Forgotten, Learned
from unbasket.errors import InvalidParamsError, InvalidRequestError
from unbasket.params import Params
from unbasket.store import DurableRecommender

LARGE = 100_000  # users from which on a pool is suggested
SUGGESTED = 20_000  # users in it


class Format(StrEnum):
    """What standard input may be."""

    CSV = "csv"
    NDJSON = "ndjson"


@with_options(reading=Reading, model=Model)
def import_purchases(
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
    db: Db,
    reading: Reading,
    model: Model,
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
    if any(map(holds_events, files)):
        report = _import_events(files, db, model, skip_bad=reading.skip_bad)
    else:
        report = _import_table(origin, db, model, reading)
    report["seconds"] = round(monotonic() - started, 3)
    if as_json:
        say_json({"database": str(db), **report})
    else:
        _show(db, report)


def _standard_input(text_format: Format | None) -> Text:
    content = sys.stdin.buffer.read()
    if content.startswith((b"\x1f\x8b", b"PAR1")):
        raise DatasetError(
            "standard input must be CSV or NDJSON, not a compressed or a Parquet file: give the name of such a file"
        )
    is_json = content.lstrip().startswith(b"{") if text_format is None else text_format is Format.NDJSON
    return Text("standard input", "ndjson" if is_json else "csv", content)


def _import_table(origin: Path | Text, db: Path, model: Model, reading: Reading) -> dict[str, Any]:
    dataset, timed = read_purchases(origin, reading)
    # without a time column, baskets stay without the times that a `Dataset` makes up, in the order of the file
    frame = dataset.history.select("user", "basket", "item", *(["time"] if timed else []))
    with _opened(db, model) as rec, progress_bar("importing", then="building the model") as report:
        rec.fit(frame, progress=report)
    counts = statistics(frame)
    returns = {} if dataset.returns is None else {"returns": asdict(dataset.returns)}
    sizes = {"users": counts.users, "baskets": counts.baskets, "purchases": counts.purchases}
    return {**sizes, "skipped": dataset.skipped, **returns}


def _import_events(files: list[Path | Text], db: Path, model: Model, *, skip_bad: bool) -> dict[str, Any]:
    strange = next((file for file in files if not holds_events(file)), None)
    if strange is not None:
        raise DatasetError(f"{strange} holds no events, but another file of the folder does: import them separately")
    with progress_bar("reading") as report:
        events, skipped = read_events(files, skip_bad=skip_bad, progress=report)
    with _opened(db, model) as rec, progress_bar(f"applying {counted(len(events), 'event')}"):
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


@contextmanager
def _opened(db: Path, model: Model) -> Iterator[DurableRecommender]:
    """The engine, with the parameters that were asked for; what was not named is as it is in the database."""
    asked, is_new = model.asked(), not db.exists() or db.stat().st_size == 0
    with open_or_create(db, Params(**asked) if is_new else None) as rec:
        for name, value in asked.items():
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
    for line in left_out(report["skipped"], report.get("returns")):
        say(line)
    say(f"{report['seconds']:.1f} s")
