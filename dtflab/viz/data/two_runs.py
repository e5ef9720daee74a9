"""Two runs: a step of one graph on dtflab and on TensorFlow's servers, and what either made of it.

Rules: both clusters have the same tasks, and CPUs only. Both begin with the same variables: the program's initializers
run on dtflab, and TensorFlow's variables get these values. TensorFlow's graph optimizers are off, because dtflab has
none: so the ops that run there are those of the program, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from dtflab.base import errors
from dtflab.base.grouping import grouped
from dtflab.cluster.cluster import Cluster
from dtflab.graph import device_spec, dtypes
from dtflab.graph.feeds import checked_feeds, feed_tensors
from dtflab.graph.fetches import Fetches
from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.protos.config_pb2 import ConfigProto, OptimizerOptions, RunMetadata, RunOptions
from dtflab.protos.node_def_pb2 import NodeDef
from dtflab.protos.step_stats_pb2 import TensorDescription
from dtflab.runtime.session import Session

Transfer = tuple[str, str, str]  # tensor, from, to; `^op` is "has finished"
Shape = Mapping[str, Collection[int]]  # job → the numbers of its tasks

# Roundings by which equal sums may differ, in units of the last place of the largest element: kernels add in another
# order. Half precision is computed in single precision and rounded once.
_ROUNDINGS = {"float16": 4, "bfloat16": 4}
_OTHER_ROUNDINGS = 64  # 7.6e-6 of float32


class Run(NamedTuple):
    """A run of the step: values by tensor, variables after it, devices by op, bytes by transfer; or its error."""

    values: Mapping[str, Any] = {}
    variables: Mapping[str, Any] = {}
    devices: Mapping[str, tuple[str, ...]] = {}
    transfers: Mapping[Transfer, Sequence[int | None]] = {}
    error: errors.OpError | None = None


def run_both(
    graph: Graph, fetches: Any, feeds: Any, cluster: Cluster | None, config: ConfigProto | None, timeout: float
) -> tuple[Run, Run]:
    """The step on dtflab and on TensorFlow, on clusters of the shape of `cluster`, or of the graph's devices.

    A cluster of TensorFlow's servers is used as it is.
    """
    shape = shape_of(graph) if cluster is None else {j: cluster.spec.task_indices(j) for j in cluster.spec.jobs}
    spec = {job: dict.fromkeys(numbers, "localhost:0") for job, numbers in shape.items()}
    how: dict[str, Any] = {"visible_devices": dict.fromkeys(spec, ""), "config": _cpus(graph), "timeout": timeout}
    step = _Step(graph, fetches, feeds, _as_written(config, timeout))
    with ExitStack() as running:
        if cluster is None or cluster.engine != "tensorflow":
            cluster = running.enter_context(Cluster(spec, engine="tensorflow", **how))
        ours = step.run(running.enter_context(Cluster(spec, **how)).target)
        return ours, step.run(cluster.target, step.begun)


def shape_of(graph: Graph) -> dict[str, Collection[int]]:
    """The jobs and tasks that the devices of a graph name; one worker if they name none."""
    tasks: dict[str, int] = {}
    for device in {node.device for node in graph.nodes()}:
        name = device_spec.parse(device)
        if name.job is not None:
            tasks[name.job] = max(tasks.get(name.job, 1), (name.task or 0) + 1)
    return {job: range(count) for job, count in sorted(tasks.items())} or {"worker": range(1)}


def _cpus(graph: Graph) -> ConfigProto:
    """As many CPUs for each task as the devices of a graph name."""
    names = [device_spec.parse(device) for device in {node.device for node in graph.nodes()}]
    return ConfigProto(device_count={"CPU": 1 + max((n.id or 0 for n in names if n.type == "CPU"), default=0)})


def _as_written(config: ConfigProto | None, timeout: float) -> ConfigProto:
    """The session's config without what rewrites graphs, and with a bound for each of its steps."""
    found = ConfigProto()
    found.CopyFrom(config or found)
    found.graph_options.optimizer_options.opt_level = OptimizerOptions.L0
    found.graph_options.rewrite_options.disable_meta_optimizer = True
    found.operation_timeout_in_ms = found.operation_timeout_in_ms or math.ceil(timeout * 1000)
    return found


