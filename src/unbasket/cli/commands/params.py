"""`unbasket params`: the parameters of a shop's model."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from unbasket.cli._shared.database import Db, label, open_to_read, open_to_write
from unbasket.cli._shared.options import parse_params
from unbasket.cli._shared.terminal import AsJson, counted, progress_bar, say, say_json
from unbasket.domain.results import LearnedWeights
from unbasket.store import DurableRecommender

_SHOWN = 3  # items at either end


def params(
    db: Db,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change this parameter, as in alpha=0.1; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the parameters of a database's model, or change some of them.

    A change rebuilds the model from the baskets, as if it had had these parameters from the start. A running service
    changes them by PUT /v1/params, and goes on answering.

    If the model learns its weights, they are shown too: alpha, and items that at least 20 people bought and that people
    buy again most and least readily (1: as most things).
    """
    if changes:
        named = parse_params(", ".join(changes))
        with open_to_write(db) as rec:
            with progress_bar("rebuilding the model") as report:
                rec.change_params(rec.params.changed(**named), progress=report)
            _show(rec, db, as_json=as_json)
    else:
        _show(open_to_read(db), db, as_json=as_json)


def _show(rec: DurableRecommender, db: Path, *, as_json: bool) -> None:
    learned = rec.learned()
    if as_json:
        say_json(asdict(rec.params) | {"learned": None if learned is None else _facts(learned)})
        return
    for line in (f"{db}: {rec.params}", *_learned_lines(rec, learned)):
        say(line)


def _facts(learned: LearnedWeights) -> dict[str, Any]:
    ends = {"most": learned.most, "least": learned.least}
    return learned._asdict() | {end: [factor._asdict() for factor in factors] for end, factors in ends.items()}


def _learned_lines(rec: DurableRecommender, learned: LearnedWeights | None) -> list[str]:
    """Return the learned weights in words, with the three items at either end."""
    if learned is None:
        return []
    lines = [f"alpha is {learned.alpha:.3f}, learned from {counted(learned.users, 'user')} with two baskets or more"]
    for way, factors in (("most", learned.most), ("least", learned.least)):
        if factors:
            named = [f"{label(rec, item)} ({factor:.2f})" for item, factor, _ in factors[:_SHOWN]]
            lines.append(f"bought again {way} readily: {', '.join(named)}")
    return lines
