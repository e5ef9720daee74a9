"""Processes of both kinds, a client and servers of each, for all interop tests; TensorFlow takes seconds to load."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.forks import imported
from tests.interop.lab import KINDS, Lab
from tests.interop.peer import Peer


class Peers:
    """The processes by their kinds and roles, started when first asked for; those of TensorFlow import it once."""

    def __init__(self, with_tensorflow: list[str]) -> None:
        self._with_tensorflow = with_tensorflow
        self._started: dict[tuple[str, str], Peer] = {}

    def __call__(self, kind: str, role: str) -> Peer:
        if (kind, role) not in self._started:
            self._started[kind, role] = self.another(kind)
        return self._started[kind, role]

    def another(self, kind: str) -> Peer:
        """A process that nobody else has and the caller stops."""
        return Peer(kind) if kind == "dtflab" else Peer(kind, self._with_tensorflow)

    def stop(self) -> None:
        for peer in self._started.values():
            peer.stop()


@pytest.fixture(scope="session")
def peers() -> Iterator[Peers]:
    """All of them."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed: pip install dtflab[tensorflow]")
    with imported("tensorflow.compat.v1") as with_tensorflow:
        peers = Peers(with_tensorflow)
        yield peers
        peers.stop()


@pytest.fixture(scope="session")
def tensorflow(peers: Peers) -> Peer:
    """TensorFlow after `disable_v2_behavior()`."""
    return peers("TensorFlow", "client")


@pytest.fixture(scope="session")
def tensorflow_2(peers: Peers) -> Peer:
    """TensorFlow as it comes."""
    return peers("TensorFlow v2", "client")


@pytest.fixture(scope="session", params=["v1", "v2"])
def any_tensorflow(request: pytest.FixtureRequest) -> Peer:
    """Both, one after the other."""
    return request.getfixturevalue("tensorflow" if request.param == "v1" else "tensorflow_2")


@pytest.fixture(scope="session")
def lab(peers: Peers, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Clients and servers of both kinds."""
    for kind in KINDS:
        for role in ("ps", "worker", "client"):
            peers(kind, role)  # all come up at once
    peers(KINDS[0], "second client")
    return Lab(peers, tmp_path_factory.mktemp("interop"))
