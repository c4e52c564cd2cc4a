"""The verifier: files of every kind, and attacks that an auditor with one old checkpoint and no database must name."""

import ast
import copy
import json
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

import unbasket as ub
from unbasket import verifier
from unbasket.core.codec import UserTree
from unbasket.engine.digest import digest_of
from unbasket.store.proofs import Prover
from unbasket.store.receipts import ReceiptSigner
from unbasket.store.signing import SigningKeys, signing_keys_of
from unbasket.verifier import ProofError

VERIFIER = Path(verifier.__file__)


class Audited(NamedTuple):
    """The files that a shop hands out, and the old checkpoint and public key that the auditor has."""

    path: Path
    old: str
    key: str
    secret: str
    receipts: list[dict[str, Any]]
    receipt: dict[str, Any]
    access: dict[str, Any]
    absence: dict[str, Any]
    consistency: dict[str, Any]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    path = tmp_path_factory.mktemp("shop") / "shop.db"
    with ub.open(path) as rec:
        for user in ("ann", "bob", "cem", "dan"):
            rec.learn(user, ["milk", "tea"], basket=1)
            rec.learn(user, ["gin"], basket=2, time=7)
        rec.suppress("ann", "gin")
        rec.forget("bob")
        old = rec.checkpoint()
        secret = rec.forget("cem").secret  # type: ignore[attr-defined]
        rec.forget("ann", item="tea")
        return Audited(
            path,
            old,
            rec.receipts()[0].key,
            secret,
            [json.loads(receipt.to_json()) for receipt in rec.receipts()],
            rec.prove_receipt(2),
            rec.prove("ann"),
            rec.prove_absence("cem"),
            rec.prove_consistency(old),
        )


def files(audited: Audited) -> dict[str, str]:
    return {
        "receipt alone": json.dumps(audited.receipts[1]),
        "receipts": "\n".join(map(json.dumps, audited.receipts)),
        "receipt": json.dumps(audited.receipt),
        "receipt of a person": json.dumps(audited.receipt | {"user": "cem", "secret": audited.secret}),
        "access": json.dumps(audited.access, indent=2),
        "absence": json.dumps(audited.absence),
        "consistency": json.dumps(audited.consistency),
        "checkpoint": audited.old,
    }


def test_files_of_every_kind_alone_and_as_a_module(audited: Audited, tmp_path: Path) -> None:
    """One file without the package: it is copied to another place, and run there."""
    alone = tmp_path / "verifier.py"
    shutil.copy(VERIFIER, alone)
    for program in ([str(alone)], ["-m", "unbasket.verifier"]):
        for name, text in files(audited).items():
            file = tmp_path / "file"
            file.write_text(text)
            done = run(*program, str(file), "--key", audited.key, cwd=tmp_path)
            assert (done.returncode, done.stderr) == (0, ""), name
            file.write_text(text.replace("1", "2"))
            done = run(*program, str(file), cwd=tmp_path)
            assert (done.returncode, done.stdout) == (1, ""), name
            assert len(done.stderr.splitlines()) == 1


def run(*options: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *options], cwd=cwd, capture_output=True, text=True, check=False)


def test_the_verifier_stands_alone() -> None:
    """It imports nothing but the standard library and cryptography."""
    tree = ast.parse(VERIFIER.read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) == {"cryptography"}


# Attacks on receipts ------------------------------------------------------------------------------------------------


def changed(receipts: list[dict[str, Any]]) -> None:
    receipts[1]["purchases"] += 1


def taken_out(receipts: list[dict[str, Any]]) -> None:
    del receipts[1]


def reordered(receipts: list[dict[str, Any]]) -> None:
    receipts[1:] = receipts[:0:-1]


def extended(receipts: list[dict[str, Any]]) -> None:
    receipts[1]["comment"] = "more"


def respelled(receipts: list[dict[str, Any]]) -> None:
    receipts[1]["signature"] = receipts[1]["signature"].upper()


