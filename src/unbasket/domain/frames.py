"""Data frames: the only place where tables are parsed and validated, and where recommendations become a table."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import polars as pl

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.codec import arrange, encode, rows_by_user, tick
from unbasket.core.index import MAX_BASKET
from unbasket.core.model import UNTIMED
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import Id
from unbasket.domain.results import Product, Recommendation
from unbasket.domain.returns import FIRST_ROW, quantities, remove_returns
from unbasket.errors import InvalidFrameError, InvalidRequestError

_BLOCK = 1 << 20  # rows converted at a time


def read_baskets(
    frame: Any,
    *,
    user: str,
    basket: str,
    item: str,
    time: str | None,
    group: str | None,
    group_size: int,
    quantity: str | None = None,
) -> BasketColumns:
    """Return the baskets of a frame with a row per purchase, or with a row per basket and a list of items.

    Rows may come in any order; a repeated (user, basket, item) counts once. Without a column of times (`time`,
    or one of that name), a user's baskets are in the order of their first rows. `quantity` names a column by which
    rows are purchases (above 0), none (0) or returns (below 0), which are taken out. `group` names a column whose value
    is equal within a group; without it, groups are filled by `group_size` from the oldest basket on.
    """
    table, time = _table(frame, user, basket, item, time, group, quantity)
    if quantity is not None:
        table = _without_returns(table, user, basket, item, time, quantity)
    # With hundreds of millions of rows, each column of codes is a gigabyte: it is dropped when it has been used.
    user_codes, users = _codes(table[user])
    by_user = np.empty(len(user_codes), np.uint32)
    ends = rows_by_user(user_codes, len(users), by_user)
    del user_codes
    basket_codes, baskets = _codes(table[basket])
    item_codes, items = _codes(table[item])
    time_codes, decoded = _time_codes(table[time]) if time else (np.zeros(0, np.uint32), None)
    owners, rows, sizes, purchases, conflict = arrange(by_user, ends, basket_codes, item_codes, time_codes, len(items))
    times = np.full(len(rows), UNTIMED) if decoded is None else decoded(time_codes[rows])
    keys = basket_codes[rows].astype(np.int64) if isinstance(baskets, list) else baskets[basket_codes[rows]]
    del basket_codes, item_codes, time_codes
    if time and conflict >= 0:
        raise InvalidFrameError(
            f"basket {table[basket][conflict]!r} of user {table[user][conflict]!r} has more than one {time}, "
            f"such as {table[time][conflict]!r} in row {conflict}; give all rows of a basket the same one"
        )
    if len(sizes) and sizes.max() > MAX_BASKET:
        large = int(sizes.argmax())
        key = int(keys[large])
        name = baskets[key] if isinstance(baskets, list) else key
        raise InvalidFrameError(
            f"basket {name!r} of user {_listed(users)[owners[large]]!r} "
            f"has {sizes[large]} items; the largest basket may have {MAX_BASKET}"
        )
    return BasketColumns(
        users=_listed(users),
        items=_listed(items),
        baskets=baskets if isinstance(baskets, list) else None,
        owners=owners,
        keys=keys,
        times=times,
        sizes=sizes,
        opens=_opens(owners, _codes(table[group])[0][rows] if group else None, group_size),
        purchases=purchases,
    )


def read_purchases(frame: Any, *, user: str, basket: str, item: str, time: str | None) -> pl.DataFrame:
    """Return the distinct purchases of such a frame: user, basket, item and, if there is one, time."""
    table, time = _table(frame, user, basket, item, time)
    names = {"user": user, "basket": basket, "item": item}
    columns = [_id_column(table[column]).alias(name) for name, column in names.items()]
    if time is not None:
        columns.append(pl.Series("time", _times(table[time])))
    return pl.DataFrame(columns).unique(list(names), keep="first", maintain_order=True)


def _table(
    frame: Any, user: str, basket: str, item: str, time: str | None, *further: str | None
) -> tuple[pl.DataFrame, str | None]:
    """Return the named columns, with a row per purchase, and the name of the time column if there is one."""
    frame = _frame(frame)
    if time is None and "time" in frame.columns:
        time = "time"
    names = (user, basket, item, time, *further)
    table = _columns(frame, list(dict.fromkeys(name for name in names if name is not None)))
    if isinstance(table[item].dtype, pl.List):
        empty = table[item].list.len() == 0
        if empty.any():
            raise InvalidFrameError(f"column {item!r} is an empty list in row {empty.arg_max()}; a basket has items")
        table = table.explode(item)
    return table, time


def _without_returns(
    table: pl.DataFrame, user: str, basket: str, item: str, time: str | None, quantity: str
) -> pl.DataFrame:
    """Return the rows of the purchases that remain when returns are taken out; baskets in the order of first rows."""
    names = {"user": user, "basket": basket, "item": item}
    rows = [_id_column(table[column]).alias(name) for name, column in names.items()]
    rows += [_quantities(table[quantity]), *([] if time is None else [pl.Series("time", _times(table[time]))])]
    first_row = pl.col("row").min().over("user", "basket").alias(FIRST_ROW)
    purchases = pl.DataFrame(rows).with_row_index("row").with_columns(first_row)
    earliest = [pl.col("time").min()] if time is not None else []
    sums = purchases.group_by(*names, FIRST_ROW).agg(*earliest, **quantities(pl.col("quantity")))
    remaining, _ = remove_returns(sums)
    kept = purchases.join(remaining, on=list(names), how="semi").sort(FIRST_ROW, "row")
    return table[kept["row"]]


def _quantities(column: pl.Series) -> pl.Series:
    if not column.dtype.is_numeric():
        raise InvalidFrameError(
            f"column {column.name!r} has type {column.dtype}; quantities must be numbers, so cast it"
        )
    numbers = column.cast(pl.Float64)
    row = (~numbers.is_finite()).fill_null(value=True).arg_true().first()
    if isinstance(row, int):
        raise InvalidFrameError(f"column {column.name!r} is {column[row]!r} in row {row}; give every row a quantity")
    return numbers.alias("quantity")


def read_products(frame: Any, *, item: str, name: str, category: str | None) -> list[Product]:
    """Return the products of a frame, with all its further columns; the last row of an item counts."""
    frame = _frame(pl.DataFrame(frame) if isinstance(frame, Mapping) else frame)
    names = [item, name, *([] if category is None else [category])]
    further = [column for column in frame.columns if column not in names]
    table = _columns(frame, [*dict.fromkeys(names), *further], "describe(frame, name='title')")
    titles = table[name].cast(pl.String)
    kinds = pl.repeat(None, len(table), eager=True) if category is None else table[category].cast(pl.String)
    products = {}
    for each, title, kind, *rest in zip(
        _id_column(table[item]), titles, kinds, *(_values(table[column]) for column in further), strict=True
    ):
        values = {column: value for column, value in zip(further, rest, strict=True) if value is not None}
        products[each] = Product(each, title, kind, values)
    return list(products.values())


def _values(column: pl.Series) -> pl.Series:
    """Return a column of products. Dates become ISO 8601; NaN and infinities become null."""
    if column.dtype.is_temporal() or column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype.is_float() or column.dtype.is_decimal():
        column = column.cast(pl.Float64)
        return column.set(~column.is_finite(), None)
    if column.dtype.is_integer() or column.dtype in (pl.String, pl.Boolean, pl.Null):
        return column
    raise InvalidFrameError(
        f"column {column.name!r} has type {column.dtype}; what is known of an item is text, a number, a date or a "
        "boolean: cast the column, or drop it"
    )


_OWN = ("user", "item", "score", "rank")


def checked_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns of products to add to a table of recommendations."""
    if isinstance(columns, str):
        raise InvalidRequestError(f"columns must be a list of names, not {columns!r}")
    wanted = list(dict.fromkeys(columns))
    for column in wanted:
        if not isinstance(column, str) or column in _OWN:
            raise InvalidRequestError(f"{column!r} can't be a further column: the table has {', '.join(_OWN)} already")
    return wanted


