"""`unbasket spark`: the model on Spark, for shops that outgrow one machine."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import accumulate, islice
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import polars as pl
import typer

from unbasket.cli._shared.database import Db, open_or_create, open_to_read
from unbasket.cli._shared.options import ModelOptions, with_options
from unbasket.cli._shared.spark_topics import TopicOptions
from unbasket.cli._shared.terminal import AsJson, Group, counted, errors, progress_bar, say, say_json, subcommand
from unbasket.domain.basket_columns import BasketColumns, StoredBasket
from unbasket.domain.events import Learn
from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import Id, IdTypes
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError, SparkError
from unbasket.files import replacing
from unbasket.params import Params

app = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="markdown")

Checkpoint = Annotated[str, typer.Option(metavar="FOLDER", help="The folder in which the stream keeps its state.")]
Master = Annotated[str, typer.Option(help="The Spark master.")]
Kind = Annotated[str, typer.Option(help="Type of their ids: string or long.", metavar="TYPE")]


@app.callback()
def spark() -> None:
    """Run the model on Spark: a stream of events into histories, recommendations from them, and an audit."""


def _library(name: str = "unbasket.spark") -> ModuleType:
    """Import a module, only when it is needed: Spark takes seconds to load, and is an extra."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("unbasket"):
            raise
        raise SparkError(f"{error.name} is not installed: pip install 'unbasket[spark]'") from error


@subcommand(app)
@with_options(model=ModelOptions, topics=TopicOptions)
def run(
    checkpoint: Checkpoint,
    model: ModelOptions,
    topics: TopicOptions,
    events: Annotated[
        str | None, typer.Argument(metavar="FOLDER", help="The folder in which files of events appear, or --kafka.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--format", help="Format of the files: json (one event per line), csv or parquet.")
    ] = "json",
    history: Annotated[
        str | None,
        typer.Option(help="Parquet with the purchases before the first event; see docs/spark.md.", metavar="PATH"),
    ] = None,
    users: Kind = "string",
    baskets: Kind = "string",
    items: Kind = "string",
    every: Annotated[str, typer.Option(help="Time from one batch to the next.")] = "10 seconds",
    once: Annotated[
        bool, typer.Option("--once", help="Stop when all events are applied and all forgotten data is gone.")
    ] = False,
    files: Annotated[int | None, typer.Option(help="Largest number of files in a batch.")] = None,
    shards: Annotated[int, typer.Option(help="Shards of a new state; each is the work of one core.")] = 8,
    stripes: Annotated[
        int, typer.Option(help="Of a new state: forgotten data is gone this many batches later, less one.")
    ] = 4,
    progress: Annotated[bool, typer.Option("--progress", help="Show every batch with its seconds by stage.")] = False,
    master: Master = "local[*]",
) -> None:
    """Apply the events in a folder, or in a topic of Kafka, as they appear to the histories in a checkpoint."""
    topics.check(events)
    lib, params, sizes = _library(), Params(**model.given()), {"shards": shards, "stripes": stripes}
    session = lib.session(master, work=f"{checkpoint}-work", settings=topics.spark_settings())
    schema = lib.event_schema(users, baskets, items)
    if topics.kafka:
        source, sinks = topics.connect(lib, session, schema, checkpoint)
    else:
        source, sinks = lib.read_files(session, events, schema, kind=kind, most=files), {}
    if history is not None:
        lib.load(session.read.parquet(history), params, checkpoint=checkpoint, **sizes)
    stream = lib.maintain(source, params, checkpoint=checkpoint, **sizes)
    query = stream.into(**sinks, every="0 seconds" if once else every)
    try:
        total = 0
        for report in lib.watch(query, until_settled=once):
            if report is not None and (report.events or progress):
                total += report.events
                line = _line(report, total, stages=progress)
                errors.print(line, highlight=False, markup=False, soft_wrap=True)
    except KeyboardInterrupt:
        say("Stopped. It continues from here when it is started again")
    finally:
        query.stop()
    held = lib.State.read(checkpoint)
    rejected = f", {counted(held.rejected, 'event')} rejected" if held.rejected else ""
    say(f"{checkpoint}: {counted(held.users, 'user')} after batch {held.batch}{rejected}")


def _line(report: Any, total: int, *, stages: bool) -> str:
    seconds = report.seconds["total"]
    line = (
        f"batch {report.batch}: {counted(report.events, 'event')} in {seconds:.1f} s, {report.events / seconds:,.0f} "
        f"per second; {counted(report.users, 'user')} changed, {report.bytes / 1e6:.1f} MB written; "
        f"{total:,} events so far"
    )
    parts = ", ".join(f"{stage} {spent:.2f}" for stage, spent in report.seconds.items() if stage != "total")
    return f"{line}; seconds: {parts}" if stages else line


