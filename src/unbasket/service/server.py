"""The server process: it listens at once, loads, serves, and on SIGTERM or SIGINT finishes the requests in progress.

SIGHUP reloads keys, settings and TLS certificates. HTTP is aiohttp's, which limits the size of a request's head, the
requests that a connection may send ahead, and the time that it may be idle.
"""

import asyncio
import errno
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO

import msgspec
import uvloop
from aiohttp import web

from unbasket.errors import SettingsError
from unbasket.service import logs
from unbasket.service.app import Application
from unbasket.service.auth import Authenticator
from unbasket.service.background_tasks import BackgroundTask, CheckpointPublisher
from unbasket.service.clock import Clock
from unbasket.service.engine_loader import EngineLoader
from unbasket.service.metrics import Metrics
from unbasket.service.request import Shared
from unbasket.service.settings import Settings
from unbasket.store import DurableRecommender

Report = Callable[[int, int | None], object]
Bar = Callable[[str], AbstractContextManager[Report]]
Ready = Callable[[str, DurableRecommender], object]
Address = tuple[str, int]

MAX_ADDRESS, MAX_HEADERS, MAX_HEADER = 16 * 1024, 64, 4096
"""Bytes of a request's address, its headers, and bytes of each of them."""
IDLE_SECONDS = 10.0
"""Seconds until a connection without a complete request head is closed."""
UNREAD_SECONDS = 30.0
"""Seconds until a connection is closed whose client does not read what was sent."""
LINGERING_SECONDS = 2.0
"""Seconds that the rest of a refused body is read, for a client that is still sending to notice."""
CLOSING = 35
"""Seconds that closing may take after the grace period: an erasure waits 10 for readers, then the WAL is merged."""

_DESCRIPTORS = 64  # files and sockets of a service without connections, at most
_SWITCH_INTERVAL = 5e-4  # seconds between thread switches; Python's 5e-3 would show in every latency
_RECEIVED = 64 * 1024  # bytes in the kernel: what follows a head that is too large is read before it is refused
_POLL = 0.01  # seconds between two looks at whether all requests have ended
_LOG_INTERVAL = 5  # seconds between two log lines about loading
_DOING = {"opening": "opening the database", "preparing": "preparing the first responses"}


