"""Retention: plan and run the rules by which a shop forgets.

file -> rules -> plan (changes nothing) -> run (forgets, with receipts)
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from itertools import chain
from time import perf_counter
from typing import NamedTuple, cast

from unbasket.domain.events import Forget
from unbasket.domain.ids import Id
from unbasket.domain.results import Basket, Forgotten, Progress
from unbasket.domain.times import EPOCH, UNITS, time_before
from unbasket.errors import RetentionError, UnknownUserError
from unbasket.store.durable import DurableRecommender
from unbasket.store.rules import Rule, Rules, checked

_CHUNK = 1000  # events to a transaction and an erasure, at most
_TIME_LIMIT = 0.05  # seconds that other writers should wait for one: with long histories, it has fewer events

_FIRST_TILL = datetime(1980, 1, 1, tzinfo=UTC)  # a shop whose newest basket is older has stated a wrong unit


@dataclass
class RulePlan:
    """The events of one rule, and how many purchases, in how many baskets of how many users, they forget.

    Purchases that an earlier rule forgets are not counted again. `untimed` baskets meet all conditions of the rule but
    the age, which is unknown.
    """

    name: str
    events: list[Forget] = field(default_factory=list)
    users: int = 0
    baskets: int = 0
    purchases: int = 0
    untimed: int = 0
    warnings: list[str] = field(default_factory=list)


class Plan(NamedTuple):
    """The plans of all rules, and the sum of what they forget: purchases, and baskets and users without any left.

    `share` is their share of all purchases, from 0 to 1.
    """

    rules: list[RulePlan]
    forgotten: Forgotten
    share: float

    @property
    def events(self) -> list[Forget]:
        """All events, rule after rule."""
        return list(chain.from_iterable(rule.events for rule in self.rules))


class _Scope(NamedTuple):
    """A rule's conditions in terms of the engine: ids that it holds, and the time before which baskets are old."""

    users: set[Id] | None
    items: set[Id] | None
    before: int | None

    def concerns(self, user: Id) -> bool:
        return self.users is None or user in self.users

    def items_in(self, basket: Basket) -> tuple[Id, ...]:
        """Return the items of a basket that the rule is about, whatever the basket's age."""
        if self.items is None:
            return basket.items
        if self.items.isdisjoint(basket.items):
            return ()
        return tuple(item for item in basket.items if item in self.items)

    def is_old(self, basket: Basket) -> bool:
        return self.before is None or (basket.time is not None and basket.time < self.before)

    def events(self, user: Id, hits: list[Basket]) -> list[Forget]:
        """Return events that forget these purchases, and no others even if baskets are learned meanwhile."""
        if self.items is None:
            return [Forget(user, hit.basket, None) for hit in hits]
        if self.before is None:
            return [Forget(user, None, item) for item in dict.fromkeys(item for hit in hits for item in hit.items)]
        return [Forget(user, hit.basket, item) for hit in hits for item in hit.items]


def plan(rec: DurableRecommender, rules: Rules, now: datetime) -> Plan:
    """Plan the forgets of the rules, in their order; `now` has a time zone. Nothing is changed."""
    plans = [RulePlan(rule.name) for rule in rules.rules]
    unit = UNITS[rules.time_unit]
    scopes = [_scope(rec, rule, unit, now, found) for rule, found in zip(rules.rules, plans, strict=True)]
    held, baskets, users, times = rec.sizes().purchases, 0, 0, set[int]()
    for user in rec.users():
        concerned = [(scope, found) for scope, found in zip(scopes, plans, strict=True) if scope.concerns(user)]
        if concerned:
            history = left = _history(rec, user)
            for scope, found in concerned:
                left = _take(scope, user, left, found)
            baskets += len(history) - len(left)
            users += len(history) > 0 and not left
            times.update(basket.time for basket in history if basket.time is not None)
    for scope, found in zip(scopes, plans, strict=True):
        if scope.before is not None:
            _check_times(times, rules.time_unit, now, found)
    purchases = sum(found.purchases for found in plans)
    return Plan(plans, Forgotten(purchases, baskets, users), min(1, purchases / max(1, held)))


def _history(rec: DurableRecommender, user: Id) -> list[Basket]:
    try:
        return rec.history(user)
    except UnknownUserError:  # forgotten meanwhile, by another thread
        return []


