"""All clusters of a parameter server and a worker of either kind, and clients of both."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.interop.peer import Peer, addresses
from tests.interop.programs.site import Site

KINDS = ("TensorFlow", "dtflab")
MASTERS = ("ps", "worker")


class Way(NamedTuple):
    """The library of each task, and which task is the session's master."""

    client: str
    ps: str
    worker: str
    master: str

    def __str__(self) -> str:
        return f"{self.client}-{self.ps}-{self.worker}-{self.master}"

    @property
    def other(self) -> str:
        """The kind that the client is not."""
        return KINDS[1 - KINDS.index(self.client)]


WAYS = [Way(*way) for way in itertools.product(KINDS, KINDS, KINDS, MASTERS)]


class Lab:
    """All clusters, and the clients of both kinds."""

    def __init__(self, peers: Callable[[str, str], Peer], folder: Path) -> None:
        self._peers = peers
        self._folder = folder
        self._numbers = itertools.count(1)
        self._expected: dict[Any, Any] = {}
        self._clusters = {}
        for kinds in itertools.product(KINDS, KINDS):
            cluster = self._clusters[kinds] = addresses(ps=1, worker=1)
            for job, kind in zip(cluster, kinds, strict=True):
                peers(kind, job).serve(cluster, job, 0)

    def client(self, kind: str) -> Any:
        return self._peers(kind, "client")

    def second(self, kind: str) -> Any:
        """Another client of the same kind."""
        return self._peers(kind, "second client")

    def site(self, way: Way) -> dict[str, Any]:
        """A new place in the cluster of `way`."""
        name = f"run{next(self._numbers)}"
        folder = self._folder / name
        folder.mkdir()
        cluster = self._clusters[way.ps, way.worker]
        return Site(
            f"grpc://{cluster[way.master][0]}", name, str(folder), (*cluster["ps"], *cluster["worker"])
        )._asdict()

    def expected(self, what: Any, way: Way, run: Callable[[Way, Any, Any], Any]) -> Any:
        """The result with TensorFlow alone."""
        key = what, way.master
        if key not in self._expected:
            theirs = Way(*KINDS[:1] * 3, way.master)
            self._expected[key] = run(theirs, self.client(KINDS[0]), self.client(KINDS[0]))
        return self._expected[key]
