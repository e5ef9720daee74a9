"""Where a program of the matrix runs."""

from __future__ import annotations

from typing import NamedTuple

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


class Site(NamedTuple):
    """A cluster of a ps and a worker. A program's state lies in the container `name`, its files in `folder`."""

    target: str  # of the session's master
    name: str
    folder: str
    addresses: tuple[str, str]  # of the ps and the worker
