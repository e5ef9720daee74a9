"""The edges of a partition: what the master adds where a step meets its client or another device.

Stands for `core/kernels/sendrecv_ops.cc` and `function_ops.cc` (_Arg, _Retval).
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.ops import shapes
from dtflab.ops.costs import StatefulOp

# What both ends of a crossing say of it.
_ENDS = """
    {T}: type
    tensor_name: string
    send_device: string
    send_device_incarnation: int
    recv_device: string
    client_terminated: bool = false"""

ROOT = "0:0"  # frame:iteration outside of all loops


@op("_Arg() -> (output: T) where T: type, index: int >= 0")
class Arg(StatefulOp):
    """A fed value: number `index` of the step's arguments."""

    def bind(node: Node, xp: Any) -> Any:
        index = node["index"]
        return lambda ctx: ctx.args[index]


@op("_Retval(input: T) -> () where T: type, index: int >= 0")
class Retval(StatefulOp):
    """A fetched value: number `index` of the step's results."""

    infer = shapes.none

    def bind(node: Node, xp: Any) -> Any:
        index = node["index"]

        def kernel(ctx: Any, value: Any) -> None:
            ctx.results[index] = value

        return kernel


@op(*(f"{name}(tensor: T) -> ()" + _ENDS.format(T="T") for name in ("_Send", "_HostSend")))
class Send(StatefulOp):
    """Puts a value into the rendezvous of its own task, where the consumer's task asks for it.

    On a GPU, _HostSend is for a value in host memory.
    """

    infer = shapes.none

    def bind(node: Node, xp: Any) -> Any:
        key = rendezvous_key(node)
        return lambda ctx, value: ctx.rendezvous.send(key, ctx.frame_iter, value)


@op(*(f"{name}() -> (tensor: tensor_type)" + _ENDS.format(T="tensor_type") for name in ("_Recv", "_HostRecv")))
class Recv(Op):
    """Takes a value out of the rendezvous of the producer's task; holds no thread while it waits.

    On a GPU, _HostRecv is for a value that its reader needs in host memory.
    """

    stateful = is_async = True

    def bind(node: Node, xp: Any) -> Any:
        key = rendezvous_key(node)
        return lambda ctx, done: ctx.rendezvous.recv_async(key, ctx.frame_iter, done)


def rendezvous_key(node: Node) -> tuple[str, int, str, str]:
    """(send device, its incarnation, recv device, tensor name) of a _Send or _Recv."""
    sender, receiver, tensor = (node[attr].decode() for attr in ("send_device", "recv_device", "tensor_name"))
    return sender, node["send_device_incarnation"] & 0xFFFFFFFFFFFFFFFF, receiver, tensor
