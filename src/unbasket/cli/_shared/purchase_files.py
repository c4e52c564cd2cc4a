"""Files of purchases: the options that say how to read them, and reading them for research."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from unbasket.cli._shared.terminal import counted, progress_bar, warn
from unbasket.datasets import PUBLISHED, Dataset, DatasetError, load, read_table
from unbasket.datasets.source import Text, columns_of, files_at
from unbasket.datasets.table import TableFormat

PURCHASES_HELP = (
    f"{', '.join(PUBLISHED)}, or a file: CSV, Parquet or NDJSON with the columns user, basket, item and, optionally, "
    "time, or a format that docs/datasets.md lists."
)
SEPARATOR_HELP = "The character between the fields of a CSV file; \\t is a tab."


def _option(text: str, metavar: str | None = "COLUMN", *names: str) -> Any:
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel="How purchases are read")


class ReadingOptions(NamedTuple):
    """The options of all commands that read purchases."""

    user: Annotated[str, _option("Name of the column with the user.")] = "user"
    basket: Annotated[str, _option("Name of the column with the basket.")] = "basket"
    item: Annotated[str, _option("Name of the column with the item.")] = "item"
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
            "Name of a column with quantities. Rows with 0 are not purchases; rows below 0 are returns, which are "
            "taken out of the basket that they were in."
        ),
    ] = None
    separator: Annotated[str, _option(SEPARATOR_HELP, "CHARACTER")] = ","
    skip_bad: Annotated[bool, _option("Leave out rows that are not purchases, and count them.", None, "--skip-bad")] = (
        False
    )

    def table_format(self, origin: Path | Text) -> TableFormat:
        """Return the format of the files at `origin`. A column called time holds the times, unless another is named."""
        named = TableFormat(**self._asdict())._replace(separator=separator_of(self.separator))
        if self.time is None and any("time" in columns_of(f, separator=named.separator) for f in files_at(origin)):
            return named._replace(time="time")
        return named


def read_data(data: str, reading: ReadingOptions) -> Dataset:
    """Load a dataset by name or path. With any option of `reading` but --skip-bad, a file is read as a table."""
    with naming_options(), progress_bar("reading and sorting") as report:
        if reading == ReadingOptions(skip_bad=reading.skip_bad):
            dataset = load(data, skip_bad=reading.skip_bad, progress=report)
        else:
            dataset = read_table(data, **reading.table_format(Path(data))._asdict(), progress=report)
    for line in left_out(dataset.skipped, None if dataset.returns is None else asdict(dataset.returns)):
        warn(line)
    return dataset


def left_out(skipped: int, returns: Mapping[str, int] | None) -> Iterator[str]:
    """Yield lines that count the rows that were not purchases."""
    if skipped:
        yield f"Skipped {counted(skipped, 'bad row')}"
    if returns is not None:
        yield (
            f"Not purchases by their quantity: {counted(returns['zero'], 'row')} with 0, "
            f"{counted(returns['taken_out'], 'return')} taken out of the baskets they were in, "
            f"{counted(returns['unmatched'], 'return')} of what was not bought in this data"
        )


def separator_of(text: str) -> str:
    """Return the separator that was typed: backslash and t stand for a tab, which is hard to type in a shell."""
    return "\t" if text == "\\t" else text


@contextmanager
def naming_options() -> Iterator[None]:
    """Name the command's options in errors that name the readers' arguments."""
    try:
        yield
    except DatasetError as error:
        if error.remedy is None:
            raise
        argument, value, effect = error.remedy
        value = "\\t" if value == "\t" else value
        option = "--" + argument.replace("_", "-") + ("" if value is True else f" {shlex.quote(str(value))}")
        raise DatasetError(f"{error.problem}. {option} {effect}") from error
