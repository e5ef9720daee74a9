"""A client that sends any message over gRPC."""

from __future__ import annotations

from dtflab.base.credentials import PLAIN
from dtflab.cluster.wire import Wire
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.protos import master_pb2 as master_messages, worker_pb2 as worker_messages
from dtflab.protos.graph_pb2 import GraphDef


class Raw:
    """A client that sends any message."""

    def __init__(self, address: str) -> None:
        self.wire = Wire(address, PLAIN)

    def __call__(self, method, request, timeout=None):
        """The answer to a request message, named after its method."""
        name = type(request).__name__.removesuffix("Request")
        assert name == method
        data = self.wire.call(self.path(method), [request.SerializeToString()], timeout)
        return getattr(self.module(method), method + "Response").FromString(data)

    def path(self, method):
        service = "Master" if self.module(method) is master_messages else "Worker"
        return f"/tensorflow.{service}Service/{method}"

    @staticmethod
    def module(method):
        return master_messages if hasattr(master_messages, method + "Request") else worker_messages


def a_session(raw, graph):
    request = master_messages.CreateSessionRequest(graph_def=nodes_to_proto(graph.nodes()))
    return raw("CreateSession", request).session_handle


def a_graph(text: str) -> GraphDef:
    """`name = Op(inputs)` per line, attributes of type float where there are inputs."""
    graph_def = GraphDef()
    for line in text.strip().splitlines():
        name, _, call = line.strip().partition(" = ")
        op, _, inputs = call.rstrip(")").partition("(")
        node = graph_def.node.add(name=name, op=op, input=[i.strip() for i in inputs.split(",") if i.strip()])
        if op in ("Identity", "Neg"):
            node.attr["T"].type = 1
        elif op == "Placeholder":
            node.attr["dtype"].type = 1
    return graph_def
