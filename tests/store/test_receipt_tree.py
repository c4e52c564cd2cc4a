"""The tree of receipts against the recursive definition in RFC 9162, and its proofs under the verifier."""

from hashlib import sha256

import pytest

from unbasket import verifier
from unbasket.store.receipt_tree import ReceiptTree
from unbasket.verifier import Checkpoint, ProofError

RECEIPTS = [b"receipt %d" % number for number in range(70)]


def root_of(receipts: list[bytes]) -> bytes:
    """Return the root as section 2.1.1 defines it."""
    if len(receipts) < 2:
        return verifier.leaf_hash(receipts[0]) if receipts else sha256().digest()
    middle = max(2**power for power in range(7) if 2**power < len(receipts))
    return verifier.node_hash(root_of(receipts[:middle]), root_of(receipts[middle:]))


@pytest.fixture(scope="module")
def tree() -> ReceiptTree:
    tree = ReceiptTree()
    for receipt in RECEIPTS:
        tree.append(receipt)
    return tree


def head(tree: ReceiptTree, size: int) -> Checkpoint:
    return Checkpoint("", "origin", size, tree.root(size), "", "", "")


def test_roots_and_inclusion(tree: ReceiptTree) -> None:
    for size in range(len(tree) + 1):
        assert tree.root(size) == root_of(RECEIPTS[:size])
        for index in range(size):
            proof = tree.inclusion(index, size)
            verifier.check_inclusion(verifier.leaf_hash(RECEIPTS[index]), index, head(tree, size), proof)
            for leaf, at in ((RECEIPTS[index] + b"!", index), (RECEIPTS[index], index + 1), (RECEIPTS[index], -1)):
                with pytest.raises(ProofError):
                    verifier.check_inclusion(verifier.leaf_hash(leaf), at, head(tree, size), proof)
            with pytest.raises(ProofError):
                verifier.check_inclusion(
                    verifier.leaf_hash(RECEIPTS[index]), index, head(tree, size), [*proof, bytes(32)]
                )


def test_a_checkpoint_with_another_size_than_its_tree() -> None:
    """The root of one receipt is signed as that of three, so that the receipt would be proven without a path."""
    leaf = verifier.leaf_hash(RECEIPTS[0])
    verifier.check_inclusion(leaf, 0, Checkpoint("", "origin", 1, leaf, "", "", ""), [])
    with pytest.raises(ProofError):
        verifier.check_inclusion(leaf, 0, Checkpoint("", "origin", 3, leaf, "", "", ""), [])
    root, second = root_of(RECEIPTS[:2]), verifier.leaf_hash(RECEIPTS[1])
    old = Checkpoint("", "origin", 1, leaf, "", "", "")
    verifier.check_consistency(old, Checkpoint("", "origin", 2, root, "", "", ""), [second])
    with pytest.raises(ProofError, match="rewritten"):
        verifier.check_consistency(old, Checkpoint("", "origin", 4, root, "", "", ""), [second])


def test_consistency(tree: ReceiptTree) -> None:
    rewritten = ReceiptTree()
    for receipt in (b"another", *RECEIPTS[1:]):
        rewritten.append(receipt)
    for new in range(len(tree) + 1):
        for old in range(new + 1):
            proof = tree.consistency(old, new)
            verifier.check_consistency(head(tree, old), head(tree, new), proof)
            if old:
                with pytest.raises(ProofError, match="rewritten"):
                    verifier.check_consistency(head(tree, old), head(rewritten, new), rewritten.consistency(old, new))
                with pytest.raises(ProofError, match="rewritten"):
                    verifier.check_consistency(head(tree, old), head(tree, new), [*proof, bytes(32)])
            if old < new:
                with pytest.raises(ProofError, match="cut or rolled back"):
                    verifier.check_consistency(head(tree, new), head(tree, old), [])
