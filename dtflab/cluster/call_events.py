"""Events of calls between processes: what listeners (`tf.watch`) hear of them, at the caller and at the task called.

Stands for `worker_cache_logger.cc`.

Rule: nothing here is called unless somebody listens (`PROCESS.call`).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from dtflab.base.events import OpenCall
from dtflab.cluster.tensor_response import recv_tensor_response
from dtflab.graph import device_spec
from dtflab.protos.worker_pb2 import CleanupGraphRequest, RecvTensorRequest, RunGraphRequest

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dtflab.cluster.tensor_codec import Buffer

ELSEWHERE = "another process"  # the caller, as far as known
_OF_A_STEP = (RunGraphRequest, RecvTensorRequest, CleanupGraphRequest)


def call_event(method: str, source: str, target: str, request: Message | None, sent: int) -> OpenCall:
    """A call over gRPC between tasks, while somebody watches; `request` is its message, if known, of `sent` bytes."""
    key = request.rendezvous_key if isinstance(request, RecvTensorRequest) else ""
    if source == ELSEWHERE and key:
        with contextlib.suppress(ValueError, IndexError):  # the worker refuses such a key
            source = device_spec.task_name(key.split(";")[2])  # the receiver
    step = request.step_id if isinstance(request, _OF_A_STEP) else 0
    return OpenCall(method, source, target, key, step, sent)


def request_of(method: str, data: Buffer) -> Message | None:
    """The message of a call that says which step it belongs to, for those who watch; None for any other."""
    kinds: dict[str, type[Message]] = {"RecvTensor": RecvTensorRequest, "CleanupGraph": CleanupGraphRequest}
    try:
        return kinds[method].FromString(data) if method in kinds else None
    except DecodeError:  # the service itself will say so
        return None


def push_event(source: str, target: str, step_id: int, key: str, value: object) -> None:
    """Let listeners hear of a pushed tensor as of the RecvTensor that it replaces."""
    call = OpenCall("RecvTensor", source, target, key, step_id, pushed=True)
    call.received = sum(map(len, recv_tensor_response(value)))
    call.ended(None)
