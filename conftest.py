"""Examples in Markdown and docstrings run in a folder of their own, since some of them write files."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder_of_the_example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        tmp_path: Path = request.getfixturevalue("tmp_path")
        monkeypatch.chdir(tmp_path)
