"""Keysets: the users whom other groups' evaluations train on, validate with and test on, as JSON files.

A keyset is an object with the lists `train`, `val` and `test` of user ids, mostly as texts. The files come with the
code of "A Next Basket Recommendation Reality Check" (`liming-7/A-Next-Basket-Recommendation-Reality-Check`) and of the
repeat-bias study of the University of Amsterdam (`lynEcho/Repbias_NBR`). Their data is filtered already, so all users
of a keyset and all items of the data are taken as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.protocols import PROTOCOLS, EvaluationProtocol, Split, sorted_users

_LISTS = ("train", "val", "test")


class _File(msgspec.Struct):
    train: list[str | int]
    val: list[str | int]
    test: list[str | int]


@dataclass(frozen=True, slots=True)
class Keyset:
    """Users by role; ids as texts, since the files have texts where the data has numbers."""

    name: str
    train: frozenset[str]
    val: frozenset[str]
    test: frozenset[str]


def read_keyset(source: Any) -> Keyset:
    """Read a keyset from a JSON file or from a mapping with the lists train, val and test."""
    name = str(source) if isinstance(source, str | Path) else "the keyset"
    try:
        raw = Path(source).read_bytes() if isinstance(source, str | Path) else msgspec.json.encode(source)
        file = msgspec.json.decode(raw, type=_File)
    except OSError as error:
        raise InvalidRequestError(f"cannot read the keyset {name}: {error.strerror}") from error
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError) as error:
        raise InvalidRequestError(
            f"{name} is not a keyset: {error}. It needs the lists {', '.join(_LISTS)} of user ids"
        ) from error
    return Keyset(name, *(frozenset(map(str, getattr(file, role))) for role in _LISTS))


def read_keysets(source: Any) -> list[Keyset]:
    """Read no keyset (None), one, or a list of them."""
    sources = source if isinstance(source, list | tuple) else [] if source is None else [source]
    return [read_keyset(each) for each in sources]


def train_split(history: pl.DataFrame, future: pl.DataFrame, keyset: Keyset) -> Split:
    """Query the keyset's test users; only its training users are candidates."""
    return Split(_queries(history, future, keyset), _listed(sorted_users(history), keyset.train, keyset))


def everyone_split(history: pl.DataFrame, future: pl.DataFrame, keyset: Keyset) -> Split:
    """Query the keyset's test users; every user with a history is a candidate."""
    return Split(_queries(history, future, keyset), sorted_users(history))


def _queries(history: pl.DataFrame, future: pl.DataFrame, keyset: Keyset) -> pl.Series:
    return _listed(sorted_users(history.join(future, on="user", how="semi")), keyset.test, keyset)


def _listed(users: pl.Series, wanted: frozenset[str], keyset: Keyset) -> pl.Series:
    """Return the users that are wanted, all of whom the data must have: a figure over some of them is another one."""
    ids = users.cast(pl.String)
    missing = wanted.difference(ids)
    if missing:
        raise InvalidRequestError(
            f"{keyset.name} lists user {min(missing)!r}, who has no history and future in the data ({len(missing):,} "
            "such users). Give the data that the keyset belongs to"
        )
    return users.filter(ids.is_in(sorted(wanted)))


KEYSET_PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        EvaluationProtocol(
            name="reality-check",
            summary="the test users of a keyset, neighbors from its training users only",
            split=train_split,
            ndcg="hu",
        ),
        EvaluationProtocol(
            name="uva", summary="the test users of a keyset, neighbors from all users", split=everyone_split, ndcg="hu"
        ),
    )
}
"""Protocols whose splits have a further argument, the keyset."""


def named_protocols(name: str, keysets: Sequence[Keyset] = ()) -> list[EvaluationProtocol]:
    """Return the protocol of a name or, if it needs keysets, one protocol for each of them."""
    if name in KEYSET_PROTOCOLS:
        if not keysets:
            raise InvalidRequestError(f"protocol {name!r} needs a keyset: a JSON file with lists of users")
        protocol = KEYSET_PROTOCOLS[name]
        return [replace(protocol, split=partial(protocol.split, keyset=keyset)) for keyset in keysets]
    if name not in PROTOCOLS:
        raise InvalidRequestError(f"protocol must be one of {', '.join([*PROTOCOLS, *KEYSET_PROTOCOLS])}, not {name!r}")
    if keysets:
        raise InvalidRequestError(f"a keyset is for the protocols {' and '.join(KEYSET_PROTOCOLS)}, not for {name!r}")
    return [PROTOCOLS[name]]
