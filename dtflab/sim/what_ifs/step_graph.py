"""StepGraph: one step as executors have it, nodes by device with what crosses, and how large every tensor is.

Stands for what `RunMetadata` keeps of a step: its partition graphs and its step stats. Left out: what a kernel's cost
owes to values (sizes alone count), the order of a loop's turns (its nodes run once, for as long as all turns). Of a
step that never ran, loops turn once and both branches of a cond are taken.

Rules: a traced step has the sizes that its trace shows, and what took no time there takes none; of a step that never
ran, sizes are the static ones. A dimension belongs to the batch if static shapes leave it open once the batch is open,
and it is a multiple of the batch; of each tensor the first such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from dtflab.base.text_table import plural
from dtflab.graph import device_spec, op_registry
from dtflab.graph.graph_def import nodes_from_proto
from dtflab.graph.inlining import inline
from dtflab.graph.loops import is_back_edge
from dtflab.graph.node import Node, by_name
from dtflab.graph.node_shapes import static_shapes
from dtflab.graph.tensor_shape import TensorShape
from dtflab.hardware import costs
from dtflab.hardware.machines import Machines
from dtflab.hardware.parts import Processor
from dtflab.hardware.workload import BATCH, measured as took, tensor_bytes
from dtflab.placement.control_loops import spread_loops
from dtflab.placement.own_placer import check, placer_named
from dtflab.protos.config_pb2 import RunMetadata
from dtflab.runtime.partition import partition, partition_by_device
from dtflab.runtime.placer import place
from dtflab.runtime.prune import prune
from dtflab.runtime.remembering import FOLDED

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
Sizes = tuple[int, ...] | None  # None: not even the rank is known

_SENDS, _RECEIVES = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")


@dataclass
class StepGraph:
    """Nodes of a step on their devices, producers and consumers on others joined by a send and a receive.

    `master` is the task that runs the step for its client, `batch` how many examples are in it, if that is known.
    `sizes` are those of all outputs by node; `seconds` what nodes took where they ran, None: as the model says.
    `turns` says how often those ran that are in loops, `dead` which did not, in branches that were not taken.
    """

    nodes: list[Node]
    master: str
    batch: int | None
    sizes: dict[str, list[Sizes]]
    ran: frozenset[str] | None = None  # the nodes that took time; None: as the ops say
    seconds: dict[str, float] | None = None
    turns: dict[str, int] = field(default_factory=dict)
    dead: frozenset[str] = frozenset()
    _costs: dict[int | None, dict[str, costs.Cost]] = field(default_factory=dict, repr=False)
    _times: dict[tuple[Processor, int | None], dict[str, float]] = field(default_factory=dict, repr=False)

    @cached_property
    def sends(self) -> dict[str, Node]:
        """The send of each receive, by the receive's name."""
        there = {_key(node): node for node in self.nodes if node.op in _SENDS}
        return {node.name: there[_key(node)] for node in self.nodes if node.op in _RECEIVES}

    @cached_property
    def constants(self) -> frozenset[str]:
        """The nodes known before the step: constants, and small shape arithmetic with them."""
        known: set[str] = set()
        for node in self.nodes:
            small = sum(self.nbytes(*edge) for edge in node.inputs) <= 1024  # as Executor
            if small and node.op in FOLDED and known.issuperset(node.sources()):
                known.add(node.name)
        return frozenset(known)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return by_name(self.nodes)

    @cached_property
    def homes(self) -> dict[str, str]:
        """The task of each device."""
        return {node.device: device_spec.task_name(node.device) for node in self.nodes}

    @property
    def tasks(self) -> list[str]:
        """The tasks that have a part in the step, its master first."""
        return list(dict.fromkeys([self.master, *self.homes.values()]))

    @cached_property
    def crossings(self) -> dict[str, Node]:
        """The send of each receive on another device, by the receive's name, and that receive by the send's.

        Between the two memories of a GPU nobody asks: there a receive waits for its send.
        """
        pairs = [(self.by_name[name], send) for name, send in self.sends.items()]
        apart = [pair for pair in pairs if pair[0].device != pair[1].device]
        return {node.name: other for pair in apart for node, other in (pair, pair[::-1])}

    def waits(self, node: Node) -> tuple[list[tuple[str, int]], list[str]]:
        """The tensors and the ends of others that a node waits for.

        Not what is known before, nor the turn of a loop before.
        """
        if node.op in _RECEIVES:
            return [(self.sends[node.name].name, 0)], list(node.controls)
        inputs = [
            edge
            for edge in self._merged(node)
            if edge[0] not in self.constants and not is_back_edge(node, self.by_name[edge[0]])
        ]
        return inputs, [name for name in node.controls if name not in self.constants]

    def _merged(self, node: Node) -> list[tuple[str, int]]:
        """The inputs of a node; of a Merge those that came from the branch that was taken, where that is known."""
        kind = op_registry.get(node.op).control_flow
        if kind != "merge" or self.dead.isdisjoint(name for name, _ in node.inputs):
            return node.inputs
        return [edge for edge in node.inputs if edge[0] not in self.dead] or node.inputs

    def output_bytes(self, node: Node, batch: int | None = None) -> tuple[int, ...]:
        """The bytes of a node's outputs on the way to other devices; a send's only output is the value it sends."""
        if node.op in _SENDS:
            receive = self.crossings.get(node.name)
            if receive is not None and receive.name in self.dead:
                return (0,)
            return (self.nbytes(*node.inputs[0], batch) * self.turns.get(node.name, 1),)
        return tuple(self.nbytes(node.name, output, batch) for output in range(len(node.output_types)))

    def nbytes(self, name: str, output: int, batch: int | None = None) -> int:
        """The size of a tensor, with another batch if one is given."""
        return tensor_bytes(self.by_name[name].output_types[output], self.sizes_of(name, output, batch))

    def sizes_of(self, name: str, output: int, batch: int | None = None) -> Sizes:
        """The shape of a tensor, with another batch if one is given."""
        sizes = self.sizes[name][output]
        axis = self._axes[name][output] if batch not in (None, self.batch) else None
        if sizes is None or axis is None or batch is None or self.batch is None:
            return sizes
        return (*sizes[:axis], sizes[axis] // self.batch * batch, *sizes[axis + 1 :])

    # -- time -------------------------------------------------------------------------------------------------------

    def times(self, processor: Processor, machines: Machines, batch: int | None = None) -> dict[str, float]:
        """The seconds of each node on a processor. `machines` are those on which `seconds` were measured."""
        batch = None if batch == self.batch else batch
        work = self._costs_of(batch)

        def made() -> dict[str, float]:
            return {node.name: self._time(node, work[node.name], processor, machines) for node in self._timed}

        return remembered(self._times, (processor, batch), made)

    @cached_property
    def _timed(self) -> list[Node]:
        """The nodes that take time at all."""
        return [
            node
            for node in self.nodes
            if node.name not in self.constants
            and (self.ran is None or node.name in self.ran)
            and not costs.is_free(op_registry.get(node.op))
        ]

    def _time(self, node: Node, cost: costs.Cost, processor: Processor, machines: Machines) -> float:
        here = costs.seconds(cost, processor, costs.dtype_of(node))
        if self.seconds is None:
            return here * self.turns.get(node.name, 1)
        where = machines.processor(node.device)[0]
        there = costs.seconds(self._costs_of(None)[node.name], where, costs.dtype_of(node))
        return self.seconds[node.name] * (here / there if there else 1.0)

    def _costs_of(self, batch: int | None) -> dict[str, costs.Cost]:
        """The computing and the bytes of each node."""
        return remembered(self._costs, batch, lambda: {node.name: self._cost(node, batch) for node in self._timed})

    def _cost(self, node: Node, batch: int | None) -> costs.Cost:
        ins = [self.sizes_of(name, output, batch) for name, output in node.inputs]
        outs = [self.sizes_of(node.name, output, batch) for output in range(len(node.output_types))]
        return costs.Cost(0, 1) if None in ins or None in outs else costs.of_node(node, ins, outs)

    # -- the batch --------------------------------------------------------------------------------------------------

    @cached_property
    def _axes(self) -> dict[str, list[int | None]]:
        """For each output the dimension that grows with the batch."""
        nodes = self._joined()
        opened = {node.name: [None, *sizes[1:]] for node in nodes if node.op == "_Arg" and (sizes := self._fed(node))}
        shapes = static_shapes(nodes, opened)
        axes = {name: list(map(self._axis, found, self.sizes[name])) for name, found in shapes.items()}
        for node in self.nodes:  # a tensor that crosses is the one that was sent
            if node.op in _RECEIVES:
                source, output = self.source(node.name, 0)
                axes[node.name] = [axes[source][output]]
        return {**{node.name: [None] * len(node.output_types) for node in self.nodes}, **axes}

    def _axis(self, shape: TensorShape, sizes: Sizes) -> int | None:
        assert self.batch is not None
        dimensions = [None] * len(sizes or ()) if shape.rank is None else shape.as_list()
        both = enumerate(zip(dimensions, sizes or (), strict=True))
        return next((i for i, (open_, size) in both if open_ is None and size and size % self.batch == 0), None)

    def _fed(self, node: Node) -> Sizes:
        """The shape of what a client fed, if it is a batch of examples."""
        sizes = self.sizes[node.name][0]
        return sizes if sizes and sizes[0] == self.batch else None

    def check_batch(self, batch: int) -> None:
        """ValueError if the batch can't be another one."""
        fed = [node for node in self.nodes if node.op == "_Arg"]
        if all(self.sizes[node.name][0] == () for node in fed):
            raise ValueError(
                f"The step is fed no examples, so its batch can't be {batch}. Feed them through a placeholder, or "
                "build the graph for the other batch."
            )
        if self.batch is None:
            raise ValueError(
                "The step's batch is not known: what is fed has no first dimension in common. Give what_if(…, "
                "batch=…), the number of examples in the step."
            )
        if not any(map(self._fed, fed)):
            raise ValueError(
                f"Nothing that is fed has {plural(self.batch, 'example')}, the batch of the step, so that can't be "
                f"{batch}. Give what_if(…, batch=…), the first dimension of what is fed."
            )
        for node in self.nodes:
            if node.op == "Reshape" and self.nbytes(*node.inputs[0], batch) != self.nbytes(node.name, 0, batch):
                raise ValueError(
                    f"Op {node.name!r} on {node.device} has a fixed batch size of {self.batch}. Reshape to [-1, …], "
                    "or trace the step with the other batch."
                )

    def _joined(self) -> list[Node]:
        """The graph without sends and receives."""
        return [
            node.replace(inputs=[self.source(*edge) for edge in node.inputs], controls=self._controls(node))
            for node in self.nodes
            if node.op not in (*_SENDS, *_RECEIVES)
        ]

    def _controls(self, node: Node) -> list[str]:
        return [name for name in node.controls if self.by_name[name].op not in (*_SENDS, *_RECEIVES)]

    def source(self, name: str, output: int) -> tuple[str, int]:
        """Where a tensor was made, before all its sends and receives."""
        while name in self.sends:
            name, output = self.sends[name].inputs[0]
        return name, output


def _key(node: Node) -> tuple[Any, ...]:
    """The key that the two ends of a crossing have in common."""
    return tuple(node.attrs[attr] for attr in ("tensor_name", "send_device", "recv_device"))


def remembered(kept: dict[_Key, _Value], key: _Key, make: Callable[[], _Value], most: int = 16) -> _Value:
    """The cached value for that key, one of the last `most`: a slider asks for many."""
    if key not in kept:
        value = make()
        if len(kept) >= most:
            kept.pop(next(iter(kept)))
        kept[key] = value
    return kept[key]


# -- where they come from -------------------------------------------------------------------------------------------


def traced(
    metadata: RunMetadata, master: str | None = None, batch: int | None = None, measured: bool = False
) -> StepGraph:
    """The step of a RunMetadata; with `measured` its nodes take what they took, else what the model says.

    ValueError if it was not asked for both trace and partition graphs, or does not show which task's master ran it.
    """
    if not metadata.partition_graphs or not metadata.step_stats.dev_stats:
        raise ValueError(
            "The metadata has no trace or no graphs of the step. Run it with options=tf.RunOptions(trace_level="
            "tf.RunOptions.FULL_TRACE, output_partition_graphs=True) and run_metadata=tf.RunMetadata()."
        )
    parts = [nodes_from_proto(part) for part in metadata.partition_graphs]
    nodes = [node for part in parts for node in _by_device(part)]
    step = StepGraph(nodes, master or _master(nodes), None, {})
    spent = {name: run.seconds for name, run in took(metadata.step_stats).items()}
    counts = {node.name: len(node.output_types) for node in nodes}
    shown = {name: sizes for name, sizes in _shown(metadata.step_stats).items() if counts.get(name) == len(sizes)}
    step.sizes = _sizes(step, {}, BATCH) | shown
    for node in nodes:
        if node.op in _RECEIVES:
            source, output = step.source(node.name, 0)
            step.sizes[node.name] = [step.sizes[source][output]]
    step.batch = batch or _common([step.sizes[node.name][0] for node in nodes if node.op == "_Arg"])
    step.ran = frozenset(name for name, seconds in spent.items() if seconds)
    step.seconds = spent if measured else None
    step.dead = _dead(step, metadata.step_stats)
    step.turns = Counter(node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats)
    return step


def _dead(step: StepGraph, step_stats: Any) -> frozenset[str]:
    """The nodes missing from a trace: dead ones. What directs (a Switch) never is in it."""
    records = [node for device in step_stats.dev_stats for node in device.node_stats]
    ran = {node.node_name for node in records}
    came = {node.timeline_label.rpartition("] ")[2] for node in records if node.node_name == "RecvTensor"}
    dead: set[str] = set()
    for node in step.nodes:
        if node.op in _RECEIVES:
            text = "{} from {} to {}".format(*(part.decode() for part in _key(node)))
            if text not in came and step.source(node.name, 0)[0] not in ran:
                dead.add(node.name)
        elif node.op not in _SENDS and node.name not in ran and not op_registry.get(node.op).control_flow:
            dead.add(node.name)
    return frozenset(dead)


def planned(
    graph: Any,
    fetches: Sequence[str],
    targets: Sequence[str],
    machines: Machines,
    master: str,
    batch: int | None = None,
    placer: Any = None,
) -> StepGraph:
    """The step that a session would run of `graph`, all of whose placeholders are fed, placed and cut as it would be.

    `batch` is how many examples are fed, and stands for what static shapes leave open; by default the first dimension
    of all that the step is fed, 32 where that is open, and unknown where nothing is fed that has one. `placer` is as in
    `Session(placer=…)`.
    """
    nodes, devices = inline(graph.nodes()), machines.devices
    own = placer_named(placer) or place
    where = own(nodes, devices, master, allow_soft_placement=True, placed={})
    check(own, where, nodes, devices, {})
    placed = {node.name: node.replace(device=where[node.name]) for node in nodes}
    fed = [f"{node.name}:0" for node in nodes if node.op in ("Placeholder", "PlaceholderWithDefault")]
    kept = spread_loops(prune(placed, fed, fetches, targets, f"{master}/device:CPU:0"))
    by_task = partition(kept, lambda node: device_spec.task_name(node.device), _incarnations(kept))
    step = StepGraph([node for part in by_task.values() for node in _by_device(part)], master, None, {})
    known = {name: graph.get_tensor_by_name(name).shape for name in fed}
    needed = [known[fed[node.attrs["index"]]] for node in kept if node.op == "_Arg"]
    shapes = [shape.as_list() for shape in needed if shape.rank]
    is_open = any(sizes[0] is None for sizes in shapes)
    step.batch = batch or _common([tuple(sizes) for sizes in shapes]) or (BATCH if is_open else None)
    arguments = {node.name: shape for node, shape in _arguments(step.nodes, known)}
    step.sizes = _sizes(step, arguments, step.batch or BATCH)
    return step


def _arguments(nodes: Iterable[Node], known: Mapping[str, TensorShape]) -> Iterator[tuple[Node, TensorShape]]:
    """The nodes that stand for what is fed, with its shape."""
    shapes = list(known.values())
    for node in nodes:
        if node.op == "_Arg":
            yield node, shapes[node.attrs["index"]]


def _by_device(part: Sequence[Node]) -> list[Node]:
    """A task's part as its worker cuts it (`graph_mgr`)."""
    return [node for own in partition_by_device(inline(part), _incarnations(part)).values() for node in own]


def _incarnations(nodes: Sequence[Node]) -> dict[str, int]:
    """The incarnation of each device: 0, as nothing restarts in a model."""
    return dict.fromkeys((node.device for node in nodes), 0)


def _sizes(step: StepGraph, known: Mapping[str, TensorShape], batch: int) -> dict[str, list[Sizes]]:
    """Static shapes, the open first dimensions `batch`; what crosses has the shape of what was sent."""

    def closed(shape: TensorShape) -> Sizes:
        return None if shape.rank is None else tuple(batch if size is None else size for size in shape.as_list())

    found: dict[str, list[Sizes]] = {node.name: [None] * len(node.output_types) for node in step.nodes}
    fed = {name: closed(shape) or shape for name, shape in known.items()}
    found |= {name: list(map(closed, shapes)) for name, shapes in static_shapes(step._joined(), fed).items()}
    for name in step.sends:
        source, output = step.source(name, 0)
        found[name] = [found[source][output]]
    return found


def _shown(step_stats: Any) -> dict[str, list[Sizes]]:
    """The shapes of all outputs in a trace, by node."""
    return {
        node.node_name: [
            tuple(dim.size for dim in output.tensor_description.shape.dim)
            for output in sorted(node.output, key=lambda output: output.slot)
        ]
        for device in step_stats.dev_stats
        for node in device.node_stats
        if node.output
    }


def _master(nodes: Sequence[Node]) -> str:
    """The task whose client fed or fetched something."""
    at_home = {device_spec.task_name(node.device) for node in nodes if node.op in ("_Arg", "_Retval")}
    tasks = at_home or {device_spec.task_name(node.device) for node in nodes}
    if len(tasks) != 1:
        raise ValueError(
            "The step feeds and fetches nothing, so it does not show which task's master ran it. Give master=, "
            f"one of {', '.join(sorted(tasks))}."
        )
    return tasks.pop()


def _common(fed: Sequence[Any]) -> int | None:
    """The first dimension of all that is fed but scalars, if it is the same."""
    first = {sizes[0] for sizes in fed if sizes}
    return first.pop() if len(first) == 1 else None
