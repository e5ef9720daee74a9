"""Master: keeps a session's graph, and turns a client's fetches into registered partitions and steps.

Stands for `core/distributed_runtime/master.cc` and `master_session.cc`. Left out: sending clients a cost model.

Rules: a session has the cluster of its master's server, or one that it brings (`cluster_def`), with names of its own
for tasks. Pruning, partitioning and registering happen once per signature of (feeds, fetches, targets), and cost what
the kept part of the graph does. A step then costs one `run_graph` per task.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from dtflab.base import errors
from dtflab.base.garbage import NO_COLLECTION
from dtflab.graph import device_spec
from dtflab.graph.node import Node
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.step_stats import StepStatsCollector, trace_of
from dtflab.ops.entropy import from_system
from dtflab.placement.control_loops import spread_loops
from dtflab.runtime.blocked import Report, may_wait
from dtflab.runtime.client import merged
from dtflab.runtime.graph_execution_state import GraphExecutionState
from dtflab.runtime.metering import fail_step
from dtflab.runtime.partial_run import PartialRun
from dtflab.runtime.partition import partition, partition_by_device
from dtflab.runtime.rendezvous import DEAD, fetched
from dtflab.runtime.runner import NewStep, Step
from dtflab.runtime.step_through import StepThrough
from dtflab.runtime.steps import Steps
from dtflab.runtime.worker_session import renamed, scope_on, server_def

if TYPE_CHECKING:
    from dtflab.machine.devices import Device
    from dtflab.placement.own_placer import Placer
    from dtflab.protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.runtime.transport import Explain, Feeds, LocalMaster, WorkerInterface
    from dtflab.runtime.worker import Worker

# Names of what is fed, fetched and run, and whether that takes several calls.
_Kind = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], bool]
S = TypeVar("S", bound=Step)

_MOST_TRACED = 20  # kinds of steps of a session of which the first step is traced: a loop that adds ops has many

# A task that is gone has nothing left to release.
_LOST_TASKS = contextlib.suppress(errors.UnavailableError, errors.AbortedError, errors.CancelledError)


class Master:
    """The master service of one task (transport.LocalMaster).

    `worker` is that of its own task; `workers` gives, per task of the cluster, a function that returns its worker.
    `new_step` makes the runner of a step; tests put a seeded one here. `config` holds for all sessions, as far as
    theirs do not say otherwise.
    """

    def __init__(
        self,
        worker: Worker,
        workers: Mapping[str, Callable[[], WorkerInterface]],
        clock: Clock = REAL,
        new_step: NewStep[Step] = Step,
        config: ConfigProto | None = None,
    ) -> None:
        self.worker = worker
        self.task = worker.task
        self._config = config
        self.clock = clock
        self.new_step = new_step
        self._workers = workers
        self._sessions: dict[str, MasterSession] = {}
        self._lock = threading.RLock()  # re-entrant: the collector may close a session on the thread that holds it

    def create_session(
        self, nodes: Sequence[Node], config: ConfigProto | None, placer: Placer | None = None, target: str = ""
    ) -> str:
        """Open a session on a graph, on all tasks that the config's device filters let through; see LocalMaster."""
        handle = f"{from_system():016x}"
        config = merged(self._config, config, self.is_direct)
        own, workers = self._cluster_of(config, target)
        reached = {task: reach() for task, reach in workers.items() if passes(task, own, config)}
        session = MasterSession(handle, self, own, reached, config, placer)
        try:
            session.announce()
            session.extend(nodes)
        except BaseException:
            session.close()
            raise
        with self._lock:
            self._sessions[handle] = session
        return handle

    is_direct = False  # of a local session, which may bring thread pools of its own, and place pruned graphs

    def _cluster_of(self, config: ConfigProto, target: str) -> tuple[str, Mapping[str, Callable[[], WorkerInterface]]]:
        """The name of this master's task in the cluster of a session, and the ways to all tasks there."""
        if self.worker.join is None or not config.cluster_def.job:
            return self.task, self._workers
        members = self.worker.join(server_def(config.cluster_def), target)
        return members.name, {task: partial(members.reach, task) for task in members.addresses}

    def inter_op_pool(self, options: RunOptions | None) -> int:
        """Which of its devices' inter-op pools a step uses."""
        return 0

    def session(self, handle: str) -> MasterSession:
        """The session of a handle; AbortedError if it was closed, reset, or is of a former life of this master."""
        try:
            return self._sessions[handle]
        except KeyError:
            raise errors.AbortedError.of(
                f"Session {handle} is not found. Possibly, this master has restarted, its cluster was stopped, or the "
                "session was reset. Open a new one: tf.Session(target)."
            ) from None

    def extend_session(self, handle: str, nodes: Sequence[Node]) -> None:
        """Add nodes to a session's graph."""
        self.session(handle).extend(nodes)

    def local(self) -> LocalMaster:
        """This master."""
        return self

    def run_step(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
        watch: Callable[[Step], object] | None = None,
    ) -> list[object]:
        """Run one step of a session; see LocalMaster."""
        return self.session(handle).run_step(feeds, fetches, targets, options, metadata, watch)

    def step_through(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None,
        metadata: RunMetadata | None,
        rebuild: Callable[[list[object]], object],
        explain: Explain,
    ) -> Steps:
        """Begin a step that is run set by set; see LocalMaster."""
        return self.session(handle).step_through(feeds, fetches, targets, options, metadata, rebuild, explain)

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> str:
        """Begin a step that is fed and fetched in several calls; see MasterInterface."""
        return self.session(handle).partial_run_setup(feeds, fetches, targets)

    def partial_run(self, handle: str, partial_handle: str, feeds: Feeds, fetches: Sequence[str]) -> list[object]:
        """Feed and fetch part of a partial run."""
        return self.session(handle).partial_run(partial_handle, feeds, fetches)

    def running(self) -> list[Step]:
        """The steps that run, those that take several calls included."""
        return [step for session in list(self._sessions.values()) for step in list(session._running.values())]

    def close_session(self, handle: str, error: errors.OpError | None = None) -> None:
        """Release a session and its partitions. Variables stay. Steps that run get `error`."""
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is not None:
            session.close(error)

    def close(self, error: errors.OpError | None = None) -> None:
        """Close all sessions; steps that run get `error`."""
        for handle in list(self._sessions):
            self.close_session(handle, error)

    def reset(self, containers: Sequence[str]) -> None:
        """Close all sessions of this master and empty containers on every task."""
        self.close()
        for worker in self._workers.values():
            worker().cleanup_all(containers)

    def list_devices(self, handle: str) -> list[DeviceAttributes]:
        """The devices of a session."""
        return self.session(handle).devices

    def placed(self, handle: str, fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> list[Node]:
        """The placed graph of a session; see MasterInterface."""
        return self.session(handle).placed(fetches, targets)

    def reasons(self, handle: str) -> dict[str, str]:
        """Why each node of a session is where it is."""
        return dict(self.session(handle).reasons)


def passes(task: str, own_task: str, config: ConfigProto) -> bool:
    """True if the session's device filters leave `task` in; the master's own task always stays."""
    filters = config.device_filters
    try:
        return not filters or task == own_task or any(device_spec.matches(f, task) for f in filters)
    except ValueError as error:
        raise errors.InvalidArgumentError.of(f"device_filters of the session: {error}") from None


class _Signature:
    """A pruned, partitioned and registered kind of step: the graph handle of its part on each task."""

    def __init__(self, nodes: Sequence[Node], handles: dict[str, str], parts: dict[str, list[Node]]) -> None:
        self.nodes = nodes
        self.handles = handles
        self.parts = parts
        self.report: Report | None = None  # of its steps that are blocked, if they can be
        self.first: StepStatsCollector | None = None  # what its first step did when
        # Whether its steps leave a rendezvous behind.
        self.transfers = len({node.device for part in parts.values() for node in part}) > 1


class MasterSession:
    """One client's graph on the cluster."""

    def __init__(
        self,
        handle: str,
        master: Master,
        task: str,
        workers: Mapping[str, WorkerInterface],
        config: ConfigProto,
        placer: Placer | None,
    ) -> None:
        """`task` is the name of the master's own task among the `workers`."""
        self.handle = handle
        self.master = master
        self.task = task
        self._client_device = f"{task}/device:CPU:0"
        self._workers = workers
        self._config = config
        self._timeout_ms = config.operation_timeout_in_ms
        self._inter_op = master.inter_op_pool(None)  # of steps without options
        self.signatures: dict[_Kind, _Signature] = {}  # of the kinds of steps that ran, the newest last
        self._running: dict[int, Step] = {}
        self._partial_runs: dict[str, PartialRun] = {}
        self._steps: weakref.WeakSet[Steps] = weakref.WeakSet()  # those that somebody has in hand
        self._lock = threading.Lock()
        self._closed: errors.OpError | None = None  # why it is
        self.devices = [renamed(d, task) for task, worker in workers.items() for d in worker.get_status()]
        # Unsigned in this message; attributes of nodes, where they go, are signed.
        self._incarnations = {d.name: d.incarnation - (d.incarnation >> 63 << 64) for d in self.devices}
        self._graph = GraphExecutionState(list(self._incarnations), task, config, placer)

    def announce(self) -> None:
        """Tell all tasks of the session."""
        own = self._incarnations[self._client_device]
        for task, worker in self._workers.items():
            worker.create_worker_session(self.handle, self.task, own, scope_on(task, self._config, self.master.worker))

    @NO_COLLECTION
    def extend(self, nodes: Sequence[Node]) -> None:
        """Take new nodes and place them; what was placed before stays where it is."""
        with self._lock:
            self._graph.extend(nodes)

    def local_devices(self) -> list[Device]:
        """The devices of its tasks in this process."""
        local = [worker.local() for worker in self._workers.values()]
        return [device for worker in local if worker is not None for device in worker.session(self.handle).devices]

    def placed(self, fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> list[Node]:
        """The placed graph, or the part of it that `fetches` and `targets` need."""
        with self._lock:
            return self._graph.placed(fetches, targets)

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why each node is where it is."""
        return self._graph.reasons

    def run_step(
        self,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None,
        metadata: RunMetadata | None,
        watch: Callable[[Step], object] | None = None,
    ) -> list[object]:
        """Run one step: start a partition per task, drive it, collect the fetched values."""
        fed = dict(feeds)
        key = (tuple(fed), tuple(fetches), tuple(targets), False)
        signature = self.signatures.get(key)
        step = self._new_step(self.master.new_step, options, signature is None or signature.first is None)
        self._running[step.step_id] = step
        try:
            self._check_open()  # from now on `close` finds the step
            if watch is not None:
                watch(step)
            if signature is None:
                signature = self._register(key, step.check)
                step.allow(self._timeout(options))  # its time begins now, as in TensorFlow
            results = self._drive(step, signature, list(fed.values()), fetches)
        finally:
            del self._running[step.step_id]
        signature.first = signature.first or step.trace
        if metadata is not None:
            self._report(step, signature, options, metadata)
        return results

    def _drive(self, step: Step, signature: _Signature, args: Sequence[object], fetches: Sequence[str]) -> list[object]:
        results: list[object] = [DEAD] * len(fetches)
        step_id = step.step_id  # what holds a step must not be held by it: the collector would have to come
        if len(signature.handles) > 1:
            step.on_cancel(lambda error: self._cleanup(signature, step_id, error))
        try:
            self._start(step, signature, args, results)
            step.drive()
        finally:
            if signature.transfers:
                self._cleanup(signature, step_id, step.error)
        if step.was_blocked and signature.report is not None:
            signature.report.ended_well()
        return list(map(fetched, count(), fetches, results))

    def step_through(
        self,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None,
        metadata: RunMetadata | None,
        rebuild: Callable[[list[object]], object],
        explain: Explain,
    ) -> Steps:
        """Begin a step that stands still before each set; its values go through `rebuild`, its errors `explain`."""
        signature = self._register((tuple(name for name, _ in feeds), tuple(fetches), tuple(targets), False))
        step = self._new_step(StepThrough, options)
        results: list[object] = [DEAD] * len(fetches)

        def collect() -> object:
            if metadata is not None:
                self._report(step, signature, options, metadata)
            return rebuild(list(map(fetched, count(), fetches, results)))

        def end() -> None:
            self._running.pop(step.step_id, None)
            self._cleanup(signature, step.step_id, step.error)

        self._running[step.step_id] = step
        step.on_cancel(lambda error: self._cleanup(signature, step.step_id, error))
        self._start(step, signature, [value for _, value in feeds], results)
        steps = Steps(step, collect, end, explain)
        self._steps.add(steps)
        return steps

    def partial_run_setup(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> str:
        """Start a step that waits for its feeds; returns the handle by which it is fed and fetched."""
        if not fetches and not targets:
            raise errors.InvalidArgumentError.of("Must specify at least one target to fetch or execute.")
        for name in fetches:
            if name in feeds:
                raise errors.InvalidArgumentError.of(f"{name} is both fed and fetched.")
        signature = self._register((tuple(feeds), tuple(fetches), tuple(targets), True))
        step = self._new_step(self.master.new_step, None)
        self._running[step.step_id] = step
        handle = f"{step.step_id:016x}"
        rendezvous = self.master.worker.rendezvous.find(step.step_id)

        def finish() -> None:
            self._running.pop(step.step_id, None)
            self._partial_runs.pop(handle, None)
            self._cleanup(signature, step.step_id, step.error)

        run = PartialRun(step, signature.nodes, rendezvous, self._client_device, feeds, fetches, finish)
        self._partial_runs[handle] = run
        step.on_cancel(lambda error: self._cleanup(signature, step.step_id, error))
        self._start(step, signature, (), [])
        return handle

    def partial_run(self, handle: str, feeds: Feeds, fetches: Sequence[str]) -> list[object]:
        """Feed and fetch tensors of a step that was set up."""
        run = self._partial_runs.get(handle)
        if run is None:
            raise errors.InvalidArgumentError.of(
                "Must run 'setup' before performing partial runs! (partial_run_setup returns the handle; "
                "it expires when all its feeds and fetches are used, and after an error.)"
            )
        return run.run(feeds, fetches, self._timeout(None))

    def _start(self, step: Step, signature: _Signature, args: Sequence[object], results: list[object]) -> None:
        """Start the step's part on each task; if one can't be started, the step fails and takes the others with it."""
        if signature.report is not None:
            signature.report.watch(step)
        for task, graph_handle in signature.handles.items():
            mine = (args, results) if task == self.task else ((), None)
            try:
                self._workers[task].run_graph(self.handle, graph_handle, step, *mine)
            except errors.OpError as error:
                fail_step(self.master.worker.devices[0].meter, step, error)
                return

    def _cleanup(self, signature: _Signature, step_id: int, error: Exception | None) -> None:
        for task in signature.handles:
            with _LOST_TASKS:
                self._workers[task].cleanup_graph(step_id, error)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise self._closed.with_traceback(None)

    def _timeout(self, options: RunOptions | None) -> float | None:
        """Seconds that a step may take, if there is a limit."""
        timeout_ms = (options.timeout_in_ms if options is not None else 0) or self._timeout_ms
        return timeout_ms / 1000 if timeout_ms > 0 else None

    def _new_step(self, make: NewStep[S], options: RunOptions | None, first: bool = False) -> S:
        # A first step is slow anyway; but a trace that has to travel makes another step of it.
        first = first and len(self.signatures) < _MOST_TRACED and all(w.local() for w in self._workers.values())
        wanted = first if options is None else options.trace_level > 0
        # Its number is a signed one of 64 bits above 0 on the wire.
        step = make(from_system() >> 2, self.master.clock, self._timeout(options), trace_of(self.master.clock, wanted))
        step.inter_op = self._inter_op if options is None else self.master.inter_op_pool(options)
        return step

    def _register(self, key: _Kind, going: Callable[[], object] = bool) -> _Signature:
        """Prune, partition and register the graph for one signature, until `going` raises an error."""
        self._check_open()
        with self._lock:
            if key in self.signatures:
                return self.signatures[key]
            feeds, fetches, targets, partial = key
            nodes = spread_loops(self._graph.pruned(feeds, fetches, targets, partial))
            short = self._config.graph_options.enable_bfloat16_sendrecv
            going()
            parts = partition(nodes, lambda n: device_spec.task_name(n.device), self._incarnations, as_bfloat16=short)
            workers = self._workers
            handles = {task: workers[task].register_graph(self.handle, part, going) for task, part in parts.items()}
            signature = self.signatures[key] = _Signature(nodes, handles, parts)
            if may_wait(node for part in parts.values() for node in part):
                signature.report = Report([self._workers[task] for task in handles])
            return signature

    def _report(self, step: Step, signature: _Signature, options: RunOptions | None, metadata: RunMetadata) -> None:
        metadata.Clear()
        if step.trace is not None and options is not None and options.trace_level > 0:
            step.trace.write(metadata.step_stats)
        if options is not None and options.output_partition_graphs:
            from dtflab.graph.graph_def import nodes_to_proto

            for of_task in signature.parts.values():
                for of_device in partition_by_device(of_task, self._incarnations).values():
                    metadata.partition_graphs.add().CopyFrom(nodes_to_proto(of_device))

    def close(self, error: errors.OpError | None = None) -> None:
        """End the steps that run, refuse new ones, let go of partitions and kernel state on every task."""
        with self._lock:
            self._closed = error or errors.CancelledError.of("Session has been closed.")
        closed = errors.CancelledError.of("Step was cancelled by an explicit call to `Session::Close()`.")
        for step in list(self._running.values()):
            step.cancel(error or closed)
        for run in list(self._partial_runs.values()):
            run.abandon()
        for steps in list(self._steps):
            steps.close()
        for signature in self.signatures.values():
            for task, graph_handle in signature.handles.items():
                with _LOST_TASKS:
                    self._workers[task].deregister_graph(self.handle, graph_handle)
        for worker in self._workers.values():
            with _LOST_TASKS:
                worker.delete_worker_session(self.handle)
