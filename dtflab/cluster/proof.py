"""Proofs: how both ends of a call in plain text show each other that they have the token, which neither ever sends.

Stands for nothing in TensorFlow, whose servers answer everybody. TLS proves more, and needs none of this.

Rules: the server proves it first, and until then the client sends nothing but a challenge: the address of a task that
is gone may be another user's by now. A proof is bound to a nonce of each end, so that it can't be sent again; to the
port that the client asked for, so that one task can't be asked for the proof of another; and to the method.
"""

from __future__ import annotations

import hmac
import secrets

CALL = "/dtflab.Links/Call"  # which carries every call; servers without a token say at once that they don't know it
CHALLENGE, PROOF = "dtflab-challenge-bin", "dtflab-proof-bin"  # of the client, of the server: metadata
_SIZE = 32  # bytes of a nonce, and of a proof

Metadata = tuple[tuple[str, str | bytes], ...]


def _proof(token: str, who: bytes, challenge: bytes, nonce: bytes, path: str = "") -> bytes:
    return hmac.digest(token.encode(), who + nonce + challenge + path.encode(), "sha256")


def _value(name: str, metadata: Metadata) -> bytes:
    return next((value for key, value in metadata if key == name and isinstance(value, bytes)), b"")


class Asking:
    """The client's part in one call to a port."""

    def __init__(self, token: str, port: str) -> None:
        self._token = token
        self._challenge = secrets.token_bytes(_SIZE) + port.encode()
        self.metadata = ((CHALLENGE, self._challenge),)

    def proof(self, path: str, metadata: Metadata) -> bytes:
        """The first message of a call for `path` to a server that sent this metadata; b"" if that proves nothing."""
        shown = _value(PROOF, metadata)
        nonce, of_server = shown[:_SIZE], shown[_SIZE:]
        if not hmac.compare_digest(of_server, _proof(self._token, b"server", self._challenge, nonce)):
            return b""
        return _proof(self._token, b"client", self._challenge, nonce, path) + path.encode()


class Answering:
    """The server's part in one call; `is_meant` if the client has asked for a port that is this server's."""

    def __init__(self, token: str, ports: set[str], metadata: Metadata) -> None:
        self._token = token
        self._challenge = _value(CHALLENGE, metadata)
        self._nonce = secrets.token_bytes(_SIZE)
        self.is_meant = self._challenge[_SIZE:].decode("ascii", "replace") in ports

    def metadata(self) -> tuple[tuple[str, bytes], ...]:
        """The proof for the client."""
        return ((PROOF, self._nonce + _proof(self._token, b"server", self._challenge, self._nonce)),)

    def path(self, message: bytes) -> str:
        """The method that the client's first message asks for; "" if the message proves nothing."""
        shown, path = message[:_SIZE], message[_SIZE:].decode("ascii", "replace")
        wanted = _proof(self._token, b"client", self._challenge, self._nonce, path)
        return path if hmac.compare_digest(shown, wanted) else ""