@subcommand(app)
def recommend(
    checkpoint: Checkpoint,
    output: Annotated[str, typer.Option(metavar="FOLDER", help="Where to write the recommendations, as Parquet.")],
    n: Annotated[int, typer.Option("-n", help="Items for each user.")] = 10,
    users: Annotated[
        str | None, typer.Option("--users", metavar="PATH", help="Parquet with the column user; by default, all.")
    ] = None,
    products: Annotated[
        str | None, typer.Option(metavar="PATH", help="Parquet with the columns item, category and hidden, a boolean.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="ITEM", help="An item to leave out; repeatable.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="ITEM", help="An item to allow alone; repeatable.")] = None,
    category: Annotated[list[str] | None, typer.Option(help="A category to allow alone; repeatable.")] = None,
    only_new: Annotated[bool, typer.Option("--only-new", help="Leave out what the user has bought.")] = False,
    master: Master = "local[*]",
) -> None:
    """Write recommendations for all users of a checkpoint, or for some of them."""
    lib = _library()
    session = lib.session(master, work=f"{output}-work")
    held = lib.State.read(checkpoint)
    frames = [None if path is None else session.read.parquet(path) for path in (users, products)]
    options = {"exclude": exclude or None, "only": only or None, "category": category or None, "only_new": only_new}
    histories = lib.histories(session, checkpoint)
    lib.recommend(histories, held.params, frames[0], n, products=frames[1], **options).write.parquet(output)
    say(f"{output}: recommendations from {checkpoint} as of batch {held.batch}")


@subcommand(app)
def audit(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Checkpoint and temporary files.")],
    marker: Annotated[list[str], typer.Option(help="An id to look for, a user's for one; may be repeated.")],
    as_json: AsJson = False,
) -> None:
    """Search all files in folders for forgotten ids. The exit code is 1 if something is found."""
    missing = next((folder for folder in folders if not folder.is_dir()), None)
    if missing is not None:
        raise InvalidRequestError(f"{missing} is not a folder")
    searched, findings = _library("unbasket.residue").audit(folders, map(parse_id, marker))
    if as_json:
        say_json({"files": searched, "findings": [finding._asdict() for finding in findings]})
    else:
        for found, file in findings:
            say(f"{found!r} is in {file}")
        say(f"{counted(searched, 'file')} searched, {counted(len(findings), 'finding')}")
    if findings:
        raise typer.Exit(1)


@subcommand(app)
def from_db(db: Db, output: Annotated[Path, typer.Option(metavar="FILE", help="The Parquet file to write.")]) -> None:
    """Write the histories in a database to Parquet, for `unbasket spark run --history`."""
    table, parquet = _library("unbasket.domain.history_table"), import_module("pyarrow.parquet")
    rec = open_to_read(db)
    types = IdTypes(*(int if held == "number" else str for held in rec.id_types().values()))
    with (
        replacing(output) as partial,
        parquet.ParquetWriter(partial, table.history_schema(types)) as writer,
        progress_bar("writing") as report,
    ):
        done = 0
        for users in _batched(rec.users()):
            baskets = BasketColumns.of((user, _baskets(rec, user)) for user in users)
            suppressed = {user: rec.suppressed(user) for user in users}
            writer.write_table(table.to_table(baskets, suppressed, types))
            done += len(users)
            report(done, len(rec))
    say(f"{output}: the baskets of {counted(len(rec), 'user')}")


def _batched(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the rows in batches of 10,000."""
    remaining = iter(rows)
    while batch := list(islice(remaining, 10_000)):
        yield batch


def _baskets(rec: Recommender, user: Id) -> list[StoredBasket]:
    """Return a user's baskets, each with whether it opens a group."""
    starts = {0, *accumulate(rec.groups(user))}
    return [(*basket, number in starts) for number, basket in enumerate(rec.history(user))]


@subcommand(app)
def to_db(checkpoint: Checkpoint, db: Db, master: Master = "local[*]") -> None:
    """Write the histories in a stopped stream's state into a new database."""
    if db.exists():
        raise InvalidRequestError(f"{db} exists already. Name a new database")
    lib = _library()
    session = lib.session(master, work=f"{checkpoint}-work")
    rows = lib.histories(session, checkpoint)
    with open_or_create(db, lib.State.read(checkpoint).params) as rec, progress_bar("importing") as report:
        for users in _batched(rows.toLocalIterator()):
            _learn(rec, users)
            for user, item in ((row.user, item) for row in users for item in row.suppressed):
                rec.suppress(user, item)
            report(len(rec), None)
        say(f"{db}: {counted(len(rec), 'user')}")


def _learn(rec: Recommender, users: Iterable[Any]) -> None:
    """Learn histories in their order, with varying groups by `fit`, which takes a column of groups."""
    baskets = [(row.user, basket) for row in users for basket in row.baskets]
    if rec.params.grouping != "varying":
        rec.apply(Learn(user, list(basket["items"]), basket.basket, basket.time) for user, basket in baskets)
        return
    groups = accumulate(int(basket.opens) for _, basket in baskets)
    columns = ("user", "basket", "item", "time", "group")
    rows = [(u, b.basket, list(b["items"]), b.time, g) for (u, b), g in zip(baskets, groups, strict=True)]
    frame = pl.DataFrame(rows, columns, orient="row", infer_schema_length=None)
    untimed = pl.col("time").is_null()
    mixed = set(frame.filter(untimed)["user"]) & set(frame.filter(~untimed)["user"])
    if mixed:
        raise InvalidRequestError(
            f"user {next(iter(mixed))!r} has baskets with and without a time: under varying groups, an engine can't be "
            "given such a history at once"
        )
    rec.fit(frame.filter(~untimed), group="group")
    rec.fit(frame.filter(untimed).drop("time"), group="group")
