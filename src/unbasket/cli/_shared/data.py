"""The purchases that a command works on: the options that say how to read them, and reading them."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from unbasket.cli._shared.progress import progress_bar
from unbasket.cli._shared.terminal import counted, warn
from unbasket.datasets import PUBLISHED, Dataset, DatasetError, load, read_table
from unbasket.datasets.source import Text, columns_of, files_at

PURCHASES = (
    f"{', '.join(PUBLISHED)}, or a file: CSV, Parquet or NDJSON with the columns user, basket, item and, optionally, "
    "time, or a format that docs/datasets.md lists."
)
Data = Annotated[str, typer.Argument(help=PURCHASES)]


def _option(text: str, metavar: str | None = "COLUMN", *names: str) -> Any:
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel="How purchases are read")


_COLUMN = "Name of the column with the {}."
SEPARATOR = "The character between the fields of a CSV file; \\t is a tab."


class Reading(NamedTuple):
    """The options of all commands that read purchases."""

    user: Annotated[str, _option(_COLUMN.format("user"))] = "user"
    basket: Annotated[str, _option(_COLUMN.format("basket"))] = "basket"
    item: Annotated[str, _option(_COLUMN.format("item"))] = "item"
    time: Annotated[
        str | None,
        _option(
            "Name of the column with the times, which are dates or whole numbers. By default time, if there is one."
        ),
    ] = None
    time_format: Annotated[
        str | None, _option("How dates are written if not as in ISO 8601, such as '%d.%m.%Y %H:%M'.", "FORMAT")
    ] = None
    quantity: Annotated[
        str | None,
        _option(
            "Name of a column with quantities. Rows with 0 are not purchases; what rows below 0 return is taken out of "
            "the basket that it was in."
        ),
    ] = None
    separator: Annotated[str, _option(SEPARATOR, "CHARACTER")] = ","
    skip_bad: Annotated[bool, _option("Leave out rows that are not purchases, and count them.", None, "--skip-bad")] = (
        False
    )


def read_data(data: str, reading: Reading) -> Dataset:
    """Load by name or path. A file that is read in a way of its own is a table, whatever else it looks like."""
    if reading == Reading(skip_bad=reading.skip_bad):
        with naming_options(), progress_bar("reading and sorting") as report:
            dataset = load(data, skip_bad=reading.skip_bad, progress=report)
    else:
        dataset, _ = read_purchases(Path(data), reading)
    for line in left_out(dataset.skipped, None if dataset.returns is None else asdict(dataset.returns)):
        warn(line)
    return dataset


def read_purchases(origin: Path | Text, reading: Reading) -> tuple[Dataset, bool]:
    """A table, and whether it has times. A column that is called time holds them, unless another is named."""
    reading = reading._replace(separator=separator_of(reading.separator))
    with naming_options(), progress_bar("reading and sorting") as report:
        if reading.time is None and any("time" in columns_of(f, separator=reading.separator) for f in files_at(origin)):
            reading = reading._replace(time="time")
        return read_table(origin, **reading._asdict(), progress=report), reading.time is not None


def left_out(skipped: int, returns: Mapping[str, int] | None) -> Iterator[str]:
    """Lines that say which rows were not purchases."""
    if skipped:
        yield f"Skipped {counted(skipped, 'bad row')}"
    if returns is not None:
        yield (
            f"Not purchases by their quantity: {counted(returns['zero'], 'row')} with 0, "
            f"{counted(returns['taken_out'], 'return')} taken out of the baskets they were in, "
            f"{counted(returns['unmatched'], 'return')} of what was not bought in this data"
        )


def separator_of(text: str) -> str:
    """The separator that was typed: shells make it hard to type a tab."""
    return "\t" if text == "\\t" else text


@contextmanager
def naming_options() -> Iterator[None]:
    """Name a command's options in errors, where readers name their arguments."""
    try:
        yield
    except DatasetError as error:
        if error.remedy is None:
            raise
        argument, value, effect = error.remedy
        value = "\\t" if value == "\t" else value
        option = "--" + argument.replace("_", "-") + ("" if value is True else f" {shlex.quote(str(value))}")
        raise DatasetError(f"{error.problem}. {option} {effect}") from error
