"""Options of a Kafka client, such as those of TLS and SASL, which a file keeps out of the list of processes."""

from pathlib import Path

from unbasket.errors import SettingsError


def read_client_options(path: Path) -> dict[str, str]:
    """Read options from a file with lines such as security.protocol=SSL; # begins a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}") from error
    options = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = map(str.strip, line.partition("="))
        if not name or name.startswith("#"):
            continue
        if not equals:
            raise SettingsError(f"{path}, line {number}: an option is written as name=value")  # it may be a secret
        options[name] = value
    return options
