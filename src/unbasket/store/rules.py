"""Retention rules, which a shop keeps in a TOML file of its own.

A rule forgets the purchases that meet all of its conditions: age of the basket, items, users.
The rules stay out of the database, which must hold nothing about persons but their baskets. See docs/retention.md.
"""

import csv
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from unbasket.domain.decoding import decode_toml
from unbasket.domain.ids import Id
from unbasket.domain.times import UNITS
from unbasket.errors import RetentionError

MAX_RULES = 128 * 1024
"""Characters, or bytes, of rules: parsing TOML is slow. Long lists of users are in files of their own."""

_FIELDS: dict[str, tuple[Any, str]] = {
    "name": (str, "a text"),
    "older_than_days": (Annotated[int, msgspec.Meta(ge=1, le=100_000)], "a whole number from 1 to 100,000"),
    "category": (str, "a text"),
    "items": (list[str | int], "a list of item ids"),
    "users": (list[str | int], "a list of user ids"),
}


class Rule(NamedTuple):
    """The conditions that a purchase must meet to be forgotten; None for no condition."""

    name: str
    older_than_days: int | None = None
    category: str | None = None
    items: Sequence[Id] | None = None
    users: Sequence[Id] | None = None


class Rules(NamedTuple):
    """A shop's rules, and the unit of its times since 1970."""

    rules: Sequence[Rule]
    time_unit: str = "s"


def read_rules(path: Path) -> Rules:
    """Read the rules in a TOML file, with the users in the files that it names."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise RetentionError(f"cannot read the rules in {path}: {error.strerror}") from error
    try:
        return parse_rules(text, path.parent)
    except RetentionError as error:
        raise RetentionError(f"{path}: {error}") from error


def parse_rules(text: bytes | str, folder: Path | None = None) -> Rules:
    r"""Parse the rules in a TOML text. Files of users are in the folder; without a folder, users must be listed.

    >>> parse_rules("[[rule]]\nolder = 30")
    Traceback (most recent call last):
    unbasket.errors.RetentionError: Unknown field `older` in rule 1. Did you mean `older_than_days`?
    """
    if len(text) > MAX_RULES:
        raise RetentionError(f"The rules have more than {MAX_RULES:,} characters. Split them, or name files of users")
    try:
        stated = decode_toml(text, dict[str, Any])
    except ValueError as error:
        raise RetentionError(f"The rules are not valid TOML: {error}") from error
    unit, rules = stated.pop("time_unit", "s"), stated.pop("rule", [])
    if stated:
        raise RetentionError(_unknown_field(min(stated), "", ("time_unit", "rule")))
    if unit not in list(UNITS):
        raise RetentionError(f"`time_unit` must be one of {', '.join(UNITS)}, not {unit!r}")
    if not isinstance(rules, list) or not rules or not all(isinstance(fields, dict) for fields in rules):
        raise RetentionError("There are no rules. Begin each with a line [[rule]], in double brackets")
    return Rules([_read_rule(fields, number, folder) for number, fields in enumerate(rules, 1)], unit)


def _read_rule(fields: dict[str, Any], number: int, folder: Path | None) -> Rule:
    where = f"rule {fields['name']!r}" if isinstance(fields.get("name"), str) else f"rule {number}"
    unknown = fields.keys() - _FIELDS.keys()
    if unknown:
        raise RetentionError(_unknown_field(min(unknown), f" in {where}", _FIELDS))
    for name in ("items", "users"):
        if fields.get(name) == []:
            meaning = ": without it, the rule is for all users" if name == "users" else ""
            raise RetentionError(f"In {where}, `{name}` is an empty list. Name some, or take the line out{meaning}")
    if isinstance(fields.get("users"), str) and folder is not None:
        fields["users"] = _read_users(folder / fields["users"], where)
    for name, value in fields.items():
        kind, meaning = _FIELDS[name]
        if name == "users" and folder is not None:
            meaning += ", or the name of a CSV file"
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise RetentionError(f"In {where}, `{name}` must be {meaning}, not {value!r}") from error
    return checked(Rule(**{"name": f"rule {number}"} | fields), where)


def _unknown_field(name: str, where: str, known: Iterable[str]) -> str:
    """Return the error message for an unknown field, with the field that is probably meant."""
    near = [field for field in known if name and name in field] or get_close_matches(name, list(known), 1)
    hint = f"Did you mean `{near[0]}`?" if near else f"There may be {', '.join(known)}."
    return f"Unknown field `{name}`{where}. {hint}"


def checked(rule: Rule, where: str) -> Rule:
    """Return the rule; an error if it has too few conditions, and would forget everything, or too many."""
    if rule.older_than_days is None and rule.category is None and rule.items is None:
        raise RetentionError(f"In {where}, state what to forget: older_than_days, category or items")
    if rule.category is not None and rule.items is not None:
        raise RetentionError(f"In {where}, state a category or items, and the other one in a rule of its own")
    return rule


def _read_users(path: Path, where: str) -> list[str]:
    """Read the ids in the column `user`; without a column of this name, in the first one, from the first line on.

    A heading of another name is taken for an unknown id: better than to skip a user.
    """
    line = 1
    rows: list[tuple[int, list[str]]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                rows.append((line, row))
                line = reader.line_num + 1
    except OSError as error:
        raise RetentionError(f"In {where}, the users in {path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise RetentionError(f"In {where}, {path} is not a CSV file in UTF-8: {error}") from error
    except csv.Error as error:  # the one that begins on this line
        raise RetentionError(f"In {where}, line {line} of {path} has a quote that is never closed ({error})") from error
    rows = [(line, row) for line, row in rows if row]
    column = rows.pop(0)[1].index("user") if rows and "user" in rows[0][1] else 0
    for line, row in rows:
        if len(row) <= column or not row[column]:
            raise RetentionError(f"In {where}, line {line} of {path} has no user")
    return [row[column] for _, row in rows]
