"""WatchedMaster: a master as a client calls it while somebody watches. Each call is reported when its answer has come.

Stands for nothing in TensorFlow.

Rule: it is made for a call, and only if somebody watches then; other methods of a local master are not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dtflab.base import errors, events
from dtflab.base.events import PROCESS, Begins, OpenCall, Use

if TYPE_CHECKING:
    from dtflab.graph.node import Node
    from dtflab.placement.own_placer import Placer
    from dtflab.protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.runtime.master import MasterSession
    from dtflab.runtime.runner import Step
    from dtflab.runtime.steps import Steps
    from dtflab.runtime.transport import Explain, Feeds, LocalMaster, MasterInterface

_VARIABLES = ("VariableV2", "Variable", "VarHandleOp")


class WatchedMaster:
    """Reports the calls of `master`, which is at a session's `target` (transport.MasterInterface)."""

    def __init__(self, master: MasterInterface, target: str) -> None:
        self._master = master
        self._target = target

    @property
    def task(self) -> str:
        return self._master.task

    def local(self) -> LocalMaster | None:
        """The master itself, if it is in this process."""
        return self._master.local()

    def create_session(self, nodes: Sequence[Node], config: ConfigProto | None, placer: Placer | None = None) -> str:
        """Open a session."""
        with _ClientCall(self._master, "CreateSession", f"{len(nodes)} nodes"):
            return self._master.create_session(nodes, config, placer)

    def extend_session(self, handle: str, nodes: Sequence[Node]) -> None:
        """Add nodes to the session's graph."""
        with _ClientCall(self._master, "ExtendSession", f"{len(nodes)} nodes"):
            self._master.extend_session(handle, nodes)

    def run_step(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[object]:
        """Run one step; a master in this process also reports which variables the step needed."""
        begins = Begins(target=self._target, metadata=metadata)
        for hear in PROCESS.begins:
            hear(begins)
        values = self._run_step(handle, feeds, fetches, targets, options, metadata)
        for hear in PROCESS.traced:
            hear(begins)
        return values

    def _run_step(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None,
        metadata: RunMetadata | None,
    ) -> list[object]:
        detail, local = ", ".join([*fetches, *targets]), self._master.local()
        with _ClientCall(self._master, "RunStep", detail, feeds) as call:
            if local is None:
                return call.answer(self._master.run_step(handle, feeds, fetches, targets, options, metadata))
            try:
                return call.answer(local.run_step(handle, feeds, fetches, targets, options, metadata, call.begins))
            finally:
                _tell_uses(local, handle, tuple(fetches), tuple(targets), call.source, detail)

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> str:
        """Begin a step in several calls."""
        with _ClientCall(self._master, "PartialRunSetup"):
            return self._master.partial_run_setup(handle, feeds, fetches, targets)

    def partial_run(self, handle: str, partial_handle: str, feeds: Feeds, fetches: Sequence[str]) -> list[object]:
        """Feed and fetch part of a partial run."""
        with _ClientCall(self._master, "PartialRun", ", ".join(fetches), feeds) as call:
            return call.answer(self._master.partial_run(handle, partial_handle, feeds, fetches))

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
        """Begin a step that is run by hand; not reported, as TensorFlow has no such call."""
        return self._master.step_through(handle, feeds, fetches, targets, options, metadata, rebuild, explain)

    def close_session(self, handle: str) -> None:
        """Release the session."""
        with _ClientCall(self._master, "CloseSession"):
            self._master.close_session(handle)

    def reset(self, containers: Sequence[str]) -> None:
        """Close all sessions and empty containers; not the call of a session, so it is not reported."""
        self._master.reset(containers)

    def list_devices(self, handle: str) -> list[DeviceAttributes]:
        """The devices of the session; not reported, because pictures ask while they watch."""
        return self._master.list_devices(handle)

    def placed(self, handle: str, fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> list[Node]:
        """The placed graph; not reported."""
        return self._master.placed(handle, fetches, targets)

    def reasons(self, handle: str) -> dict[str, str]:
        """Why each node is where it is; not reported."""
        return self._master.reasons(handle)


class _ClientCall(OpenCall):
    """A call of the client to its master."""

    def __init__(self, master: MasterInterface, method: str, detail: str = "", feeds: Feeds = ()) -> None:
        self._master = master
        super().__init__(method, events.client_name(), "", detail, sent=_size(value for _, value in feeds))

    def answer(self, values: list[object]) -> list[object]:
        """Note the size of the values that came back, and return them."""
        self.received = _size(values)
        return values

    def begins(self, step: Step) -> None:
        """A master of this process begins the step, on the thread of the client."""
        self.step = step.step_id
        events.clients[self.step] = self.source

    def ended(self, error: BaseException | None) -> None:
        """The answer is there."""
        events.clients.pop(self.step, None)
        self.target = self._master.task  # which may be known by the answer only
        super().ended(error)


def _size(values: Iterable[object]) -> int:
    """Bytes of the tensors among some values."""
    return sum(getattr(value, "nbytes", 0) for value in values)


def _tell_uses(
    master: LocalMaster, handle: str, fetches: tuple[str, ...], targets: tuple[str, ...], client: str, detail: str
) -> None:
    """Which variables the step needed, by the graph of its session; found out once per kind of step."""
    if not PROCESS.use:
        return
    try:
        session = master.session(handle)
        kinds = _uses.setdefault(session, {})
        if (fetches, targets) not in kinds:
            kinds[fetches, targets] = _uses_in(session.placed(fetches, targets))
    except errors.OpError:  # the step failed because there is no such session, or no such part of its graph
        return
    for device, container, name, ops in kinds[fetches, targets]:
        use = Use(client=client, device=device, container=container, variable=name, step=detail, ops=ops)
        for hear in PROCESS.use:
            hear(use)


_Uses = list[tuple[str, str, str, tuple[str, ...]]]  # device, container, name, ops that take the variable
_uses: WeakKeyDictionary[MasterSession, dict[tuple[tuple[str, ...], tuple[str, ...]], _Uses]] = WeakKeyDictionary()


def _uses_in(nodes: Sequence[Node]) -> _Uses:
    return [(*_place(node), _takers(node, nodes)) for node in nodes if node.op in _VARIABLES]


def _place(node: Node) -> tuple[str, str, str]:
    """Device, container and name of the variable behind a node."""
    shared_name, container = (node.attrs.get(name, b"").decode() for name in ("shared_name", "container"))
    return node.device, container, shared_name or node.name


def _takers(variable: Node, nodes: Sequence[Node]) -> tuple[str, ...]:
    """The types of the ops that take the variable itself: to read it, or to change it."""
    return tuple(sorted({node.op for node in nodes if variable.name in (name for name, _ in node.inputs)}))