class _Step:
    """The step, which can be run on any cluster."""

    def __init__(self, graph: Graph, fetches: Any, feeds: Any, config: ConfigProto) -> None:
        self._graph, self._feeds, self._config = graph, dict(feeds or {}), config
        wanted = Fetches(graph, fetches, feed_tensors(graph, self._feeds))
        self._fetches: list[Any] = [*wanted.tensors, *wanted.targets]
        self._names = [fetch.name for fetch in self._fetches]
        keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)
        self._variables = {variable.name: variable for key in keys for variable in graph.get_collection(key)}
        self.begun: dict[str, Any] = {}  # the variables as they were before the first run

    def run(self, target: str, begin: Mapping[str, Any] = {}) -> Run:
        """Run it once, after the initializers, whose variables in `begin` get these values."""
        metadata = RunMetadata()
        options = RunOptions(trace_level=RunOptions.FULL_TRACE, output_partition_graphs=True)
        try:
            with Session(target, graph=self._graph, config=self._config) as session:
                self._begin(session, begin)
                found = session.run(self._fetches, self._feeds, options, metadata) if self._fetches else []
                after = session.run(self._variables)
        except errors.OpError as error:
            return Run(error=error)
        values = {name: value for name, value in zip(self._names, found, strict=True) if value is not None}
        return Run(values, after, devices_of(metadata, self._graph), transfers_of(metadata, self._fed_bytes()))

    def _fed_bytes(self) -> dict[str, int | None]:
        fed: dict[Any, Any] = dict(checked_feeds(self._graph, self._feeds))
        return {
            tensor.op.name: None if tensor.dtype == dtypes.string else value.nbytes for tensor, value in fed.items()
        }

    def _begin(self, session: Session, begin: Mapping[str, Any]) -> None:
        given = {self._variables[name].initializer.inputs[1]: value for name, value in begin.items()}
        initializers = [variable.initializer for variable in self._variables.values()]
        tables = self._graph.get_collection(GraphKeys.TABLE_INITIALIZERS)
        session.run(initializers, self._feeds | given)
        session.run(tables)
        self.begun = self.begun or session.run(self._variables)


# -- what the metadata of a run says ----------------------------------------------------------------------------------


def devices_of(metadata: RunMetadata, graph: Graph) -> dict[str, tuple[str, ...]]:
    """The device of each of the program's ops that ran, several if it was copied. A fed op is where its value came."""
    nodes = [node for part in metadata.partition_graphs for node in part.node]
    found = grouped((_program_name(node.name), node.device) for node in nodes)
    return {node.name: tuple(sorted({*found[node.name]})) for node in graph.nodes() if node.name in found}


def transfers_of(metadata: RunMetadata, fed: Mapping[str, int | None]) -> dict[Transfer, list[int | None]]:
    """The bytes of each tensor that crossed to another device, as often as it is sent; None: not reported.

    `fed` are the bytes of what was fed, by op.
    """
    made = _sizes(metadata)
    found: dict[Transfer, list[int | None]] = {}
    for node in (node for part in metadata.partition_graphs for node in part.node):
        if node.op in ("_Send", "_HostSend") and not node.attr["client_terminated"].b:
            source, target = (node.attr[end].s.decode() for end in ("send_device", "recv_device"))
            tensor = _tensor(node)
            size = fed.get(tensor.removesuffix(":0"), made.get((source, tensor)))
            if source != target:  # else between two memories of a GPU
                found.setdefault((tensor, source, target), []).append(size)
    return found


def _tensor(send: NodeDef) -> str:
    """The tensor that a node sends, or `^op`, whose end it reports."""
    op = re.sub(r"^edge_\d+_", "", send.attr["tensor_name"].s.decode()).partition(":")[0]
    name, _, output = send.input[0].partition(":")
    return f"{_program_name(op)}:{output or 0}" if name == op else f"^{_program_name(op)}"