@pytest.mark.parametrize(
    ("attack", "named"),
    [
        (changed, "receipt 2: its signature is not valid: it was changed"),
        (taken_out, "after receipt 1 comes receipt 3: one is missing"),
        (reordered, "after receipt 1 comes receipt 3: one is missing, or they are out of order"),
        (extended, "and no others"),
        (respelled, "the signature of receipt 2 is not written as 128 lowercase"),
    ],
)
def test_receipts_that_were_tampered_with(
    audited: Audited, attack: Callable[[list[dict[str, Any]]], None], named: str
) -> None:
    receipts = copy.deepcopy(audited.receipts)
    attack(receipts)
    with pytest.raises(ProofError, match=named):
        verifier.verify("\n".join(map(json.dumps, receipts)))


def test_signatures_that_the_next_receipt_covers(audited: Audited) -> None:
    """A forged receipt is named, whatever its place; so is one that says itself that it failed."""
    for number in range(3):
        for field, value, named in (("purchases", 9, "signature"), ("previous", "0" * 64, "signature|begin|follow")):
            receipts = copy.deepcopy(audited.receipts)
            if receipts[number][field] != value:
                receipts[number][field] = value
                with pytest.raises(ProofError, match=named):
                    verifier.verify(json.dumps(receipts))
    with pytest.raises(ProofError, match="there is no receipt in this file"):
        verifier.verify("[]")
    resigned = [msgspec.convert(receipt, ub.Receipt) for receipt in audited.receipts]
    resigned[0] = msgspec.structs.replace(resigned[0], verified=False)
    with pytest.raises(ProofError, match="receipt 1 says itself that the model differed"):
        verifier.verify(b"\n".join(receipt.to_json() for receipt in forged(audited, resigned)).decode())


def test_a_line_separator_in_a_reason(tmp_path: Path) -> None:
    """Receipts have a line each; a reason may have characters that some programs take for the end of a line."""
    keys = SigningKeys.create(tmp_path / "keys")
    signer = ReceiptSigner(keys, None)
    lines = [signer.issue_note("rollback", "one\u2028two\x85", "0" * 64).to_json().decode() for _ in range(2)]
    assert "Receipts 1 to 2" in verifier.verify("\n".join(lines))


def test_a_key_twice_in_json(audited: Audited) -> None:
    line = json.dumps(audited.receipts[0])
    for text in (line.replace('"number": 1', '"number": 9, "number": 1'), line.replace('"key"', '"key": "", "key"')):
        with pytest.raises(ProofError, match="a key twice"):
            verifier.verify(text)
        with pytest.raises(ub.InvalidReceiptError, match="a key twice"):
            ub.Receipt.from_json(text)
    with pytest.raises(ub.InvalidReceiptError, match="unknown field"):
        ub.Receipt.from_json(line[:-1] + ', "comment": 1}')


def test_a_proof_of_another_receipt(audited: Audited) -> None:
    for number in (0, 2):
        with pytest.raises(ProofError, match="the receipt is not in the tree"):
            verifier.verify(json.dumps(audited.receipt | {"receipt": audited.receipts[number]}))


def test_a_receipt_of_another_person(audited: Audited) -> None:
    for user, secret in (("bob", audited.secret), ("cem", "0" * 64)):
        with pytest.raises(ProofError, match="about another person"):
            verifier.verify(json.dumps(audited.receipt | {"user": user, "secret": secret}))


def test_another_key(audited: Audited, tmp_path: Path) -> None:
    """Another shop's files are whole, but not of the shop that the auditor knows."""
    with ub.open(tmp_path / "other.db") as rec:
        rec.forget("cem")
        proofs = [rec.checkpoint(), json.dumps(rec.prove_receipt(1)), json.dumps(rec.prove_absence("cem"))]
        proofs.append(rec.receipts()[0].to_json().decode())
    for text in proofs:
        verifier.verify(text)
        with pytest.raises(ProofError, match="another key signed this"):
            verifier.verify(text, key=audited.key)


# Attacks on the log: the shop has its key, and the auditor has an old checkpoint -------------------------------------


