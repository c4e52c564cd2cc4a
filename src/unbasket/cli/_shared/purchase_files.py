"""Files of purchases: the options that say how to read them, and reading them for research."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from unbasket.cli._shared.terminal import counted, progress_bar, warn
from unbasket.datasets import PUBLISHED, Dataset, DatasetError, load, read_table
from unbasket.datasets.dataset import SkippedRows
from unbasket.datasets.lines import shown
from unbasket.datasets.source import Text, columns_of, files_at
from unbasket.datasets.table import PurchaseTable, TableFormat
from unbasket.domain.returns import Returns

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
    decimal: Annotated[str, _option("The decimal mark of quantities: a point, or a comma as in 1,5.", "MARK")] = "."
    skip_bad: Annotated[
        bool, _option("Leave out rows that are not purchases, and list them by reason.", None, "--skip-bad")
    ] = False

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as arguments of a `TableFormat`."""
        changed = {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}
        return changed | ({"separator": separator_of(self.separator)} if "separator" in changed else {})

    def table_format(self, origin: Path | Text) -> TableFormat:
        """Return the format of the files at `origin`. A column called time holds the times, unless another is named."""
        named = TableFormat(**self._asdict())._replace(separator=separator_of(self.separator))
        if self.time is None and any("time" in columns_of(f, separator=named.separator) for f in files_at(origin)):
            return named._replace(time="time")
        return named


def read_data(data: str, reading: ReadingOptions) -> Dataset:
    """Load a dataset by name or path. With any option of `reading` but --skip-bad, a file is read as a table."""
    with naming_options(), progress_bar("reading and sorting") as report:
        if not reading.given().keys() - {"skip_bad"}:
            dataset = load(data, skip_bad=reading.skip_bad, progress=report)
        else:
            dataset = read_table(data, **reading.table_format(Path(data))._asdict(), progress=report)
    for line in left_out(dataset.skipped_rows, dataset.returns):
        warn(line)
    return dataset


def table_counts(table: PurchaseTable) -> str:
    """Return the purchases, baskets and users of a table, counted."""
    users, baskets = table.frame["user"].n_unique(), table.frame.unique(["user", "basket"]).height
    purchases = counted(table.frame.height, "purchase")
    return f"{purchases} in {counted(baskets, 'basket')} of {counted(users, 'user')}"


def account(table: PurchaseTable) -> Iterator[str]:
    """Yield lines that account for all rows of a table."""
    if table.repeated:
        yield f"{counted(table.repeated, 'row')} of {table.rows:,} repeat a purchase, which counts once"
    yield from left_out(table.skipped, table.returns)


def table_facts(table: PurchaseTable) -> dict[str, Any]:
    """Return the same for programs: rows = purchases + repeated + skipped + all counts of returns."""
    facts = {
        "users": table.frame["user"].n_unique(),
        "baskets": table.frame.unique(["user", "basket"]).height,
        "rows": table.rows,
        "purchases": table.frame.height,
        "repeated": table.repeated,
        **skipped_facts(table.skipped),
    }
    return facts if table.returns is None else {**facts, "returns": asdict(table.returns)}


def skipped_facts(skipped: Sequence[SkippedRows]) -> dict[str, Any]:
    """Return how many rows were skipped, and why, for programs."""
    return {"skipped": sum(each.rows for each in skipped), "reasons": [each._asdict() for each in skipped]}


def left_out(skipped: Sequence[SkippedRows], returns: Returns | None) -> Iterator[str]:
    """Yield lines that account for the rows that were not purchases."""
    if skipped:
        yield f"Skipped {counted(sum(each.rows for each in skipped), 'bad row')}:"
    for reason, rows, place, value in skipped:
        yield f"  {reason}: {counted(rows, 'row')}, the first in {place}{f': {shown(value)}' if value else ''}"
    if returns is not None:
        yield (
            f"Not purchases by their quantity: {counted(returns.zero, 'row')} with 0, "
            f"{counted(returns.taken_out, 'return')} taken out of the baskets they were in, "
            f"{counted(returns.unmatched, 'return')} of what was not bought in this data"
        )
        if returns.undone:
            yield f"Purchases of which all was returned: {returns.undone:,}"


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
        raise DatasetError(f"{error.problem}. {as_option(argument, value)} {effect}") from error


def as_option(argument: str, value: object) -> str:
    r"""Return an argument of the readers as it is typed in a shell.

    >>> as_option("time_format", "%d.%m.%Y %H:%M"), as_option("separator", chr(9)), as_option("skip_bad", True)
    ("--time-format '%d.%m.%Y %H:%M'", "--separator '\\t'", '--skip-bad')
    """
    option, text = "--" + argument.replace("_", "-"), "\\t" if value == "\t" else str(value)
    return option if value is True else f"{option} {shlex.quote(text)}"
