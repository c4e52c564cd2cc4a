"""The server process: it listens at once, loads, serves, and on SIGTERM or SIGINT finishes the requests in progress.

SIGHUP reloads keys and settings.
"""

import asyncio
import errno
import os
import resource
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
from unbasket.service.auth import Authenticator
from unbasket.service.clock import Clock, clock_of
from unbasket.service.connection import Configuration, ConnectionLimiter
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.metrics import Metrics
from unbasket.service.settings import CHANGEABLE, Settings
from unbasket.store import DurableRecommender

Report = Callable[[int, int | None], object]
Bar = Callable[[str], AbstractContextManager[Report]]
Ready = Callable[[str, DurableRecommender], object]
Handler = Callable[[int, FrameType | None], object]

CLOSING = 35
"""Seconds that closing may take after the grace period: an erasure waits 10 for readers, then the WAL is merged."""

_DESCRIPTORS = 64  # files and sockets of a service without connections, at most
_SWITCH_INTERVAL = 5e-4  # seconds between thread switches; Python's 5e-3 would show in every latency
_LOG_INTERVAL = 5  # seconds between two log lines about loading
_DOING = {"opening": "opening the database", "preparing": "preparing the first responses"}


def run(
    settings: Settings,
    listener: socket.socket,
    *,
    bar: Bar,
    ready: Ready,
    log: BinaryIO,
    reload: Callable[[], Settings] | None = None,
) -> None:
    """Serve at a socket (see `listening`) until a signal.

    `bar` shows the progress of loading; `ready` is called with address and engine; `reload` gathers the settings again
    on SIGHUP. Without it, SIGHUP stops the service as SIGTERM does.
    """
    check_descriptors()
    lines = logs.configure(log)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    auth = Authenticator.load(settings.access_file, Clock(clock_of(settings.db)))
    check_exposure(settings, has_keys=auth.enabled)
    if not auth.enabled:
        logs.get().warning("no keys: every program on this machine is an admin", file=str(settings.access_file))
    loader = EngineLoader(settings.db)
    app = create_app(loader, auth, metrics=Metrics(loader), settings=settings)
    live = _Live(app, auth, settings, reload) if reload else None
    server = _Server(configuration(app, settings), live, lines)
    with (
        _handling({signal.SIGHUP: server.on_signal}),
        asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner,
    ):
        loader.start()
        try:
            runner.run(_serve(server, listener, loader, bar, ready))
        finally:
            loader.close()
            logs.get().info("closed")
    if loader.failure is not None and not server.stop_signal:
        raise loader.failure


def check_descriptors() -> None:
    """Raise if this process may open too few files and sockets to start."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < _DESCRIPTORS:
        raise SettingsError(
            f"this process may open {limit} files and sockets at a time. Let it open one for each connection and "
            f"{_DESCRIPTORS} more (ulimit -n, or LimitNOFILE of systemd)"
        )


def check_exposure(settings: Settings, *, has_keys: bool) -> None:
    """Raise if the service would be open to other machines. Without keys every caller is an admin.

    A named key file without keys is an error too: the user meant to have some.
    """
    if settings.access is not None and not has_keys:
        raise SettingsError(
            f"there are no keys in {settings.access}. Make one with `unbasket keys add NAME --role admin --access "
            f"{settings.access}`, or start without --access"
        )
    if not (settings.on_loopback or has_keys):
        raise SettingsError(
            f"without keys, every machine that reaches {settings.host} is an admin. Make a key with "
            f"`unbasket keys add NAME --role admin --db {settings.db}`, or listen on 127.0.0.1"
        )


def configuration(app: ASGIApp, settings: Settings) -> Configuration:
    """Configure uvicorn: one process, no log of its own, no headers that name it."""
    return Configuration(
        app,
        ConnectionLimiter(settings.connections),
        getattr(app, "handle", None),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_whole_seconds(settings.grace),
    )


def _whole_seconds(grace: float) -> int:
    """Round the grace period to whole seconds for uvicorn, at least 1."""
    return max(1, round(grace))


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket for `run`, at which connections queue up from now on."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        raise SettingsError(_explained(host, port, error)) from error
    with listener:
        yield listener


def _explained(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken. Choose another with --port; --port 0 finds a free one"
    if error.errno == errno.EACCES:
        return f"port {port} is for the system's own services. Choose one above 1023 with --port"
    return f"cannot listen on {host}, port {port}: {error.strerror}. Choose an address of this machine with --host"


@contextmanager
def _handling(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals inside the block."""
    former = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


