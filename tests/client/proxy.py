"""A proxy on a real socket that spoils the first requests to a service in given ways, and forwards the others."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple

import httpx


class Answer(NamedTuple):
    """A response of the proxy itself."""

    status: int
    headers: dict[str, str]
    body: str


Fault = Literal["cut off", "lose the response"] | Answer


class Proxy:
    """A running proxy: its URL, and how many requests it got."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests = 0


@contextmanager
def spoiling(target: str, faults: Sequence[Fault]) -> Iterator[Proxy]:
    """Run a proxy. Each fault spoils one request: before it reaches the service, or after."""
    remaining = list(faults)

    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.close_connection = True
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                return
            proxy.requests += 1
            fault = remaining.pop(0) if remaining else None
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if isinstance(fault, Answer):
                self._answer(fault.status, fault.headers, fault.body.encode())
            elif fault != "cut off":
                headers = {"content-type": self.headers["content-type"]} if body else {}
                with httpx.Client(base_url=target, headers=headers) as client:
                    response = client.request(self.command, self.path, content=body)
                if fault is None:
                    names = ("content-type", "x-request-id", "retry-after")
                    kept = {name: response.headers[name] for name in names if name in response.headers}
                    self._answer(response.status_code, kept, response.content)

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        proxy = Proxy(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
