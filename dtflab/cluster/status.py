"""Status: an error as it crosses the wire, by its canonical code and text.

Stands for `ToGrpcStatus` and `FromGrpcStatus` of `rpc/grpc_util.h`.

Rule: whatever a method raises has a code; INTERNAL is left for mistakes of dtflab.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from dtflab.base import errors
from dtflab.protos.master_pb2 import RunStepResponse
from dtflab.protos.worker_pb2 import RunGraphResponse

_MAX_TEXT = 3000  # TensorFlow's limit; metadata has 8 KiB


def status_of(name: str, error: Exception) -> tuple[int, str]:
    """The canonical code and text that a caller gets for an error."""
    if isinstance(error, errors.OpError):
        code, text = error.error_code, error.message
    elif isinstance(error, DecodeError | UnicodeDecodeError):
        code, text = errors.INVALID_ARGUMENT, f"Unable to parse the request of {name}: {error}"
    elif isinstance(error, MemoryError):
        code, text = errors.RESOURCE_EXHAUSTED, f"Out of memory in {name}: {error}"
    else:
        code, text = errors.INTERNAL, f"{type(error).__name__} in {name}: {error}"
    return code, text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "… [truncated]"


def stored(response: RunStepResponse | RunGraphResponse, error: errors.OpError) -> bytes:
    """An OK answer that carries an error, as TensorFlow's clients and masters ask for."""
    response.status_code = error.error_code  # type: ignore[assignment]  # Code is a class for the type checker only
    response.status_error_message = error.message
    return response.SerializeToString()


def raise_stored(response: RunStepResponse | RunGraphResponse) -> None:
    """Raise the error inside an OK answer, if there is one."""
    if response.status_code:
        raise errors.from_code(response.status_code, response.status_error_message)


def from_task(task: str, error: errors.OpError) -> errors.OpError:
    """The error, which names the task that it comes from."""
    if task not in error.message:
        error.message = f"From {task}:\n{error.message}"
    return error