def forged(audited: Audited, receipts: list[ub.Receipt]) -> list[ub.Receipt]:
    """Return receipts that the shop has signed and chained once more."""
    keys, made = SigningKeys.of(signing_keys_of(audited.path)), list[ub.Receipt]()
    for number, receipt in enumerate(receipts, 1):
        previous = made[-1].hash() if made else verifier.FIRST
        draft = msgspec.structs.replace(receipt, number=number, previous=previous, signature="")
        made.append(msgspec.structs.replace(draft, signature=keys.sign(draft.to_json()).hex()))
    return made


def consistency(audited: Audited, receipts: list[ub.Receipt]) -> str:
    """Return the best proof that a shop with these receipts can make for the auditor's old checkpoint."""
    keys = SigningKeys.of(signing_keys_of(audited.path))
    prover = Prover(keys, lambda first, last: receipts[first - 1 : last])
    size, old = len(receipts), verifier.read_checkpoint(audited.old)
    path = prover.tree(size).consistency(old.size, size) if old.size <= size else []
    proof = {"old": audited.old, "proof": [b64encode(each).decode() for each in path]}
    return json.dumps(audited.consistency | proof | {"checkpoint": prover.checkpoint(size, "0" * 64)})


def test_the_tail_is_cut(audited: Audited) -> None:
    """Yesterday's database, or one without its newest receipts: it has fewer receipts than the auditor knows of."""
    with pytest.raises(ProofError, match="the log was cut or rolled back: it had 1 receipt on"):
        verifier.verify(consistency(audited, []), key=audited.key, since=audited.old)


def test_the_tree_is_rewritten_with_the_shops_own_key(audited: Audited) -> None:
    """Every receipt and every link is right, and there are more of them; yet the first is another."""
    receipts = [msgspec.convert(receipt, ub.Receipt) for receipt in audited.receipts]
    for changed in (receipts[1:], [receipts[1], receipts[0], receipts[2]]):
        rewritten = forged(audited, changed)
        assert ub.store.audit(rewritten, key=audited.key).ok
        with pytest.raises(ProofError, match="the log was rewritten: it no longer begins with the 1 receipt of"):
            verifier.verify(consistency(audited, rewritten), key=audited.key, since=audited.old)
    whole = consistency(audited, receipts)
    assert "begins with the 1 receipt of" in verifier.verify(whole, key=audited.key, since=audited.old)


def signed(keys: SigningKeys, receipt: ub.Receipt, **changes: Any) -> ub.Receipt:
    draft = msgspec.structs.replace(receipt, key=keys.public, signature="", **changes)
    return msgspec.structs.replace(draft, signature=keys.sign(draft.to_json()).hex())


def test_links_that_the_shop_has_signed_are_checked(audited: Audited) -> None:
    keys = SigningKeys.of(signing_keys_of(audited.path))
    first, second, third = (msgspec.convert(receipt, ub.Receipt) for receipt in audited.receipts)
    for chain, named in (
        ([first, signed(keys, second, previous="ab" * 32)], "receipt 2 does not follow the one before it"),
        ([signed(keys, first, previous="ab" * 32)], "receipt 1 does not begin a chain"),
        ([first, second, signed(keys, third, number=5)], "after receipt 2 comes receipt 5"),
        ([first, second, signed(keys.successor(), third)], "another key, which the key before it has not signed"),
    ):
        with pytest.raises(ProofError, match=named):
            verifier.verify("\n".join(receipt.to_json().decode() for receipt in chain))


def test_a_new_key_that_the_old_one_has_not_signed(audited: Audited) -> None:
    """All files are whole under another key of the log; the receipt that hands over to it is forged, or missing."""
    other = SigningKeys.of(signing_keys_of(audited.path)).successor()
    receipts = [msgspec.convert(receipt, ub.Receipt) for receipt in audited.receipts]
    users = verifier.read_checkpoint(audited.absence["checkpoint"]).users
    checkpoint = Prover(other, lambda first, last: receipts[first - 1 : last]).checkpoint(3, users)
    assert verifier.verify(json.dumps(audited.absence | {"checkpoint": checkpoint}), key=other.public)
    forged = audited.receipts[0] | {"scope": "key", "detail": other.public}
    for proof in (audited.receipt, audited.consistency):
        for keys, named in (([], "another key signed this"), ([forged], "receipt 1: its signature is not valid")):
            with pytest.raises(ProofError, match=named):
                verifier.verify(json.dumps(proof | {"checkpoint": checkpoint, "keys": keys}))
            absence = json.dumps(audited.absence | {"checkpoint": checkpoint, "keys": keys})
            with pytest.raises(ProofError, match=named):
                verifier.verify(absence, key=audited.key)


