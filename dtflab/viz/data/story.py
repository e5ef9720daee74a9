"""The story of a step before it runs: what `explain` says, as data.

It goes the way that a step goes, through the same pure functions: place → prune → spread_loops → partition by task →
partition by device → Executor. Only the end differs: nothing is run, the counters are counted down on paper.

Rule: a loop is shown as its first turn, a conditional as if both branches were taken: which are, is known only in a
run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.nest import leaves
from dtflab.graph import op_registry
from dtflab.graph.device_spec import task_name
from dtflab.graph.fetches import Fetches
from dtflab.graph.graph import Graph
from dtflab.graph.node import Node, by_name, line_text
from dtflab.graph.operation import Tensor
from dtflab.machine.devices import Device
from dtflab.placement.control_loops import spread_loops
from dtflab.placement.reasons import Placement
from dtflab.runtime.executor import Executor
from dtflab.runtime.partition import partition, partition_by_device
from dtflab.runtime.placer import place
from dtflab.runtime.prune import prune
from dtflab.runtime.session import BaseSession

_SENDS, _RECEIVES = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")


class StepOp(NamedTuple):
    """A node of the step: where and why there, how many others it waits for, in which set of ready nodes it runs."""

    name: str
    op: str
    device: str
    reason: str
    waits_for: int
    set: int  # from 1 on; 0 if its counter never falls to zero on paper
    line: str


class Crossing(NamedTuple):
    """A tensor that goes from one device to another; `nbytes` is None if its shape is not known before the run."""

    tensor: str
    source: str
    target: str
    nbytes: int | None
    only_order: bool  # an empty tensor: "has finished"


class Story(NamedTuple):
    """All of it; names are those of nodes."""

    fetches: list[str]
    fed: list[str]
    devices: list[str]  # of the session
    from_master: bool  # the master itself says where nodes are
    graph_size: int
    kept: list[str]
    dropped: dict[str, str]  # why each node of the graph does not run
    unread: list[str]  # they became NoOps that only wait
    folded: list[str]  # computed once and for all
    known: list[StepOp]  # the same, and where they are
    unfed: list[str]  # they must be fed, or the step fails
    ops: list[StepOp]
    crossings: list[Crossing]
    sets: list[list[str]]
    critical_path: list[str]
    loops: bool
    branches: bool


def story(fetches: Any, feeds: Sequence[Tensor], session: BaseSession) -> Story:
    """Tell the step that `session.run(fetches, {…})` would run with these tensors fed."""
    wanted = Fetches(session.graph, fetches, feeds)
    names = wanted.feed_names, wanted.fetch_names, wanted.target_names
    devices = {device.name: device.incarnation for device in session.list_devices()}
    task = session.master_task
    placed, reasons, from_master = _placed(session, list(devices), task)
    graph, client = by_name(placed), f"{task}/device:CPU:0"
    kept = prune(graph, *names, client)
    executors = _executors(spread_loops(kept), devices)
    sets, causes = ready_sets(executors)
    number = {name: i for i, names in enumerate(sets, 1) for name in names}
    kinds = {op_registry.get(node.op).control_flow for node in kept}
    return Story(
        fetches=[*names[1], *names[2]],
        fed=list(names[0]),
        devices=list(devices),
        from_master=from_master,
        graph_size=len(graph),
        kept=[node.name for node in kept if node.name in graph],
        dropped=_dropped(graph, kept, names, client),
        unread=[node.name for node in kept if node.op == "NoOp" != graph.get(node.name, node).op],
        folded=[e.nodes[n].name for e in executors for n in e.constants],
        unfed=[node.name for node in kept if node.op == "Placeholder"],
        known=[op for executor in executors for op in _ops(executor, executor.constants, reasons, {})],
        ops=[op for executor in executors for op in _ops(executor, _running(executor), reasons, number)],
        crossings=_crossings(executors, _sizes(session, feeds)),
        sets=sets,
        critical_path=_critical_path(sets, causes),
        loops="enter" in kinds,
        branches="switch" in kinds and "enter" not in kinds,
    )


def _placed(session: BaseSession, devices: Sequence[str], task: str) -> tuple[list[Node], Mapping[str, str], bool]:
    """The graph on its devices, why each node is there, and whether the master said so itself."""
    try:
        return session.placed_nodes(), session.placement_reasons(), True
    except NotImplementedError:  # the master is TensorFlow's
        where = placed_by_rules(session, devices, task)
        return [node.replace(device=where[node.name]) for node in session.graph.nodes()], where.reasons, False


def placement_of(session: BaseSession) -> Placement:
    """Where the ops of a session are and why, as its master reports or, if it does not, as the rules say."""
    try:
        return Placement({node.name: node.device for node in session.placed_nodes()}, session.placement_reasons())
    except NotImplementedError:
        devices = [device.name for device in session.list_devices()]  # the master's own come first
        return placed_by_rules(session, devices, task_name(devices[0]))


def asked(graph: Any, where: Any) -> tuple[Any, Mapping[str, str] | None]:
    """The graph to draw and the devices of its ops; a session says where it has them."""
    if where is None or isinstance(where, Mapping):
        return graph, where
    if not isinstance(where, BaseSession):
        wrong = type(where).__name__
        raise TypeError(f"placement must be a dict from op names to devices, or a session, not of type {wrong}.")
    graph = where.graph if graph is None else graph
    graphs = [part if isinstance(part, Graph) else getattr(part, "graph", where.graph) for part in leaves(graph)]
    if any(other is not where.graph for other in graphs):
        raise ValueError("The session has another graph. Draw its own: viz.placement(sess.graph, sess).")
    return graph, placement_of(where)


def placed_by_rules(session: BaseSession, devices: Sequence[str], task: str) -> Placement:
    """Where a dtflab master of that task would put the ops of a session, if it got all of them at once."""
    soft = bool(session.config is not None and session.config.allow_soft_placement)
    return place(session.graph.nodes(), devices, task, allow_soft_placement=soft)


def _executors(nodes: Sequence[Node], devices: Mapping[str, int]) -> list[Executor]:
    """The partitions as the workers make them: the master cuts by task, each worker its part by device."""
    tasks = partition(nodes, lambda node: task_name(node.device), devices)
    parts = [partition_by_device(part, devices) for part in tasks.values()]
    return [Executor(part, Device(name)) for by_device in parts for name, part in by_device.items()]


# -- what pruning left -------------------------------------------------------------------------------------------


def _dropped(
    graph: Mapping[str, Node], kept: Iterable[Node], names: tuple[Sequence[str], ...], client: str
) -> dict[str, str]:
    """Why each node that does not run is not needed."""
    feeds, fetches, targets = names
    left = {node.name for node in kept}
    unfed = {node.name for node in prune(graph, (), [*feeds, *fetches], targets, client)} if feeds else set()
    fed = {name.rpartition(":")[0] for name in feeds}
    why = {}
    for name in graph.keys() - left:
        given = "fed instead" if name in fed else "needed only for what is fed"
        why[name] = given if name in unfed else "not needed for what is fetched"
    return {name: why[name] for name in graph if name in why}


# -- counting down ------------------------------------------------------------------------------------------------


def ready_sets(executors: Sequence[Executor]) -> tuple[list[list[str]], dict[str, str]]:
    """The sets of nodes that become ready one after the other, and for each node the last one that it waited for.

    A node in a set waits for nodes of earlier ones only. A receive asks at once, and has its value with its send.
    """
    paper = _Paper(executors)
    ready = [e.nodes[n].name for e in executors for n in e.sources]
    sets = []
    while ready:
        sets.append(ready)
        ready = [name for done in ready for name in paper.run(done)]
    return sets, paper.causes


class _Paper:
    """The counters, counted down without running anything."""

    def __init__(self, executors: Sequence[Executor]) -> None:
        self.causes: dict[str, str] = {}
        self._counts = {node.name: count for e in executors for node, count in zip(e.nodes, e.pending, strict=True)}
        nodes = [node for e in executors for node in e.nodes]
        self._kinds = {node.name: node.op for node in nodes}
        edges = ((name, node.name) for node in nodes for name in [name for name, _ in node.inputs] + node.controls)
        self._consumers = grouped(edges, self._kinds)
        self._ran: set[str] = set()

    def run(self, name: str) -> list[str]:
        """Cross `name` off; the nodes that become ready by it."""
        self._ran.add(name)
        ready = []
        for done in self._finished(name):
            for consumer in self._consumers[done]:
                self._counts[consumer] -= 1
                if self._counts[consumer] == 0:
                    self.causes[consumer] = done
                    ready.append(consumer)
        return ready

    def _finished(self, name: str) -> list[str]:
        """A receive is done when it was asked for and its send has run, whichever comes last."""
        if self._kinds[name] not in (*_SENDS, *_RECEIVES):
            return [name]
        send, recv = f"{name[:-5]}/send", f"{name[:-5]}/recv"
        if name == send and recv in self._ran:
            self.causes[recv] = send
        arrived = [recv] if {send, recv} <= self._ran else []
        return [send, *arrived] if name == send else arrived


def _critical_path(sets: Sequence[Sequence[str]], causes: Mapping[str, str]) -> list[str]:
    """The longest chain of nodes that wait for each other, first to last."""
    path = [sets[-1][0]] if sets else []
    while path and path[0] in causes and causes[path[0]] not in path:
        path.insert(0, causes[path[0]])
    return path


# -- ops and crossings ----------------------------------------------------------------------------------------------


def _running(executor: Executor) -> list[int]:
    """The nodes that are not known before the step."""
    return [n for n in range(len(executor.nodes)) if n not in executor.constants]


def _ops(
    executor: Executor, chosen: Iterable[int], reasons: Mapping[str, str], number: Mapping[str, int]
) -> list[StepOp]:
    found = []
    for n in chosen:
        node = executor.nodes[n]
        why = reasons.get(node.name, "") or _why_added(node)
        waits_for, sets = max(0, executor.pending[n]), number.get(node.name, 0)
        found.append(StepOp(node.name, node.op, node.device, why, waits_for, sets, line_text(node.line)))
    return found


def _why_added(node: Node) -> str:
    if node.op in _SENDS:
        return "next to what it sends"
    if node.op in _RECEIVES:
        return "next to its consumer"
    return "where the client's values come and go" if node.op in ("_Arg", "_Retval") else "added for a loop"


def _sizes(session: BaseSession, feeds: Collection[Tensor]) -> dict[str, int | None]:
    """Bytes of every tensor of the graph whose shape is known, and of what stands for the feeds."""
    tensors = {t.name: t for op in session.graph.get_operations() for t in op.outputs}
    tensors |= {f"_arg_{t.name.replace(':', '_')}_{i}:0": t for i, t in enumerate(feeds)}
    return {name: static_bytes(tensor) for name, tensor in tensors.items()}


def static_bytes(tensor: Tensor) -> int | None:
    """The size that a tensor has in each step, if its shape in the graph says it."""
    count, size = tensor.shape.num_elements(), tensor.dtype.base_dtype.size
    return None if count is None or not size else int(count) * size


def _crossings(executors: Sequence[Executor], sizes: Mapping[str, int | None]) -> list[Crossing]:
    sources = {node.name: node for executor in executors for node in executor.nodes}
    return [_crossing(node, sources, sizes) for node in sources.values() if node.op in _SENDS]


def _crossing(node: Node, sources: Mapping[str, Node], sizes: Mapping[str, int | None]) -> Crossing:
    """The crossing of the tensor that a send sends."""
    name, output = node.inputs[0]
    while sources[name].op in _RECEIVES:  # it came from another task first
        name, output = sources[f"{name[:-5]}/send"].inputs[0]
    places = node.attrs["send_device"].decode(), node.attrs["recv_device"].decode()
    if name.endswith("/done/signal"):
        return Crossing(sources[name].controls[0], *places, 0, True)
    tensor = f"{name}:{output}"
    return Crossing(tensor.removesuffix(":0"), *places, sizes.get(tensor), False)
