"""Handshake: why a connection that was made is of no use, asked of the other end after gRPC has said only "closed".

Rule: nothing is concluded from gRPC's words; a handshake of Python's ssl shows it, or there is no reason to name.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import tempfile
from dataclasses import replace
from pathlib import Path

from dtflab.base.credentials import Credentials

_PATIENCE = 2.0  # seconds for each step of a handshake


def mismatch(address: str, credentials: Credentials, own: str = "") -> str:
    """Why the server at `address` and these credentials, of the task `own` here or of a client, do not fit.

    "" if they do, or if it does not show.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        with socket.create_connection((host, int(port)), _PATIENCE) as plain:
            return _shaken(plain, host, credentials, own)
    except OSError:  # nobody is there, or not for long: gRPC has said so
        return ""


def asking(own: str) -> str:
    """The end that asks, for messages: a task of this process, or a client."""
    return own or "this program"


def give(own: str) -> str:
    """Advice for that end, if it needs credentials."""
    if own:
        return f"Start {own} with tf.train.Server(…, credentials=…), or `dtflab serve … --credentials FOLDER`."
    return "Give tf.Session(target, credentials=…), or name their folder in DTFLAB_CREDENTIALS."


def _shaken(plain: socket.socket, host: str, credentials: Credentials, own: str) -> str:
    """Why a handshake over that connection fails; "" if it does not."""
    try:
        secure = context_of(credentials).wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        return (
            f"its certificate is refused here: {error.verify_message}. Is it of the authority in ca.pem, and does it "
            f"name {host!r}? `dtflab certs DIR --name {host}` makes one that does."
        )
    except ssl.SSLEOFError:  # a server that is being stopped, perhaps
        return ""
    except ssl.SSLError:
        return (
            f"it speaks plain text, and {asking(own)} has certificates for TLS. Start it with credentials, too, or "
            f"{asking(own)} without."
            if credentials.is_tls
            else ""
        )
    with secure:
        if not credentials.is_tls:
            return f"it speaks TLS, and {asking(own)} has no certificates for that. {give(own)}"
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            if secure.recv(1):  # of TLS 1.3: a client's certificate is looked at after the client's part
                return ""
    return f"it refuses the certificate that {asking(own)} has shown. Is that of the authority in the server's ca.pem?"


def context_of(credentials: Credentials) -> ssl.SSLContext:
    """A client's side of TLS; without certificates, one that takes any server.

    Raises ValueError for a key of another certificate, and for what is damaged.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])  # gRPC closes a connection without
    if not credentials.is_tls:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    with tempfile.TemporaryDirectory() as folder:  # ssl reads a key from a file alone
        replace(credentials, token="").save(folder)
        try:
            context.load_verify_locations(Path(folder) / "ca.pem")
            context.load_cert_chain(Path(folder) / "certificate.pem", Path(folder) / "key.pem")
        except ssl.SSLError as error:
            raise ValueError(f"These credentials can't be used for TLS: {error}") from None
    return context
