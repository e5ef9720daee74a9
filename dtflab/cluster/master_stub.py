"""The stub of a master: one of another process, with the methods that it would have in this one.

Stands for `rpc/grpc_remote_master.cc`.

Rules: messages are TensorFlow's (`protos/`), so the other end may be a TensorFlow process; what TensorFlow's masters do
not answer is a NotImplementedError. Every call waits for its answer.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dtflab.base import credentials as the_credentials, errors
from dtflab.cluster.incoming import graph_of
from dtflab.cluster.status import raise_stored
from dtflab.cluster.stepping import RemoteSteps
from dtflab.cluster.tensor_codec import Buffer, Pieces, parse_named, serialize_named
from dtflab.cluster.wire import Wire
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.protos import master_pb2 as messages
from dtflab.protos.graph_pb2 import GraphDef

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dtflab.base.credentials import Credentials
    from dtflab.graph.node import Node
    from dtflab.placement.own_placer import Placer
    from dtflab.protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.runtime.steps import Steps
    from dtflab.runtime.transport import Explain, Feeds

_SLACK = 0.5  # seconds that a master has to answer that time is up, before its client stops waiting


class MasterStub:
    """The master at the end of a wire, for a client (transport.MasterInterface)."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._versions: dict[str, int] = {}
        self._timeouts: dict[str, int] = {}  # operation_timeout_in_ms of each session
        self._unanswered: dict[str, int] = {}  # nodes of the extension that a Ctrl-C has cut off from its answer

    @classmethod
    def at(cls, address: str, credentials: Credentials | None = None) -> MasterStub:
        """The master at an address, with these credentials or those known for it."""
        return cls(Wire(address, the_credentials.at(address, credentials)))

    @property
    def task(self) -> str:
        """The master's task, or its address until it has answered for the first time."""
        return self._wire.task or self._wire.address

    def _call(self, method: str, request: Message | Pieces, timeout: float | None = None) -> Buffer:
        data = request if isinstance(request, list) else [request.SerializeToString()]
        return self._wire.call(f"/tensorflow.MasterService/{method}", data, timeout)

    def _start(self, method: str, request: Pieces) -> Callable[[], object]:
        return self._wire.start(f"/tensorflow.MasterService/{method}", request)

    def local(self) -> None:
        """None: the master is in another process."""

    def create_session(self, nodes: Sequence[Node], config: ConfigProto | None, placer: Placer | None = None) -> str:
        """Open a session on a graph; ValueError for a `placer`, which can't travel."""
        if placer is not None:
            raise ValueError(
                "Session(placer=…) works where the master is in this process: tf.Session(placer=…), or the target of a "
                "Cluster with engine='inprocess'. A server in another process places by itself, so tell it with "
                "`with tf.device(…)`: a device function says for each operation where it goes."
            )
        request = messages.CreateSessionRequest(
            graph_def=nodes_to_proto(nodes), config=config, target=f"grpc://{self._wire.address}"
        )
        response = messages.CreateSessionResponse.FromString(self._call("CreateSession", request))
        handle = response.session_handle
        self._versions[handle] = response.graph_version
        self._timeouts[handle] = config.operation_timeout_in_ms if config is not None else 0
        return handle

    def extend_session(self, handle: str, nodes: Sequence[Node]) -> None:
        """Add nodes to the session's graph. The first may be there, if a Ctrl-C ended the call before."""
        first = self._unanswered.get(handle, 0)
        if first:
            try:
                self._add(handle, nodes[:first])
            except errors.AbortedError:  # of another version: they are
                self._versions[handle] += 1
        if nodes[first:] or not first:
            self._add(handle, nodes[first:])

    def _add(self, handle: str, nodes: Sequence[Node]) -> None:
        request = messages.ExtendSessionRequest(
            session_handle=handle, graph_def=nodes_to_proto(nodes), current_graph_version=self._versions.get(handle, 0)
        )
        self._unanswered[handle] = len(nodes)
        try:
            data = self._call("ExtendSession", request)
        except errors.OpError:
            del self._unanswered[handle]
            raise
        self._versions[handle] = messages.ExtendSessionResponse.FromString(data).new_graph_version
        del self._unanswered[handle]

    def run_step(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[object]:
        """Run one step and wait for it. A Ctrl-C while waiting ends the step there, too."""
        request = messages.RunStepRequest(
            session_handle=handle, fetch=fetches, target=targets, options=options, store_errors_in_response_body=True
        )
        ms = (options.timeout_in_ms if options is not None else 0) or self._timeouts.get(handle, 0)
        response, values = self._step(request, feeds, ms)
        if metadata is not None:
            metadata.CopyFrom(response.metadata)
        return values

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> str:
        """Begin a step that is fed and fetched in several calls."""
        request = messages.PartialRunSetupRequest(session_handle=handle, feed=feeds, fetch=fetches, target=targets)
        data = self._call("PartialRunSetup", request)
        return messages.PartialRunSetupResponse.FromString(data).partial_run_handle

    def partial_run(self, handle: str, partial_handle: str, feeds: Feeds, fetches: Sequence[str]) -> list[object]:
        """Feed and fetch part of a partial run."""
        request = messages.RunStepRequest(
            session_handle=handle, partial_run_handle=partial_handle, fetch=fetches, store_errors_in_response_body=True
        )
        return self._step(request, feeds, self._timeouts.get(handle, 0))[1]

    def _step(
        self, request: messages.RunStepRequest, feeds: Feeds, ms: int
    ) -> tuple[messages.RunStepResponse, list[object]]:
        """The answer to a step that may take `ms` milliseconds (0: as long as it likes), and what it fetched."""
        data = self._call("RunStep", serialize_named(request, "feed", feeds), ms / 1000 + _SLACK if ms > 0 else None)
        response, tensors = parse_named(messages.RunStepResponse, data, "tensor")
        raise_stored(response)
        values = dict(tensors)
        return response, [values[name] for name in request.fetch]

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
        """Begin a step that stands still there before each set; NotImplementedError if the master is TensorFlow's."""
        try:
            return RemoteSteps(
                self._call, self._start, handle, feeds, fetches, targets, options, metadata, rebuild, explain
            )
        except errors.UnimplementedError:
            raise NotImplementedError(
                f"The master at {self._wire.address} is not one of dtflab: it runs its steps in one go. Step through a "
                "session of dtflab: tf.Session(), or tf.Session(cluster.target) of a tf.Cluster(…)."
            ) from None

    def close_session(self, handle: str) -> None:
        """Release the session there, if it still exists (TensorFlow raises if not, and so hides why)."""
        for known in (self._versions, self._timeouts, self._unanswered):
            known.pop(handle, None)
        with contextlib.suppress(errors.AbortedError, errors.UnavailableError):
            self._call("CloseSession", messages.CloseSessionRequest(session_handle=handle))

    def reset(self, containers: Sequence[str]) -> None:
        """Close all sessions there and empty containers."""
        self._call("Reset", messages.ResetRequest(container=containers))

    def list_devices(self, handle: str) -> list[DeviceAttributes]:
        """The devices of the session."""
        data = self._call("ListDevices", messages.ListDevicesRequest(session_handle=handle))
        response = messages.ListDevicesResponse.FromString(data)
        return [*response.local_device, *response.remote_device]

    def placed(self, handle: str, fetches: Sequence[str] = (), targets: Sequence[str] = ()) -> list[Node]:
        """The placed graph; NotImplementedError if the master does not report it, as TensorFlow's."""
        request = messages.RunStepRequest(session_handle=handle, fetch=fetches, target=targets)
        return graph_of(GraphDef.FromString(self._report("Placed", request)), lambda: None).nodes

    def reasons(self, handle: str) -> dict[str, str]:
        """Why each node is where it is; NotImplementedError if the master does not report it, as TensorFlow's."""
        request = messages.ListDevicesRequest(session_handle=handle)
        found: dict[str, str] = json.loads(bytes(self._report("Reasons", request)))
        return found

    def _report(self, method: str, request: Message) -> Buffer:
        try:
            return self._call(method, request)
        except errors.UnimplementedError:
            raise NotImplementedError(
                f"The master at {self._wire.address} does not report its placement: it is not one of dtflab. Trace a "
                "run instead."
            ) from None

    def close(self) -> None:
        """Let the wire go; later calls raise CancelledError."""
        self._wire.close()