def _take(scope: _Scope, user: Id, history: list[Basket], found: RulePlan) -> list[Basket]:
    """Add the purchases of a history that a rule forgets to its plan; return the rest of the history."""
    hits, left = [], []
    for basket in history:
        items = scope.items_in(basket)
        if items and scope.is_old(basket):
            hits.append(Basket(basket.basket, basket.time, items))
            if len(items) < len(basket.items):
                taken = set(items)
                left.append(basket._replace(items=tuple(item for item in basket.items if item not in taken)))
        else:
            found.untimed += scope.before is not None and basket.time is None and len(items) > 0
            left.append(basket)
    found.events += scope.events(user, hits)
    found.users += len(hits) > 0
    found.baskets += len(hits)
    found.purchases += sum(len(hit.items) for hit in hits)
    return left


def _scope(rec: DurableRecommender, rule: Rule, unit: timedelta, now: datetime, found: RulePlan) -> _Scope:
    """Resolve a rule's conditions to ids that the engine holds; other ids give a warning."""
    checked(rule, f"rule {rule.name!r}")  # it may not come from a text
    users = items = before = None
    if rule.users is not None:
        users = _held(rule.users, rec.users())
        listed = len(set(map(str, rule.users)))
        unknown = listed - len(users)
        if unknown:
            found.warnings.append(f"listed users without baskets here: {unknown:,} of {listed:,}")
    if rule.category is not None:
        items = _held(_items_of(rec, rule.category, found), rec.items())
    if rule.items is not None:
        items = _held(rule.items, rec.items())
    if rule.older_than_days is not None:
        before = time_before(now, rule.older_than_days, unit)
    return _Scope(users, items, before)


def _items_of(rec: DurableRecommender, category: str, found: RulePlan) -> list[Id]:
    """Return the items of a category; a warning if it has none, by mistake or since all were forgotten."""
    categories = rec.catalog.categories()
    if category not in categories:
        by_lower = {name.lower(): name for name in categories}
        near = [by_lower[name] for name in get_close_matches(category.lower(), by_lower)]
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        found.warnings.append(f"nothing that anybody bought is in the category {category!r}{hint}")
    return categories.get(category, [])


def _held(wanted: Iterable[Id], known: list[Id]) -> set[Id]:
    """Return the wanted ids, in any spelling, that are known."""
    texts = set(map(str, wanted))
    return {name for name in known if str(name) in texts}


def _check_times(times: set[int], time_unit: str, now: datetime, found: RulePlan) -> None:
    """Warn of baskets without a time, and of a wrong unit: with that, all baskets are too old, or none ever is."""
    unit = UNITS[time_unit]
    if found.untimed:
        found.warnings.append(f"baskets without a time, which are never too old: {found.untimed:,}")
    if times and max(times) < (_FIRST_TILL - EPOCH) // unit:
        raise RetentionError(
            f"rule {found.name!r}: in the unit {time_unit!r} since 1970, the newest time, {max(times)}, is before "
            f"{_FIRST_TILL.year}, and every basket would be too old. Set time_unit to that of the shop's times"
        )
    if times and min(times) > (now - EPOCH) // unit:
        found.warnings.append(
            f"in the unit {time_unit!r} since 1970, even the oldest time, {min(times)}, is in the future: is this "
            "the unit of the shop's times?"
        )


class Outcome(NamedTuple):
    """The sum of what a run removed, and the number of its receipts."""

    forgotten: Forgotten
    receipts: int


def run(rec: DurableRecommender, planned: Plan, progress: Progress | None = None) -> Outcome:
    """Forget what was planned. `progress` is called with (events done, events in all).

    Each chunk is a transaction. After an error, the chunks before it are done: plan and run again for the rest.
    """
    events, results, size = planned.events, list[Forgotten](), min(16, _CHUNK)
    while len(results) < len(events):
        start = perf_counter()
        results += cast(list[Forgotten], rec.apply(events[len(results) : len(results) + size]))
        size = max(1, min(_CHUNK, 2 * size, int(size * _TIME_LIMIT / (perf_counter() - start))))
        if progress is not None:
            progress(len(results), len(events))
    return Outcome(Forgotten(*map(sum, zip(Forgotten(0, 0, 0), *results, strict=True))), len(results))
