"""The identity of a stream's checkpoint: the model's parameters, the types of ids, and a secret key.

RocksDB's manifest keeps the smallest and largest key of every file for a while, even after those keys are deleted. So
the state is keyed by an HMAC of the user's id, under a secret key that is created with the checkpoint.
"""

import hmac
import json
import secrets
from dataclasses import asdict
from typing import Any, NamedTuple

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql

from unbasket.errors import InvalidParamsError, SparkError
from unbasket.params import LEARNED, MAX_SEED, Params

_FILE = "unbasket.json"
_BLOCK = 64  # bytes in a block of SHA-256
_SIZE = 16  # bytes of a state key: no collision is expected among 2^40 users


class Identity(NamedTuple):
    """The content of the file in the checkpoint's folder."""

    params: Params
    kinds: dict[str, str]
    key: bytes

    @property
    def name(self) -> str:
        """A name of the checkpoint, by which a sink recognizes its batches."""
        return hmac.digest(self.key, b"name", "sha256").hex()


DEFAULT_ALPHA = 0.8
"""The alpha of a new model on Spark, if none is given."""


def require_number(params: Params) -> None:
    """Raise an error if weights are to be learned, which Spark can't do yet."""
    if params.alpha == LEARNED:
        raise InvalidParamsError(
            f'alpha="learned" is not available on Spark yet. Give a number, as in Params(alpha={DEFAULT_ALPHA})'
        )


def identify(
    spark: SparkSession, checkpoint: str, params: Params | None = None, kinds: dict[str, str] | None = None
) -> Identity:
    """Read the identity of a checkpoint.

    With `params` and `kinds`, a missing checkpoint is created. An existing one must have been created with these
    parameters; its types of ids stay.
    """
    if params is not None:
        require_number(params)
    context: Any = spark.sparkContext
    files = context._jvm.org.apache.hadoop.fs
    path = files.Path(files.Path(checkpoint), _FILE)
    system = path.getFileSystem(context._jsc.hadoopConfiguration())
    if not system.exists(path):
        if params is None or kinds is None:
            raise SparkError(f"{checkpoint} is not a checkpoint of unbasket: there is no {_FILE} in it")
        params = params.seeded(secrets.randbelow(MAX_SEED + 1))
        _create(files, system, path, {"params": asdict(params), "kinds": kinds, "key": secrets.token_hex(32)})
    stream = system.open(path)
    try:
        fields = json.loads(bytes(stream.readAllBytes()))
    finally:
        stream.close()
    identity = Identity(Params(**fields["params"]), fields["kinds"], bytes.fromhex(fields["key"]))
    if params is not None and params.seeded(identity.params.pool_seed or 0) != identity.params:
        raise SparkError(
            f"{checkpoint} was made with {identity.params}, not with {params}. Use its own, or a new checkpoint"
        )
    return identity


def _create(files: Any, system: Any, path: Any, fields: dict[str, Any]) -> None:
    """Write the file atomically, readable by its owner only."""
    partial = files.Path(f"{path}-partial")
    stream = system.create(partial, True)
    stream.write(bytearray(json.dumps(fields).encode()))
    stream.close()
    system.setPermission(partial, files.permission.FsPermission("600"))
    if not system.rename(partial, path):
        raise SparkError(f"cannot write {path}")


def state_key(user: Column, key: bytes) -> Column:
    """Return the state key of a user: HMAC-SHA256 of the id, computed by Spark, since Python would cost more."""
    inner, outer = (bytes(byte ^ pad for byte in key.ljust(_BLOCK, b"\0")) for pad in (0x36, 0x5C))
    message = sql.coalesce(user.cast("string"), sql.lit("")).cast("binary")
    hashed = _sha256(sql.concat(sql.unhex(sql.lit(inner.hex())), message))
    return sql.substring(_sha256(sql.concat(sql.unhex(sql.lit(outer.hex())), hashed)), 1, _SIZE)


def bucket_of(key: Column) -> Column:
    """Return the bucket of a state key: one of 256."""
    return sql.substring(key, 1, 1)


def _sha256(message: Column) -> Column:
    return sql.unhex(sql.sha2(message, 256))