def run(
    settings: Settings,
    address: Address,
    *,
    bar: Bar,
    ready: Ready,
    log: BinaryIO,
    reload: Callable[[], Settings] | None = None,
    beside: Sequence[BackgroundTask] = (),
    accept_rollback: str | None = None,
) -> None:
    """Serve at an address (see `free_address`) until a signal.

    `bar` shows the progress of loading; `ready` is called with the URL and the engine; `reload` gathers the settings
    again on SIGHUP. Without it, SIGHUP stops the service as SIGTERM does. `beside` goes on beside the requests, and is
    stopped after them. `accept_rollback` says why a database may be older than its witness knows.
    """
    lines = logs.configure(log)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    auth = Authenticator(settings.access_file, clock=Clock(settings.db.with_name(settings.db.name + "-clock")))
    check_exposure(settings, has_keys=auth.enabled)
    options = {"witness": settings.witness, "timestamp": settings.timestamp, "accept_rollback": accept_rollback}
    loader = EngineLoader(settings.db, **options)
    beside = [*beside, *([CheckpointPublisher()] if settings.witness else [])]  # last, with all that others wrote
    app = Application(Shared(loader, auth, Metrics(loader, beside), settings))
    process = _Process(Server(app, settings, address), app, lines, reload, beside)
    if not auth.enabled:
        logs.get().warning("no keys: every program on this machine is an admin", file=str(settings.access_file))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(process.run(bar, ready))
    if process.failure is not None and not process.stop_signal:
        raise process.failure


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


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS of new connections: a certificate with its key, and callers' authority if it is set; or none."""
    cert, key, authority = settings.tls_cert, settings.tls_key, settings.client_ca
    if cert is None and key is None and authority is None:
        return None
    if cert is None or key is None:
        raise SettingsError("TLS needs a certificate and its key: give --tls-cert and --tls-key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    problem = f"{cert} and {key} are no certificate with its key"
    try:
        context.load_cert_chain(cert, key)
        if authority is not None:
            problem = f"{authority} is no certificate of an authority"
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(authority)
    except OSError as error:
        raise SettingsError(f"{problem}: {error}") from error
    return context


def free_address(host: str, port: int) -> Address:
    """Return the address of a host and a port if it is free; port 0 finds a port that is."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(address[:2], family=family) as probe:
            found: Address = probe.getsockname()[:2]
    except OSError as error:
        problems = {
            errno.EADDRINUSE: f"port {port} of {host} is taken. Choose another with --port; --port 0 finds a free one",
            errno.EACCES: f"port {port} is for the system's own services. Choose one above 1023 with --port",
        }
        other = f"cannot listen on {host}, port {port}: {error.strerror}. Choose an address of this machine with --host"
        raise SettingsError(problems.get(error.errno or 0, other)) from error
    return found


class Server:
    """aiohttp's HTTP server with the application, from `run` to `stop`.

    When there are too many connections, a new one replaces the oldest that has no request in progress. While all have
    one, it waits, and others in the kernel's queue.
    """

    def __init__(self, app: Application, settings: Settings, address: Address) -> None:
        host, port = address
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files < _DESCRIPTORS:
            raise SettingsError(
                f"this process may open {files} files and sockets at a time. Let it open one for each connection and "
                f"{_DESCRIPTORS} more (ulimit -n, or LimitNOFILE of systemd)"
            )
        self.tls = tls_context(settings)
        self.url = f"{'https' if self.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
        self._app, self._address, self._stopped = app, address, asyncio.Event()
        self._most = max(1, min(settings.connections, files - _DESCRIPTORS))

    async def run(self, on_listening: Callable[[], object]) -> None:
        """Serve until `stop`, and then until the requests in progress or the grace period have ended."""
        http = web.Server(self._app)
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        with socket.create_server(self._address, family=family, backlog=2048) as listener:
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # on Linux the kernel closes connections that are not read
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * UNREAD_SECONDS))
            works = (self._stopped.wait(), self._app.keep_time(), self._accept(listener, http))
            working = [asyncio.ensure_future(work) for work in works]
            on_listening()
            ended, others = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for task in others:
                task.cancel()
        self._app.is_stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._app.shared.settings.grace):
                while self._app.busy:
                    await asyncio.sleep(_POLL)
        await http.shutdown(_POLL)
        self._app.close()
        for task in ended:
            task.result()  # an error, unless it is `stop` that has ended the others

    async def _accept(self, listener: socket.socket, http: web.Server) -> None:
        """Accept connections, each as soon as there is a place for it."""
        loop, connecting = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError:  # the client has left, or no file can be opened
                await asyncio.sleep(0.1)
                continue
            while len(http.connections) + len(connecting) >= self._most:
                self._evict(http)
                await asyncio.sleep(_POLL)
            task = asyncio.create_task(self._connect(client, http))
            connecting.add(task)
            task.add_done_callback(connecting.discard)

    def _evict(self, http: web.Server) -> None:
        """Close the oldest connection that has no request in progress, if there is one."""
        for connection in http.connections:  # oldest first
            if connection not in self._app.busy and connection.transport is not None:
                connection.transport.abort()
                return

    async def _connect(self, client: socket.socket, http: web.Server) -> None:
        """Let a client send requests, after the handshake of TLS."""
        timeout = IDLE_SECONDS if self.tls else None
        connect = asyncio.get_running_loop().connect_accepted_socket
        try:
            await connect(lambda: Connection(http, self._app), client, ssl=self.tls, ssl_handshake_timeout=timeout)
        except OSError:  # no handshake
            client.close()

    def stop(self) -> None:
        """Stop accepting connections; `run` returns soon."""
        self._stopped.set()


class Connection(web.RequestHandler):
    """A connection of aiohttp. Its errors have the schema of all others."""

    def __init__(self, http: web.Server, app: Application) -> None:
        super().__init__(
            http,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=IDLE_SECONDS,
            max_line_size=MAX_ADDRESS,
            max_headers=MAX_HEADERS,
            max_field_size=MAX_HEADER,
            lingering_time=LINGERING_SECONDS,
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]
        )
        self._app, self._was_readable = app, True

    def data_received(self, data: bytes) -> None:
        """Pass on what was received, unless a request before it could not be read."""
        if self._was_readable:
            super().data_received(data)

    def handle_error(
        self, http: web.BaseRequest, _: int = 400, exc: BaseException | None = None, __: str | None = None
    ) -> web.StreamResponse:
        """Return the response to a request that aiohttp could not read. The connection is closed after it."""
        self._was_readable = False
        if exc is not None:
            exc.__traceback__ = None  # which references the bytes received and, through its frames, the error itself
        return self._app.unreadable(http)


@dataclass(eq=False)
class _Process:
    """A server with its signals, its log, and the keys and settings that can be reloaded."""

    server: Server
    app: Application
    log: logs.Lines
    gather: Callable[[], Settings] | None
    background_tasks: Sequence[BackgroundTask]
    running: list[asyncio.Task[None]] = field(default_factory=list)  # background tasks, in their order
    stop_signal: signal.Signals | None = None
    failure: BaseException | None = None

    async def run(self, bar: Bar, ready: Ready) -> None:
        """Serve until a signal, and exit hard if closing takes too long."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: logs.failure("a task failed", context.get("exception")))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._reload if self.gather else partial(self._stop, signal.SIGHUP))
        loader = self.app.shared.loader
        loading = asyncio.create_task(self._in_thread(loader.load))
        watching = asyncio.create_task(self._watch(loading, bar, ready))
        try:
            await self.server.run(lambda: logs.get().info("listening", address=self.server.url))
        finally:
            watching.cancel()
            loader.cancel()
            await loading
            for background_task, running in zip(self.background_tasks, self.running, strict=False):
                background_task.stop()
                await running
            loader.close()
            logs.get().info("closed")

    async def _in_thread(self, work: Callable[[], object], background_task: BackgroundTask | None = None) -> None:
        """Load, or run a background task. An error stops the server."""
        try:
            await asyncio.to_thread(work)
        except Exception as error:  # noqa: BLE001 - raised in the end
            self.failure = self.failure or error
            if background_task is not None:
                logs.failure("a background task failed", error, name=type(background_task).__name__)
            self.server.stop()

    def _stop(self, number: signal.Signals) -> None:
        if self.stop_signal is None:
            self.stop_signal = number
            alarm = threading.Timer(self.app.shared.settings.grace + CLOSING, _exit_hard)
            alarm.daemon = True
            with suppress(RuntimeError):  # the system allows no further thread
                alarm.start()
            logs.get().info("stopping", signal=number.name)
        self.server.stop()

    def _reload(self) -> None:
        """Read keys, settings and certificates again, and log the changes. Invalid settings change nothing."""
        assert self.gather is not None
        shared = self.app.shared
        shared.auth.reload()
        try:
            wanted = self.gather()
            tls = tls_context(wanted)
        except SettingsError as error:
            logs.get().error("settings not reloaded", problem=str(error))
            return
        changed, others = shared.settings.changes(wanted)
        shared.settings = msgspec.structs.replace(shared.settings, **changed)
        if self.server.tls is not None and tls is not None:
            self.server.tls = tls
        logs.get().info("settings reloaded", changed=changed, need_a_restart=others)
        if self.log.broken:  # the signal came from a terminal that was closed
            self._stop(signal.SIGHUP)

    async def _watch(self, loading: asyncio.Task[None], bar: Bar, ready: Ready) -> None:
        """Log the progress of loading, and then start the background tasks, unless loading fails."""
        loader = self.app.shared.loader
        while not loading.done():
            stage, logged = loader.stage, time.monotonic()
            doing = _DOING.get(stage, stage)
            logs.get().info("loading", stage=stage, doing=doing)  # before the bar, which may use the same terminal
            with bar(doing) as report:
                while not loading.done() and loader.stage == stage:
                    done, total = loader.progress
                    report(done, total or None)
                    if time.monotonic() > logged + _LOG_INTERVAL:
                        logged = time.monotonic()
                        logs.get().info("loading", stage=stage, doing=doing, done=done, total=total)
                    await asyncio.wait({loading}, timeout=0.05)
        if not loader.ready:
            return
        logs.get().info("ready")
        for background_task in self.background_tasks:
            work = self._in_thread(partial(background_task.run, loader.engine), background_task)
            self.running.append(asyncio.create_task(work))
        ready(self.server.url, loader.engine)


def _exit_hard() -> None:
    message = ("closing takes too long; acknowledged changes are on disk",)
    writer = threading.Thread(target=logs.get().error, args=message, daemon=True)
    writer.start()
    writer.join(1)  # a full pipe must not block the exit
    os._exit(1)
