"""Messages of a few hundred bytes that ask for lists of hundreds of millions: refused before the lists are made."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("resource")
import resource

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.graph_def import nodes_from_proto
from dtflab.protos import master_pb2, worker_pb2
from dtflab.protos.graph_pb2 import GraphDef
from tests.cluster.raw_client import Raw

HUGE = 1 << 28
FLOAT = 1


def graph_def(op, attribute, number, nodes=1, **kinds):
    """Placeholders, and nodes with a number in an attribute."""
    made = GraphDef()
    made.versions.producer = 1882
    for i in range(nodes):
        x, y = made.node.add(name=f"x{i}", op="Placeholder"), made.node.add(name=f"y{i}", op=op)
        x.attr["dtype"].type = FLOAT
        y.attr[attribute].i = number
        for kind in kinds or ("T",):
            y.attr[kind].type = FLOAT
        y.input.extend([f"x{i}"])
    return made


def function_with(number, inside):
    """A call of a function that has the number within, or as an attribute of its own."""
    made = GraphDef()
    made.versions.producer = 1882
    definition = made.library.function.add()
    definition.signature.name = "f"
    argument = definition.signature.input_arg.add(name="x", type=FLOAT)
    if inside:
        node = definition.node_def.add(name="y", op="Unpack", input=["x"])
        node.attr["T"].type, node.attr["num"].i = FLOAT, number
    else:
        argument.number_attr = "N"
        definition.signature.attr.add(name="N", type="int")
    x = made.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = FLOAT
    call = made.node.add(name="call", op="f", input=["x"])
    if not inside:
        call.attr["N"].i = number
    return made


def node_with(op, count, fill, nodes=1):
    """Nodes with `count` of something in an attribute, where `fill` puts it."""
    made = GraphDef()
    made.versions.producer = 1882
    for i in range(nodes):
        node = made.node.add(name=f"z{i}", op=op)
        node.attr["dtype"].type = FLOAT
        fill(node.attr, count)
    return made


def types(attrs, count):
    attrs["component_types"].list.type.extend([FLOAT] * count)
    del attrs["dtype"]


def dimensions(attrs, count):
    for _ in range(count):
        attrs["shape"].shape.dim.add(size=1)


BOMBS = {
    "a list": lambda: node_with("FIFOQueueV2", 2_000_000, types),
    "lists of many nodes": lambda: node_with("FIFOQueueV2", 100_000, types, nodes=20),
    "dimensions": lambda: node_with("Placeholder", 100_000, dimensions),
    "inputs": lambda: graph_def("AddN", "N", HUGE),
    "outputs": lambda: graph_def("Unpack", "num", HUGE),
    "more than TensorFlow takes": lambda: graph_def("Unpack", "num", 1 << 40),
    "outputs of many nodes": lambda: graph_def("Unpack", "num", 1 << 20, nodes=100),
    "a function's arguments": lambda: function_with(HUGE, inside=False),
    "in a function": lambda: function_with(HUGE, inside=True),
}


def answers():
    """A server's answers to each, in a process with at most 512 MB more than it has; its highest memory in MB."""
    server = tf.train.Server({"worker": ["localhost:0"]}, job_name="worker", task_index=0)
    raw = Raw(server.target.removeprefix("grpc://"))
    session = raw("CreateSession", master_pb2.CreateSessionRequest()).session_handle
    raw("CreateWorkerSession", worker_pb2.CreateWorkerSessionRequest(session_handle="s"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20),) * 2)
    found = {}
    for name, make in BOMBS.items():
        bomb = make()
        for request in (
            master_pb2.CreateSessionRequest(graph_def=bomb),
            master_pb2.ExtendSessionRequest(session_handle=session, graph_def=bomb),
            worker_pb2.RegisterGraphRequest(session_handle="s", graph_def=bomb),
        ):
            method = type(request).__name__.removesuffix("Request")
            try:
                raw(method, request, 300)
                answer = ["OK", ""]
            except errors.OpError as error:
                answer = [type(error).__name__, error.message[:100]]
            found[f"{name}: {method}"] = answer
    server.stop()
    return found, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_server_refuses_them_and_stays_small():
    found, growth = json.loads(subprocess.check_output([sys.executable, "-m", "tests.cluster.test_bombs"], text=True))
    assert len(found) == 3 * len(BOMBS)
    for name, (kind, text) in found.items():
        assert kind == "InvalidArgumentError", f"{name}: {kind}: {text}"
    assert growth < 128, f"{growth} MB"


def test_what_they_are_told():
    with pytest.raises(
        errors.InvalidArgumentError, match=rf"NodeDef expected inputs '{HUGE} tensors' do not match 1 inp"
    ):
        nodes_from_proto(BOMBS["inputs"]())
    with pytest.raises(errors.InvalidArgumentError, match=rf"Number of outputs is too big: {HUGE}.*node y0"):
        nodes_from_proto(BOMBS["outputs"]())
    with pytest.raises(errors.InvalidArgumentError, match=r"attribute has 2000000 elements.*\{\{node z0\}\}"):
        nodes_from_proto(BOMBS["a list"]())
    with pytest.raises(errors.InvalidArgumentError, match=r"have 1100000 elements, .* until \{\{node z10\}\}"):
        nodes_from_proto(BOMBS["lists of many nodes"]())
    with pytest.raises(errors.InvalidArgumentError, match=r"too many dimensions: 100000, .*\{\{node z0\}\}"):
        nodes_from_proto(BOMBS["dimensions"]())
    with pytest.raises(ValueError, match="Number of outputs is too big"):
        tf.import_graph_def(BOMBS["outputs"]())
    with pytest.raises(errors.InvalidArgumentError, match="float, float, float' do not match 1 inputs"):
        nodes_from_proto(graph_def("AddN", "N", 3))


def test_a_shape_has_as_many_dimensions_as_in_tensorflow(real_tf):
    for count in (254, 255):
        graph_def, answers = node_with("Placeholder", count, dimensions), []
        for library in (real_tf, tf):
            with library.Graph().as_default():
                try:
                    library.import_graph_def(library.GraphDef.FromString(graph_def.SerializeToString()))
                    answers.append(None)
                except ValueError as error:
                    answers.append(type(error))
        assert answers == [None if count == 254 else ValueError] * 2


def test_lists_of_a_size_that_programs_have_are_taken():
    (_, unpack) = nodes_from_proto(graph_def("Unpack", "num", 100_000))
    assert len(unpack.output_types) == 100_000


if __name__ == "__main__":
    print(json.dumps(answers()))
