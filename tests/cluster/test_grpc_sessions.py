"""A master's calls one by one: versions of a graph, errors in answers, callables, values next to a graph."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.tensor_codec import parse, parse_named
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.protos import master_pb2 as master_messages, worker_pb2 as worker_messages
from tests.cluster.raw_client import a_graph, a_session
from tests.cluster.two_tasks import interrupt_extensions


def test_versions_of_a_graph(raw, fresh_graph):
    tf.constant(1.0, name="a")
    handle = a_session(raw, fresh_graph)
    tf.constant(2.0, name="b")
    more = master_messages.ExtendSessionRequest(
        session_handle=handle, graph_def=nodes_to_proto(fresh_graph.nodes(1)), current_graph_version=0
    )
    assert raw("ExtendSession", more).new_graph_version == 1
    with pytest.raises(errors.AbortedError, match="Current version is 1 but caller expected 0"):
        raw("ExtendSession", more)
    more.current_graph_version = 1
    with pytest.raises(errors.InvalidArgumentError, match="includes node 'b'"):
        raw("ExtendSession", more)


def test_an_extension_that_fails_leaves_the_graph_as_it_was(raw, fresh_graph):
    tf.constant(1.0, name="a")
    handle = a_session(raw, fresh_graph)
    with tf.device("/job:nowhere"):
        tf.constant(2.0, name="b")
    more = master_messages.ExtendSessionRequest(
        session_handle=handle, graph_def=nodes_to_proto(fresh_graph.nodes(1)), current_graph_version=0
    )
    with pytest.raises(errors.InvalidArgumentError, match="b"):
        raw("ExtendSession", more)
    more.graph_def.node[0].device = ""
    assert raw("ExtendSession", more).new_graph_version == 1
    answer = raw("RunStep", master_messages.RunStepRequest(session_handle=handle, fetch=["b:0"]))
    assert answer.tensor[0].name == "b:0"


def test_an_error_in_the_answer_or_as_a_status(raw, fresh_graph):
    tf.constant(1.0, name="a")
    request = master_messages.RunStepRequest(session_handle=a_session(raw, fresh_graph), fetch=["zz:0"])
    with pytest.raises(errors.NotFoundError, match="zz"):
        raw("RunStep", request)
    request.store_errors_in_response_body = True
    answer = raw("RunStep", request)
    assert (answer.status_code, "zz" in answer.status_error_message) == (errors.NOT_FOUND, True)


def test_a_long_error_is_cut_where_a_status_carries_it(raw):
    name = "n" * 20_000
    with pytest.raises(errors.InvalidArgumentError, match=r"truncated"):
        raw("CreateSession", master_messages.CreateSessionRequest(graph_def=a_graph(f"{name} = Identity(x)")))


def test_nothing_to_run(raw, fresh_graph):
    tf.constant(1.0)
    handle = a_session(raw, fresh_graph)
    with pytest.raises(errors.InvalidArgumentError, match="at least one target"):
        raw("RunStep", master_messages.RunStepRequest(session_handle=handle))
    with pytest.raises(errors.InvalidArgumentError, match="before performing partial runs"):
        raw("RunStep", master_messages.RunStepRequest(session_handle=handle, partial_run_handle="p", fetch=["a:0"]))


def test_closing_twice(raw, fresh_graph):
    tf.constant(1.0)
    request = master_messages.CloseSessionRequest(session_handle=a_session(raw, fresh_graph))
    raw("CloseSession", request)
    with pytest.raises(errors.AbortedError, match="not found"):
        raw("CloseSession", request)


def test_callables(raw, fresh_graph):
    x = tf.placeholder(tf.float32, [2], name="x")
    tf.multiply(x, 3.0, name="y")
    handle = a_session(raw, fresh_graph)
    make = master_messages.MakeCallableRequest(session_handle=handle)
    make.options.feed.append("x:0")
    make.options.fetch.append("y:0")
    number = raw("MakeCallable", make).handle
    run = master_messages.RunCallableRequest(session_handle=handle, handle=number)
    run.feed.add(dtype=1, float_val=[1, 2]).tensor_shape.dim.add(size=2)
    data = raw.wire.call(raw.path("RunCallable"), [run.SerializeToString()])
    _, values = parse(master_messages.RunCallableResponse, data, "fetch")
    np.testing.assert_array_equal(values[0], [3, 6])
    del run.feed[:]
    with pytest.raises(errors.InvalidArgumentError, match="1 feed"):
        raw("RunCallable", run)
    release = master_messages.ReleaseCallableRequest(session_handle=handle, handle=number)
    raw("ReleaseCallable", release)
    with pytest.raises(errors.InvalidArgumentError, match="callable"):
        raw("ReleaseCallable", release)


def test_a_master_that_comes_back_loses_its_old_sessions(raw):
    def create(session, incarnation):
        request = worker_messages.CreateWorkerSessionRequest(
            session_handle=session, master_task="/job:lab/replica:0/task:1", master_incarnation=incarnation
        )
        raw("CreateWorkerSession", request)

    def register(session):
        request = worker_messages.RegisterGraphRequest(session_handle=session)
        request.graph_def.node.add(name="n", op="NoOp", device="/job:lab/replica:0/task:0/device:CPU:0")
        return raw("RegisterGraph", request).graph_handle

    create("old", 1)
    create("beside", 1)
    register("old"), register("beside")
    create("new", 2)
    with pytest.raises(errors.AbortedError, match="Session handle is not found: old"):
        register("old")
    register("new")


def test_values_sent_with_a_graph_and_asked_back(lab, raw, fresh_graph):
    """RunGraphRequest.send and .recv_key: how a TensorFlow master of an older kind feeds and fetches."""
    from dtflab.graph.apply_op import apply_op

    device = "/job:lab/replica:0/task:0/device:CPU:0"
    ends = {"send_device": device.encode(), "send_device_incarnation": 1, "recv_device": device.encode()}
    with tf.device(device):
        fed = apply_op("_Recv", "fed", tensor_type=tf.float32, tensor_name=b"in", client_terminated=True, **ends)
        apply_op("_Send", "fetched", tensor=fed * 2.0, tensor_name=b"out", client_terminated=True, **ends)
    worker = lab.worker(0)
    worker.create_worker_session("s", "", 0)
    graph_handle = worker.register_graph("s", fresh_graph.nodes())
    key = f"{device};{1:016x};{device};%s;0:0"
    request = worker_messages.RunGraphRequest(
        session_handle="s", graph_handle=graph_handle, step_id=9, recv_key=[key % "out"]
    )
    request.send.add(name=key % "in").tensor.float_val.append(21)
    request.send[0].tensor.dtype = 1
    data = raw.wire.call(raw.path("RunGraph"), [request.SerializeToString()])
    _, received = parse_named(worker_messages.RunGraphResponse, data, "recv")
    assert received == [(key % "out", 42.0)]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_session_outlives_a_ctrl_c_while_its_graph_grows(arrives, lab):
    with lab.session() as sess:
        interrupt_extensions(sess, arrives)
