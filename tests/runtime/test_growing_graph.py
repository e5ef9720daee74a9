"""A session's graph that grows: what an extension costs is its own work, and what it decides does not depend on it.

Work is counted in Python's instructions, so the counts do not depend on the machine.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.incoming import graph_of
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.graph.node import by_name
from dtflab.runtime.placer import SimplePlacer, place
from tests.placement.oracle import random_placements

TASK = "/job:t/replica:0/task:0"
DEVICES = [f"/job:{job}/replica:0/task:0/device:{name}" for job in "td" for name in ("CPU:0", "GPU:0", "GPU:1")]


@pytest.fixture(autouse=True)
def fresh_graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


# -- the same placement -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_an_extension_is_placed_as_the_full_graph_would_be(seed, soft, fresh_graph):
    random_placements.build(seed, satisfiable=seed % 3 > 0)(tf)
    nodes, rng = fresh_graph.nodes(), random.Random(seed)
    cuts = sorted(rng.sample(range(len(nodes)), 4))
    placer, placed = SimplePlacer(DEVICES, TASK, soft, {}), {}
    for start, end in zip([0, *cuts], [*cuts, len(nodes)]):
        try:
            full: Any = place(nodes[:end], DEVICES, TASK, soft, placed)
        except errors.InvalidArgumentError as error:
            with pytest.raises(errors.InvalidArgumentError) as caught:
                placer.extend(nodes[start:end])
            assert caught.value.message == error.message
            return
        new = placer.extend(nodes[start:end])
        assert {**placed, **new} == full
        assert new.reasons == {name: full.reasons[name] for name in new}
        placed = {**placed, **new}


def test_after_an_error_the_session_goes_on_with_the_graph_it_had(fresh_graph):
    with tf.device("/cpu:1"):
        v = tf.Variable(1.0, name="v", use_resource=True)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(v.initializer)
        master_session, sent = session.master_session(), fresh_graph.version
        tf.identity(tf.identity(2.0, name="free"), name="pinned")
        good = fresh_graph.nodes(sent)
        changes: dict[str, dict[str, Any]] = {"free": {"attrs": good[1].attrs | {"_class": [b"loc:@v"]}},
                                              "pinned": {"device": "/gpu:7"}}  # fmt: skip
        for _ in range(2):
            with pytest.raises(errors.InvalidArgumentError, match="pinned"):
                master_session.extend([node.replace(**changes.get(node.name, {})) for node in good])
        master_session.extend(good)
        where = {node.name: node.device[-1] for node in master_session.placed()}
    assert (where["v"], where["free"], where["pinned"]) == ("1", "0", "0")


# -- its own work ---------------------------------------------------------------------------------------------------


@contextmanager
def counting() -> Iterator[Callable[[], int]]:
    """The number of instructions that this thread has run in Python."""
    count = 0

    def trace(frame: Any, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lambda: count
    finally:
        sys.settrace(before)


class Unwalked(dict[Any, Any]):
    """A dictionary that nobody may copy or walk over."""

    def __iter__(self) -> Any:
        raise AssertionError("an extension walked over the full graph")

    keys = values = items = copy = __iter__


class Watched(list[Any]):
    """A list that counts those of its elements that somebody looked at."""

    seen = 0

    def __iter__(self) -> Iterator[Any]:
        for element in super().__iter__():
            self.seen += 1
            yield element


def unwalked(*things: object) -> None:
    """Let nobody walk over those dictionaries of some objects that have a variable's name as a key."""
    values = [value for thing in things for value in vars(thing).values() if type(value) is dict and "v" in value]
    dicts = {id(value): Unwalked(value) for value in values}
    for thing in things:
        vars(thing).update({name: dicts[id(value)] for name, value in vars(thing).items() if id(value) in dicts})


def grow(session: tf.Session, count: int) -> None:
    """Add nodes of which some join a variable or follow a node that is there; run the last."""
    v = tf.get_default_graph().get_tensor_by_name("v:0")
    for _ in range(count):
        with tf.colocate_with(v.op):
            size = tf.size(tf.identity(v))
        last = tf.assign_add(v, tf.cast(size, tf.float32))
    session.run(last)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    """A session that has run: what is remembered on first use is there."""
    v = tf.Variable(1.0, name="v", use_resource=False)
    with tf.Session() as session:
        session.run(v.initializer)
        grow(session, 5)
        yield session


def test_an_extension_and_its_first_run_cost_the_same_in_a_large_graph(session):
    costs = []
    for more in (20, 400):
        grow(session, more)
        with counting() as counted:
            grow(session, 2)
        costs.append(counted())
    assert costs[1] <= 1.02 * costs[0], costs


def test_an_extension_and_its_first_run_walk_over_nothing_that_is_there(session):
    master_session = session.master_session()
    unwalked(master_session._graph, master_session._graph._placer, master_session._graph._placer._graph)
    grow(session, 2)
    with pytest.raises(AssertionError, match="walked"):
        list(master_session._graph._nodes)


def test_a_feed_costs_the_same_however_many_ops_take_it(session):
    x = tf.placeholder(tf.float32, [])
    doubled = [tf.add(x, x) for _ in range(100)]
    session.run(doubled, {x: 1.0})
    x._consumers = Watched(x._consumers)
    assert session.run(doubled[-1], {x: 2.0}) == 4.0
    assert x._consumers.seen <= 1  # an addition may keep what it is fed, and so decides it


def test_an_extension_on_the_wire_is_checked_at_the_cost_of_its_own_nodes(fresh_graph):
    a = tf.constant(1.0, name="a")
    known = Unwalked(by_name(fresh_graph.nodes()))
    tf.negative(a, name="b")
    assert [node.name for node in graph_of(nodes_to_proto(fresh_graph.nodes(1)), bool, known).nodes] == ["b"]
    with pytest.raises(errors.InvalidArgumentError, match="includes node 'a'"):
        graph_of(nodes_to_proto(fresh_graph.nodes()), bool, known)
