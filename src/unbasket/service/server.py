"""The process: it listens at once, loads, answers, and on SIGTERM or SIGINT finishes what it has begun.

On SIGHUP it reads its keys and settings again.
"""

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import FrameType
from typing import BinaryIO

import msgspec
import uvicorn
from starlette.types import ASGIApp

from unbasket.errors import SettingsError
from unbasket.service import logs
from unbasket.service.app import Application, create_app
from unbasket.service.auth import Security
from unbasket.service.connection import Configuration, Doors
from unbasket.service.engine_loader import Shop
from unbasket.service.metrics import Metrics
from unbasket.service.settings import CHANGEABLE, Settings
from unbasket.store import DurableRecommender

Report = Callable[[int, int | None], object]
Bar = Callable[[str], AbstractContextManager[Report]]
Ready = Callable[[str, DurableRecommender], object]
Handler = Callable[[int, FrameType | None], object]

CLOSING = 35
"""Seconds that closing may take after the grace: an erasure waits 10 for readers, and a checkpoint takes its time."""

_TURN = 5e-4  # seconds after which a thread that computes lets others through; of Python's own 5e-3, all would notice
_EVERY = 5  # seconds between two lines about loading
_DOING = {
    "opening": "opening the database",
    "preparing": "preparing the first answers",
}


def run(
    settings: Settings,
    listener: socket.socket,
    *,
    bar: Bar,
    ready: Ready,
    log: BinaryIO,
    reload: Callable[[], Settings] | None = None,
) -> None:
    """Serve at a socket (see `listening`) until a signal comes.

    `bar` shows how loading goes; `ready` is called with address and engine; `reload` gathers the settings anew when
    SIGHUP comes. Without it, SIGHUP ends the service as SIGTERM does.
    """
    lines = logs.configure(log)
    sys.setswitchinterval(_TURN)
    security = Security.load(settings.access_file)
    check_exposure(settings, has_keys=security.enabled)
    if not security.enabled:
        logs.get().warning("no keys: everybody on this machine may do everything", file=str(settings.access_file))
    shop = Shop(settings.db)
    app = create_app(shop, security, metrics=Metrics(shop), settings=settings)
    live = _Live(app, security, settings, reload) if reload else None
    server = _Server(configuration(app, settings), live, lines)
    with (
        _handling({signal.SIGHUP: server.hear}),
        asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner,
    ):
        shop.start()
        try:
            runner.run(_serve(server, listener, shop, bar, ready))
        finally:
            shop.close()
            logs.get().info("closed")
    if shop.failure is not None and not server.told_to_stop:
        raise shop.failure


def check_exposure(settings: Settings, *, has_keys: bool) -> None:
    """Without keys everybody may do everything: then only programs of this machine may be everybody.

    Who has named a file of keys did not mean that at all.
    """
    if settings.access is not None and not has_keys:
        raise SettingsError(
            f"there are no keys in {settings.access}. Make one with `unbasket keys add NAME --role admin --access "
            f"{settings.access}`, or start without --access"
        )
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
        getattr(app, "begin", None),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_whole(settings.grace),
    )


def _whole(grace: float) -> int:
    """The grace as uvicorn has it: whole seconds, and 0 would mean none at all."""
    return max(1, round(grace))


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that connections queue up at from now on, for `run`."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(place[:2], family=family, backlog=2048)
    except OSError as error:
        raise SettingsError(_refusal(host, port, error)) from error
    with listener:
        yield listener


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken. Choose another with --port; --port 0 finds a free one"
    if error.errno == errno.EACCES:
        return f"port {port} is for the system's own services. Choose one above 1023 with --port"
    return f"cannot listen on {host}, port {port}: {error.strerror}. Choose an address of this machine with --host"


@contextmanager
def _handling(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals meanwhile."""
    former = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


class _Live:
    """The keys and settings of a running service, which may be changed."""

    def __init__(
        self, app: Application, security: Security, settings: Settings, gather: Callable[[], Settings]
    ) -> None:
        self._app, self._security, self.settings, self._gather = app, security, settings, gather

    def reload(self) -> None:
        """Read them again, and log what has changed. Bad settings change nothing."""
        self._security.reload()
        try:
            wanted = msgspec.structs.asdict(self._gather())
        except SettingsError as error:
            logs.get().error("settings not reloaded", problem=str(error))
            return
        former = msgspec.structs.asdict(self.settings)
        different = {name: value for name, value in wanted.items() if value != former[name]}
        changed = {name: value for name, value in different.items() if name in CHANGEABLE}
        self.settings = msgspec.structs.replace(self.settings, **changed)
        self._app.apply(self.settings)
        logs.get().info("settings reloaded", changed=changed, need_a_restart=sorted(different.keys() - changed.keys()))


class _Server(uvicorn.Server):
    """Ends with exit code 0 after a signal, where uvicorn would let the signal kill it in the end."""

    def __init__(self, config: uvicorn.Config, live: _Live | None, log: logs.Lines) -> None:
        super().__init__(config)
        self.told_to_stop: signal.Signals | None = None
        self._told_to_reload = False
        self._live, self._log = live, log

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Handle signals meanwhile."""
        return _handling({signal.SIGTERM: self.hear, signal.SIGINT: self.hear})

    def hear(self, number: int, _: FrameType | None) -> None:
        """Nothing but a note: a signal interrupts the thread that may hold the lock of the log, or of threads."""
        if number == signal.SIGHUP and self._live is not None:
            self._told_to_reload = True
        else:
            self._stop(signal.Signals(number))

    def _stop(self, number: signal.Signals) -> None:
        self.told_to_stop = self.told_to_stop or number
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: reload if a signal has asked for it."""
        if self._told_to_reload and self._live is not None:
            self._told_to_reload = False
            self._live.reload()
            self.config.timeout_graceful_shutdown = _whole(self._live.settings.grace)
            if self._log.broken:  # the signal came from a terminal that was closed
                self._stop(signal.SIGHUP)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what was begun, but not at any price."""
        if self.told_to_stop:
            alarm = threading.Timer((self.config.timeout_graceful_shutdown or 0) + CLOSING, _give_up)
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
    while shop.loading:
        await _watch_stage(shop, shop.stage, bar)
    if shop.ready:
        logs.get().info("ready")
        ready(shop.engine)
    else:
        server.should_exit = True


async def _watch_stage(shop: Shop, stage: str, bar: Bar) -> None:
    doing, said = _DOING.get(stage, stage), time.monotonic()
    logs.get().info("loading", stage=stage, doing=doing)  # before the bar, which may be drawn on the same terminal
    with bar(doing) as report:
        while shop.loading and shop.stage == stage:
            done, total = shop.progress
            report(done, total or None)
            if time.monotonic() > said + _EVERY:
                said = time.monotonic()
                logs.get().info("loading", stage=stage, doing=doing, done=done, total=total)
            await asyncio.sleep(0.05)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
