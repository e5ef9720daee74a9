"""Credentials: certificates and a token, by which servers know their callers, and clients their servers.

Stands for nothing in TensorFlow, whose servers speak plain text and answer everybody.

Rules: TLS is mutual, so each end shows a certificate. A token is one secret for all of a cluster. Neither a key nor a
token is in a `repr`, an error or a command line: files and pipes carry them.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from dtflab.base import errors

_FILES = {"ca": "ca.pem", "certificate": "certificate.pem", "key": "key.pem", "token": "token"}
_TOKEN = re.compile(r"[!-~]{16,}")  # what a header of HTTP can carry


@dataclass(frozen=True, repr=False)
class Credentials:
    """TLS certificates and a token, for `tf.train.Server`, `tf.Session` and `dtflab.Cluster`.

    `ca`, `certificate` and `key` are PEM texts: the authority that the other end's certificate must come from, and what
    this end shows. With them a connection is TLS. `token` is a secret that both ends of a call prove to have.
    Raises ValueError for a part of the three, and for a token that is short or that no header could carry.
    """

    ca: str = ""
    certificate: str = ""
    key: str = ""
    token: str = ""

    def __post_init__(self) -> None:
        given = [name for name in ("ca", "certificate", "key") if getattr(self, name)]
        if given and len(given) < 3:
            raise ValueError(
                f"Credentials with {' and '.join(given)} alone: TLS takes ca, certificate and key, because each end "
                "shows a certificate. `dtflab certs DIR` makes all three."
            )
        if wrong := [name for name in given if "-----BEGIN " not in getattr(self, name)]:
            raise ValueError(
                f"{wrong[0]} must be PEM text, which has a line that begins with -----BEGIN. "
                "dtflab.Credentials.load(folder) reads files."
            )
        if self.token and not _TOKEN.fullmatch(self.token):
            raise ValueError(
                "A token must be 16 or more printable ASCII characters without spaces, such as secrets.token_urlsafe()."
            )

    @classmethod
    def load(cls, folder: str | Path) -> Credentials:
        """The credentials in the files ca.pem, certificate.pem, key.pem and token of a folder; all are optional.

        Raises NotFoundError if all are missing.
        """
        there = {name: Path(folder) / file for name, file in _FILES.items() if (Path(folder) / file).is_file()}
        if not there:
            raise errors.NotFoundError.of(
                f"The folder of credentials {str(folder)!r} has none of {', '.join(_FILES.values())}. "
                "`dtflab certs DIR` makes such folders."
            )
        return cls(**{name: path.read_text("ascii").strip() + "\n" * (name != "token") for name, path in there.items()})

    def save(self, folder: str | Path) -> None:
        """Write the files that `load` reads; the folder and what is secret are for their owner alone."""
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in asdict(self).items():
            if text:
                write_file(Path(folder) / _FILES[name], text, 0o600 if name in ("key", "token") else 0o644)

    @property
    def is_tls(self) -> bool:
        return bool(self.ca)

    def __repr__(self) -> str:
        parts = ["TLS"] * self.is_tls + ["a token"] * bool(self.token)
        return f"<Credentials: {' and '.join(parts) or 'none'}>"


PLAIN = Credentials()
_known: dict[str, Credentials] = {}  # by address: of tasks that this process has started


def write_file(path: Path, text: str, mode: int) -> None:
    """Write a file that is new, or replaces one, and that never was readable for others than `mode` says."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="ascii") as file:
        file.write(text)


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def remember(address: str, credentials: Credentials) -> None:
    """Let the clients of this process use these credentials at an address."""
    _known[address] = credentials


def forget(address: str, credentials: Credentials) -> None:
    """End what `remember` began."""
    if _known.get(address) is credentials:
        del _known[address]


def own(given: Credentials | None) -> Credentials:
    """The credentials given, or those of the folder in DTFLAB_CREDENTIALS, or none; TypeError for another type."""
    if not isinstance(given, Credentials | None):
        raise TypeError(
            f'Argument `credentials` must be a dtflab.Credentials, but got "{type(given).__name__}". '
            "dtflab.Credentials.load(folder) reads the files that `dtflab certs` makes."
        )
    folder = os.environ.get("DTFLAB_CREDENTIALS", "") if given is None else ""
    return Credentials.load(folder) if folder else given or PLAIN


def at(address: str, given: Credentials | None = None) -> Credentials:
    """The credentials of a client for `address`: those given, else those remembered, else the environment's."""
    return own(_known.get(address) if given is None else given)
