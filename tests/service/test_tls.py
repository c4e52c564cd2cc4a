"""HTTPS: certificates of the service and of its callers, and their reload. A scenario of server and settings."""

import json
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from tests.service.certificates import Authority
from tests.service.process import Service, failing, running, until
from tests.service.serving import make_shop


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return make_shop(tmp_path / "shop.db")


def client(service: Service, authority: Authority, own: tuple[Path, Path] | None = None) -> httpx.Client:
    context = ssl.create_default_context(cafile=authority.file)
    if own is not None:
        context.load_cert_chain(*own)
    return httpx.Client(base_url=f"https://127.0.0.1:{service.port}", verify=context, timeout=30)


def test_https(db: Path, authority: Authority) -> None:
    certificate, key = authority.issue("shop")
    with running(db, "--tls-cert", certificate, "--tls-key", key) as service:
        assert service.wait_for("listening")["address"] == f"https://127.0.0.1:{service.port}"
        with client(service, authority) as caller:
            assert caller.get("/v1/users/ann/recommendations").json()["user"] == "ann"
            assert caller.delete("/v1/users/ann").json()["removed"]["users"] == 1
            stream = caller.get("/healthz").extensions["network_stream"]
            assert stream.get_extra_info("ssl_object").version() == "TLSv1.3"
        with socket.create_connection(("127.0.0.1", service.port), 10) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not plain.recv(100).startswith(b"HTTP")
        assert service.stop() == 0


def test_old_protocols_are_refused(db: Path, authority: Authority) -> None:
    certificate, key = authority.issue("shop")
    with running(db, "--tls-cert", certificate, "--tls-key", key) as service:
        context = ssl.create_default_context(cafile=authority.file)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(("127.0.0.1", service.port), 10) as connection, pytest.raises(ssl.SSLError):
            context.wrap_socket(connection, server_hostname="127.0.0.1")


def test_callers_must_show_a_certificate(db: Path, authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("shop")
    options = ("--tls-cert", certificate, "--tls-key", key, "--client-ca", authority.file)
    with running(db, *options) as service:
        with client(service, authority, authority.issue("till")) as caller:
            assert caller.get("/v1/users/ann/recommendations").json()["user"] == "ann"
        for own in (None, Authority(tmp_path).issue("till")):
            with client(service, authority, own) as stranger, pytest.raises(httpx.TransportError):
                stranger.get("/healthz")


def serial(service: Service) -> int:
    """Return the serial number of the certificate that a new connection gets."""
    text = ssl.get_server_certificate(("127.0.0.1", service.port))
    return x509.load_pem_x509_certificate(text.encode()).serial_number


@pytest.fixture
def asking(db: Path, authority: Authority) -> Iterator[tuple[Service, Path, Path, list[object]]]:
    """Run a service, and a caller that asks all the time on one kept connection; its errors are in the list."""
    certificate, key = authority.issue("shop")
    errors, stop = list[object](), threading.Event()

    def ask() -> None:
        with client(service, authority) as caller:
            while not stop.is_set():
                try:
                    caller.get("/v1/users/ann/recommendations").raise_for_status()
                except httpx.HTTPError as error:
                    errors.append(error)

    with running(db, "--tls-cert", certificate, "--tls-key", key) as service:
        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield service, certificate, key, errors
        finally:
            stop.set()
            thread.join()
        assert service.stop() == 0


def test_sighup_reloads_the_certificate(asking: tuple[Service, Path, Path, list[object]], authority: Authority) -> None:
    """A caller loses at most its kept connection, between two requests, and new ones have the new certificate."""
    service, certificate, key, errors = asking
    before = serial(service)
    assert authority.issue("shop") == (certificate, key)
    service.process.send_signal(signal.SIGHUP)
    until(lambda: serial(service) != before)
    time.sleep(5)  # for the former listener to end
    assert serial(service) != before
    assert len(errors) <= 1


def test_a_broken_certificate_changes_nothing(asking: tuple[Service, Path, Path, list[object]]) -> None:
    service, certificate, _, errors = asking
    before = serial(service)
    certificate.write_text("no certificate")
    service.process.send_signal(signal.SIGHUP)
    assert "no certificate with its key" in service.wait_for("settings not reloaded")["problem"]
    assert serial(service) == before
    assert errors == []


def test_files_that_are_no_certificates(db: Path, authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("shop")
    (tmp_path / "text.pem").write_text("text")
    serve = ("serve", "--db", db, "--port", "0")
    assert "give --tls-cert and --tls-key" in failing(*serve, "--tls-cert", certificate)
    assert "give --tls-cert and --tls-key" in failing(*serve, "--client-ca", authority.file)
    assert "no certificate with its key" in failing(*serve, "--tls-cert", key, "--tls-key", certificate)
    assert "no certificate with its key" in failing(*serve, "--tls-cert", tmp_path / "none.pem", "--tls-key", key)
    wrong = failing(*serve, "--tls-cert", certificate, "--tls-key", key, "--client-ca", tmp_path / "text.pem")
    assert "no certificate of an authority" in wrong


def test_settings_in_a_file(db: Path, authority: Authority) -> None:
    """Paths in the file are relative to it."""
    certificate, key = authority.issue("shop")
    for file in (certificate, key):
        db.with_name(file.name).write_bytes(file.read_bytes())
    config = db.with_name("unbasket.toml")
    config.write_text(f"tls_cert = {json.dumps(certificate.name)}\ntls_key = {json.dumps(key.name)}\n")
    with running(db, "--config", config) as service, client(service, authority) as caller:
        assert caller.get("/healthz").json() == {"ok": True}