def test_what_the_shop_has_signed_is_read_strictly(audited: Audited) -> None:
    """Each of these has a valid signature of the shop."""
    path = signing_keys_of(audited.path)
    keys, seed = SigningKeys.of(path), bytes.fromhex(json.loads(path.read_text())["signing"])
    text = json.dumps(audited.receipts[0] | {"verified": 1, "signature": ""}, separators=(",", ":"))
    with pytest.raises(ProofError, match="a field of the receipt has another type"):
        verifier.verify(text.replace('"signature":""', f'"signature":"{keys.sign(text.encode()).hex()}"'))
    ringing = Prover(SigningKeys(seed, keys.rows, "shop\a"), lambda *_: []).checkpoint(0, "0" * 64)
    with pytest.raises(ProofError, match="this is not a signed note"):
        verifier.verify(ringing)
    note, last = audited.old.removesuffix("=\n")[:-1], audited.old[-3]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    respelled = f"{note}{alphabet[alphabet.index(last) ^ 1]}=\n"  # the same bytes
    with pytest.raises(ProofError, match="a signature is not valid base64"):
        verifier.verify(respelled)
    with pytest.raises(ProofError, match="receipts alone have no checkpoint"):
        verifier.verify(json.dumps(audited.receipts), since=audited.old)


def test_another_old_checkpoint_is_compared_with(audited: Audited) -> None:
    newer = audited.receipt["checkpoint"]
    with pytest.raises(ProofError, match="ask the shop for a proof of consistency"):
        verifier.verify(json.dumps(audited.consistency), since=newer)
    with pytest.raises(ProofError, match="ask the shop for a proof of consistency"):
        verifier.verify(newer, since=audited.old)


def test_the_shop_finds_out_itself(audited: Audited, tmp_path: Path) -> None:
    with ub.open(audited.path, read_only=True) as rec, ub.open(tmp_path / "other.db") as other:
        with pytest.raises(ub.InvalidRequestError, match="different logs"):
            rec.prove_consistency(other.checkpoint())
        with pytest.raises(ub.InvalidRequestError, match="not a signed note"):
            rec.prove_consistency("no")


# Attacks on the tree over users -------------------------------------------------------------------------------------


def test_an_absence_proof_for_a_person_who_is_there(audited: Audited) -> None:
    """With the path of another person, and with the person's own path and an empty end."""
    own = {name: audited.access[name] for name in ("siblings", "params", "others", "checkpoint")}
    for attempt in (audited.absence | {"user": "ann"}, audited.absence | own | {"user": "ann"}):
        with pytest.raises(ProofError, match="the path does not end in the checkpoint"):
            verifier.verify(json.dumps(attempt))


def test_an_absence_proof_under_another_spelling(tmp_path: Path) -> None:
    """A shop that holds 17 can't prove the absence of "17": an id as a number and as text is one person."""
    with ub.open(tmp_path / "shop.db") as rec:
        rec.learn(17, ["milk"], basket=1)
        rec.learn(18, ["milk"], basket=1)
        access, absence = rec.prove(17), rec.prove_absence(19)
    assert verifier.verify(json.dumps(absence | {"user": "19"}))
    own = {name: access[name] for name in ("siblings", "params", "others", "checkpoint")}
    with pytest.raises(ProofError, match="the path does not end in the checkpoint"):
        verifier.verify(json.dumps(absence | own | {"user": "17"}))


