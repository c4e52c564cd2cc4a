"""The state of a checkpoint, as of a batch: its parameters, the names of its files, and the commit of its next version.

A version is a file with a number in its name, the manifest, and the newest counts. To commit is to create the next one,
which only one driver can. A driver that takes the state over creates a version too, so the commit of an earlier driver
fails. The number of that version is the driver's *epoch*, with which the names of its files begin: a driver removes
files of its own and of earlier epochs only.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa

from unbasket.domain.history_table import history_schema
from unbasket.domain.ids import KINDS, IdTypes
from unbasket.errors import InvalidRequestError, SparkError
from unbasket.params import MAX_SEED, Params
from unbasket.spark.storage import Folder

NO_BATCH = -1
"""The batch of a state that no batch has changed."""

_MANIFEST = "manifest-"


@dataclass(frozen=True)
class State:
    """A version of the state: parameters, SQL types of ids, the last batch, users, events rejected so far, and files.

    A file holds the base of a stripe or the delta of a batch, of one shard; its name has all of these.
    """

    folder: Folder = field(compare=False)
    params: Params
    kinds: dict[str, str]
    shards: int
    stripes: int
    version: int = 0
    epoch: int = 0
    batch: int = NO_BATCH
    users: int = 0
    rejected: int = 0
    files: tuple[str, ...] = ()

    @classmethod
    def read(cls, checkpoint: str | Folder) -> Self:
        """Read the newest version."""
        folder = Folder(checkpoint) if isinstance(checkpoint, str) else checkpoint
        while versions := [name for name in folder.names() if name.startswith(_MANIFEST)]:
            try:
                fields: dict[str, Any] = json.loads(folder.read(max(versions)).to_pybytes())
            except FileNotFoundError:  # the next one has replaced it meanwhile
                continue
            return cls(folder, **fields | {"params": Params(**fields["params"]), "files": tuple(fields["files"])})
        raise SparkError(f"{folder.checkpoint} is not a checkpoint of unbasket: it has no histories")

    @classmethod
    def create(cls, checkpoint: str, params: Params, kinds: dict[str, str], shards: int, stripes: int) -> Self:
        """Read the state of a checkpoint, which must have these parameters, or create it. Its types of ids stay."""
        for name, count, least in (("shards", shards, 1), ("stripes", stripes, 2)):
            if count < least:
                raise InvalidRequestError(f"{name} must be at least {least}, not {count}")
        folder = Folder(checkpoint)
        folder.make()
        if not any(name.startswith(_MANIFEST) for name in folder.names()):
            cls(folder, params.seeded(secrets.randbelow(MAX_SEED + 1)), kinds, shards, stripes)._write()
        state = cls.read(folder)
        if params.seeded(state.params.pool_seed or 0) != state.params:
            raise SparkError(
                f"{checkpoint} was made with {state.params}, not with {params}. Use its own, or a new checkpoint"
            )
        return state

    @classmethod
    def take_over(cls, checkpoint: str) -> Self:
        """Begin a new epoch: the next commit of any other driver fails."""
        while True:  # if two drivers start at once, the later one wins
            newest = cls.read(checkpoint)
            state = replace(newest, version=newest.version + 1, epoch=newest.version + 1)
            if state._write():
                state.clean()
                return state

    @property
    def types(self) -> IdTypes:
        """The types of ids in Python."""
        return IdTypes(*(str if self.kinds[kind] == "string" else int for kind in KINDS))

    @property
    def schema(self) -> pa.Schema:
        """The schema of histories."""
        return history_schema(self.types)

    @property
    def manifest(self) -> str:
        """The name of the file of this version."""
        return f"{_MANIFEST}{self.version:012d}.json"

    def new_file(self, shard: int, kind: str, number: int) -> str:
        """Return a new name for the base of a stripe or the delta of a batch, different in each attempt."""
        return f"{self.epoch:010d}-{shard}-{kind}-{number}-{uuid4().hex}.arrow"

    def files_of(self, shard: int, kind: str) -> dict[int, str]:
        """Return the bases of a shard by stripe, or its deltas by batch."""
        parts = [(name, *name.split("-")) for name in self.files]
        return {int(number): name for name, _, *owner, number, _ in parts if owner == [str(shard), kind]}

    def after(self, batch: int, written: Iterable[str], **counts: Any) -> Self:
        """Return the next version, with a batch's files, without those that they replace and the oldest deltas."""
        files = {}
        for name in (*self.files, *written):
            _, shard, kind, number, _ = name.split("-")
            if kind == "base" or int(number) > batch - self.stripes + 1:
                files[shard, kind, number] = name
        return replace(self, version=self.version + 1, batch=batch, files=tuple(files.values()), **counts)

    def commit(self) -> None:
        """Make this version the newest one, unless another driver has taken over."""
        self._write()
        self.check()

    def check(self) -> None:
        """Raise an error if this is not the newest version: another driver has taken over."""
        if State.read(self.folder) != self:
            raise SparkError(f"another driver has taken over {self.folder.checkpoint}. This one changes nothing more")

    def clean(self) -> None:
        """Remove the files that this version does not name: replaced ones, and those of attempts that failed."""
        for name in {*self.folder.names()} - {*self.files, self.manifest}:
            later = self.manifest if name.startswith(_MANIFEST) else f"{self.epoch + 1:010d}"
            if name < later:  # files of later drivers stay
                self.folder.remove(name)

    def _write(self) -> bool:
        """Create the file of this version; return False if it exists."""
        fields = {**vars(self), "params": asdict(self.params)}
        del fields["folder"]
        return self.folder.create(self.manifest, json.dumps(fields).encode(), f"{self.epoch:010d}-partial")
