"""Witnesses: checkpoints are put where the shop can't rewrite them, and a database that is older than one is refused.

A witness is a folder, best one that the shop can only add to, or the address of a service that speaks C2SP
tlog-witness: it cosigns a checkpoint only if that extends the last one that it saw.
"""

import re
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPException
from os import PathLike, fspath
from pathlib import Path
from typing import Protocol

from unbasket import verifier
from unbasket.errors import InvalidRequestError, RollbackError, StoreError
from unbasket.files import fsync
from unbasket.store.timestamp import timestamp, timestamp_of
from unbasket.verifier import Checkpoint

TIMEOUT = 10
"""Seconds to wait for the answer of a witness."""

Consistency = Callable[[int], list[bytes]]
"""The proof that the log extends its first receipts, by their number."""

_ENDING = ".checkpoint"
_UNPROCESSABLE = 422
_CONFLICT = 409


class Witness(Protocol):
    """A keeper of the newest checkpoint of a log."""

    def add(self, checkpoint: Checkpoint, prove: Consistency) -> str:
        """Keep a checkpoint that extends the last one, and return it with cosignatures; otherwise, a RollbackError."""

    def begin_again(self, checkpoint: Checkpoint) -> str:
        """Keep a checkpoint that does not extend the last one, since the shop has accepted a rollback."""


def witness_of(place: str | PathLike[str], authority: str | None = None) -> Witness:
    """Return the witness at an address or in a folder, where an authority may timestamp the checkpoints."""
    text = fspath(place)
    if not text.startswith(("http://", "https://")):
        return FolderWitness(Path(text), authority)
    if authority is not None:
        raise InvalidRequestError(
            f"{authority} can't timestamp checkpoints for {text}: a timestamp is put into the folder of a witness. One "
            "over HTTP signs its own time"
        )
    return HttpWitness(text)


class FolderWitness:
    """A folder with a file for each checkpoint, numbered from 1 on, and its timestamp. Files are never changed."""

    def __init__(self, folder: Path, authority: str | None = None) -> None:
        self._folder, self._authority = folder, authority

    def add(self, checkpoint: Checkpoint, prove: Consistency) -> str:
        last = self._last(checkpoint.origin)
        if last is not None:
            proof = prove(last.size) if last.size <= checkpoint.size else []
            try:
                verifier.check_consistency(last, checkpoint, proof)
            except verifier.ProofError as error:
                raise RollbackError(
                    f"{self._folder} has a checkpoint that this database contradicts: {error}"
                ) from error
            if last[2:5] == checkpoint[2:5]:  # nothing is new
                return last.note
        return self.begin_again(checkpoint)

    def begin_again(self, checkpoint: Checkpoint) -> str:
        number = len(self._files()) + 1
        stamp = None if self._authority is None else timestamp(checkpoint.note, self._authority)
        file = self._folder / f"{number:09d}{_ENDING}"
        self._write(file, checkpoint.note.encode())
        if stamp is not None:
            self._write(timestamp_of(file), stamp)
        return checkpoint.note

    def _write(self, file: Path, content: bytes) -> None:
        try:
            with file.open("xb") as stream:  # two writers can't have the same number
                stream.write(content)
            fsync(file)
            fsync(self._folder)
        except OSError as error:
            raise StoreError(f"cannot write the checkpoint to {file}: {error.strerror}") from error

    def _files(self) -> list[Path]:
        if not self._folder.is_dir():
            raise StoreError(f"{self._folder} is not a folder. Create it, or check where it is mounted")
        return sorted(self._folder.glob(f"*{_ENDING}"))

    def _last(self, origin: str) -> Checkpoint | None:
        """Return the newest checkpoint of a log; the folder may have those of others."""
        for file in reversed(self._files()):
            try:
                checkpoint = verifier.read_checkpoint(file.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, verifier.ProofError) as error:
                raise StoreError(f"{file} is not a checkpoint: {error}. Restore it from another copy") from error
            if checkpoint.origin == origin:
                return checkpoint
        return None


class HttpWitness:
    """A service that speaks C2SP tlog-witness. It must know the origin and the public key of the log."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/") + "/add-checkpoint"
        self._size = 0  # of the checkpoint that it saw last, as far as known

    def add(self, checkpoint: Checkpoint, prove: Consistency) -> str:
        status, body = self._post(checkpoint, prove)
        if status == _CONFLICT and re.fullmatch(r"[0-9]{1,18}\n?", body) and int(body) != self._size:
            self._size = int(body)  # what it saw last, while this program was not running
            if self._size <= checkpoint.size:
                status, body = self._post(checkpoint, prove)
        if status in (_CONFLICT, _UNPROCESSABLE):
            raise RollbackError(
                f"{self._address} has seen a checkpoint with {self._size} receipts that this database, with "
                f"{checkpoint.size}, contradicts: the log was cut, rolled back or rewritten"
            )
        lines = body.splitlines()
        if status != 200 or not lines or not all(line.startswith("— ") for line in lines):
            raise StoreError(f"{self._address} did not cosign the checkpoint: it answered {status} {body[:200]!r}")
        self._size = checkpoint.size
        return checkpoint.note + "".join(line + "\n" for line in lines)

    def begin_again(self, checkpoint: Checkpoint) -> str:
        raise StoreError(
            f"{self._address} never cosigns a log that was rolled back. Have its operator remove the log "
            f"{checkpoint.origin}"
        )

    def _post(self, checkpoint: Checkpoint, prove: Consistency) -> tuple[int, str]:
        hashes = prove(self._size) if self._size <= checkpoint.size else []
        proof = "".join(b64encode(each).decode() + "\n" for each in hashes)
        body = f"old {min(self._size, checkpoint.size)}\n{proof}\n{checkpoint.note}".encode()
        request = urllib.request.Request(self._address, body, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return answer.status, answer.read(65_536).decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(65_536).decode(errors="replace")
        except (OSError, HTTPException, UnicodeDecodeError) as error:
            raise StoreError(f"cannot reach the witness at {self._address}: {error}") from error