class _Live:
    """The keys and settings of a running service, which can be reloaded."""

    def __init__(
        self, app: Application, auth: Authenticator, settings: Settings, gather: Callable[[], Settings]
    ) -> None:
        self._app, self._auth, self.settings, self._gather = app, auth, settings, gather

    def reload(self) -> None:
        """Read keys and settings again, and log the changes. Invalid settings change nothing."""
        self._auth.reload()
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
    """A uvicorn server that exits with code 0 after a signal, where uvicorn would raise it again."""

    def __init__(self, config: uvicorn.Config, live: _Live | None, log: logs.Lines) -> None:
        super().__init__(config)
        self.stop_signal: signal.Signals | None = None
        self._should_reload = False
        self._live, self._log = live, log

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Handle signals inside the block."""
        return _handling({signal.SIGTERM: self.on_signal, signal.SIGINT: self.on_signal})

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Set a flag only: the interrupted thread may hold the lock of the log."""
        if number == signal.SIGHUP and self._live is not None:
            self._should_reload = True
        else:
            self._stop(signal.Signals(number))

    def _stop(self, number: signal.Signals) -> None:
        self.stop_signal = self.stop_signal or number
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Reload after SIGHUP. Called ten times a second."""
        if self._should_reload and self._live is not None:
            self._should_reload = False
            self._live.reload()
            self.config.timeout_graceful_shutdown = _whole_seconds(self._live.settings.grace)
            if self._log.broken:  # the signal came from a terminal that was closed
                self._stop(signal.SIGHUP)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests in progress, and exit hard if closing takes too long."""
        if self.stop_signal:
            alarm = threading.Timer((self.config.timeout_graceful_shutdown or 0) + CLOSING, _exit_hard)
            alarm.daemon = True
            alarm.start()
            logs.get().info("stopping", signal=self.stop_signal.name)
        await super().shutdown(sockets)


def _exit_hard() -> None:
    message = ("closing takes too long; acknowledged changes are on disk",)
    writer = threading.Thread(target=logs.get().error, args=message, daemon=True)
    writer.start()
    writer.join(1)  # a full pipe must not block the exit
    os._exit(1)


async def _serve(server: _Server, listener: socket.socket, loader: EngineLoader, bar: Bar, ready: Ready) -> None:
    asyncio.get_running_loop().set_exception_handler(logs.on_loop_failure)
    host, port = listener.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    logs.get().info("listening", address=address)
    watching = asyncio.create_task(_watch(server, loader, bar, partial(ready, address)))
    await server.serve(sockets=[listener])
    watching.cancel()


async def _watch(
    server: _Server, loader: EngineLoader, bar: Bar, ready: Callable[[DurableRecommender], object]
) -> None:
    """Log the progress of loading, and stop the server if loading fails."""
    while loader.loading:
        await _watch_stage(loader, loader.stage, bar)
    if loader.ready:
        logs.get().info("ready")
        ready(loader.engine)
    else:
        server.should_exit = True


async def _watch_stage(loader: EngineLoader, stage: str, bar: Bar) -> None:
    doing, logged = _DOING.get(stage, stage), time.monotonic()
    logs.get().info("loading", stage=stage, doing=doing)  # before the bar, which may use the same terminal
    with bar(doing) as report:
        while loader.loading and loader.stage == stage:
            done, total = loader.progress
            report(done, total or None)
            if time.monotonic() > logged + _LOG_INTERVAL:
                logged = time.monotonic()
                logs.get().info("loading", stage=stage, doing=doing, done=done, total=total)
            await asyncio.sleep(0.05)
