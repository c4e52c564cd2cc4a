"""Raw sockets: requests as bytes, and the bytes that come back."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

PING = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connected(service: Any, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), 20, (source, 0))


def request(path: str, key: str = "") -> bytes:
    """Return a GET request, with a key if given."""
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}\r\n".encode()


@contextmanager
def requesting(service: Any, count: int, path: str, key: str = "") -> Iterator[list[socket.socket]]:
    """Open connections, and send a request on each."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(service)) for _ in range(count)]
        for connection in connections:
            connection.sendall(request(path, key))
        yield connections


def read_all(connection: socket.socket) -> bytes:
    """Read until the connection is closed or reset."""
    chunks = []
    try:
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    except ConnectionResetError:
        pass
    return b"".join(chunks)


def read_responses(connection: socket.socket, count: int) -> bytes:
    """Read a number of JSON responses to pipelined requests."""
    received = b""
    while received.count(b"HTTP/1.1 ") < count or not received.endswith(b"}"):
        received += connection.recv(65536)
    return received


def error_code(response: bytes) -> str:
    """Return the code of an error response."""
    return response.partition(b'"code":"')[2].partition(b'"')[0].decode()


def is_pong(connection: socket.socket) -> bool:
    """Read the next response, and return whether it is the one to PING."""
    received = b""
    while not received.endswith(b'{"ok":true}'):
        received += connection.recv(65536)
    return received.startswith(b"HTTP/1.1 200")