def recommendation_frame(
    answers: Mapping[Id, Sequence[Recommendation]], columns: Sequence[str], product: Callable[[Id], Product]
) -> pl.DataFrame:
    """Return a row per user and recommended item: user, item, score, rank (from 1), and columns of the products."""
    users = [user for user, answer in answers.items() for _ in answer]
    items = [item for answer in answers.values() for item, _ in answer]
    scores = [score for answer in answers.values() for _, score in answer]
    ranks = [rank for answer in answers.values() for rank in range(1, len(answer) + 1)]
    own = [pl.Series("user", users), pl.Series("item", items), pl.Series("score", scores, pl.Float64)]
    products = [product(item) for item in items] if columns else []
    further = [pl.Series(column, [each.value(column) for each in products], strict=False) for column in columns]
    return pl.DataFrame([*own, pl.Series("rank", ranks, pl.Int64), *further])


def _frame(frame: Any) -> Any:
    """Return a frame as a Polars one; a pandas frame unchanged, since without pyarrow it has no Arrow interface."""
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, pl.DataFrame) or _is_pandas(frame):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        records = pl.Series(frame)  # not a DataFrame, which would copy an Arrow table to join its chunks
        if isinstance(records.dtype, pl.Struct):
            return records.struct.unnest()
    raise InvalidFrameError(f"expected a Polars, pandas or Arrow table, not {type(frame).__name__}")


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "columns")


