"""Parameters as text."""

import pytest

from unbasket.cli._shared.options import parse_params
from unbasket.errors import InvalidParamsError


def test_params_as_text() -> None:
    assert parse_params("") == {}
    assert parse_params("alpha=0.5") == {"alpha": 0.5}
    assert parse_params(" Params( group_size = 3 , grouping='varying') ") == {
        "group_size": 3,
        "grouping": "varying",
    }
    with pytest.raises(InvalidParamsError, match="not 'alpha'"):
        parse_params("alpha")
