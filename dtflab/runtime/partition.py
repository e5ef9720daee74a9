"""Partition: a placed graph → one graph per place, with a `_Send`/`_Recv` pair on every edge that crosses.

Stands for `core/graph/graph_partition.cc`. `partition` is used twice, as in TensorFlow: the master cuts by task, each
worker cuts its part by device. Before that, once, the master calls `spread_loops` (placement/control_loops.py).

Rules: pure functions. One pair per (tensor, destination device and memory), however many consumers. A control edge
crosses as an empty tensor. A GPU's kernels have some arguments in host memory: where the ends of an edge are in
different memories of one GPU, it crosses, too; `_HostSend` and `_HostRecv` are ends in host memory. A `_Recv` in a
loop waits for the tick of its device's control loop. With `enable_bfloat16_sendrecv`, a Cast at either end has float32
travel between tasks as bfloat16; as in TensorFlow, a variable is then read before it travels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtflab.base.garbage import NO_COLLECTION
from dtflab.graph import dtypes, op_registry
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Edge, Node, by_name, make_node
from dtflab.ops.kernel_registry import host_memory
from dtflab.placement.control_loops import TICK, word


@NO_COLLECTION
def partition(nodes: Sequence[Node], location: Callable[[Node], str], incarnations: Mapping[str, int],
              by_memory: bool = False, as_bfloat16: bool = False) -> dict[str, list[Node]]:  # fmt: skip
    """Split placed nodes by `location(node)`; `incarnations` of devices go into the keys of the crossings.

    With `by_memory`, edges between the memories of one GPU are cut, too. With `as_bfloat16`, float32 crosses as
    bfloat16.
    """
    locations = {node.name: location(node) for node in nodes}
    if len(set(locations.values())) <= 1 and not (by_memory and any(map(_on_gpu, nodes))):
        return {place: list(nodes) for place in set(locations.values())}
    cut = _Cut(nodes, locations, incarnations, by_memory, as_bfloat16)
    for node in nodes:
        cut.add(node)
    return cut.parts


def partition_by_device(nodes: Sequence[Node], incarnations: Mapping[str, int]) -> dict[str, list[Node]]:
    """Split a task's part as its worker runs it: by device, and between the memories of a GPU."""
    return partition(nodes, lambda node: node.device, incarnations, by_memory=True)


def _on_gpu(node: Node) -> bool:
    return "/device:GPU:" in node.device


def _inputs_on_host(node: Node) -> frozenset[int]:
    """Positions of the inputs that a node on a GPU wants in host memory; on a CPU there is nothing to tell apart."""
    return host_memory(node.op, node.attrs, "GPU")[0] if _on_gpu(node) else frozenset()


def _made_on_host(node: Node, output: int) -> bool:
    """True if a node on a GPU makes that output in host memory."""
    return _on_gpu(node) and output in host_memory(node.op, node.attrs, "GPU")[1]


