"""The master service of a task: a message becomes a call of its master, and the result a message.

Stands for `rpc/grpc_master_service.cc`.

Rule: messages are TensorFlow's (`protos/`), so clients of TensorFlow may call; what else it answers is for dtflab's.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.cluster.admission import InFlight, check_sessions
from dtflab.cluster.answering import Method, ServerCall, as_long_as
from dtflab.cluster.incoming import graph_of
from dtflab.cluster.status import stored
from dtflab.cluster.stepping import Stepping
from dtflab.cluster.tensor_codec import Buffer, Pieces, parse, parse_named, serialize, serialize_named
from dtflab.graph import device_spec
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.graph.node import Node, by_name
from dtflab.machine import host_memory
from dtflab.protos import master_pb2 as messages
from dtflab.protos.config_pb2 import CallableOptions

if TYPE_CHECKING:
    from dtflab.cluster.task import Task
    from dtflab.protos.config_pb2 import RunMetadata, RunOptions
    from dtflab.runtime.runner import Step
    from dtflab.runtime.transport import Feeds, LocalMaster


class MasterService:
    """`tensorflow.MasterService` of a task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._master: LocalMaster = task.master
        self._lock = threading.Lock()
        self._graphs: dict[str, _Growing] = {}  # by session
        self._steps = InFlight(task)
        self._callables: dict[tuple[str, int], CallableOptions] = {}
        self._numbers = itertools.count(1)
        self._stepping = Stepping(task.master, self._steps.check)

    def methods(self) -> Mapping[str, Method]:
        """Method name → its function."""
        return {
            **self._stepping.methods(),
            "CreateSession": self._create_session,
            "ExtendSession": self._extend_session,
            "PartialRunSetup": self._partial_run_setup,
            "RunStep": self._run_step,
            "CloseSession": self._close_session,
            "ListDevices": self._list_devices,
            "Reset": self._reset,
            "MakeCallable": self._make_callable,
            "RunCallable": self._run_callable,
            "ReleaseCallable": self._release_callable,
            "Placed": self._placed,  # dtflab's own
            "Reasons": self._reasons,
        }

    def _create_session(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.CreateSessionRequest.FromString(data)
        check_sessions(len(self._graphs), self._task)
        graph = graph_of(request.graph_def, as_long_as(call))
        handle = self._master.create_session(graph.inlined, request.config, target=request.target)
        self._graphs[handle] = _Growing(graph.nodes)
        call.on_end(lambda why: self._forget(handle))  # nobody will ever know the handle
        return messages.CreateSessionResponse(session_handle=handle, graph_version=0).SerializeToString()

    def _placed(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.RunStepRequest.FromString(data)
        nodes = self._master.placed(request.session_handle, list(request.fetch), list(request.target))
        return nodes_to_proto(nodes).SerializeToString()

    def _reasons(self, data: Buffer, call: ServerCall) -> bytes:
        handle = messages.ListDevicesRequest.FromString(data).session_handle
        return json.dumps(self._master.reasons(handle)).encode()

    def _extend_session(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.ExtendSessionRequest.FromString(data)
        graph = self._graph(request.session_handle)
        with graph.lock:
            expected = request.current_graph_version
            if graph.version != expected:
                raise errors.AbortedError.of(f"Current version is {graph.version} but caller expected {expected}.")
            new = graph_of(request.graph_def, as_long_as(call), graph.nodes)
            self._master.extend_session(request.session_handle, new.inlined)
            graph.extend(new.nodes)
        return messages.ExtendSessionResponse(new_graph_version=graph.version).SerializeToString()

    def _graph(self, handle: str) -> _Growing:
        self._master.session(handle)  # raises for an unknown handle
        return self._graphs.setdefault(handle, _Growing(()))

    def _run_step(self, data: Buffer, call: ServerCall) -> Pieces:
        request, feeds = parse_named(messages.RunStepRequest, data, "feed")
        handle, response = request.session_handle, messages.RunStepResponse()
        try:
            if request.partial_run_handle:
                values = self._master.partial_run(handle, request.partial_run_handle, feeds, list(request.fetch))
            elif not request.fetch and not request.target:
                raise errors.InvalidArgumentError.of("Must specify at least one target to fetch or execute.")
            else:
                options, metadata = request.options, response.metadata
                values = self._run(handle, feeds, request.fetch, request.target, options, metadata, call)
        except errors.OpError as error:
            if not request.store_errors_in_response_body:
                raise
            return [stored(messages.RunStepResponse(), error)]
        return serialize_named(response, "tensor", zip(request.fetch, values, strict=True))

    def _run(
        self,
        handle: str,
        feeds: Feeds,
        fetches: Iterable[str],
        targets: Iterable[str],
        options: RunOptions,
        metadata: RunMetadata,
        call: ServerCall,
    ) -> list[object]:
        """Run a step, which ends when its caller gives up."""
        wanted = metadata if options.trace_level or options.output_partition_graphs else None

        def begins(step: Step) -> None:
            step.tell = call.tell
            call.on_end(step.cancel)

        with self._steps:
            return self._master.run_step(handle, feeds, list(fetches), list(targets), options, wanted, begins)

    def _partial_run_setup(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.PartialRunSetupRequest.FromString(data)
        feeds, fetches, targets = list(request.feed), list(request.fetch), list(request.target)
        self._steps.check(len(self._master.running()))
        handle = self._master.partial_run_setup(request.session_handle, feeds, fetches, targets)
        return messages.PartialRunSetupResponse(partial_run_handle=handle).SerializeToString()

    def _close_session(self, data: Buffer, call: ServerCall) -> bytes:
        handle = messages.CloseSessionRequest.FromString(data).session_handle
        self._master.session(handle)
        self._forget(handle)
        host_memory.give_back()
        return messages.CloseSessionResponse().SerializeToString()

    def _forget(self, handle: str) -> None:
        self._graphs.pop(handle, None)
        self._stepping.forget(handle)
        for key in [key for key in list(self._callables) if key[0] == handle]:
            self._callables.pop(key, None)
        self._master.close_session(handle)

    def _list_devices(self, data: Buffer, call: ServerCall) -> bytes:
        handle = messages.ListDevicesRequest.FromString(data).session_handle
        devices = self._master.list_devices(handle) if handle else self._task.worker.get_status()
        own = self._master.session(handle).task if handle else self._task.name
        response = messages.ListDevicesResponse()
        for device in devices:
            is_own = device_spec.task_name(device.name) == own
            (response.local_device if is_own else response.remote_device).append(device)
        return response.SerializeToString()

    def _reset(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.ResetRequest.FromString(data)
        self._graphs.clear()
        self._callables.clear()
        self._master.reset(list(request.container))
        return messages.ResetResponse().SerializeToString()

    def _make_callable(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.MakeCallableRequest.FromString(data)
        self._master.session(request.session_handle)
        if request.options.tensor_connection:
            raise errors.UnimplementedError.of("dtflab's callables have no tensor connections.")
        with self._lock:
            number = next(self._numbers)
            self._callables[request.session_handle, number] = request.options
        return messages.MakeCallableResponse(handle=number).SerializeToString()

    def _run_callable(self, data: Buffer, call: ServerCall) -> Pieces:
        request, feeds = parse(messages.RunCallableRequest, data, "feed")
        wanted = self._callable(request)
        if len(feeds) != len(wanted.feed):
            raise errors.InvalidArgumentError.of(f"Expected {len(wanted.feed)} feed tensors, but got {len(feeds)}.")
        named, response = list(zip(wanted.feed, feeds, strict=True)), messages.RunCallableResponse()
        handle, options, metadata = request.session_handle, wanted.run_options, response.metadata
        values = self._run(handle, named, wanted.fetch, wanted.target, options, metadata, call)
        return serialize(response, "fetch", values)

    def _callable(self, request: messages.RunCallableRequest | messages.ReleaseCallableRequest) -> CallableOptions:
        try:
            return self._callables[request.session_handle, request.handle]
        except KeyError:
            raise errors.InvalidArgumentError.of(f"No such callable handle: {request.handle}") from None

    def _release_callable(self, data: Buffer, call: ServerCall) -> bytes:
        request = messages.ReleaseCallableRequest.FromString(data)
        self._callable(request)
        self._callables.pop((request.session_handle, request.handle), None)
        return messages.ReleaseCallableResponse().SerializeToString()


class _Growing:
    """The graph of a session as its client sent it so far."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.lock = threading.Lock()
        self.version = 0
        self.nodes = by_name(nodes)

    def extend(self, nodes: Sequence[Node]) -> None:
        self.nodes.update(by_name(nodes))
        self.version += 1
