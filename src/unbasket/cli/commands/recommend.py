"""`unbasket recommend`: items for the next basket of one user or of many."""

from math import fsum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from unbasket.cli._shared.database import Db, id_of, item_facts, label, open_to_read
from unbasket.cli._shared.options import with_options
from unbasket.cli._shared.terminal import AsJson, counted, progress_bar, say, say_json, say_table, warn
from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import Id
from unbasket.domain.results import Explanation, ItemCount, Recommendation
from unbasket.domain.times import UNITS
from unbasket.engine.cold_start import ColdStart
from unbasket.errors import InvalidRequestError
from unbasket.store import DurableRecommender

_Items = list[str] | None


class _FilterOptions(NamedTuple):
    """Filters of the items that may be recommended."""

    only_new: Annotated[bool, typer.Option("--only-new", help="Only items that the user has never bought.")] = False
    exclude: Annotated[_Items, typer.Option(help="Leave out this item; may be repeated.", metavar="ITEM")] = None
    only: Annotated[_Items, typer.Option(help="Only this item; may be repeated.", metavar="ITEM")] = None
    category: Annotated[_Items, typer.Option(help="Only items of this category; may be repeated.")] = None

    def arguments(self) -> dict[str, Any]:
        """Return the filters that `recommend` and `popular` share, as keyword arguments."""
        return {
            "exclude": [parse_id(item) for item in self.exclude or []],
            "only": None if self.only is None else [parse_id(item) for item in self.only],
            "category": self.category,
        }


class _FallbackOptions(NamedTuple):
    """Recommendations for unknown users."""

    fallback: Annotated[str, typer.Option(metavar="popular|nothing", help="Recommendations for unknown users.")] = (
        "popular"
    )
    fallback_days: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Popular in this number of past days only.")
    ] = None
    fallback_category: Annotated[str | None, typer.Option(help="Popular in this category only.")] = None
    time_unit: Annotated[str, typer.Option(metavar="s|ms|us|day", help="The unit of the shop's times since 1970.")] = (
        "s"
    )

    def checked(self) -> ColdStart:
        """Return the fallback; raise for options that it does not know."""
        if self.fallback not in ("popular", "nothing"):
            raise InvalidRequestError(f"--fallback must be popular or nothing, not {self.fallback!r}")
        if self.time_unit not in UNITS:
            raise InvalidRequestError(f"--time-unit must be one of {', '.join(UNITS)}, not {self.time_unit!r}")
        return ColdStart(self.fallback == "nothing", self.fallback_days, self.fallback_category, self.time_unit)


class _BatchOptions(NamedTuple):
    """The users of a batch, and the file to write."""

    all_users: Annotated[bool, typer.Option("--all", help="All users, into the file of --output.")] = False
    users: Annotated[
        Path | None,
        typer.Option(help="The users in this file, one id a line, into the file of --output.", metavar="FILE"),
    ] = None
    output: Annotated[
        Path | None, typer.Option(help="Ends in .parquet, .csv or .ndjson.", metavar="FILE", dir_okay=False)
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(help="Write this column of the items' descriptions, too; may be repeated.", metavar="COLUMN"),
    ] = None
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet",
            help="Write a CSV file to open in a spreadsheet: texts that it would run as formulas get an apostrophe.",
        ),
    ] = False


