"""The list of commands."""

from inspect import cleandoc

import pytest
from typer.testing import CliRunner

from unbasket.cli import app
from unbasket.cli.app import COMMANDS, PANELS, load, summary


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_repeats_their_help(name: str) -> None:
    assert cleandoc(load(name).help).split("\n\n")[0].replace("\n", " ") == summary(name)


def test_a_mistyped_command_is_suggested() -> None:
    result = CliRunner().invoke(app, ["recomend"])
    assert result.exit_code == 2
    assert "Did you mean 'recommend'?" in result.stderr


def test_commands_are_listed_in_panels_in_their_order() -> None:
    listed = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout
    for panel, names in PANELS.items():
        places = [listed.index(panel), *(listed.index(f"│ {name} ") for name in names)]
        assert places == sorted(places)
