"""Witnesses: a folder, and a small service of C2SP tlog-witness; both refuse a log that was cut or rewritten."""

import re
import shutil
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import unbasket as ub
from unbasket import verifier
from unbasket.store.witness import HttpWitness, witness_of


class SmallWitness(BaseHTTPRequestHandler):
    """A witness of every log, which trusts the key in its first checkpoint."""

    name = "witness.example/small"
    key = Ed25519PrivateKey.generate()
    seen: dict[str, verifier.Checkpoint]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        head, _, note = body.partition("\n\n")
        old, *proof = head.split("\n")
        self._answer(*self._cosigned(int(old.removeprefix("old ")), [b64decode(line) for line in proof], note))

    def _cosigned(self, old: int, proof: list[bytes], note: str) -> tuple[int, str]:
        new = verifier.read_checkpoint(note)
        last = self.seen.get(new.origin)
        if old > new.size:
            return 400, ""
        if old != (last.size if last else 0):
            return 409, f"{last.size if last else 0}\n"
        if last is not None:
            try:
                verifier.check_consistency(last, new, proof)
            except verifier.ProofError:
                return (409 if last.size == new.size else 422), ""
        self.seen[new.origin] = new
        text, seconds = verifier.split_note(note)[0], int(time.time())
        signature = self.key.sign(f"cosignature/v1\ntime {seconds}\n{text}".encode())
        public = self.key.public_key().public_bytes_raw()
        data = verifier.key_id(self.name, 4, public) + seconds.to_bytes(8, "big") + signature
        return 200, f"— {self.name} {b64encode(data).decode()}\n"

    def _answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


def vkey(handler: type[SmallWitness]) -> str:
    public = handler.key.public_key().public_bytes_raw()
    return f"{handler.name}+{verifier.key_id(handler.name, 4, public).hex()}+{b64encode(bytes([4]) + public).decode()}"


@pytest.fixture
def address() -> Iterator[str]:
    SmallWitness.seen = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), SmallWitness) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(params=["folder", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path, address: str) -> str:
    folder = tmp_path / "witness"
    folder.mkdir()
    return address if request.param == "http" else str(folder)


def shop(path: Path, forgets: int, place: str | None = None) -> None:
    with ub.open(path, witness=place) as rec:
        for number in range(forgets):
            rec.forget(f"user {number}")
        if place is not None:
            rec.publish_checkpoint()


def test_a_log_that_grows_is_accepted(tmp_path: Path, place: str) -> None:
    for _ in range(3):
        shop(tmp_path / "shop.db", 3, place)
    with ub.open(tmp_path / "shop.db", witness=place) as rec:
        assert verifier.read_checkpoint(rec.publish_checkpoint()).size == 9
        rec.rotate_key()
        assert verifier.read_checkpoint(rec.publish_checkpoint()).size == 10


def test_yesterdays_database_is_refused(tmp_path: Path, place: str) -> None:
    path, yesterday = tmp_path / "shop.db", tmp_path / "yesterday"
    shop(path, 2, place)
    shutil.copy(path, yesterday)
    shop(path, 2, place)
    shutil.copy(yesterday, path)
    for _ in range(2):
        with pytest.raises(ub.RollbackError, match=r"cut(,| or) rolled back.*Put the newest state.*accept_rollback"):
            ub.open(path, witness=place)
    ub.open(path).close()  # the error left no lock


def test_a_rewritten_log_is_refused(tmp_path: Path, place: str) -> None:
    """The shop has other receipts now, under its own key, and even more of them."""
    path, yesterday = tmp_path / "shop.db", tmp_path / "yesterday"
    ub.open(path).close()
    shutil.copy(path, yesterday)
    shop(path, 3, place)
    shutil.copy(yesterday, path)
    for forgets in (3, 2):
        shop(path, forgets)
        with pytest.raises(ub.RollbackError, match="rewritten"):
            ub.open(path, witness=place)


def test_an_accepted_rollback_is_in_a_receipt(tmp_path: Path) -> None:
    path, yesterday, folder = tmp_path / "shop.db", tmp_path / "yesterday", tmp_path / "witness"
    folder.mkdir()
    shop(path, 2, str(folder))
    shutil.copy(path, yesterday)
    shop(path, 2, str(folder))
    shutil.copy(yesterday, path)
    with ub.open(path, witness=folder, accept_rollback="the disk died") as rec:
        assert [(receipt.scope, receipt.detail) for receipt in rec.receipts()][-1] == ("rollback", "the disk died")
    ub.open(path, witness=folder).close()
    sizes = [verifier.read_checkpoint(file.read_text()).size for file in sorted(folder.iterdir())]
    assert sizes == [0, 2, 4, 3]  # an auditor sees the fork


def test_a_witness_over_http_cosigns(tmp_path: Path, address: str) -> None:
    shop(tmp_path / "shop.db", 1, address)
    with ub.open(tmp_path / "shop.db", witness=address) as rec:
        note = rec.publish_checkpoint()
        assert "with 1 cosignature;" in verifier.verify(note, witnesses=(vkey(SmallWitness),))
        with pytest.raises(verifier.ProofError, match="did not cosign"):
            verifier.verify(rec.checkpoint(), witnesses=(vkey(SmallWitness),))
        forged = re.sub(r"(witness.example/small \S{40})(.)", lambda m: m[1] + ("A" if m[2] != "A" else "B"), note)
        with pytest.raises(verifier.ProofError, match="cosignature"):
            verifier.verify(forged, witnesses=(vkey(SmallWitness),))
        with pytest.raises(verifier.ProofError, match="not the key of a witness"):
            verifier.verify(note, witnesses=("witness.example/small+00000000+AAAA",))
        with pytest.raises(ub.StoreError, match="never cosigns a log that was rolled back"):
            rec.accept_rollback("no")


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (b"garbage\r\n\r\n", "cannot reach the witness at .*garbage"),
        (b"HTTP/1.1 " + b"9" * 70_000, "cannot reach the witness"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n\xff", "cannot reach the witness"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno\n", "did not cosign the checkpoint: it answered 200"),
        (b"HTTP/1.1 409 Conflict\r\ncontent-length: 3\r\n\r\n\xc2\xb2\n", "has seen a checkpoint"),
        (b"HTTP/1.1 409 Conflict\r\ncontent-length: 5000\r\n\r\n" + b"9" * 5000, "has seen a checkpoint"),
        (b"", "cannot reach the witness"),
    ],
)
def test_a_garbled_answer(tmp_path: Path, answer: bytes, named: str) -> None:
    """Each is an error of ours, and leaves no lock."""

    class Garbled(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65_536)
            self.request.sendall(answer)

    with ThreadingTCPServer(("127.0.0.1", 0), Garbled) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with pytest.raises((ub.StoreError, ub.RollbackError), match=named):
            ub.open(tmp_path / "shop.db", witness=f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
        thread.join()
    ub.open(tmp_path / "shop.db").close()


def test_witnesses_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with pytest.raises(ub.StoreError, match="is not a folder"):
        ub.open(path, witness=tmp_path / "absent")
    with pytest.raises(ub.StoreError, match="cannot reach the witness"):
        ub.open(path, witness="http://127.0.0.1:1")
    (tmp_path / "1.checkpoint").write_text("no checkpoint")
    with pytest.raises(ub.StoreError, match="is not a checkpoint"):
        ub.open(path, witness=tmp_path)
    with ub.open(path) as rec, pytest.raises(ub.InvalidRequestError, match="there is no witness"):
        rec.publish_checkpoint()
    assert isinstance(witness_of("https://witness.example"), HttpWitness)
