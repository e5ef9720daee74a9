"""A simulated cluster for an answer: its graph is built and run in virtual time, where seconds are the same everywhere.

Rule: an answer that waits forever fails at once, as a deadlock; no check waits for it in real time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from dtflab.cluster.cluster import Cluster
from dtflab.graph.graph import Graph
from dtflab.runtime.session import Session

PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")  # ops that take no virtual time, whose bytes nobody counts


class Stage(NamedTuple):
    """A cluster, with a graph to fill and a session that runs it."""

    cluster: Cluster
    graph: Graph
    session: Session


@contextlib.contextmanager
def stage(**cluster: Any) -> Iterator[Stage]:
    """A cluster in virtual time, as `Cluster` describes it; its graph is the default one meanwhile."""
    with (
        Cluster(clock="virtual", **cluster) as running,
        Graph().as_default() as graph,
        Session(running.target, graph=graph) as session,
    ):
        yield Stage(running, graph, session)
