"""Certificates for tests: an authority, and what it signs for 127.0.0.1."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority; `file` has its certificate."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority")
        self._issued = self._certificate(self._name, self._key, is_authority=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(self._issued.public_bytes(Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a new certificate and its private key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._certificate(_name(name), key, is_authority=False)
        files = self._folder / f"{name}.pem", self._folder / f"{name}-key.pem"
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return files

    def _certificate(self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        public, issuer = key.public_key(), self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
            .add_extension(_usage(is_authority=is_authority), critical=True)
            .sign(self._key, SHA256())
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
