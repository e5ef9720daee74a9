"""`dtflab certs DIR`: an authority of one's own, and certificates that it signs, for TLS of tasks and clients.

Rules: what is secret is for its owner alone (mode 0600). A folder that has an authority keeps it, so that certificates
made later fit those in use. A client's certificate can't be used by a server.
"""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.base.credentials import Credentials

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, ExtensionType, GeneralName

_ALWAYS = ("localhost", "127.0.0.1")  # what a server is called on its own machine
_MOST_DAYS = 36_500  # an authority is valid for ten times as long, and years have four digits
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"  # of a host name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `dtflab certs`."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to put them; made if it is not there")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="a host name or IP address of the servers; repeat it",
    )
    parser.add_argument("--days", type=int, default=365, help="for how long certificates are valid (default: 365)")


def main(options: argparse.Namespace) -> None:
    """Make the folders `authority`, `server` and `client`, and say what each is for."""
    from dtflab.machine.console import show

    try:
        make(options.folder, options.name, options.days)
    except ImportError:
        raise SystemExit("dtflab certs needs the package cryptography: pip install 'dtflab[tls]'") from None
    except (errors.OpError, OSError, ValueError) as error:
        raise SystemExit(f"dtflab certs: {getattr(error, 'message', error)}") from None
    show(f"{options.folder / 'server'}: for tasks, dtflab.Credentials.load or DTFLAB_CREDENTIALS on each host")
    show(f"{options.folder / 'client'}: for programs that open sessions, the same")
    show(f"{options.folder / 'authority'}: keep it to yourself, as its key makes more of both")


def make(folder: Path, names: Sequence[str] = (), days: int = 365) -> None:
    """Write an authority, if the folder has none, and new certificates of it for servers and clients.

    `names` are hosts, by name or IP address, besides localhost. Raises ImportError without the package cryptography.
    """
    if not 1 <= days <= _MOST_DAYS:
        raise ValueError(f"--days must be 1 to {_MOST_DAYS}, not {days}.")
    for name in names:
        _name(name)
    authority = _authority(folder / "authority", days)
    for who, hosts in (("server", [*_ALWAYS, *names]), ("client", [])):
        authority.sign(who, hosts, days).save(folder / who)


class _Authority:
    """A certificate and its key, which sign others."""

    def __init__(self, certificate: Certificate, key: EllipticCurvePrivateKey) -> None:
        self._certificate, self._key = certificate, key

    def sign(self, who: str, hosts: Sequence[str], days: int) -> Credentials:
        """Credentials with a certificate for a client or, if there are hosts, for a server, which also calls others."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        extensions: list[tuple[x509.ExtensionType, bool]] = [(x509.BasicConstraints(ca=False, path_length=None), True)]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if hosts:
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
            extensions.append((x509.SubjectAlternativeName([_name(host) for host in dict.fromkeys(hosts)]), False))
        extensions.append((x509.ExtendedKeyUsage(uses), False))
        certificate = _signed(f"dtflab {who}", key, extensions, days, self._certificate, self._key)
        return Credentials(_pem(self._certificate), _pem(certificate), _pem_of_key(key))

    @property
    def credentials(self) -> Credentials:
        """The authority itself, as files hold it."""
        return Credentials(_pem(self._certificate), _pem(self._certificate), _pem_of_key(self._key))


def _authority(folder: Path, days: int) -> _Authority:
    """The authority in a folder; a new one if there is none."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    if folder.exists() and any(folder.iterdir()):
        found = Credentials.load(folder)
        old = serialization.load_pem_private_key(found.key.encode(), password=None)
        if not isinstance(old, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{folder}/key.pem is not a key that `dtflab certs` has made.")
        return _Authority(x509.load_pem_x509_certificate(found.certificate.encode()), old)
    key = ec.generate_private_key(ec.SECP256R1())
    made = _Authority(_signed("dtflab authority", key, [(x509.BasicConstraints(True, 0), True)], 10 * days), key)
    made.credentials.save(folder)
    return made


def _signed(
    name: str,
    key: EllipticCurvePrivateKey,
    extensions: Sequence[tuple[ExtensionType, bool]],
    days: int,
    issuer: Certificate | None = None,
    signer: EllipticCurvePrivateKey | None = None,
) -> Certificate:
    """A certificate; without an issuer, one that signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    return builder.sign(signer or key, hashes.SHA256())


def _name(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        if not re.fullmatch(rf"(\*\.)?{_LABEL}(\.{_LABEL})*", host) or len(host) > 253:
            wanted = "a host name or an IP address, without a port, for example ps.example.com"
            raise ValueError(f"--name must be {wanted}; not {host!r}.") from None
        return x509.DNSName(host)


def _pem(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives import serialization

    text: bytes = certificate.public_bytes(serialization.Encoding.PEM)
    return text.decode()


def _pem_of_key(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives import serialization

    form, unlocked = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    text: bytes = key.private_bytes(serialization.Encoding.PEM, form, unlocked)
    return text.decode()
