"""Small messages that ask for much: each limit, what it says, and who it does not hold for."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.limits import Limits, limits
from dtflab.cluster.answering import ServerCall, answer
from dtflab.cluster.incoming import graph_of
from dtflab.cluster.master_service import MasterService
from dtflab.cluster.process import KINDS, _environment
from dtflab.cluster.worker_service import WorkerService
from dtflab.graph import inlining
from dtflab.graph.graph_def import nodes_from_proto, nodes_to_proto
from dtflab.graph.inlining import inline
from dtflab.protos import master_pb2 as master, worker_pb2 as worker
from dtflab.protos.graph_pb2 import GraphDef
from tests.cluster.two_tasks import Lab, in_threads, never, until
from tests.fuzz import graphs

TOO_MUCH = errors.ResourceExhaustedError


@pytest.fixture
def task():
    found = Lab().tasks[0]
    yield found
    found.master.close()


def asker(task, service):
    """Calls of methods, which return the answer's bytes or raise the error that crosses the wire."""
    methods = service(task).methods()

    def ask(request, call=None):
        method = type(request).__name__.removesuffix("Request")
        data, call = request.SerializeToString(), call or ServerCall()
        code, text, pieces = answer(task.name, method, methods[method], data, call)
        if code:
            raise errors.exception_type_from_error_code(code).of(text)
        return b"".join(map(bytes, pieces))

    return ask


def chain(count, prefix="n"):
    made = GraphDef()
    for n in range(count):
        made.node.add(name=f"{prefix}{n}", op="NoOp")
    return made


# ---- what a graph asks for ----


def partial_constant(size, values=2, name="c"):
    made = GraphDef()
    node = made.node.add(name=name, op="Const")
    node.attr["dtype"].type = node.attr["value"].tensor.dtype = 1
    node.attr["value"].tensor.tensor_shape.dim.add(size=size)
    node.attr["value"].tensor.float_val.extend([1.0] * values)
    return made


def test_a_constant_that_expands_is_refused_with_node_limit_and_option(monkeypatch):
    monkeypatch.setattr(limits, "expanded_bytes", 1 << 20)
    text = r"lists 2 of its elements: more than 1048576.*limits\.expanded_bytes.*DTFLAB_LIMIT_EXPANDED_BYTES.*node c"
    for read in (nodes_from_proto, partial(graph_of, going=bool)):
        with pytest.raises(errors.InvalidArgumentError, match=text):
            read(partial_constant(1 << 20))
    with pytest.raises(ValueError, match=text):
        tf.import_graph_def(partial_constant(1 << 20))
    assert nodes_from_proto(partial_constant(1 << 17))[0].attrs["value"].shape == (1 << 17,)


def test_one_value_is_not_expanded_and_may_have_any_shape(monkeypatch):
    monkeypatch.setattr(limits, "expanded_bytes", 1 << 20)
    assert nodes_from_proto(partial_constant(10**12, 1))[0].attrs["value"].shape == (10**12,)


def test_many_constants_expand_to_no_more_than_one_may(monkeypatch):
    monkeypatch.setattr(limits, "expanded_bytes", 1 << 20)
    made = GraphDef()
    for n in range(9):
        made.MergeFrom(partial_constant(1 << 15, name=f"c{n}"))
    with pytest.raises(errors.InvalidArgumentError, match=r"all nodes until \{\{node c8\}\}: more than 1048576"):
        nodes_from_proto(made)
    del made.node[8]
    assert len(nodes_from_proto(made)) == 8


def test_what_a_message_holds_does_not_count(monkeypatch):
    monkeypatch.setattr(limits, "expanded_bytes", 1 << 10)
    with tf.Graph().as_default() as graph:
        tf.constant(np.arange(10_000.0), name="c")
        found = nodes_from_proto(nodes_to_proto(graph.nodes()))
    assert found[0].attrs["value"].size == 10_000


@pytest.mark.parametrize("depth", [9, 25])
def test_functions_that_call_each_other_become_limited_nodes(task, monkeypatch, depth):
    monkeypatch.setattr(limits, "inlined_nodes", 500)
    text = r"become 501 nodes, until \{\{node call.*\}\}: more than 500.*DTFLAB_LIMIT_INLINED_NODES"
    bomb = graphs.calls(depth)
    with pytest.raises(TOO_MUCH, match=text):
        asker(task, MasterService)(master.CreateSessionRequest(graph_def=bomb))
    with pytest.raises(TOO_MUCH, match=text):
        in_a_worker_session(task)(worker.RegisterGraphRequest(session_handle="s", graph_def=bomb))
    with pytest.raises(TOO_MUCH, match=text), tf.Graph().as_default() as graph:
        tf.import_graph_def(bomb, name="")
        tf.Session(graph=graph).run("call:0", {"x:0": 1.0})
    monkeypatch.setattr(limits, "inlined_nodes", 1 << 18)
    assert len(inline(nodes_from_proto(graphs.calls(5)))) > 2**5


def test_a_program_s_own_functions_are_not_limited(monkeypatch):
    monkeypatch.setattr(limits, "inlined_nodes", 3)
    x = tf.constant([1, 2, 3])
    data = tf.data.Dataset.from_tensor_slices(x).map(lambda one: one + 1 - 1 + 1 - 1 + 1)
    with tf.Session() as session:
        assert session.run(data.make_one_shot_iterator().get_next()) == 2


def in_a_worker_session(task):
    ask = asker(task, WorkerService)
    ask(worker.CreateWorkerSessionRequest(session_handle="s"))
    return ask


