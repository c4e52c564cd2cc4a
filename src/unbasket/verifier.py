"""Check what a shop that runs Unbasket has signed, without the shop, its database or this package.

    python verifier.py FILE [--key PUBLIC_KEY] [--since OLD_CHECKPOINT] [--witness NAME+ID+KEY]

FILE is a receipt or a list of receipts, a checkpoint, or a proof: of a receipt, of everything that is held about a
person (access), that nothing is (absence), or that a newer checkpoint extends an older one (consistency). The exit code
is 0 if it holds. This file needs nothing but `cryptography`, and can be copied and read by itself.

A checkpoint is a signed note (C2SP signed-note and tlog-checkpoint): the origin of the shop's log, the number of
receipts, the root of their RFC 9162 tree, and lines with the root over users, the time and the public key. All proofs
end in a checkpoint. They show what the shop has committed to. To know that it tells everyone the same, compare
checkpoints with others, or require the cosignature of a witness.
"""

import argparse
import base64
import binascii
import hashlib
import json
import re
import sys
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FIELDS = {
    "number": int,
    "request": str,
    "time": str,
    "scope": str,
    "subject": str,
    "purchases": int,
    "baskets": int,
    "users": int,
    "before": str,
    "after": str,
    "verified": bool,
    "detail": str,
    "previous": str,
    "key": str,
    "signature": str,
}
"""The fields of a receipt, in the order in which they are signed."""

NOTES = {"key": "a new key", "rollback": "an accepted rollback"}
"""The scopes of receipts that forget nothing."""

FIRST = "0" * 64  # the hash of the predecessor in the first receipt
DEPTH = 48  # levels of the tree over users
EMPTY = bytes(32)  # an empty subtree of it
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class ProofError(Exception):
    """A fault of a file, in a sentence."""


# Encodings ----------------------------------------------------------------------------------------------------------


def parse_json(text: str) -> Any:
    """Parse JSON in which no object has a key twice."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ProofError(f"this is not JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ProofError("a JSON object has a key twice")
    return found


def from_hex(text: object, size: int, name: str) -> bytes:
    """Decode lowercase hex of a given number of bytes: a value has one spelling."""
    if not isinstance(text, str) or not re.fullmatch(f"[0-9a-f]{{{2 * size}}}", text):
        raise ProofError(f"{name} is not written as {2 * size} lowercase hexadecimal digits: {text!r}")
    return bytes.fromhex(text)


def from_base64(text: str, name: str) -> bytes:
    """Decode base64 in its one spelling."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data or base64.b64encode(data).decode() != text:
        raise ProofError(f"{name} is not valid base64: {text!r}")
    return data


def messagepack(value: Any) -> bytes:
    """Encode None, bool, int, str and lists as MessagePack, in the shortest form."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        if -32 <= value < 128:
            return value.to_bytes(1, "big", signed=value < 0)
        if not -(2**63) <= value < 2**64:
            raise ProofError(f"this is neither an id nor a time, which have at most 64 bits: {value}")
        size = next(size for size in (1, 2, 4, 8) if -(2 ** (8 * size - 1)) <= value < 2 ** (8 * size))
        kind = (0xCC if value >= 0 else 0xD0) + size.bit_length() - 1
        return bytes([kind]) + value.to_bytes(size, "big", signed=value < 0)
    if isinstance(value, str):
        data = value.encode()
        return _head(0xA0, 32, 0xD9, (1, 2, 4), len(data)) + data
    if isinstance(value, list):
        return _head(0x90, 16, 0xDC, (2, 4), len(value)) + b"".join(map(messagepack, value))
    raise ProofError(f"this is neither an id nor a time: {value!r}")


def _head(short: int, limit: int, kind: int, sizes: tuple[int, ...], length: int) -> bytes:
    if length < limit:
        return bytes([short | length])
    number, size = next((i, size) for i, size in enumerate(sizes) if length < 2 ** (8 * size))
    return bytes([kind + number]) + length.to_bytes(size, "big")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'s' * (number != 1)}"


def check_signature(key: bytes, signature: bytes, message: bytes, name: str) -> None:
    """Check an Ed25519 signature."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise ProofError(f"{name}: its signature is not valid: it was changed, or another key signed it") from None


