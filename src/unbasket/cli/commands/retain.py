"""`unbasket retain`: apply a shop's retention rules or, by default, show what they would forget."""

import math
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from unbasket.cli._shared.database import Db, open_to_read, open_to_write
from unbasket.cli._shared.terminal import AsJson, counted, errors, progress_bar, say, say_json, say_table, warn
from unbasket.domain.results import Forgotten
from unbasket.errors import InvalidRequestError
from unbasket.store import DurableRecommender
from unbasket.store.retention import Outcome, Plan, plan, run
from unbasket.store.rules import Rules, read_rules


def retain(
    rules: Annotated[Path, typer.Argument(metavar="RULES.toml", help="The rules; docs/retention.md explains them.")],
    db: Db,
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="Count ages from this ISO 8601 time, UTC if it has no zone.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Forget; without it, only show what would be forgotten.")] = False,
    at_most: Annotated[
        float,
        typer.Option(
            min=0,
            max=100,
            metavar="PERCENT",
            help="With --yes: the share of all purchases that may be forgotten without a confirmation.",
        ),
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Apply the shop's retention rules: forget baskets that are too old, items of sensitive categories.

    Without --yes, nothing is changed, and a service may have the database open. If --yes would forget more than
    --at-most says, the share has to be typed; without a terminal, it is an error.
    """
    stated, moment = read_rules(rules), _moment(now)
    with open_to_write(db) if yes else open_to_read(db) as rec:
        planned, outcome = _planned(rec, stated, moment), None
        if yes:
            _confirm(planned, at_most)
            with progress_bar("forgetting") as report:
                outcome = run(rec, planned, report)
    if as_json:
        say_json(_facts(moment, planned, outcome))
        return
    _show(planned)
    if outcome is not None:
        say(f"Forgotten: {_amount(outcome.forgotten)}. Receipts written: {outcome.receipts:,}.")
    elif planned.forgotten:
        say(f"To be forgotten: {_amount(planned.forgotten)}. This is {_percent(planned)} of all purchases.")
        say("Nothing has been changed yet. To forget them:")
        share = ["--at-most", str(_needed(planned))] if 100 * planned.share > at_most else []
        moment_given = ["--now", now] if now else []
        say(shlex.join(["unbasket", "retain", str(rules), "--db", str(db), *moment_given, "--yes", *share]))
    else:
        say("There is nothing to forget.")


def _moment(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequestError(f"--now must be a time such as 2026-01-31T04:00, not {text!r}") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _planned(rec: DurableRecommender, rules: Rules, now: datetime) -> Plan:
    with errors.status("applying the rules"):
        planned = plan(rec, rules, now)
    for rule in planned.rules:
        for warning in rule.warnings:
            warn(f"{rule.name}: {warning}")
    return planned


def _confirm(planned: Plan, at_most: float) -> None:
    """Return if the share is small enough or typed; raise otherwise."""
    if 100 * planned.share <= at_most:
        return
    share, needed = _percent(planned), _needed(planned)
    if not sys.stdin.isatty():
        raise InvalidRequestError(
            f"this would forget {share} of all purchases, and there is no terminal to confirm it. If you mean it, add "
            f"--at-most {needed}"
        )
    if typer.prompt(f"This forgets {share} of all purchases. To go on, type {needed}", err=True) != str(needed):
        raise InvalidRequestError("nothing was forgotten")


def _needed(planned: Plan) -> int:
    """Return the smallest whole percentage that allows a plan."""
    return math.ceil(100 * planned.share)


def _percent(planned: Plan) -> str:
    share = 100 * planned.share
    return f"{share:.3g} %" if share < 99.95 or planned.share == 1 else "more than 99.9 %"


def _show(planned: Plan) -> None:
    rows = [(rule.name, rule.users, rule.baskets, rule.purchases) for rule in planned.rules]
    say_table(["rule", "users", "baskets", "purchases"], rows)
    say("Purchases that a rule forgets and no rule above it, the baskets they are in, the users who bought them.")


def _amount(forgotten: Forgotten) -> str:
    purchases, baskets, users = forgotten
    return f"{counted(purchases, 'purchase')}, and with them {counted(baskets, 'basket')} and {counted(users, 'user')}"


def _facts(now: datetime, planned: Plan, outcome: Outcome | None) -> dict[str, Any]:
    names = ("name", "users", "baskets", "purchases", "warnings")
    return {
        "now": now.isoformat(),
        "done": outcome is not None,
        "rules": [{name: getattr(rule, name) for name in names} for rule in planned.rules],
        "forgotten": (outcome or planned).forgotten._asdict(),
        "share": planned.share,
        "receipts": outcome.receipts if outcome else 0,
    }