def forged_shop(audited: Audited, proof: dict[str, Any], *data: bytes) -> dict[str, Any]:
    """Return the proof with the tree of a shop that has an entry of the same person for each of these data."""
    tree, digests = UserTree(bytes(32)), np.frombuffer(b"".join(data), np.uint8).reshape(-1, 32)
    ids = np.frombuffer(verifier.user_hash(proof["user"]) * len(data), np.uint8).reshape(-1, 32)
    tree.put_users(list(range(len(data))), ids, digests)
    digest = digest_of(bytes.fromhex(proof["params"]), tree.root())
    siblings, _ = tree.path(ids[0])
    checkpoint = Prover(SigningKeys.of(signing_keys_of(audited.path)), lambda *_: []).checkpoint(0, digest)
    nonce, others = tree.nonce(digests[0]).hex(), [(bytes(ids[1]) + tree.value(each)).hex() for each in digests[1:]]
    return proof | {"siblings": siblings, "checkpoint": checkpoint, "nonce": nonce, "others": others}


def test_a_second_entry_of_a_person_does_not_hide(audited: Audited) -> None:
    """The shop commits to two histories of one person, and shows one."""
    shown, hidden = verifier.data_hash(audited.access), verifier.data_hash(audited.access | {"suppressed": []})
    assert verifier.verify(json.dumps(forged_shop(audited, audited.access, shown)))
    proof = forged_shop(audited, audited.access, shown, hidden)
    with pytest.raises(ProofError, match="an entry of the person is shown as that of another"):
        verifier.verify(json.dumps(proof))
    elsewhere = bytes.fromhex(proof["others"][0])
    with pytest.raises(ProofError, match="or one of another place"):
        verifier.verify(json.dumps(proof | {"others": [(bytes(32) + elsewhere[32:]).hex()]}))
    with pytest.raises(ProofError, match="another entry is not written as 128"):
        verifier.verify(json.dumps(proof | {"others": [verifier._hash(b"ub-entry", elsewhere).hex()]}))


def without_a_basket(proof: dict[str, Any]) -> None:
    del proof["baskets"][0]


def without_an_item(proof: dict[str, Any]) -> None:
    proof["baskets"][1]["items"] = ["milk"]


def without_a_time(proof: dict[str, Any]) -> None:
    proof["baskets"][1]["time"] = None


def without_suppressions(proof: dict[str, Any]) -> None:
    proof["suppressed"] = []


def of_another(proof: dict[str, Any]) -> None:
    proof["user"] = "dan"


def with_another_nonce(proof: dict[str, Any]) -> None:
    proof["nonce"] = "0" * 64


@pytest.mark.parametrize(
    "attack",
    [without_a_basket, without_an_item, without_a_time, without_suppressions, of_another, with_another_nonce],
)
def test_an_access_proof_that_leaves_something_out(audited: Audited, attack: Callable[[dict[str, Any]], None]) -> None:
    proof = copy.deepcopy(audited.access)
    attack(proof)
    with pytest.raises(ProofError, match="this is not, or not all of, what the shop held"):
        verifier.verify(json.dumps(proof))


def test_a_proof_of_another_moment(audited: Audited) -> None:
    """The path must end in the checkpoint that is shown: an old one does not vouch for new data."""
    for proof in (audited.access, audited.absence):
        with pytest.raises(ProofError, match="the path does not end in the checkpoint"):
            verifier.verify(json.dumps(proof | {"checkpoint": audited.old}))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"siblings": []}, "the path has 0 hashes"),
        ({"nonce": "AB"}, "lowercase"),
        ({"params": 7}, "'params' of a proof of this kind is not of the type str: 7"),
        ({"extra": 1}, "other fields: 'extra'"),
        ({"kind": "other"}, "not a proof that this program knows"),
        ({"format": "unbasket user"}, "The value of 'proof' in it is one"),
        ({"version": 2}, "not a proof that this program knows"),
        ({"checkpoint": 7}, "'checkpoint' of a proof of this kind is not of the type str: 7"),
        ({"user": 1.5}, "this is not an id: 1.5"),
        ({"user": True}, "this is not an id: True"),
        ({"user": 10**400}, "neither an id nor a time, which have at most 64 bits"),
        ({"others": {}}, "not of the type list"),
        ({"baskets": [{"basket": 1}]}, "a basket has other fields: 'items', 'opens', 'time'"),
        ({"baskets": [7]}, "does not have the form of a proof"),
    ],
)
def test_malformed_proofs(audited: Audited, change: dict[str, Any], named: str) -> None:
    with pytest.raises(ProofError, match=named):
        verifier.verify(json.dumps(audited.access | change))


