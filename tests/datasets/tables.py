"""Functions that write and read tables for tests."""

from pathlib import Path

from unbasket.datasets import Dataset


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def rows(dataset: Dataset) -> list[tuple[object, ...]]:
    return dataset.history.rows()