@with_options(filters=_FilterOptions, cold_start=_FallbackOptions, batch=_BatchOptions)
def recommend(
    db: Db,
    filters: _FilterOptions,
    cold_start: _FallbackOptions,
    batch: _BatchOptions,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="A user's id.")] = None,
    n: Annotated[int, typer.Option("-n", help="Number of items.")] = 10,
    cart: Annotated[
        _Items, typer.Option(help="This item is in the user's cart; may be repeated.", metavar="ITEM")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Say how much of each score comes from the user's own baskets and from similar users."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items for a user's next basket, the best first.

    An unknown user without a cart gets the items that are in most baskets. With --all or --users, recommendations for
    many users are written to a file.
    """
    fallback = cold_start.checked()
    _check_combination(user, batch, cart, explain=explain)
    rec = open_to_read(db)
    if user is None:
        _write(rec, n, filters, batch, as_json=as_json)
        return
    name, shared, carted = id_of(rec, "user", user), filters.arguments(), [parse_id(item) for item in cart or []]
    if name not in rec and not carted:
        _show_popular(rec, name, fallback.items(rec, n, **shared), as_json=as_json)
        return
    with progress_bar("recommending"):
        found = rec.recommend(name, n, only_new=filters.only_new, cart=carted, **shared)
        reasons = rec.explain_many(name, [item for item, _ in found]) if explain else []
    _show(rec, name, found, reasons if explain else None, as_json=as_json)


def _check_combination(user: str | None, batch: _BatchOptions, cart: _Items, *, explain: bool) -> None:
    """Check the combination of options."""
    if (user is not None) + batch.all_users + (batch.users is not None) != 1:
        raise InvalidRequestError("name one USER, or --users FILE, or --all")
    if user is None and batch.output is None:
        raise InvalidRequestError("say where to write recommendations for many users: --output FILE")
    if user is not None and (batch.output is not None or batch.column or batch.spreadsheet):
        raise InvalidRequestError("--output, --column and --spreadsheet go with --users or --all, not with one USER")
    if user is None and (cart or explain):
        raise InvalidRequestError("--cart and --explain go with one USER")
    if cart and explain:
        raise InvalidRequestError("--explain is about the baskets that are held: leave out --cart")


def _show(
    rec: DurableRecommender, name: Id, found: list[Recommendation], reasons: list[Explanation] | None, *, as_json: bool
) -> None:
    if as_json:
        scored = [{**item_facts(rec, item), "score": score} for item, score in found]
        shares = [{} for _ in scored] if reasons is None else [_share_facts(reason) for reason in reasons]
        say_json({"user": name, "known": name in rec, "items": [a | b for a, b in zip(scored, shares, strict=True)]})
    elif not found:
        say(f"Nothing to recommend to user {name}")
    elif reasons is not None:
        columns = ("item", "score", "own baskets", "similar users", "who have it")
        say_table(columns, [_explained(rec, reason) for reason in reasons])
    else:
        say_table(("item", "score"), [(label(rec, item), score) for item, score in found])


def _write(rec: DurableRecommender, n: int, filters: _FilterOptions, batch: _BatchOptions, *, as_json: bool) -> None:
    from unbasket.cli._shared.recommendation_file import write_recommendations  # imports Polars

    assert batch.output is not None
    named = dict.fromkeys(
        rec.users() if batch.users is None else [id_of(rec, "user", line) for line in _lines(batch.users)]
    )
    users = [user for user in named if user in rec]
    wanted = {**filters.arguments(), "only_new": filters.only_new}
    with progress_bar("recommending") as report:
        rows = write_recommendations(
            rec, users, n, batch.output, batch.column or [], report, spreadsheet=batch.spreadsheet, **wanted
        )
    unknown = len(named) - len(users)
    if as_json:
        say_json({"output": str(batch.output), "users": len(users), "unknown": unknown, "rows": rows})
        return
    say(f"{batch.output}: {counted(rows, 'recommendation')} for {counted(len(users), 'user')}")
    if unknown:
        warn(f"Nothing is held about {counted(unknown, 'user')} of {batch.users}, for whom nothing was written")


def _lines(file: Path) -> list[str]:
    try:
        return [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise InvalidRequestError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"{file} is not text in UTF-8: {error.reason}") from error


def _show_popular(rec: DurableRecommender, user: Id, popular: list[ItemCount], *, as_json: bool) -> None:
    if as_json:
        items = [{**item_facts(rec, item), "baskets": count} for item, count in popular]
        say_json({"user": user, "known": False, "items": items})
        return
    say(f"Nothing is held about user {user}. These items are in the most baskets:")
    say_table(("item", "baskets"), [(label(rec, item), count) for item, count in popular])


def _share_facts(reason: Explanation) -> dict[str, Any]:
    return {
        "own_share": fsum(share.share for share in reason.baskets),
        "neighbors_share": reason.neighbors_share,
        "neighbors_with_item": reason.neighbors_with_item,
        "neighbors": reason.neighbors,
        "weight": reason.weight,
        "alpha": reason.alpha,
        "factor": reason.factor,
    }


def _explained(rec: DurableRecommender, reason: Explanation) -> tuple[object, ...]:
    own, buyers = fsum(share.share for share in reason.baskets), f"{reason.neighbors_with_item} of {reason.neighbors}"
    return label(rec, reason.item), reason.score, own, reason.neighbors_share, buyers
