"""The manifest of a state: the names of its files as of a batch, and the commit of a batch as its next version.

Each version is a file with a number in its name, and the newest counts. To commit is to create the next one, which
only one driver can. A driver that opens the state creates a version too, so the commit of an earlier driver fails. The
number of that version is the driver's *epoch*, with which the names of its files begin: a driver removes files of its
own and of earlier epochs only.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Self
from uuid import uuid4

from unbasket.errors import InvalidRequestError, SparkError
from unbasket.params import MAX_SEED, Params
from unbasket.spark.storage import Folder

NO_BATCH = -1
"""The batch of a state that no batch has changed."""

_VERSION = "manifest-"


@dataclass(frozen=True)
class Manifest:
    """A version of the state: its parameters and types of ids, the last batch in it, and its files.

    A file holds the base of a stripe or the delta of a batch, of one shard; its name has all of these.
    """

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
    def read(cls, folder: Folder, name: str) -> Self:
        """Read a version."""
        fields: dict[str, Any] = json.loads(folder.read_bytes(name))
        return cls(**(fields | {"params": Params(**fields["params"]), "files": tuple(fields["files"])}))

    def create(self, folder: Folder) -> bool:
        """Write this version; return False if it exists."""
        return folder.create(self.name, json.dumps(asdict(self)).encode(), f"{self.epoch:010d}-partial")

    @property
    def name(self) -> str:
        """The name of the file of this version."""
        return f"{_VERSION}{self.version:012d}.json"

    def new_file(self, shard: int, kind: str, number: int) -> str:
        """Return a new name for the base of a stripe or the delta of a batch, different in each attempt."""
        return f"{self.epoch:010d}-{shard}-{kind}-{number}-{uuid4().hex}.arrow"

    def files_of(self, shard: int) -> dict[tuple[str, int], str]:
        """Return the files of a shard, by kind and number."""
        parts = [(name, *name.split("-")) for name in self.files]
        return {(kind, int(number)): name for name, _, owner, kind, number, _ in parts if int(owner) == shard}

    def next(self, **changes: Any) -> Self:
        """Return the next version."""
        return replace(self, version=self.version + 1, **changes)

    def after(self, batch: int, written: Iterable[str], **counts: int) -> Self:
        """Return the next version, with a batch's files, without those that they replace and the oldest deltas."""
        files = {}
        for name in (*self.files, *written):
            _, shard, kind, number, _ = name.split("-")
            if kind == "base" or int(number) > batch - self.stripes + 1:
                files[shard, kind, number] = name
        return self.next(batch=batch, files=tuple(files.values()), **counts)


class State:
    """The state in a checkpoint's folder, as of a version or, by default, the newest one."""

    def __init__(self, checkpoint: str, version: str | None = None) -> None:
        self.checkpoint = checkpoint
        self.folder = Folder(checkpoint, "histories")
        found = newest(self.folder) if version is None else Manifest.read(self.folder, version)
        if found is None:
            raise SparkError(f"{checkpoint} is not a checkpoint of unbasket: it has no histories")
        self.manifest = found

    @classmethod
    def create(cls, checkpoint: str, params: Params, kinds: dict[str, str], shards: int, stripes: int) -> Self:
        """Open the state of a checkpoint, which must have these parameters, or create it. Its types of ids stay."""
        for name, count, least in (("shards", shards, 1), ("stripes", stripes, 2)):
            if count < least:
                raise InvalidRequestError(f"{name} must be at least {least}, not {count}")
        folder = Folder(checkpoint, "histories")
        folder.make()
        if newest(folder) is None:
            Manifest(params.seeded(secrets.randbelow(MAX_SEED + 1)), kinds, shards, stripes).create(folder)
        state = cls(checkpoint)
        if params.seeded(state.params.pool_seed or 0) != state.params:
            raise SparkError(
                f"{checkpoint} was made with {state.params}, not with {params}. Use its own, or a new checkpoint"
            )
        return state

    @property
    def params(self) -> Params:
        """The parameters of the model."""
        return self.manifest.params

    @property
    def batch(self) -> int:
        """The number of the last batch that changed the state."""
        return self.manifest.batch

    @property
    def rejected(self) -> int:
        """The number of events that were rejected so far."""
        return self.manifest.rejected

    def __len__(self) -> int:
        return self.manifest.users

    def take_over(self) -> None:
        """Begin a new epoch: the next commit of any other driver fails."""
        while not (manifest := self.manifest.next(epoch=self.manifest.version + 1)).create(self.folder):
            self.manifest = State(self.checkpoint).manifest  # two drivers start at once: the later one wins
        self.manifest = manifest
        self.clean()

    def check(self) -> None:
        """Raise an error if another driver has taken over."""
        if newest(self.folder) != self.manifest:
            raise SparkError(f"another driver has taken over {self.checkpoint}. This one has changed nothing since")

    def commit(self, manifest: Manifest) -> None:
        """Replace the manifest by its next version, unless another driver has done so."""
        if manifest.create(self.folder):
            self.manifest = manifest
        self.check()

    def clean(self) -> None:
        """Remove the files that no manifest names: replaced ones, and those of attempts that failed."""
        kept = {*self.manifest.files, self.manifest.name}
        self.folder.remove(name for name in self.folder.names() if name not in kept and not self._is_later(name))

    def _is_later(self, name: str) -> bool:
        """Return whether a file is that of a later driver."""
        return name > (self.manifest.name if name.startswith(_VERSION) else f"{self.manifest.epoch + 1:010d}")


def newest(folder: Folder) -> Manifest | None:
    """Read the newest version; None if there is none. The next one may replace it meanwhile."""
    while versions := [name for name in folder.names() if name.startswith(_VERSION)]:
        try:
            return Manifest.read(folder, max(versions))
        except FileNotFoundError:
            continue
    return None
