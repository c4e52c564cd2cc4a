"""Settings from flags, the environment and a file."""

from pathlib import Path

import pytest
from tests.cli.running import error

from unbasket.errors import SettingsError
from unbasket.service.settings import Settings


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("port = ", "is not TOML"),
        ("prot = 80", "unknown setting 'prot'"),
        ('port = "80"', "port cannot be '80'"),
        ("port = 99999", "port cannot be 99999"),
    ],
)
def test_an_invalid_settings_file(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(content)
    assert complaint in error("serve", "--db", tmp_path / "shop.db", "--config", file)


def test_flags_override_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('db = "a.db"\nport = 1\nthreads = 2\ntimeout = 3\n')
    environment = {"UNBASKET_PORT": "10", "UNBASKET_THREADS": "20", "UNBASKET_OTHER": "?"}
    settings = Settings.gathered({"port": 100, "host": None}, environment, file)
    assert (settings.port, settings.threads, settings.timeout, settings.grace) == (100, 20, 3, 10)
    assert settings.db == tmp_path / "a.db"
    assert settings.access_file == tmp_path / "a.db-access.toml"
    assert settings.host == "127.0.0.1"


def test_an_invalid_variable_is_named() -> None:
    with pytest.raises(SettingsError, match="UNBASKET_PORT: port cannot be 'http'"):
        Settings.gathered({"db": "shop.db"}, {"UNBASKET_PORT": "http"})


def test_a_database_is_needed() -> None:
    with pytest.raises(SettingsError, match="which database"):
        Settings.gathered({}, {})


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.8.0.1", "::1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "", "192.168.1.4", "localhost.example")],
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert Settings(db=Path("shop.db"), host=host).on_loopback is loopback
