"""Proofs for outsiders: documents that `unbasket.verifier` checks offline, each with a signed checkpoint.

A checkpoint is a signed note (C2SP tlog-checkpoint): the size and root of the tree of receipts, and the digest, which
is the root of the tree over users.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from unbasket import verifier
from unbasket.domain.ids import Id
from unbasket.engine.model import UserProof
from unbasket.errors import InvalidRequestError
from unbasket.store.receipt_tree import ReceiptTree
from unbasket.store.receipts import Receipt
from unbasket.store.signing import SigningKeys

Proof = dict[str, Any]
"""A proof as JSON."""


class Prover:
    """The tree of a database's receipts, and the proofs that follow from it."""

    def __init__(self, keys: SigningKeys, read: Callable[[int, int], Iterable[Receipt]]) -> None:
        """`read` returns the receipts with these numbers."""
        self._keys, self._read = keys, read
        self.reset()

    def reset(self) -> None:
        """Start over: an interrupt may have torn the tree."""
        self._tree = ReceiptTree()
        self._rotations: list[Receipt] = []

    def tree(self, size: int) -> ReceiptTree:
        """Return the tree, which has at least the first receipts in it."""
        if len(self._tree) < size:
            for receipt in self._read(len(self._tree) + 1, size):
                self._tree.append(receipt.to_json())
                if receipt.scope == "key":
                    self._rotations.append(receipt)
        return self._tree

    def checkpoint(self, size: int, digest: str) -> str:
        """Sign a checkpoint of the first receipts and of this digest."""
        keys, root = self._keys, b64encode(self.tree(size).root(size)).decode()
        time = datetime.now(UTC).isoformat(timespec="seconds")
        text = f"{keys.origin}\n{size}\n{root}\nusers {digest}\ntime {time}\nkey {keys.public}\n"
        signature = verifier.key_id(keys.origin, 1, bytes.fromhex(keys.public)) + keys.sign(text.encode())
        return f"{text}\n— {keys.origin} {b64encode(signature).decode()}\n"

    def prove_receipt(self, receipt: Receipt, size: int, digest: str) -> Proof:
        """Prove that a receipt is in the tree."""
        path = self.tree(size).inclusion(receipt.number - 1, size)
        content = verifier.parse_json(receipt.to_json().decode())
        return self._proof("receipt", size, digest, receipt=content, inclusion=_as_base64(path))

    def prove_consistency(self, old: str, size: int, digest: str) -> Proof:
        """Prove that the tree extends that of an older checkpoint; an error names what does not hold."""
        before = _checked(old)
        tree = self.tree(size)
        proof = tree.consistency(before.size, size) if before.size <= size else []
        document = self._proof("consistency", size, digest, old=old, proof=_as_base64(proof))
        try:
            verifier.check_consistency(before, verifier.read_checkpoint(document["checkpoint"]), proof)
        except verifier.ProofError as error:
            raise InvalidRequestError(str(error)) from error
        return document

    def prove_user(self, user: Id, held: UserProof, size: int) -> Proof:
        """Prove that all data of a user is in the tree over users, or that nothing is."""
        path = {
            "params": held.path.params.hex(),
            "others": [other.hex() for other in held.path.others],
            "siblings": [None if sibling is None else sibling.hex() for sibling in held.path.siblings],
        }
        if held.path.nonce is None:
            return self._proof("absence", size, held.digest, user=user, **path)
        baskets = [
            {"basket": basket, "time": time, "opens": opens, "items": items}
            for basket, time, items, opens in held.baskets
        ]
        nonce = held.path.nonce.hex()
        return self._proof(
            "access", size, held.digest, user=user, baskets=baskets, suppressed=held.suppressed, nonce=nonce, **path
        )

    def _proof(self, kind: str, size: int, digest: str, **fields: Any) -> Proof:
        checkpoint = self.checkpoint(size, digest)
        keys = [verifier.parse_json(receipt.to_json().decode()) for receipt in self._rotations]
        head = {"format": "unbasket proof", "version": 1, "kind": kind}
        return {**head, **fields, "checkpoint": checkpoint, "keys": keys}


def _checked(note: str) -> verifier.Checkpoint:
    try:
        return verifier.read_checkpoint(note)
    except verifier.ProofError as error:
        raise InvalidRequestError(str(error)) from error


def _as_base64(hashes: list[bytes]) -> list[str]:
    return [b64encode(each).decode() for each in hashes]