def _columns(frame: Any, names: list[str], example: str = "fit(frame, user='customer_id')") -> pl.DataFrame:
    """Return the named columns as a Polars frame."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InvalidFrameError(
            f"the frame has no column {missing[0]!r}; it has {list(frame.columns)}. "
            f"Name the right one, for example {example}"
        )
    if _is_pandas(frame):
        return pl.DataFrame([_series(name, frame[name]) for name in names])
    return cast("pl.DataFrame", frame.select(names))


def _series(name: str, column: Any) -> pl.Series:
    values, missing = column.to_numpy(), column.isna()
    if values.dtype.kind == "O" and any(isinstance(value, bool) for value in values):
        raise InvalidFrameError(f"column {name!r} holds booleans; ids must be whole numbers or text")
    if values.dtype.kind == "O" or missing.any():
        values = [None if gap else value for value, gap in zip(column.astype(object), missing, strict=True)]
    if {type(value) for value in values} == {int, str}:  # as in a file, that is a column of texts
        values = list(map(str, values))
    try:
        return pl.Series(name, values)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise InvalidFrameError(f"column {name!r} mixes types or holds no ids: {error}") from error


def _listed(ids: Int64s | list[str]) -> list[Id]:
    return [*ids] if isinstance(ids, list) else ids.tolist()


def _codes(column: pl.Series) -> tuple[Codes, Int64s | list[str]]:
    """Return the position of each row's id among the distinct ids, and these ids in order."""
    column = _checked_ids(column)
    if column.dtype == pl.String:
        names = column.unique().sort()
        positions = column.cast(pl.Enum(names)).to_physical().to_numpy()
        return positions.astype(np.uint32, copy=False), names.to_list()
    if not len(column):
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    low, high = cast("int", column.min()), cast("int", column.max())
    if high - low > 4 * len(column) + 2**20:
        distinct, positions = np.unique(column.cast(pl.Int64).to_numpy(), return_inverse=True)
        return positions.astype(np.uint32), distinct
    return _codes_by_table(column, low, high)


def _codes_by_table(column: pl.Series, low: int, high: int) -> tuple[Codes, Int64s]:
    """Do as `_codes` for numbers from `low` to `high`."""
    table, codes = np.zeros(high - low + 1, np.uint32), np.empty(len(column), np.uint32)
    for _, values in _blocks(column):
        tick(values, low, table)
    positions = np.flatnonzero(table)
    table[positions] = np.arange(len(positions))
    for start, values in _blocks(column):
        encode(values, low, table, codes[start : start + len(values)])
    return codes, positions + low


def _blocks(column: pl.Series) -> Iterator[tuple[int, Int64s]]:
    """Yield the start and the numbers of blocks of a column: all of them at once as 64 bits would double its memory."""
    start = 0
    for chunk in column.get_chunks():
        for first in range(0, len(chunk), _BLOCK):
            yield start + first, chunk.slice(first, _BLOCK).cast(pl.Int64).to_numpy()
        start += len(chunk)


def _checked_ids(column: pl.Series) -> pl.Series:
    """Return a column of whole numbers or text, or raise an error that names the fault and its row."""
    if column.null_count():
        row = column.is_null().arg_max()
        raise InvalidFrameError(
            f"column {column.name!r} is null in row {row} (and {column.null_count()} rows in all); "
            "fill or drop these rows first"
        )
    if column.dtype.is_integer():
        if len(column) and not _fits(column):
            raise InvalidFrameError(f"column {column.name!r} has ids beyond 64 bits; cast it to text")
        return column
    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
        if (column == "").any():
            raise InvalidFrameError(f"column {column.name!r} is empty text in row {(column == '').arg_max()}")
        return column
    if not len(column):
        return column.cast(pl.Int64)
    raise InvalidFrameError(
        f"column {column.name!r} has type {column.dtype}; ids must be whole numbers or text, so cast it to one"
    )


