"""The settings of the service, from flags, the environment and a file."""

import ipaddress
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec

from unbasket.domain.decoding import decode_toml
from unbasket.domain.privacy import PrivacyThreshold
from unbasket.domain.times import EPOCH, UNITS
from unbasket.engine.cold_start import ColdStart
from unbasket.errors import SettingsError

PREFIX = "UNBASKET_"

CHANGEABLE = frozenset(
    {"max_body", "max_id_bytes", "rate", "public_rate", "timeout", "grace"}
    | {"fallback", "fallback_days", "fallback_category", "time_unit", "default_time", "privacy_threshold"}
)
"""The settings that can change at run time; others need a restart."""

_PATHS = ("db", "access", "tls_cert", "tls_key", "client_ca", "witness")


class Settings(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The settings by the names that flags, environment and file share."""

    db: Path
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8000
    access: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    witness: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    timestamp: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    threads: Annotated[int, msgspec.Meta(ge=1, le=256)] = 16
    connections: Annotated[int, msgspec.Meta(ge=2)] = 1000
    max_body: Annotated[int, msgspec.Meta(ge=1024)] = 8 * 1024 * 1024
    max_id_bytes: Annotated[int, msgspec.Meta(ge=64)] = 256
    rate: Annotated[float, msgspec.Meta(ge=0)] | None = None
    public_rate: Annotated[float, msgspec.Meta(ge=0)] | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 30
    grace: Annotated[float, msgspec.Meta(ge=0)] = 10
    fallback: Literal["popular", "nothing"] = "popular"
    fallback_days: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    fallback_category: str | None = None
    time_unit: Literal["s", "ms", "us", "day"] = "s"
    default_time: Literal["now", "none"] = "now"
    privacy_threshold: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 10

    def changes(self, wanted: "Settings") -> tuple[dict[str, Any], list[str]]:
        """Return the other values in `wanted` that can be used at run time, and the names of those that can't."""
        former, values = msgspec.structs.asdict(self), msgspec.structs.asdict(wanted)
        different = {name: value for name, value in values.items() if value != former[name]}
        changed = {name: value for name, value in different.items() if name in CHANGEABLE}
        return changed, sorted(different.keys() - changed.keys())

    @cached_property
    def privacy(self) -> PrivacyThreshold | None:
        """The threshold for shoppers and visitors, if there is one."""
        buyers = self.privacy_threshold
        return PrivacyThreshold(buyers, math.ceil(buyers / 2)) if buyers else None

    @cached_property
    def cold_start(self) -> ColdStart:
        """The recommendations for unknown users."""
        return ColdStart(self.fallback == "nothing", self.fallback_days, self.fallback_category, self.time_unit)

    def now(self) -> int | None:
        """Return the time of a new basket that comes without one: the clock's, or None if it shall have none."""
        return (datetime.now(UTC) - EPOCH) // UNITS[self.time_unit] if self.default_time == "now" else None

    @property
    def access_file(self) -> Path:
        """The key file."""
        return self.access or access_of(self.db)

    @property
    def on_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        with suppress(ValueError):
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        return False

    @classmethod
    def gathered(
        cls, flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ, file: Path | None = None
    ) -> Self:
        """Gather settings: flags override the environment, which overrides the file. A flag may be None."""
        written, values = _read(file) if file else {}, dict[str, Any]()
        for setting in msgspec.structs.fields(cls):
            name, variable, flag = setting.name, PREFIX + setting.name.upper(), "--" + setting.name.replace("_", "-")
            found = {str(file): written.get(name), variable: environment.get(variable), flag: flags.get(name)}
            for source, value in found.items():
                if value is not None:
                    values[name] = _converted(setting, value, source)
        if "db" not in values:
            raise SettingsError(f"which database? Give --db shop.db, {PREFIX}DB, or db in the settings file")
        return cls(**values)


def access_of(db: Path) -> Path:
    """Return the default key file of a database."""
    return db.with_name(db.name + "-access.toml")


def _read(file: Path) -> dict[str, Any]:
    """Read a file. Its paths are relative to it."""
    try:
        values = decode_toml(file.read_bytes(), dict[str, Any])
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise SettingsError(f"{file} is not TOML: {error}") from error
    unknown = sorted(set(values) - set(Settings.__struct_fields__))
    if unknown:
        known = ", ".join(Settings.__struct_fields__)
        raise SettingsError(f"{file} has the unknown setting {unknown[0]!r}. There are {known}")
    for name in _PATHS:
        value = values.get(name)
        if isinstance(value, str) and not (name == "witness" and value.startswith(("http://", "https://"))):
            values[name] = str(file.parent / value)
    return values


def _converted(setting: msgspec.structs.FieldInfo, value: Any, source: str) -> Any:
    """Convert a value to the type of its setting. Numbers may be text in the environment only."""
    try:
        return msgspec.convert(value, setting.type, strict=not source.startswith(PREFIX), dec_hook=_path)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{source}: {setting.name} cannot be {value!r} ({str(error).lower()})") from error


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str | Path) and value:
        return Path(value)
    raise ValueError("expected a path")