@pytest.mark.parametrize(
    "change",
    [
        lambda note: note.replace("users ", "users  "),
        lambda note: note.replace("\n1\n", "\n01\n"),
        lambda note: note.replace("\n1\n", "\n2\n"),
        lambda note: note.replace("\n\n", "\nextra\n\n"),
        lambda note: note + "\n",
        lambda note: note[:-1],
        lambda note: note.replace("— ", "- "),
        lambda note: note.replace("=\n", "\n"),
        lambda note: "\t" + note,
        lambda note: note + note.splitlines(keepends=True)[-1],
    ],
)
def test_changed_checkpoints(audited: Audited, change: Callable[[str], str]) -> None:
    assert change(audited.old) != audited.old
    with pytest.raises(ProofError):
        verifier.verify(change(audited.old))


JUNK: tuple[Any, ...] = (
    *(None, True, 7, -1, 1.5, 10**400, -(2**64)),
    *("", "no base64", "AAAA", "\ud800"),
    *([], [7], [[[]]], {}, {"more": 1}),
)


def mutations(value: Any) -> Iterator[Any]:
    """Yield a document with each of its parts removed, replaced by junk, or having a field too many."""
    yield from (junk for junk in JUNK if (type(junk), junk) != (type(value), value))
    if isinstance(value, dict):
        yield value | {"extra": 1}
    for place in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        rest = copy.copy(value)
        del rest[place]
        yield rest
        for part in mutations(value[place]):
            changed = copy.copy(value)
            changed[place] = part
            yield changed


def documents(audited: Audited) -> dict[str, Any]:
    """Return the JSON documents of every kind, short enough to change them everywhere."""
    texts = {name: text for name, text in files(audited).items() if name not in ("checkpoint", "receipts")}
    return {"receipts": audited.receipts[:2]} | {name: json.loads(text) for name, text in texts.items()}


@pytest.mark.parametrize(
    "name",
    ["receipt alone", "receipts", "receipt", "receipt of a person", "access", "absence", "consistency"],
)
def test_no_mutation_is_accepted_or_causes_another_error(audited: Audited, name: str) -> None:
    document = documents(audited)[name]
    accepted, faults = [], []
    for mutation in mutations(document):
        try:
            verifier.verify(json.dumps(mutation), key=audited.key)
        except ProofError as error:
            faults.append(str(error))
        else:
            accepted.append(mutation)
    assert all(len(fault.splitlines()) == 1 for fault in faults)
    if name == "absence":  # an empty subtree proves the absence of every id that leads there
        accepted = [each for each in accepted if each != document | {"user": each["user"]}]
    fewer = [document[1:], document[:1]] if name == "receipts" else []
    assert accepted == fewer  # fewer receipts are a part of the chain, which holds


def test_a_malformed_file_has_exit_code_1(audited: Audited, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [{"user": 10**400}, {"user": "\ud800"}, {"siblings": [7] * 48}, {"kind": []}]
    for change in changes:
        file = tmp_path / "file"
        file.write_text(json.dumps(audited.access | change))
        done = run(str(VERIFIER), str(file), cwd=tmp_path)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)


def test_garbage_is_named_in_one_line(tmp_path: Path) -> None:
    for content in (b"", b"\xff", b"{}", b"[1]", b'{"format": "unbasket proof"}', b"[" * 100_000, b"null"):
        file = tmp_path / "file"
        file.write_bytes(content)
        done = run(str(VERIFIER), str(file), cwd=tmp_path)
        assert done.returncode == 1, content[:20]
        assert len(done.stderr.splitlines()) == 1
