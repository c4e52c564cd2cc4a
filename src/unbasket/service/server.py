"""The process: it listens at once, loads, answers, and on SIGTERM or SIGINT finishes what it has begun."""

import asyncio
import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import BinaryIO

import uvicorn
from starlette.types import ASGIApp

from unbasket.service import logs
from unbasket.service.app import create_app
from unbasket.service.metrics import Metrics
from unbasket.service.protocol import Configuration, Doors
from unbasket.service.security import Security
from unbasket.service.settings import Settings, SettingsError
from unbasket.service.shop import Shop
from unbasket.store import DurableRecommender

Report = Callable[[int, int], object]
Bar = Callable[[], AbstractContextManager[Report]]
Ready = Callable[[str, DurableRecommender], object]

_CLOSING = 35  # seconds that closing may take after the grace: an erasure waits 30 for readers
_EVERY = 5  # seconds between two lines about loading


def run(settings: Settings, listener: socket.socket, *, bar: Bar, ready: Ready, log: BinaryIO) -> None:
    """Serve until a signal comes. `bar` shows how loading goes; `ready` is called with address and engine."""
    logs.configure(log)
    security = Security.load(settings.access_file)
    check_exposure(settings, has_keys=security.enabled)
    shop = Shop(settings.db)
    server = _Server(configuration(create_app(shop, security, metrics=Metrics(shop), settings=settings), settings))
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        shop.start()
        try:
            runner.run(_serve(server, listener, shop, bar, ready))
        finally:
            shop.close()
            logs.get().info("closed")
    if shop.failure is not None and not server.told_to_stop:
        raise shop.failure


def check_exposure(settings: Settings, *, has_keys: bool) -> None:
    """Without keys everybody may do everything: then only programs of this machine may be everybody."""
    if not (settings.on_loopback or has_keys):
        raise SettingsError(
            f"without keys, anybody who reaches {settings.host} could read and change everything. Make a key with "
            f"`unbasket keys add NAME --role admin --db {settings.db}`, or listen on 127.0.0.1"
        )


def configuration(app: ASGIApp, settings: Settings) -> Configuration:
    """How uvicorn serves: one process, no log of its own, no headers that name it."""
    return Configuration(
        app,
        Doors(settings.connections),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
    )


class _Server(uvicorn.Server):
    """Ends with exit code 0 after a signal, where uvicorn would let the signal kill it in the end."""

    told_to_stop: signal.Signals | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals meanwhile."""
        former = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _stop(self, number: int, _: object) -> None:
        """Nothing but a note: a signal interrupts the thread that may hold the lock of the log, or of threads."""
        self.told_to_stop = self.told_to_stop or signal.Signals(number)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what was begun, but not at any price."""
        if self.told_to_stop:
            alarm = threading.Timer((self.config.timeout_graceful_shutdown or 0) + _CLOSING, _give_up)
            alarm.daemon = True
            alarm.start()
            logs.get().info("stopping", signal=self.told_to_stop.name)
        await super().shutdown(sockets)


def _give_up() -> None:
    last_words = ("closing takes too long; what was acknowledged is on disk",)
    speaker = threading.Thread(target=logs.get().error, args=last_words, daemon=True)
    speaker.start()
    speaker.join(1)  # a log that nobody reads must not keep the process
    os._exit(1)


async def _serve(server: _Server, listener: socket.socket, shop: Shop, bar: Bar, ready: Ready) -> None:
    asyncio.get_running_loop().set_exception_handler(logs.on_loop_failure)
    address = _address(listener)
    logs.get().info("listening", address=address)
    watching = asyncio.create_task(_watch(server, shop, bar, partial(ready, address)))
    await server.serve(sockets=[listener])
    watching.cancel()


async def _watch(server: _Server, shop: Shop, bar: Bar, ready: Callable[[DurableRecommender], object]) -> None:
    """Say how loading goes, and stop the server if it fails."""
    said, stage = 0.0, ""
    with bar() as report:
        while shop.loading:
            report(*shop.progress)
            if shop.stage != stage or time.monotonic() > said + _EVERY:
                said, stage, (done, total) = time.monotonic(), shop.stage, shop.progress
                logs.get().info("loading", stage=stage, done=done, total=total)
            await asyncio.sleep(0.05)
    if shop.ready:
        logs.get().info("ready")
        ready(shop.engine)
    else:
        server.should_exit = True


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that connections queue up at from now on, for `run`."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(place[:2], family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"port {port} of {host} is taken. Choose another with --port; --port 0 finds a free one"
            ) from error
        raise SettingsError(f"cannot listen on {host}, port {port}: {error.strerror}") from error
    with listener:
        yield listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
