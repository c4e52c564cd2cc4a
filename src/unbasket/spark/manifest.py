"""The manifest of a state: the names of its files as of a batch, and the commit of a batch as its next version.

Each version is a file with a number in its name, and the newest counts. To commit is to create the next one, which
only one driver can. A driver that opens the state creates a version too, so the commit of an earlier driver fails. The
number of that version is the driver's *epoch*, with which the names of its files begin: a driver removes files of its
own and of earlier epochs only.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self
from uuid import uuid4

from unbasket.errors import SparkError
from unbasket.params import Params
from unbasket.spark.storage import Folder

_VERSION = "manifest-"


class ShardFiles(NamedTuple):
    """The files of a shard: a base for each stripe that has users, the deltas of recent batches, oldest first."""

    bases: dict[str, str]
    deltas: dict[str, str]


@dataclass(frozen=True)
class Manifest:
    """A version of the state: the last batch in it, its parameters and types of ids, and its files."""

    version: int
    epoch: int
    batch: int
    params: Params
    kinds: dict[str, str]
    stripes: int
    users: int
    rejected: int
    shards: list[ShardFiles]

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return the manifest that a file contains."""
        fields: dict[str, Any] = json.loads(content)
        shards = [ShardFiles(*shard) for shard in fields["shards"]]
        return cls(**(fields | {"params": Params(**fields["params"]), "shards": shards}))

    def next(self, **changes: Any) -> Self:
        """Return the next version."""
        return replace(self, version=self.version + 1, **changes)

    def files(self) -> set[str]:
        """Return the names of all files of this version."""
        return {_name(self.version)}.union(*({*s.bases.values(), *s.deltas.values()} for s in self.shards))

    def new_file(self, batch: int, shard: int, content: str) -> str:
        """Return a new name for a file, different in each attempt."""
        return f"{self.epoch:010d}-{batch}-{shard:05d}-{content}-{uuid4().hex}.arrow"


class State:
    """The state in a checkpoint's folder, as of a version or, by default, the newest one."""

    def __init__(self, checkpoint: str, version: int | None = None) -> None:
        self.checkpoint = checkpoint
        self.folder = Folder(checkpoint, "histories")
        found = newest(self.folder) if version is None else Manifest.of(self.folder.read_bytes(_name(version)))
        if found is None:
            raise SparkError(f"{checkpoint} is not a checkpoint of unbasket: it has no histories")
        self.manifest = found

    @classmethod
    def create(cls, checkpoint: str, manifest: Manifest) -> Self:
        """Create the state of a new checkpoint; one that exists already is left as it is."""
        folder = Folder(checkpoint, "histories")
        folder.make()
        if newest(folder) is None:
            _create(folder, manifest)
        return cls(checkpoint)

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
        while not _create(self.folder, manifest := self.manifest.next(epoch=self.manifest.version + 1)):
            self.manifest = State(self.checkpoint).manifest  # two drivers start at once: the later one wins
        self.manifest = manifest
        self.clean()

    def check(self) -> None:
        """Raise an error if another driver has taken over."""
        if newest(self.folder) != self.manifest:
            raise SparkError(f"another driver has taken over {self.checkpoint}. This one has changed nothing since")

    def commit(self, manifest: Manifest) -> None:
        """Replace the manifest by its next version, unless another driver has done so."""
        if _create(self.folder, manifest):
            self.manifest = manifest
        self.check()

    def clean(self) -> None:
        """Remove the files that no manifest names: replaced ones, and those of attempts that failed."""
        kept = self.manifest.files()
        self.folder.remove([name for name in self.folder.names() if name not in kept and self._is_old(name)])

    def _is_old(self, name: str) -> bool:
        """Return whether a file is not that of a later driver."""
        if name.startswith(_VERSION):
            return int(name.removeprefix(_VERSION).removesuffix(".json")) < self.manifest.version
        return int(name.partition("-")[0]) <= self.manifest.epoch


def newest(folder: Folder) -> Manifest | None:
    """Read the newest version; None if there is none. The next one may replace it meanwhile."""
    while versions := [name for name in folder.names() if name.startswith(_VERSION)]:
        try:
            return Manifest.of(folder.read_bytes(max(versions)))
        except FileNotFoundError:
            continue
    return None


def _create(folder: Folder, manifest: Manifest) -> bool:
    content = json.dumps(asdict(manifest)).encode()
    return folder.create(_name(manifest.version), content, f"{manifest.epoch:010d}-partial")


def _name(version: int) -> str:
    return f"{_VERSION}{version:012d}.json"
