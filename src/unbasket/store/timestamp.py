"""Timestamps (RFC 3161): an authority signs that a checkpoint existed at a time of the authority's clock.

An auditor checks the authority's signature, by the certificate that they trust, with `openssl ts -verify`. Here it is
only checked that the answer is about the request.
"""

import hashlib
import http.client
import secrets
import urllib.error
import urllib.request
from pathlib import Path

from unbasket.errors import StoreError

TIMEOUT = 10
"""Seconds to wait for the answer of an authority."""

_LARGEST = 65_536  # bytes of an answer; a usual one has some 5,000
_GRANTED = (0, 1)  # as asked, or with modifications

# Tags of ASN.1 in DER
_BOOLEAN, _INTEGER, _OCTETS, _SEQUENCE = 0x01, 0x02, 0x04, 0x30
_SHA256 = bytes.fromhex("300d06096086480165030402010500")  # AlgorithmIdentifier, with its NULL


def timestamp(text: str, authority: str) -> bytes:
    """Return the answer (TimeStampResp) of the authority at an address to the SHA-256 of a text."""
    imprint = _element(_SEQUENCE, _SHA256 + _element(_OCTETS, hashlib.sha256(text.encode()).digest()))
    nonce = _element(_INTEGER, b"\1" + secrets.token_bytes(7))  # positive, in the shortest form, and of 64 bits
    version, with_certificate = _element(_INTEGER, b"\1"), _element(_BOOLEAN, b"\xff")
    answer = _post(authority, _element(_SEQUENCE, version + imprint + nonce + with_certificate))
    try:
        _check(answer, imprint, nonce)
    except ValueError as error:
        raise StoreError(f"{authority} did not timestamp the checkpoint: {error}") from error
    except IndexError as error:
        raise StoreError(f"{authority} did not answer with a timestamp. Check the address") from error
    return answer


def timestamp_of(checkpoint: Path) -> Path:
    """Return the file beside a checkpoint that its timestamp is written to."""
    return checkpoint.with_name(checkpoint.name + ".tsr")


def _post(authority: str, query: bytes) -> bytes:
    if not authority.startswith(("http://", "https://")):
        raise StoreError(f"{authority!r} is not the address of a timestamp authority: it must begin with http(s)://")
    headers = {"content-type": "application/timestamp-query"}
    try:
        with urllib.request.urlopen(urllib.request.Request(authority, query, headers), timeout=TIMEOUT) as answer:
            content: bytes = answer.read(_LARGEST)
            return content
    except urllib.error.HTTPError as error:
        with error:
            raise StoreError(f"{authority} did not timestamp the checkpoint: it answered {error.code}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise StoreError(f"cannot reach the timestamp authority at {authority}: {error}") from error


def _check(answer: bytes, imprint: bytes, nonce: bytes) -> None:
    """Check that an answer grants a timestamp of this imprint and for this request."""
    status, *token = _inside(answer) or [b""]
    code, *reasons = _inside(status) or [b""]
    number = int.from_bytes(_content(code), "big")
    if number not in _GRANTED:
        said = [_content(text).decode(errors="replace") for part in reasons[:1] for text in _texts(part)]
        raise ValueError(f"it refused with status {number}{''.join(f', {text!r}' for text in said)}")
    signed_data = _inside(_inside(token[0])[1])[0]
    octets = _inside(_inside(_inside(signed_data)[2])[1])[0]
    fields = _inside(_content(octets))  # version, policy, imprint, serial number and time; the others are optional
    if fields[2] != imprint:
        raise ValueError("its timestamp is of other data")
    if nonce not in fields[5:]:
        raise ValueError("its timestamp is for another request: the nonce is not the one that was sent")


def _texts(part: bytes) -> list[bytes]:
    """Return the texts that explain a refusal; there may be bits instead."""
    return _inside(part) if part[0] == _SEQUENCE else []


# DER ----------------------------------------------------------------------------------------------------------------


def _element(tag: int, content: bytes) -> bytes:
    """Encode a short element: all of a request are."""
    return bytes([tag, len(content)]) + content


def _inside(element: bytes) -> list[bytes]:
    """Return the elements that an element consists of."""
    content, found = _content(element), []
    while content:
        _, end = _extent(content)
        found.append(content[:end])
        content = content[end:]
    return found


def _content(element: bytes) -> bytes:
    start, end = _extent(element)
    return element[start:end]


def _extent(data: bytes) -> tuple[int, int]:
    """Return where the content of the first element begins and ends."""
    length, start = data[1], 2
    if length & 0x80:  # the length of the length
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if data[1] == 0x80 or start + length > len(data):
        raise IndexError("this is not DER, or was cut off")
    return start, start + length
