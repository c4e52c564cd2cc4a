"""Files of client options, and lines that are none."""

from pathlib import Path

import pytest

from unbasket.cli._shared.client_options import read_client_options
from unbasket.errors import SettingsError


def test_a_file_of_client_options(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# a comment\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b\n")
    assert read_client_options(file) == {"security.protocol": "SASL_SSL", "sasl.password": "a=b"}
    file.write_text("security.protocol=SSL\nsecret")
    with pytest.raises(SettingsError, match=r"client.properties, line 2: an option is written as name=value$"):
        read_client_options(file)
    with pytest.raises(SettingsError, match="cannot read"):
        read_client_options(tmp_path / "missing")
