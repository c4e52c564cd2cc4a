"""What holds for every test: the project's own data, and examples that write into a folder of their own."""

import os
from pathlib import Path

import pytest

os.environ.pop("UNBASKET_DATA", None)
collect_ignore = ["docs/conf.py"]  # it is for Sphinx, which tests do without


@pytest.fixture(autouse=True)
def folder_of_the_example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        tmp_path: Path = request.getfixturevalue("tmp_path")
        monkeypatch.chdir(tmp_path)
