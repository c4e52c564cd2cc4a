"""Runs what is not there yet, and writes the report."""

from collections.abc import Collection, Sequence
from pathlib import Path
from time import perf_counter
from typing import Protocol

from unbasket.datasets import MissingDatasetError, published_path
from unbasket.errors import InvalidRequestError
from unbasket.reproduction.environment import environment
from unbasket.reproduction.experiments import DATASETS, PARTS, Part
from unbasket.reproduction.report import write_report
from unbasket.reproduction.result_cache import Ledger
from unbasket.reproduction.settings import Settings
from unbasket.reproduction.workloads import SINGLE_ITEM


class Observer(Protocol):
    """Is told how far a run is."""

    def missing(self, dataset: str, reason: str) -> None:
        """A dataset is not on this machine: whatever is made on it is left out."""

    def task(self, number: int, total: int, part: str, dataset: str, *, stored: bool) -> None:
        """The run turns to a part on a dataset; `stored`: its result is there already."""

    def step(self, what: str, done: int, total: int) -> None:
        """Progress within the task."""


def reproduce(
    out: Path,
    settings: Settings,
    observer: Observer,
    *,
    only: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> Path:
    """Make the parts `only` (all, if none is named) on the `datasets`, and the report; the path of its HTML file.

    A result that the folder holds already, made with the same settings and versions, is not computed again. What
    needs a dataset that is not on this machine is left out, and the report says so; it is an error if the dataset
    was named, or if nothing is left.
    """
    ledger, made_with = Ledger(out), environment()
    tasks = _tasks(settings, only, datasets)
    missing = _missing({dataset for _, dataset in tasks})
    for dataset, error in missing.items():
        if dataset in datasets or all(needed in missing for _, needed in tasks):
            raise error
        observer.missing(dataset, str(error))
    tasks = [(part, dataset) for part, dataset in tasks if dataset not in missing]
    for number, (part, dataset) in enumerate(tasks, 1):
        stored = ledger.has(part.name, dataset, settings, made_with)
        observer.task(number, len(tasks), part.name, dataset, stored=stored)
        if not stored:
            started = perf_counter()
            rows = part.run(dataset, settings, observer.step)
            ledger.keep(part.name, dataset, settings, made_with, perf_counter() - started, rows)
    return write_report(out, ledger, [str(error) for error in missing.values()])


def _tasks(settings: Settings, only: Sequence[str], datasets: Sequence[str]) -> list[tuple[Part, str]]:
    _check("part", only, PARTS)
    _check("dataset", datasets, DATASETS)
    tasks = []
    for part in PARTS.values():
        if only and part.name not in only:
            continue
        usual = part.quick if settings.quick else part.datasets
        tasks += [(part, name) for name in part.datasets if name in (datasets or usual)]
    if not tasks:
        raise InvalidRequestError(f"{', '.join(only)} is not made on {', '.join(datasets)}")
    return tasks


def _missing(datasets: Collection[str]) -> dict[str, MissingDatasetError]:
    missing = {}
    for dataset in sorted(set(datasets) - {SINGLE_ITEM}):
        try:
            published_path(dataset)
        except MissingDatasetError as error:
            missing[dataset] = error
    return missing


def _check(what: str, given: Sequence[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise InvalidRequestError(f"{what} must be one of {', '.join(known)}, not {name!r}")