def _fits(column: pl.Series) -> bool:
    """Return whether all numbers of a column are of 64 bits, with a sign."""
    low, high = cast("int", column.min()), cast("int", column.max())
    return low >= -(2**63) and high < 2**63


def _id_column(column: pl.Series) -> pl.Series:
    """Return a column as int64 or text, or raise an error that names the fault and its row."""
    column = _checked_ids(column)
    return column if column.dtype == pl.String else column.cast(pl.Int64)


_ISO_FORMATS = ("%F", "%F %R", "%F %T%.f", "%F %T%.f%#z")


def iso_seconds(text: pl.Expr) -> pl.Expr:
    """Parse ISO 8601 dates and times to seconds since 1970 (UTC unless they name a zone); other text becomes null."""
    text = text.str.replace("T", " ", literal=True)
    return pl.coalesce(text.str.to_datetime(form, strict=False, time_unit="us").dt.epoch("s") for form in _ISO_FORMATS)


def _times(column: pl.Series) -> Int64s:
    """Return times as integers."""
    return np.concatenate([np.zeros(0, np.int64), *(values for _, values in _blocks(_checked_times(column)))])


def _time_codes(column: pl.Series) -> tuple[Codes, Callable[[Codes], Int64s]]:
    """Return times as codes of 32 bits in their order, and the function that turns codes into times."""
    column = _checked_times(column)
    if not len(column):
        return np.zeros(0, np.uint32), lambda codes: codes.astype(np.int64)
    low, high = cast("int", column.min()), cast("int", column.max())
    if high - low >= 2**32:
        distinct, positions = np.unique(column.cast(pl.Int64).to_numpy(), return_inverse=True)
        return positions.astype(np.uint32), lambda codes: distinct[codes]
    codes = np.empty(len(column), np.uint32)
    for start, values in _blocks(column):
        codes[start : start + len(values)] = values - low
    return codes, lambda codes: codes.astype(np.int64) + low


def _checked_times(column: pl.Series) -> pl.Series:
    """Return times as a column of integers of 64 bits or fewer; dates become seconds since 1970, here alone."""
    if column.null_count():
        raise InvalidFrameError(
            f"column {column.name!r} is null in row {column.is_null().arg_max()}; "
            "give every row a time, or drop the column to keep the order of the rows"
        )
    if column.dtype in (pl.Date, pl.Datetime):
        column = column.dt.epoch("s")
    elif column.dtype in (pl.String, pl.Categorical, pl.Enum):
        column = _iso_times(column.cast(pl.String))
    if not column.dtype.is_integer():
        if not len(column):
            return column.cast(pl.Int64)
        raise InvalidFrameError(
            f"column {column.name!r} has type {column.dtype}; "
            "times must be whole numbers, dates, datetimes or text such as 2024-01-31 or 2024-01-31 18:05"
        )
    if len(column) and not _fits(column):
        raise InvalidFrameError(f"column {column.name!r} has times beyond 64 bits")
    if len(column) and column.min() == UNTIMED:
        raise InvalidFrameError(f"column {column.name!r}: the time {UNTIMED} is out of range")
    return column


def _iso_times(column: pl.Series) -> pl.Series:
    times = pl.DataFrame(column).select(iso_seconds(pl.col(column.name))).to_series()
    if times.null_count():
        row = times.is_null().arg_max()
        assert row is not None
        raise InvalidFrameError(
            f"column {column.name!r} is {column[row]!r} in row {row}, which is not a date such as 2024-01-31 or "
            "2024-01-31 18:05. Other formats: parse them first, for example with pandas.to_datetime"
        )
    return times


def _opens(owners: Codes, groups: Codes | None, group_size: int) -> Int64s:
    """Flag the baskets that open a group: each user's first, and each whose group differs from the last."""
    new_user = np.append(True, owners[1:] != owners[:-1])[: len(owners)]
    if groups is not None:
        new_group = np.append(True, groups[1:] != groups[:-1])[: len(owners)]
        return np.asarray(new_user | new_group, np.int64)
    numbers = np.arange(len(owners))
    first = np.maximum.accumulate(np.where(new_user, numbers, 0))
    return np.asarray((numbers - first) % group_size == 0, np.int64)
