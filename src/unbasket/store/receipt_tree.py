"""The Merkle tree of receipts (RFC 9162, section 2.1): each receipt is a leaf, and heads of the tree are signed."""

from unbasket.verifier import leaf_hash, node_hash

_SIZE = 32
_NO_RECEIPTS = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")  # SHA-256 of nothing


class ReceiptTree:
    """The hashes of all complete subtrees, 64 bytes per receipt: a root or a proof takes some hundred more."""

    def __init__(self) -> None:
        self._levels = [bytearray()]

    def __len__(self) -> int:
        return len(self._levels[0]) // _SIZE

    def append(self, receipt: bytes) -> None:
        """Append a receipt, as it is encoded."""
        node, level = leaf_hash(receipt), 0
        self._levels[0] += node
        while len(self._levels[level]) // _SIZE % 2 == 0:
            node = node_hash(bytes(self._levels[level][-2 * _SIZE : -_SIZE]), node)
            level += 1
            if level == len(self._levels):
                self._levels.append(bytearray())
            self._levels[level] += node

    def root(self, size: int) -> bytes:
        """Return the root of the first receipts."""
        return self._hash(0, size) if size else _NO_RECEIPTS

    def _hash(self, start: int, end: int) -> bytes:
        """Return the hash of the receipts from `start`, a multiple of the next power of two, up to `end`."""
        count = end - start
        if count & (count - 1) == 0:
            level = count.bit_length() - 1
            at = (start >> level) * _SIZE
            return bytes(self._levels[level][at : at + _SIZE])
        middle = start + _largest_power_below(count)
        return node_hash(self._hash(start, middle), self._hash(middle, end))

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Return the proof that the receipt at an index is among the first ones (section 2.1.3.1)."""
        path, start, end = [], 0, size
        while end - start > 1:
            middle = start + _largest_power_below(end - start)
            if index < middle:
                path.append(self._hash(middle, end))
                end = middle
            else:
                path.append(self._hash(start, middle))
                start = middle
        return path[::-1]

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Return the proof that the first `new` receipts begin with the first `old` ones (section 2.1.4.1)."""
        if old in (0, new):
            return []
        path, start, end = [], 0, new
        while old != end:
            middle = start + _largest_power_below(end - start)
            if old <= middle:
                path.append(self._hash(middle, end))
                end = middle
            else:
                path.append(self._hash(start, middle))
                start = middle
        if start:  # without it, the old tree is a complete subtree, whose root the verifier has
            path.append(self._hash(start, end))
        return path[::-1]


def _largest_power_below(count: int) -> int:
    return 1 << (count - 1).bit_length() - 1