def test_a_session_s_graph_has_limited_nodes(task, monkeypatch):
    monkeypatch.setattr(limits, "graph_nodes", 5)
    ask = asker(task, MasterService)
    with pytest.raises(TOO_MUCH, match=r"has 6 nodes, from \{\{node n5\}\} on: more than 5.*DTFLAB_LIMIT_GRAPH_NODES"):
        ask(master.CreateSessionRequest(graph_def=chain(6)))
    created = master.CreateSessionResponse.FromString(ask(master.CreateSessionRequest(graph_def=chain(3))))
    more = master.ExtendSessionRequest(session_handle=created.session_handle, graph_def=chain(3, "m"))
    with pytest.raises(TOO_MUCH, match=r"has 6 nodes, from \{\{node m2\}\} on: more than 5"):
        ask(more)
    del more.graph_def.node[2]
    ask(more)


# ---- what a server holds ----


def test_a_server_has_limited_sessions_and_closing_one_makes_room(task, monkeypatch):
    monkeypatch.setattr(limits, "sessions", 2)
    ask = asker(task, MasterService)
    handles = [master.CreateSessionResponse.FromString(ask(master.CreateSessionRequest())) for _ in range(2)]
    with pytest.raises(TOO_MUCH, match=rf"{task.name} has 2 sessions: more than 2.*DTFLAB_LIMIT_SESSIONS"):
        ask(master.CreateSessionRequest())
    ask(master.CloseSessionRequest(session_handle=handles[0].session_handle))
    ask(master.CreateSessionRequest())


def test_a_worker_has_limited_sessions_of_masters(task, monkeypatch):
    monkeypatch.setattr(limits, "sessions", 2)
    ask = asker(task, WorkerService)
    for handle in ("a", "b", "b"):
        ask(worker.CreateWorkerSessionRequest(session_handle=handle))
    with pytest.raises(TOO_MUCH, match="DTFLAB_LIMIT_SESSIONS"):
        ask(worker.CreateWorkerSessionRequest(session_handle="c"))
    ask(worker.DeleteWorkerSessionRequest(session_handle="a"))
    ask(worker.CreateWorkerSessionRequest(session_handle="c"))


def test_a_server_runs_limited_steps_at_a_time(task, monkeypatch):
    monkeypatch.setattr(limits, "steps", 1)
    ask = asker(task, MasterService)
    with tf.Graph().as_default() as graph:
        waits = never().op.name
        graph_def = nodes_to_proto(graph.nodes())
    created = master.CreateSessionResponse.FromString(ask(master.CreateSessionRequest(graph_def=graph_def)))
    run = master.RunStepRequest(session_handle=created.session_handle, target=[waits])
    calls = [ServerCall(), ServerCall()]

    def client(number):
        if number == 0:
            return ask(run, calls[0])
        until(lambda: task.worker.rendezvous.waiting(), "the first step waits")
        found = []
        for request in (run, master.PartialRunSetupRequest(session_handle=run.session_handle, target=[waits])):
            try:
                ask(request)
            except errors.OpError as error:
                found.append(error)
        calls[0].gone()
        return found

    first, refused = in_threads(2, client)
    assert isinstance(first, errors.CancelledError)
    for error in refused:
        assert isinstance(error, TOO_MUCH) and "runs 1 steps: more than 1" in error.message, error
    assert len(refused) == 2 and "DTFLAB_LIMIT_STEPS" in refused[0].message
    with pytest.raises(errors.NotFoundError):  # there is room again
        ask(master.RunStepRequest(session_handle=run.session_handle, fetch=["none:0"]))


# ---- whose caller is gone ----


@pytest.mark.parametrize("after", [0, 2, 20])
def test_reading_and_inlining_end_once_nobody_waits(after):
    """The first call is before the first node is read, the third before the first that a call becomes."""
    calls = []

    def going():
        calls.append(1)
        if len(calls) > after:
            raise errors.CancelledError.of("gone")

    with pytest.raises(errors.CancelledError, match="gone"):
        graph_of(graphs.calls(60), going)
    assert len(calls) == after + 1


def test_the_caller_s_death_ends_the_expansion(task, monkeypatch):
    """2^60 nodes: nobody would live to see the answer."""
    monkeypatch.setattr(limits, "inlined_nodes", 1 << 62)
    call, begun, make = ServerCall(), threading.Event(), inlining.make_node

    def make_node(*args, **attrs):
        begun.set()
        return make(*args, **attrs)

    monkeypatch.setattr(inlining, "make_node", make_node)
    request = master.CreateSessionRequest(graph_def=graphs.calls(60))

    def client(number):
        if number == 0:
            return asker(task, MasterService)(request, call)
        assert begun.wait(60)
        return call.gone()

    ended, _ = in_threads(2, client)
    assert isinstance(ended, errors.CancelledError), ended
    asker(task, MasterService)(master.CreateSessionRequest(graph_def=chain(1)))


# ---- how they are set ----


def test_limits_are_attributes_and_variables(monkeypatch):
    mine = Limits()
    mine.steps, mine.graph_nodes = 7, 8
    for name, value in mine.as_environment().items():
        monkeypatch.setenv(name, value)
    assert vars(Limits()) == vars(mine)
    monkeypatch.setattr(limits, "sessions", 3)
    assert tf.limits is limits
    assert _environment(KINDS["process"], {})["DTFLAB_LIMIT_SESSIONS"] == "3"  # of a child process
    monkeypatch.setenv("DTFLAB_LIMIT_STEPS", "many")
    with pytest.raises(ValueError, match="DTFLAB_LIMIT_STEPS must be a whole number, not 'many'"):
        Limits()