class _Cut:
    """The parts as they grow."""

    def __init__(self, nodes: Sequence[Node], locations: Mapping[str, str], incarnations: Mapping[str, int],
                 by_memory: bool, as_bfloat16: bool) -> None:  # fmt: skip
        self.locations = locations
        self.incarnations = incarnations
        self.by_memory = by_memory
        self.as_bfloat16 = as_bfloat16
        self.sources = by_name(nodes)
        self.parts: dict[str, list[Node]] = {place: [] for place in locations.values()}
        # (tensor, destination device, in its host memory, waits) → its _Recv, or the Cast after that
        self.received: dict[tuple[Any, ...], Node] = {}
        self.arrived: dict[str, Node] = {}  # one of these → what waits for it, and is dead if that is
        self.may_die = any(op_registry.get(n.op).control_flow == "switch" or n.op == "_Recv" for n in nodes)

    def add(self, node: Node) -> None:
        """Put a node into its part, with the edges that cross replaced by receives."""
        here = self.locations[node.name]
        ticks = [name for name in node.controls if name.startswith(TICK)]
        on_host = _inputs_on_host(node)
        crossing = [i for i, edge in enumerate(node.inputs) if self._crosses(edge, node, i in on_host)]
        reads = [i for i in crossing if self._carries_variable(node.inputs[i])]
        inputs = list(node.inputs)
        for i in crossing:
            if i not in reads:
                inputs[i] = (self._receive(node.inputs[i], node, ticks, on_host=i in on_host).name, 0)
        controls = [self._finished(c, node, ticks) if self.locations[c] != here else c for c in node.controls]
        # A variable is read when it is received: not before all else is there that its reader waits for.
        waits = list(dict.fromkeys([edge[0] for i, edge in enumerate(inputs) if i not in reads] + controls))
        for i in reads:
            inputs[i] = (self._receive(node.inputs[i], node, waits, ":" + node.name, i in on_host).name, 0)
        self.parts[here].append(node.replace(inputs=inputs, controls=list(dict.fromkeys(controls))))

    def _crosses(self, edge: Edge, node: Node, on_host: bool) -> bool:
        producer = self.sources[edge[0]]
        if self.locations[producer.name] != self.locations[node.name]:
            return True
        same_gpu = self.by_memory and producer.device == node.device and _on_gpu(node)
        return same_gpu and not self._carries_variable(edge) and _made_on_host(producer, edge[1]) != on_host

    def _carries_variable(self, edge: Edge) -> bool:
        return self.sources[edge[0]].output_types[edge[1]]._is_ref_dtype

    def _finished(self, name: str, consumer: Node, waits: list[str]) -> str:
        """The name of the node on the consumer's device that runs when operation `name` has finished.

        For TensorFlow's workers a `_Recv` has run even if what it received is dead; an Identity of that is dead.
        """
        recv = self._receive((name, -1), consumer, waits)
        if not self.may_die:
            return recv.name
        if recv.name not in self.arrived:
            (dtype,) = recv.output_types
            after = make_node(f"{recv.name}/arrived", "Identity", [(recv.name, 0)], device=recv.device, T=dtype)
            self.arrived[recv.name] = after
            self.parts[self.locations[consumer.name]].append(after)
        return self.arrived[recv.name].name

    def _receive(self, edge: Edge, consumer: Node, waits: list[str], suffix: str = "", on_host: bool = False) -> Node:
        """The `_Recv` on the consumer's device of that tensor; output -1 is "has finished"."""
        if self.sources[edge[0]].device == consumer.device and not suffix:
            waits = []  # between its memories: in a loop, the send reports each iteration
        key = (edge, consumer.device, on_host, tuple(waits))
        if key not in self.received:
            # What crosses is called the same in all graphs of a session: TensorFlow's workers keep the kernel of a
            # name, with its attributes. The ends say where they lead: a part that is cut again can't meet them twice.
            label = f"edge_{max(edge[1], 0)}_{edge[0]}{':done' if edge[1] < 0 else suffix}{':host' * on_host}"
            to = f"to{word(consumer.device)}{'_host' * on_host}/"
            to += "done" if edge[1] < 0 else f"{edge[1]}{suffix.replace(':', '_')}"
            self.received[key] = self._cross(edge, consumer, waits, label, f"{edge[0]}/{to}", on_host)
            if not waits and not op_registry.get(self.sources[edge[0]].op).control_flow:  # then it has finished, too
                self.received.setdefault(((edge[0], -1), consumer.device, False, ()), self.received[key])
        return self.received[key]

    def _cross(self, edge: Edge, consumer: Node, waits: list[str], label: str, name: str, on_host: bool) -> Node:
        producer = self.sources[edge[0]]
        there, here = (self.parts[self.locations[end.name]] for end in (producer, consumer))
        attrs: dict[str, Any] = {
            "tensor_name": label.encode(),
            "send_device": producer.device.encode(),
            "send_device_incarnation": self.incarnations[producer.device],
            "recv_device": consumer.device.encode(),
        }
        if edge[1] < 0:
            there.append(_empty(f"{name}/signal", producer))
            dtype, edge = dtypes.float32, (f"{name}/signal", 0)
        else:
            dtype = producer.output_types[edge[1]].base_dtype
        is_short = self.as_bfloat16 and edge[0] == producer.name and dtype == dtypes.float32
        if is_short:
            dtype = dtypes.bfloat16
            there.append(_cast(f"{name}/as_bfloat16", edge, producer, dtypes.float32, dtype))
            edge = f"{name}/as_bfloat16", 0
        send = "_HostSend" if edge[0] == producer.name and _made_on_host(producer, edge[1]) else "_Send"
        there.append(make_node(f"{name}/send", send, [edge], device=producer.device, T=dtype, **attrs))
        if producer.device == consumer.device:
            waits = [*waits, f"{name}/send"]
        recv = make_node(f"{name}/recv", "_HostRecv" if on_host else "_Recv", [], waits, consumer.device,
                         tensor_type=dtype, **attrs)  # fmt: skip
        here.append(recv)
        if is_short:
            here.append(_cast(f"{name}/as_float", (recv.name, 0), consumer, dtype, dtypes.float32))
        return here[-1]


def _cast(name: str, edge: Edge, end: Node, source: DType, target: DType) -> Node:
    """A Cast on the device of one end of an edge; to bfloat16 without rounding."""
    return make_node(name, "Cast", [edge], [], end.device, SrcT=source, DstT=target, Truncate=target.size == 2)


def _empty(name: str, producer: Node) -> Node:
    """An empty tensor that exists once `producer` has finished."""
    value = np.zeros(0, np.float32)
    return make_node(name, "Const", [], [producer.name], producer.device, value=value, dtype=dtypes.float32)
