"""The durable engine: a `Recommender` with a journal on disk."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from unbasket.domain.events import Event, Rename, rechecked
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten, Learned, Progress
from unbasket.engine.model import Model
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError, UnknownUserError
from unbasket.store.backup import write_copy
from unbasket.store.cursors import checked_cursors
from unbasket.store.journal import DiskJournal
from unbasket.store.presence import Presence
from unbasket.store.receipts import Receipt
from unbasket.store.signing import SigningKeys
from unbasket.store.write_request import ErasedId
from unbasket.store.writer import Database

if TYPE_CHECKING:
    from unbasket.store.proofs import Proof, Prover  # import cryptography, which takes long
    from unbasket.store.witness import Witness


class DurableRecommender(Recommender):
    """A `Recommender` whose baskets are in a file; see `unbasket.open`.

    A method that writes returns when the change is on disk. A reader may see it a moment earlier.
    """

    _journal: DiskJournal

    def __init__(self, path: Path, journal: DiskJournal, keys: Path) -> None:
        super().__init__(journal=journal)
        self._path, self._keys = path, keys
        self._made_prover: Prover | None = None
        self.witness: Witness | None = None  # to which checkpoints are published

    @property
    def seconds_to_erasure(self) -> dict[int, float]:
        """The seconds until the bytes of each forget were gone, by receipt number, since the file was opened."""
        return self._journal.seconds_to_erasure

    def apply(self, events: Iterable[Event], *, cursors: Mapping[str, int] | None = None) -> list[Learned | Forgotten]:
        """Apply events in order and move cursors, in one transaction: all of it, or nothing if an event is invalid.

        A cursor is a name with a number, such as the offset up to which a partition of a topic was read. Since it moves
        with the events, each of them counts once, whenever the reader or the machine stops.
        """
        return self.apply_checked(rechecked(events), checked_cursors(cursors or {}))

    def apply_checked(self, events: Sequence[Event], cursors: Mapping[str, int]) -> list[Learned | Forgotten]:
        """Apply events that come from `Learn.checked` and `Forget.checked`; like `apply`, which checks them again."""
        return cast(list[Learned | Forgotten], self._journal.apply(events, cursors))

    def cursors(self) -> dict[str, int]:
        """Return the cursors as they are on disk: those of the backup, after one was restored."""
        return self._journal.cursors

    def rename(self, user: Id, other: Id) -> ErasedId:
        """Merge a user into another; see `Recommender.rename`. Returns when the old id is gone from every file."""
        return cast(ErasedId, self._journal.apply([Rename.checked(user, other)])[0])

    def receipts(self, first: int = 1, last: int = 2**62) -> list[Receipt]:
        """Return the receipts of these numbers, oldest first."""
        with closing(Database(self._path, read_only=True)) as database:
            return list(database.reader.receipts(first, last))

    @property
    def receipt_count(self) -> int:
        """The number of the newest receipt."""
        if self._journal.is_writable:
            return self._journal.receipt_count
        with closing(Database(self._path, read_only=True)) as database:
            return database.reader.next_row("receipts") - 1

    @property
    def signing_key(self) -> str:
        """The public key of the receipts to come, in hexadecimal digits. The engine must be writable."""
        return self._journal.signer.keys.public

    # Proofs -----------------------------------------------------------------------------------------------------

    @property
    def _prover(self) -> "Prover":
        if self._made_prover is None:
            from unbasket.store.proofs import Prover

            self._made_prover = Prover(SigningKeys.of(self._keys), self._journal.read_receipts)
        return self._made_prover

    def checkpoint(self) -> str:
        """Return a signed checkpoint: the roots of the trees over receipts and users, as C2SP tlog-checkpoint."""
        prover = self._prover
        return self._journal.prove(prover, lambda model, size: prover.checkpoint(size, model.fingerprint()))

    def prove(self, user: Id) -> "Proof":
        """Prove that the user's baskets and suppressions in the answer are all that is held about them.

        The answer is JSON with a checkpoint. Anyone can check it offline: `python -m unbasket.verifier FILE`.
        """
        return self._prove_user(user, is_held=True)

    def prove_absence(self, user: Id) -> "Proof":
        """Prove that nothing is held about a user; see `prove`."""
        return self._prove_user(user, is_held=False)

    def _prove_user(self, user: Id, *, is_held: bool) -> "Proof":
        prover, user = self._prover, self.canonical_id(user, "user")

        def make(model: Model, size: int) -> "Proof":
            held = model.prove(user)
            if is_held and held.path.nonce is None:
                raise UnknownUserError(f"nothing is held about user {user!r}. Prove their absence instead")
            if not is_held and held.path.nonce is not None:
                raise InvalidRequestError(
                    f"{len(held.baskets)} baskets are held about user {user!r}. Forget them first"
                )
            return prover.prove_user(user, held, size)

        return self._journal.prove(prover, make)

    def prove_receipt(self, number: int) -> "Proof":
        """Prove that a receipt is in the log; see `prove`.

        Its requester can add `user` and `secret` to the answer, to prove that the receipt is about them.
        """
        found = self.receipts(number, number)
        if not found:
            raise InvalidRequestError(f"there is no receipt {number}: they have the numbers 1 to {self.receipt_count}")
        prover = self._prover
        return self._journal.prove(
            prover, lambda model, size: prover.prove_receipt(found[0], size, model.fingerprint())
        )

    def prove_consistency(self, old: str) -> "Proof":
        """Prove that the log has all receipts of an older checkpoint; an error names what was cut or rewritten."""
        prover = self._prover
        return self._journal.prove(prover, lambda model, size: prover.prove_consistency(old, size, model.fingerprint()))

    def publish_checkpoint(self) -> str:
        """Put a checkpoint before the witness, and return it with the witness's cosignatures."""
        from unbasket.verifier import read_checkpoint

        checkpoint = read_checkpoint(self.checkpoint())
        return self._witness.add(
            checkpoint, lambda old: self._prover.tree(checkpoint.size).consistency(old, checkpoint.size)
        )

    def accept_rollback(self, reason: str) -> str:
        """Issue a receipt with the reason why this database is older than the witness knows, and begin again there."""
        from unbasket.verifier import read_checkpoint

        self._journal.note_rollback(reason)
        return self._witness.begin_again(read_checkpoint(self.checkpoint()))

    def rotate_key(self) -> str:
        """Have the old key sign a new one, which signs from then on; return the new public key."""
        keys = self._journal.rotate_key(self._keys)
        self._made_prover = None
        return keys.public

    @property
    def _witness(self) -> "Witness":
        if self.witness is None:
            raise InvalidRequestError("there is no witness. Open the database with witness=FOLDER_OR_ADDRESS")
        return self.witness

    def presence(self, user: Id) -> Presence:
        """Return the user's presence now, known or not, for `was_forgotten` later. The engine must be writable."""
        return self._journal.forgets.presence(user)

    def was_forgotten(self, user: Id, since: Presence) -> bool:
        """Return whether the user was forgotten since: all of them, their last basket, or their id by a rename."""
        return self._journal.forgets.ended(user, since, self.receipts)

    def backup(self, target: str | PathLike[str], *, progress: Progress | None = None) -> None:
        """Write a copy of the database as it is when this ends: data that is forgotten meanwhile is not in it.

        Other threads learn and forget all along. `progress` is called with (rows copied, rows in all).
        """
        with closing(Database(self._path, read_only=True)) as database:
            write_copy(database.reader, Path(target), progress)

    def close(self) -> None:
        """Bring everything into one file, and let other processes write to it. Closing again does nothing."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _title(self) -> str:
        return f"{super()._title()} {self._path}"