# Checkpoints --------------------------------------------------------------------------------------------------------


class Checkpoint(NamedTuple):
    """A signed tree head: `root` is that of `size` receipts, `users` the digest of the tree over users."""

    note: str
    origin: str
    size: int
    root: bytes
    users: str
    time: str
    key: str


def read_checkpoint(note: str) -> Checkpoint:
    """Parse a checkpoint and check the shop's signature, which is made with the key in the checkpoint."""
    text, lines = split_note(note)
    parts = re.fullmatch(
        r"([^\s+]+)\n(0|[1-9][0-9]{0,18})\n(\S+)\nusers ([0-9a-f]{64})\ntime (\S+)\nkey ([0-9a-f]{64})\n", text
    )
    if parts is None:
        raise ProofError("this is not a checkpoint of Unbasket")
    origin, size, root, users, time, key = parts.groups()
    public = bytes.fromhex(key)
    signed = [data[4:] for name, data in lines if (name, data[:4]) == (origin, key_id(origin, 1, public))]
    if len(signed) != 1:
        raise ProofError("the checkpoint has no signature by the key that it names")
    check_signature(public, signed[0], text.encode(), "the checkpoint")
    return Checkpoint(note, origin, int(size), from_base64(root, "the root"), users, time, key)


def split_note(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the text of a signed note, and the names and bytes of its signatures."""
    text, blank, signatures = note.rpartition("\n\n")
    lines = [re.fullmatch(r"— ([^\s+]+) (\S+)", line) for line in signatures.split("\n")[:-1]]
    if (
        not blank
        or not signatures.endswith("\n")
        or not lines
        or None in lines
        or re.search(r"[\0-\x09\x0b-\x1f]", note)
    ):
        raise ProofError("this is not a signed note")
    return text + "\n", [(line[1], from_base64(line[2], "a signature")) for line in lines if line]


def key_id(name: str, kind: int, public: bytes) -> bytes:
    """Return the four bytes that a signature in a note starts with."""
    return hashlib.sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:4]


def check_witness(checkpoint: Checkpoint, verifier_key: str) -> int:
    """Check the cosignature of a witness (C2SP tlog-cosignature), and return its time."""
    parts = verifier_key.split("+", 2)
    public = from_base64(parts[2], "the key of the witness") if len(parts) == 3 else b""
    if len(public) != 33 or public[0] != 4 or parts[1] != key_id(parts[0], 4, public[1:]).hex():
        raise ProofError(f"this is not the key of a witness, as in NAME+ID+KEY: {verifier_key!r}")
    text, lines = split_note(checkpoint.note)
    for name, data in lines:
        if (name, data[:4]) == (parts[0], key_id(parts[0], 4, public[1:])):
            seconds = int.from_bytes(data[4:12], "big")
            message = f"cosignature/v1\ntime {seconds}\n{text}".encode()
            check_signature(public[1:], data[12:], message, f"the cosignature of {name}")
            return seconds
    raise ProofError(f"witness {parts[0]} did not cosign the checkpoint")


# The tree of receipts (RFC 9162, section 2.1) -----------------------------------------------------------------------


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node."""
    return hashlib.sha256(b"\1" + left + right).digest()


def check_inclusion(leaf: bytes, index: int, checkpoint: Checkpoint, proof: list[bytes]) -> None:
    """Check that a leaf is in the tree of a checkpoint at an index (section 2.1.3.2)."""
    node, at, last = leaf, index, checkpoint.size - 1
    holds = 0 <= index <= last
    for sibling in proof if holds else ():
        holds = holds and last > 0
        if at % 2 or at == last:
            node = node_hash(sibling, node)
            while at and at % 2 == 0:
                at, last = at // 2, last // 2
        else:
            node = node_hash(node, sibling)
        at, last = at // 2, last // 2
    if not holds or last or node != checkpoint.root:
        raise ProofError("the receipt is not in the tree of the checkpoint: it, the proof or the checkpoint is another")


def check_consistency(old: Checkpoint, new: Checkpoint, proof: list[bytes]) -> None:
    """Check that the tree of a checkpoint extends that of an older one (section 2.1.4.2)."""
    if old.origin != new.origin:
        raise ProofError(f"the checkpoints are of different logs: {old.origin} and {new.origin}")
    if new.size < old.size:
        raise ProofError(
            f"the log was cut or rolled back: it had {counted(old.size, 'receipt')} on {old.time}, "
            f"and {new.size} on {new.time}"
        )
    if old.size == new.size or old.size == 0:
        holds = not proof and (old.size == 0 or old.root == new.root)
    else:
        holds = _extends(old, new, proof)
    if not holds:
        receipts = counted(old.size, "receipt")
        raise ProofError(f"the log was rewritten: it no longer begins with the {receipts} of {old.time}")


def _extends(old: Checkpoint, new: Checkpoint, proof: list[bytes]) -> bool:
    path = [old.root, *proof] if old.size & (old.size - 1) == 0 else list(proof)
    at, last = old.size - 1, new.size - 1
    while at % 2:
        at, last = at // 2, last // 2
    if not path:
        return False
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at % 2 or at == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while at and at % 2 == 0:
                at, last = at // 2, last // 2
        else:
            second = node_hash(second, sibling)
        at, last = at // 2, last // 2
    return last == 0 and (first, second) == (old.root, new.root)


# Receipts -----------------------------------------------------------------------------------------------------------


def receipt_bytes(receipt: Any) -> bytes:
    """Return the one encoding of a receipt, which its fields must have."""
    if not isinstance(receipt, dict) or receipt.keys() != FIELDS.keys():
        raise ProofError(f"this is not a receipt: it must have the fields {', '.join(FIELDS)}, and no others")
    if any(type(receipt[name]) is not kind for name, kind in FIELDS.items()):
        raise ProofError("a field of the receipt has another type")
    return _COMPACT.encode({name: receipt[name] for name in FIELDS}).encode()


def check_receipt(receipt: dict[str, Any]) -> None:
    """Check the signature of a receipt by the key that it names, and that it says of itself that it was verified."""
    name, unsigned = f"receipt {receipt.get('number')}", receipt_bytes({**receipt, "signature": ""})
    signature = from_hex(receipt["signature"], 64, f"the signature of {name}")
    check_signature(from_hex(receipt["key"], 32, f"the key of {name}"), signature, unsigned, name)
    _check_verified(receipt)


def _check_verified(receipt: dict[str, Any]) -> None:
    if not receipt["verified"]:
        number = receipt["number"]
        raise ProofError(f"receipt {number} says itself that the model differed from one that never saw the data")


def check_chain(receipts: Iterable[dict[str, Any]]) -> tuple[range, list[str]]:
    """Check that each receipt has the hash of the one before, and return their numbers and keys.

    By these hashes, a signature covers all receipts before it. So only the last one of each key is checked, and that of
    a receipt which the next one does not cover. A key may only change as the old one has signed.
    """
    first, before, link, keys = 0, None, FIRST, dict[str, None]()
    for receipt in receipts:
        encoded, number = receipt_bytes(receipt), receipt["number"]
        follows = receipt["previous"] == link
        if before is None:
            first = number
            if number == 1 and not follows:
                raise ProofError("receipt 1 does not begin a chain")
        else:
            if not follows or receipt["key"] != before["key"]:
                check_receipt(before)
            if number != before["number"] + 1:
                raise ProofError(
                    f"after receipt {before['number']} comes receipt {number}: one is missing, or they are out of order"
                )
            if not follows:
                raise ProofError(f"receipt {number} does not follow the one before it, which was changed or removed")
            if receipt["key"] != before["key"] and before["key"] != successor(before, receipt["key"]):
                raise ProofError(f"receipt {number} is signed with another key, which the key before it has not signed")
        _check_verified(receipt)
        before, link, keys[receipt["key"]] = receipt, hashlib.blake2b(encoded, digest_size=32).hexdigest(), None
    if before is None:
        raise ProofError("there is no receipt in this file")
    check_receipt(before)
    return range(first, before["number"] + 1), list(keys)


def successor(receipt: dict[str, Any], key: str) -> str | None:
    """Return the key of a receipt if it hands over to another key."""
    return receipt["key"] if (receipt["scope"], receipt["detail"]) == ("key", key) else None


def check_keys(trusted: str, rotations: list[dict[str, Any]], key: str) -> None:
    """Check that a trusted key, or its successors, signed the successor that a checkpoint is signed with."""
    for receipt in rotations:
        check_receipt(receipt)
        if trusted != key and successor(receipt, receipt["detail"]) == trusted:
            trusted = receipt["detail"]
    if trusted != key:
        raise ProofError(f"another key signed this: {key}, not {trusted}, and no receipt hands over to it")


def check_subject(receipt: dict[str, Any], user: Any, secret: object) -> None:
    """Check that a receipt is about a person, with the secret that came with it."""
    key = from_hex(secret, 32, "the secret")
    found = hashlib.blake2s(str(user).encode(), key=key, digest_size=16, person=b"ub-subj").hexdigest()
    if found != receipt["subject"]:
        raise ProofError("the receipt is about another person, or this is not its secret")


# The tree over users ------------------------------------------------------------------------------------------------


def check_user(proof: dict[str, Any], checkpoint: Checkpoint) -> None:
    """Check that exactly this data, or for an absence nothing, is held about a user in the tree of a checkpoint."""
    id_hash = user_hash(proof["user"])
    held = [from_hex(text, 64, "another entry") for text in proof["others"]]  # by others at the same place: hardly ever
    if any(other[:32] == id_hash or other[: DEPTH // 8] != id_hash[: DEPTH // 8] for other in held):
        raise ProofError("an entry of the person is shown as that of another, or one of another place")
    if proof["kind"] == "access":
        nonce = from_hex(proof["nonce"], 32, "the nonce")
        held.append(id_hash + _hash(b"ub-value", nonce, data_hash(proof)))
    node = _leaf(sorted(_hash(b"ub-entry", entry) for entry in held))
    place = int.from_bytes(id_hash[: DEPTH // 8], "big")
    siblings = [EMPTY if text is None else from_hex(text, 32, "a hash") for text in proof["siblings"]]
    if len(siblings) != DEPTH:
        raise ProofError(f"the path has {len(siblings)} hashes, not {DEPTH}")
    for depth, sibling in zip(range(DEPTH), reversed(siblings), strict=True):
        left, right = (sibling, node) if place >> depth & 1 else (node, sibling)
        node = EMPTY if left == right == EMPTY else _hash(b"ub-node", left, right)
    if _hash(b"ub-state", from_hex(proof["params"], 32, "the parameters"), node).hex() != checkpoint.users:
        user, is_access = repr(proof["user"]), proof["kind"] == "access"
        all_of_it = f"this is not, or not all of, what the shop held about {user} then"
        nothing = f"the shop held something about {user} then, or this is the path of another"
        raise ProofError(f"the path does not end in the checkpoint: {all_of_it if is_access else nothing}")


def user_hash(user: Any) -> bytes:
    """Return the hash of an id, which leads to the user's place: the same for 17 and "17", which are one person."""
    if type(user) not in (int, str):
        raise ProofError(f"this is not an id: {user!r}")
    return _hash(b"ub-id", str(user).encode())


def data_hash(proof: dict[str, Any]) -> bytes:
    """Return the hash of a user's baskets, oldest first, and of the items that are not to be recommended to them."""
    baskets = [
        [basket["basket"], basket["time"], basket["opens"], sorted(basket["items"])] for basket in proof["baskets"]
    ]
    data = hashlib.blake2b(messagepack([proof["user"], baskets]), digest_size=32, person=b"unbasket user").digest()
    if not proof["suppressed"]:
        return data
    suppressed = messagepack(sorted(proof["suppressed"]))
    return hashlib.blake2b(data + suppressed, digest_size=32, person=b"suppressions").digest()


def _hash(person: bytes, *parts: bytes) -> bytes:
    return hashlib.blake2s(b"".join(parts), person=person).digest()


def _leaf(entries: list[bytes]) -> bytes:
    if not entries:
        return EMPTY
    return entries[0] if len(entries) == 1 else _hash(b"ub-twins", *entries)


# Files --------------------------------------------------------------------------------------------------------------

KINDS: dict[str, dict[str, type]] = {
    "receipt": {"receipt": dict, "inclusion": list},
    "access": {
        "user": object,
        "baskets": list,
        "suppressed": list,
        "params": str,
        "nonce": str,
        "others": list,
        "siblings": list,
    },
    "absence": {"user": object, "params": str, "others": list, "siblings": list},
    "consistency": {"old": str, "proof": list},
}
OPTIONAL: dict[str, dict[str, type]] = {"receipt": {"user": object, "secret": str}}  # both, or neither
COMMON = {"format": str, "version": int, "kind": str, "checkpoint": str, "keys": list}
BASKET: dict[str, type] = {"basket": object, "time": object, "opens": object, "items": list}
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError)
"""The errors of Python that a value of another type or size than expected can cause."""


def verify(text: str, key: str | None = None, since: str | None = None, witnesses: tuple[str, ...] = ()) -> str:
    """Return what the content of a file proves, in a sentence; raise `ProofError` if it does not hold."""
    try:
        return _verified(text, key, since, witnesses)
    except MALFORMED as error:
        raise ProofError(f"this does not have the form of a proof: {error!r}") from error


def _verified(text: str, key: str | None, since: str | None, witnesses: tuple[str, ...]) -> str:
    proof: dict[str, Any] = {"kind": "checkpoint", "keys": []}
    if not text.lstrip().startswith(("{", "[")):
        found = read_checkpoint(text)
    else:
        document = _read(text)
        if not isinstance(document, dict):
            if since or witnesses:
                raise ProofError("receipts alone have no checkpoint. Ask for a proof")
            numbers, keys = check_chain(document)
            if key is not None and key not in keys:
                raise ProofError(f"another key signed this: {keys[-1]}, not {key}")
            several = f"Receipts {numbers[0]} to {numbers[-1]} are as the shop signed them, each follows the one before"
            alone = f"Receipt {numbers[0]} is as the shop signed it"
            return f"{several if len(numbers) > 1 else alone}; key {keys[-1]}"
        proof, found = document, read_checkpoint(document["checkpoint"])
    if key is not None:
        check_keys(key, proof["keys"], found.key)
    times = [check_witness(found, witness) for witness in witnesses]
    said = _check_proof(proof, found)
    if since is not None and (proof["kind"] != "consistency" or proof["old"] != since):
        raise ProofError("to compare with an older checkpoint, ask the shop for a proof of consistency since then")
    log = f"Checkpoint of {found.origin} with {counted(found.size, 'receipt')}, {found.time}"
    cosigned = f", with {counted(len(times), 'cosignature')}" if times else ""
    return f"{said}. {log}{cosigned}; key {found.key}"


def _read(text: str) -> Any:
    """Return a proof, or the receipts in a list or on lines, which may be a million."""
    if re.match(r"\s*\{[^\n]*\}\s*\n\s*\{", text):
        return (parse_json(line) for line in StringIO(text) if line.strip())
    document = parse_json(text)
    if isinstance(document, list):
        return document
    if "format" not in document:
        return [document]
    kind = document.get("kind")
    if (document["format"], document.get("version")) != ("unbasket proof", 1) or kind not in KINDS:
        advice = ". The value of 'proof' in it is one" if document["format"] == "unbasket user" else ""
        raise ProofError(f"this is not a proof that this program knows{advice}")
    optional = OPTIONAL.get(kind, {})
    has_optional = any(name in document for name in optional)
    _check_fields(document, COMMON | KINDS[kind] | (optional if has_optional else {}), "a proof of this kind")
    for basket in document.get("baskets", ()):
        _check_fields(basket, BASKET, "a basket")
    return document


def _check_fields(found: dict[str, Any], fields: dict[str, type], name: str) -> None:
    """Check that an object has exactly these fields, of these types."""
    wrong = set(found) ^ set(fields)
    if wrong:
        raise ProofError(f"{name} has other fields: {', '.join(map(repr, sorted(wrong)))}")
    for field, kind in fields.items():
        if kind is not object and type(found[field]) is not kind:
            raise ProofError(f"{field!r} of {name} is not of the type {kind.__name__}: {found[field]!r}")


def _check_proof(proof: dict[str, Any], found: Checkpoint) -> str:
    if proof["kind"] == "receipt":
        receipt = proof["receipt"]
        check_receipt(receipt)
        if receipt["key"] != found.key:
            check_keys(receipt["key"], proof["keys"], found.key)
        check_inclusion(leaf_hash(receipt_bytes(receipt)), receipt["number"] - 1, found, _hashes(proof["inclusion"]))
        about = ""
        if "secret" in proof:
            check_subject(receipt, proof.get("user"), proof["secret"])
            about = f", about {proof['user']!r},"
        event = NOTES.get(receipt["scope"], f"{receipt['scope']} forgotten")
        return f"Receipt {receipt['number']}{about} is in the log: {event} on {receipt['time']}"
    if proof["kind"] == "access":
        check_user(proof, found)
        baskets = counted(len(proof["baskets"]), "basket")
        return f"This is all that the shop has committed to hold about {proof['user']!r}: {baskets}"
    if proof["kind"] == "absence":
        check_user(proof, found)
        return f"The shop has committed to hold nothing about {proof['user']!r}"
    if proof["kind"] == "consistency":
        old = read_checkpoint(proof["old"])
        if old.key != found.key:
            check_keys(old.key, proof["keys"], found.key)
        check_consistency(old, found, _hashes(proof["proof"]))
        receipts = counted(old.size, "receipt")
        return f"The log begins with the {receipts} of {old.time}, and has {found.size - old.size} more"
    return "The checkpoint is as the shop signed it"


def _hashes(texts: list[str]) -> list[bytes]:
    return [from_base64(text, "a hash") for text in texts]


def main() -> int:
    """Verify a file, and say what it proves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--key", help="the public key of the shop that you know")
    parser.add_argument("--since", type=Path, help="an older checkpoint that the file must prove to extend")
    parser.add_argument("--witness", action="append", default=[], help="the key of a witness that must have cosigned")
    options = parser.parse_args()
    try:
        since = options.since.read_text(encoding="utf-8") if options.since else None
        said, holds = verify(options.file.read_text(encoding="utf-8"), options.key, since, tuple(options.witness)), True
    except (ProofError, OSError, UnicodeDecodeError) as error:
        said, holds = f"{options.file}: {error}", False
    line = "".join(each if each.isprintable() else "?" for each in said)  # the file's own texts are in it
    print(line, file=sys.stdout if holds else sys.stderr)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
