"""Workload: the cost of a graph's nodes on any processor, estimated or measured, and the nodes as placed tasks.

Stands for `core/graph/costmodel.cc`. Left out: loops (their nodes run once), branches (both sides run).

Rules: sizes come from static shapes; an unknown dimension counts as `batch`, and an op with a tensor of unknown rank
costs a launch. A time measured on one processor holds on another in the ratio of the estimates. With measured costs,
nodes that did not run in the measured steps cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dtflab.base.grouping import grouped
from dtflab.graph import device_spec, dtypes, op_registry
from dtflab.graph.dtypes import DType
from dtflab.graph.loops import is_back_edge
from dtflab.graph.node import Node, by_name
from dtflab.graph.node_shapes import static_shapes
from dtflab.graph.tensor_shape import TensorShape
from dtflab.hardware import costs
from dtflab.hardware.machines import Machines
from dtflab.hardware.parts import Processor
from dtflab.hardware.schedule import Task

BATCH = 32  # assumed, for an unknown dimension
STRING_BYTES = 16  # assumed, of each text of a tensor

_STAYS = frozenset({"Const", "Variable", "VariableV2", "VarHandleOp"})  # what they make lives as long as the session


class Measured(NamedTuple):
    """The measured cost of a node in a step: its device, seconds, and the bytes of its outputs."""

    seconds: float
    device: str
    outputs: tuple[int, ...]


def measured(*steps: Any) -> dict[str, Measured]:
    """The cost of each node, by name, in StepStats messages: the mean of the steps in which it ran.

    The iterations of a loop add up. Threads and streams of a device, and transfers, are not nodes.
    """
    runs = grouped((name, run) for step in steps for name, run in _of_step(step).items())
    return {
        name: Measured(sum(run.seconds for run in found) / len(found), found[-1].device, found[-1].outputs)
        for name, found in runs.items()
    }


def _of_step(step_stats: Any) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    for device in step_stats.dev_stats:
        if not _is_device(device.device):
            continue
        for node in device.node_stats:
            seconds = node.all_end_rel_nanos / 1e9 or node.all_end_rel_micros / 1e6
            outputs = tuple(_requested_bytes(output) for output in sorted(node.output, key=lambda o: o.slot))
            before = found.get(node.node_name, Measured(0.0, "", ())).seconds
            found[node.node_name] = Measured(before + seconds, device.device, outputs)
    return found


def _requested_bytes(output: Any) -> int:
    return int(output.tensor_description.allocation_description.requested_bytes)


def _is_device(name: str) -> bool:
    try:
        return device_spec.parse(name).id is not None
    except ValueError:
        return False


class Workload:
    """The nodes of one step with their costs, by number; computed once, by the first method call."""

    def __init__(
        self,
        nodes: Sequence[Node],
        measured: Mapping[str, Measured] | None = None,
        shapes: Mapping[str, Sequence[TensorShape]] | None = None,
        batch: int = BATCH,
    ) -> None:
        """`shapes` are those of all outputs by name; None: inferred from the nodes alone."""
        self.nodes = list(nodes)
        self._measured = measured
        self._by_name = by_name(self.nodes)
        shapes = static_shapes(self.nodes) if shapes is None else shapes
        self._shapes = {name: [_sizes(shape, batch) for shape in found] for name, found in shapes.items()}
        self.costs = [self._cost(node) for node in self.nodes]
        self.outputs = [self._output_bytes(node) for node in self.nodes]
        self._seconds: dict[Processor, list[float]] = {}
        self._machines: Machines | None = None

    def _cost(self, node: Node) -> costs.Cost | None:
        """None for what takes no time."""
        if costs.is_free(op_registry.get(node.op)):
            return None
        ins = [self._shapes[source][output] for source, output in node.inputs]
        outs = self._shapes[node.name]
        if None in ins or None in outs:
            return costs.Cost(0, 1)  # a launch
        return costs.of_node(node, ins, outs)

    def _output_bytes(self, node: Node) -> tuple[int, ...]:
        run = self._measured.get(node.name) if self._measured is not None else None
        if run is not None and len(run.outputs) == len(node.output_types):
            return run.outputs
        return tuple(map(tensor_bytes, node.output_types, self._shapes[node.name]))

    def seconds(self, machines: Machines, device: str) -> list[float]:
        """The seconds of each node on a device, in the order of the nodes."""
        processor = machines.processor(device)[0]
        if self._machines is not machines:
            self._machines, self._seconds = machines, {}
        if processor not in self._seconds:
            self._seconds[processor] = [self._time(i, processor, machines) for i in range(len(self.nodes))]
        return self._seconds[processor]

    def _time(self, number: int, processor: Processor, machines: Machines) -> float:
        node, cost = self.nodes[number], self.costs[number]
        here = self._estimate(node, cost, processor)
        if self._measured is None:
            return here
        run = self._measured.get(node.name)
        if run is None or cost is None:
            return 0.0
        try:
            there = self._estimate(node, cost, machines.processor(run.device)[0])
        except ValueError as error:
            text = f"{node.name!r} was measured on {run.device}, which machines= does not describe: {error}"
            raise ValueError(text) from None
        return run.seconds * (here / there if there else 1.0)

    def _estimate(self, node: Node, cost: costs.Cost | None, processor: Processor) -> float:
        return 0.0 if cost is None else costs.seconds(cost, processor, costs.dtype_of(node))

    def tasks(self, where: Mapping[str, str], machines: Machines) -> list[Task]:
        """The nodes as tasks on the devices of `where`, for `schedule.simulate`."""
        return [self._task(i, where[node.name], machines) for i, node in enumerate(self.nodes)]

    def _task(self, number: int, device: str, machines: Machines) -> Task:
        node = self.nodes[number]
        inputs = [edge for edge in node.inputs if not is_back_edge(node, self._by_name[edge[0]])]
        seconds = self.seconds(machines, device)[number]
        kept = self._kept(number)
        return Task(node.name, device, seconds, inputs, node.controls, self.outputs[number], kept, viewed(node))

    def _kept(self, number: int) -> int:
        """Bytes that a node holds as long as the session lives."""
        node = self.nodes[number]
        if node.op not in _STAYS:
            return 0
        if node.op == "VarHandleOp":
            return tensor_bytes(node.attrs["dtype"], _sizes(TensorShape(node.attrs["shape"]), 1))
        return sum(self.outputs[number])


def tasks_of(nodes: Iterable[Node], machines: Machines, **options: Any) -> list[Task]:
    """Placed nodes of one step as tasks, each on its own device; `options` are those of Workload."""
    work = Workload(list(nodes), **options)
    return work.tasks({node.name: node.device for node in work.nodes}, machines)


def viewed(node: Node) -> int:
    """The number of the input in whose memory a node's outputs lie, or -1.

    For an op that hands on a variable it is the first by reference; for an op that may pass on a view, the only one
    that is of the output's type; for an op that reads a resource, the resource.
    """
    op = op_registry.get(node.op)
    inputs, outputs = op.op_def.input_types(node.attrs), set(node.output_types)
    if node.op == "ReadVariableOp":
        return 0
    by_reference = any(dtype._is_ref_dtype for dtype in outputs)
    if len(outputs) != 1 or not (op.aliasing or by_reference):
        return -1
    same = [i for i, dtype in enumerate(inputs) if {dtype if by_reference else dtype.base_dtype} == outputs]
    return same[0] if len(same) == 1 or (by_reference and same) else -1


def _sizes(shape: TensorShape, batch: int) -> tuple[int, ...] | None:
    """A shape without gaps; None if not even the rank is known."""
    if shape.rank is None:
        return None
    return tuple(batch if size is None else size for size in shape.as_list())


def tensor_bytes(dtype: DType, sizes: tuple[int, ...] | None) -> int:
    """The bytes of a tensor of such sizes; 0 for a handle, whatever is in it, and one element if none are known."""
    plain = dtype.base_dtype
    if plain in (dtypes.resource, dtypes.variant):
        return 0
    return math.prod(sizes or ()) * (STRING_BYTES if plain == dtypes.string else plain.size)
