"""Timestamps of a real authority (`openssl ts`), as an auditor verifies them with OpenSSL."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.running import error, run

import unbasket as ub
from unbasket.store.timestamp import timestamp

CONFIG = """
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:true
[authority]
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = stamping
[stamping]
serial = serial
signer_cert = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = {digests}
accuracy = secs:1
ordering = yes
"""


def openssl(folder: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    command = ["openssl", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


class Authority(NamedTuple):
    """A folder with the certificates of an authority, and its address."""

    folder: Path
    url: str

    def verifies(self, checkpoint: Path, stamp: Path) -> bool:
        """Verify a timestamp as an auditor does who trusts the certificate of the authority's issuer."""
        options = ("-data", checkpoint, "-in", stamp, "-CAfile", self.folder / "ca.pem")
        done = openssl(self.folder, "ts", "-verify", *options)
        assert (done.returncode == 0) == ("Verification: OK" in done.stdout + done.stderr)
        return done.returncode == 0


class Stamping(BaseHTTPRequestHandler):
    """A timestamp authority over HTTP: OpenSSL answers, unless the path says how to misbehave."""

    folder: Path
    kept = b""  # the first answer, for /replay

    def do_POST(self) -> None:
        assert self.headers["content-type"] == "application/timestamp-query"
        query = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/error":
            self.send_error(503)
            return
        config = "refusing.cnf" if self.path == "/refuse" else "tsa.cnf"
        answer = self._answer(query, config)
        if self.path == "/replay":
            answer = Stamping.kept = Stamping.kept or answer
        self.send_response(200)
        self.end_headers()
        self.wfile.write({"/html": b"<html>", "/empty": b"", "/cut": answer[:-1]}.get(self.path, answer))

    def _answer(self, query: bytes, config: str) -> bytes:
        (self.folder / "query").write_bytes(query)
        done = openssl(self.folder, "ts", "-reply", "-config", config, "-queryfile", "query", "-out", "answer")
        assert done.returncode == 0, done.stderr
        return (self.folder / "answer").read_bytes()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authority]:
    folder = tmp_path_factory.mktemp("authority")
    (folder / "tsa.cnf").write_text(CONFIG.format(digests="sha256"))
    (folder / "refusing.cnf").write_text(CONFIG.format(digests="sha512"))
    (folder / "serial").write_text("01\n")
    make = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-config", "tsa.cnf", "-days", 1)
    by_ca = ("-CA", "ca.pem", "-CAkey", "ca.key")
    for options in (
        ("-subj", "/CN=Issuer", "-extensions", "ca", "-keyout", "ca.key", "-out", "ca.pem"),
        ("-subj", "/CN=Clock", "-extensions", "authority", "-keyout", "tsa.key", "-out", "tsa.pem", *by_ca),
    ):
        done = openssl(folder, *make, *options)
        assert done.returncode == 0, done.stderr
    Stamping.folder, Stamping.kept = folder, b""
    with ThreadingHTTPServer(("127.0.0.1", 0), Stamping) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Authority(folder, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    with ub.open(tmp_path / "shop.db") as rec:
        rec.forget("ann")
    return tmp_path / "shop.db"


def test_openssl_verifies_the_timestamp_of_a_checkpoint(authority: Authority, db: Path, tmp_path: Path) -> None:
    file, stamp = tmp_path / "checkpoint", tmp_path / "checkpoint.tsr"
    run("receipts", "checkpoint", "--db", db, "--output", file, "--timestamp", authority.url)
    assert authority.verifies(file, stamp)
    file.write_text(file.read_text().replace("\n1\n", "\n2\n"))
    assert not authority.verifies(file, stamp)


def test_checkpoints_in_the_folder_of_a_witness(authority: Authority, db: Path, tmp_path: Path) -> None:
    folder = tmp_path / "witness"
    folder.mkdir()
    for user in ("bob", "cem"):
        with ub.open(db, witness=folder, timestamp=authority.url) as rec:
            rec.forget(user)
            rec.publish_checkpoint()
    ub.open(db, witness=folder, timestamp="http://127.0.0.1:1").close()  # nothing is new, so no timestamp is needed
    checkpoints = sorted(folder.glob("*.checkpoint"))
    assert len(checkpoints) == 3
    stamps = [file.with_name(file.name + ".tsr") for file in checkpoints]
    assert sorted(folder.iterdir()) == sorted(checkpoints + stamps)
    for file in checkpoints:
        assert [authority.verifies(file, stamp) for stamp in stamps] == [file.name in stamp.name for stamp in stamps]


FAULTS = [
    ("/refuse", r"it refused with status 2, 'Message digest algorithm is not supported.'"),
    ("/error", "it answered 503"),
    ("/html", "did not answer with a timestamp"),
    ("/empty", "did not answer with a timestamp"),
    ("/cut", "did not answer with a timestamp"),
]


@pytest.mark.parametrize(("path", "named"), FAULTS)
def test_an_authority_that_does_not_grant_one(authority: Authority, db: Path, path: str, named: str) -> None:
    check_refused(db, authority.url + path, named)


def test_an_authority_that_is_not_there(db: Path) -> None:
    check_refused(db, "http://127.0.0.1:1", "cannot reach the timestamp authority")
    check_refused(db, "file:///etc/passwd", "is not the address of a timestamp authority")
    check_refused(db, "http://[", "cannot reach the timestamp authority")


def check_refused(db: Path, url: str, named: str) -> None:
    """Check that an error names the fault, and that neither a file nor a checkpoint of a witness is written."""
    file, folder = db.with_name("checkpoint"), db.with_name("witness")
    folder.mkdir(exist_ok=True)
    assert named in error("receipts", "checkpoint", "--db", db, "--output", file, "--timestamp", url)
    with pytest.raises(ub.StoreError, match=named.split("'")[0]):
        ub.open(db, witness=folder, timestamp=url)
    assert not list(folder.iterdir())
    assert not list(db.parent.glob("checkpoint*"))
    ub.open(db).close()  # the error left no lock


def test_an_accepted_rollback_leaves_no_lock(db: Path, tmp_path: Path) -> None:
    folder, yesterday = tmp_path / "witness", tmp_path / "yesterday"
    folder.mkdir()
    shutil.copy(db, yesterday)
    with ub.open(db, witness=folder) as rec:
        rec.forget("bob")
        rec.publish_checkpoint()
    shutil.copy(yesterday, db)
    with pytest.raises(ub.StoreError, match="cannot reach the timestamp authority"):
        ub.open(db, witness=folder, accept_rollback="the disk died", timestamp="http://127.0.0.1:1")
    assert len(list(folder.iterdir())) == 2
    ub.open(db).close()


def test_an_answer_to_another_request(authority: Authority) -> None:
    Stamping.kept = b""
    assert timestamp("old", f"{authority.url}/replay")
    with pytest.raises(ub.StoreError, match="the nonce is not the one that was sent"):
        timestamp("old", f"{authority.url}/replay")
    with pytest.raises(ub.StoreError, match="of other data"):
        timestamp("new", f"{authority.url}/replay")


def test_a_timestamp_needs_a_place(authority: Authority, db: Path) -> None:
    assert "--timestamp needs --output" in error("receipts", "checkpoint", "--db", db, "--timestamp", authority.url)
    with pytest.raises(ub.InvalidRequestError, match="nothing to timestamp without a witness"):
        ub.open(db, timestamp=authority.url)
    with pytest.raises(ub.InvalidRequestError, match="One over HTTP signs its own time"):
        ub.open(db, witness="http://127.0.0.1:1", timestamp=authority.url)