def _program_name(name: str) -> str:
    """The program's op behind a node: `x`, which is fed at `_arg_x_0_0`, `c`, whose copy is `c/replicate/_0`."""
    return re.sub(r"^_(?:arg|recv)_(.+?)_\d+(?:_\d+)?$|^(.+)/replicate/_\d+$", r"\1\2", name)


def _sizes(metadata: RunMetadata) -> dict[tuple[str, str], int | None]:
    """The bytes of each tensor in all turns of its op, by device and name; None for strings and handles."""
    found: dict[tuple[str, str], int | None] = {}
    for stats in metadata.step_stats.dev_stats:
        for node in stats.node_stats:
            for output in node.output:
                key = stats.device, f"{node.node_name}:{output.slot}"
                made, before = _nbytes(output.tensor_description), found.get(key, 0)
                found[key] = None if made is None or before is None else before + made
    return found


def _nbytes(description: TensorDescription) -> int | None:
    dtype = dtypes.as_dtype(description.dtype).base_dtype if description.dtype else dtypes.string
    if dtype in (dtypes.string, dtypes.resource, dtypes.variant):
        return None
    return math.prod(dim.size for dim in description.shape.dim) * dtype.size


# -- comparing --------------------------------------------------------------------------------------------------------


def deviation(ours: Any, theirs: Any) -> float:
    """The largest difference of two arrays by the size of their largest element; inf if they can't be compared."""
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.dtype != b.dtype or a.shape != b.shape:
        return math.inf
    if not is_rounded(a):
        return 0.0 if np.array_equal(a, b) else math.inf
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    largest = np.abs(b[finite]).max(initial=0.0)
    return float(np.abs(a[finite] - b[finite]).max(initial=0.0) / (largest or 1.0))


def is_rounded(array: Any) -> bool:
    """True for floating-point and complex numbers."""
    dtype = dtypes.as_dtype(array.dtype)
    return dtype.is_floating or dtype.is_complex


def tolerance(array: Any) -> float:
    """The deviation that another order of sums explains; 0 for what is not rounded."""
    if not is_rounded(array):
        return 0.0
    roundings = _ROUNDINGS.get(dtypes.as_dtype(array.dtype).name, _OTHER_ROUNDINGS)
    finfo: Any = ml_dtypes.finfo  # knows bfloat16, too
    return roundings * float(finfo(array.dtype).eps)


class Likeness(NamedTuple):
    """Whether two runs have the same, or else why that is as it should be; "" if it is not."""

    same: bool
    reason: str = ""


COPIED = "TensorFlow 2 copies small constants to each device that reads them; dtflab sends them, as TensorFlow 1 does."
UNREAD = (
    "dtflab computes no op that others only wait for, and sends it no tensors; TensorFlow's optimizers are off here."
)


def like_placement(ours: Run, theirs: Run, op: str) -> Likeness:
    """How an op's devices compare."""
    here, there = ours.devices.get(op, ()), theirs.devices.get(op, ())
    return Likeness(here == there, COPIED if len(there) > 1 and {*here} <= {*there} else "")


def like_transfer(ours: Run, theirs: Run, transfer: Transfer) -> Likeness:
    """How a transfer compares: how often, and how many bytes where both report them."""
    here, there = ours.transfers.get(transfer), theirs.transfers.get(transfer)
    tensor, source, target = transfer
    if here is not None and there is not None:
        sizes = zip(here, there, strict=False)
        return Likeness(len(here) == len(there) and all(a == b for a, b in sizes if None not in (a, b)))
    op = tensor.removeprefix("^").partition(":")[0]
    copies = theirs.devices.get(op, ())
    if there is None and len(copies) > 1 and target in copies:
        return Likeness(False, COPIED)
    waits = (f"^{op}", source, target) in ours.transfers
    reads = any(name.startswith(f"{op}:") and ends == [source, target] for name, *ends in theirs.transfers)
    return Likeness(False, UNREAD if waits and reads else "")


def unseeded(graph: Graph, names: Iterable[str]) -> list[str]:
    """The ops among these that draw other numbers in each run."""
    wanted = {*names}
    return [
        node.name
        for node in graph.nodes()
        if node.name in wanted and not any(node.attrs.get(seed, True) for seed in ("seed", "seed2"))
    ]
