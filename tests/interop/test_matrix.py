"""Client × parameter server × worker, each of either kind, with either task as the session's master, × programs.

What a TensorFlow client gets from a cluster of TensorFlow is what all others must get. `docs/interop.md` is the table.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest

from dtflab.cluster import certs
from tests.interop import programs
from tests.interop.lab import KINDS, MASTERS, WAYS, Way
from tests.interop.peer import Peer, PeerError, addresses


def same(found: Any, expected: Any) -> bool:
    """Equal, but for the last digits of floats."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-4, abs_tol=1e-5)
    return found == expected


def check(found: Any, expected: Any) -> None:
    if not same(found, expected):
        assert found == expected


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("program", [f.__name__ for f in programs.ALONE])
def test_alone(lab, program, way):
    def run(way, client, _):
        return client.run(program, site=lab.site(way))

    check(run(way, lab.client(way.client), None), lab.expected(program, way, run))


class OverTls(NamedTuple):
    """A cluster of dtflab whose processes found certificates in their environment, and its client."""

    client: Peer
    cluster: dict[str, list[str]]


@pytest.fixture(scope="module")
def over_tls(peers, tmp_path_factory):
    pytest.importorskip("cryptography")
    folder, cluster, started = tmp_path_factory.mktemp("certs"), addresses(ps=1, worker=1), {}
    certs.make(folder)
    for role in ("ps", "worker", "client"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DTFLAB_CREDENTIALS", str(folder / ("client" if role == "client" else "server")))
            started[role] = peers.another("dtflab")
    for job in cluster:
        started[job].serve(cluster, job, 0)
    yield OverTls(started["client"], cluster)
    for peer in started.values():
        peer.stop()


@pytest.mark.parametrize("master", MASTERS)
@pytest.mark.parametrize("program", [f.__name__ for f in programs.ALONE])
def test_alone_over_tls(lab, over_tls, program, master):
    """TensorFlow has no TLS, so it is one of the columns only."""
    way = Way("dtflab", "dtflab", "dtflab", master)
    tasks = {job: address for job, (address,) in over_tls.cluster.items()}
    site = lab.site(way) | {"target": f"grpc://{tasks[master]}", "addresses": (tasks["ps"], tasks["worker"])}
    expected = lab.expected(program, way, lambda way, client, _: client.run(program, site=lab.site(way)))
    check(over_tls.client.run(program, site=site), expected)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("first, second", [(f.__name__, g.__name__) for f, g in programs.TOGETHER])
def test_together(lab, first, second, way):
    """Two clients at the same time; in the matrix they are of different kinds."""
    index = ({"index": 0}, {"index": 1}) if first == second else ({}, {})

    def run(way, one, two):
        site = lab.site(way)
        one.begin(first, site=site, **index[0])
        two.begin(second, site=site, **index[1])
        return [one.end(), two.end()]

    expected = lab.expected(first, way, lambda way, one, two: run(way, one, lab.second(KINDS[0])))
    check(run(way, lab.client(way.client), lab.client(way.other)), expected)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("first, second", [(f.__name__, g.__name__) for f, g in programs.AFTERWARDS])
def test_afterwards(lab, first, second, way):
    """One client's variables are there for a later one of the other kind."""

    def run(way, one, two):
        site = lab.site(way)
        return [one.run(first, site=site), two.run(second, site=site)]

    check(run(way, lab.client(way.client), lab.client(way.other)), lab.expected(first, way, run))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("program", [programs.HANDLES.__name__])
def test_what_tensorflow_lacks(lab, program, way):
    client, site = lab.client(way.client), lab.site(way)
    if way.ps == "dtflab":
        assert client.run(program, site=site) == [12, 12, "InvalidArgumentError"]
    else:
        with pytest.raises(PeerError, match="null session state"):
            client.run(program, site=site)
