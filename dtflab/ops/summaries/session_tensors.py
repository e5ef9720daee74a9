"""Values that stay in the session: a step leaves one behind under a handle, another takes it up.

Stands for `python/ops/session_ops.py`. The ops are in `debug_ops.py`.

Rule: a handle is a name, `operation;number;device`; its value lives on that device until it is deleted or the session
is closed. The value of a TensorHandle that nobody holds any more is deleted by a later run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.feeds import register_feed_value
from dtflab.graph.fetches import register_fetched_value
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, device
from dtflab.ops.arrays.functions import placeholder

_MANY = 10  # forgotten values are deleted by that many at once


class TensorHandle:
    """A value that lives in a session, as `session.run` gives it for `get_session_handle`.

    `handle` is the name to feed to the holder of `get_session_tensor`.
    """

    def __init__(self, handle: bytes, dtype: dtypes.DType, session: Any) -> None:
        self.handle, self._dtype, self._session = handle.decode(), dtype, session
        self._own = True  # it goes with this object

    def get_raw_handle(self) -> str:
        """The name, of which from now on the caller takes care: the value stays until it is deleted."""
        self._own = False
        return self.handle

    def eval(self) -> Any:
        """The value; TypeError once it was deleted, or taken into the caller's care."""
        self._check_own()
        key = ("read", self._dtype, _device_of(self.handle))
        holder, reader = _made_once(self._session.graph, key, lambda: get_session_tensor(self.handle, self._dtype))
        return self._session.run(reader, {holder: self.handle})

    def delete(self) -> None:
        """Forget the value."""
        self._check_own()
        self._own = False
        _delete(self.handle, self._session)

    def _check_own(self) -> None:
        if not self._own:
            raise TypeError(f"Persistent tensor {self.handle} may have already been deleted.")

    def __del__(self) -> None:
        if self._own and not sys.is_finalizing():
            _forgotten(self._session).append(self.handle)

    def __str__(self) -> str:
        return self.handle


def _made_once(graph: Any, key: Any, make: Callable[[], tuple[Tensor, Any]]) -> tuple[Tensor, Any]:
    """The holder and reader (or deleter) that a graph has for handles of one kind."""
    made = graph.__dict__.setdefault("_session_tensor_ops", {})
    if key not in made:
        with graph.as_default(), graph.control_dependencies(None):
            made[key] = make()
    return made[key]


def _delete(handle: str, session: Any) -> None:
    key = ("delete", _device_of(handle))
    holder, deleter = _made_once(session.graph, key, lambda: delete_session_tensor(handle))
    session.run(deleter, {holder: handle})


def _device_of(handle: str) -> str:
    return handle.rpartition(";")[2]


def _forgotten(session: Any) -> list[str]:
    return session.__dict__.setdefault("_forgotten_handles", [])


def _handed_out(value: bytes, tensor: Tensor, session: Any) -> TensorHandle:
    """The client's value for a fetched handle; a good moment to let go of values that nobody can name any more."""
    lost = _forgotten(session)
    if len(lost) >= _MANY:
        for name in [lost.pop() for _ in range(len(lost))]:
            _delete(name, session)
    return TensorHandle(value, tensor.op.inputs[0].dtype.base_dtype, session)


def _fed(value: TensorHandle, tensor: Tensor) -> Any:
    if tensor.dtype.base_dtype != value._dtype:
        raise errors.InvalidArgumentError.of(
            f"Feed of {tensor.name}: expects {tensor.dtype.name} but {value._dtype.name} is provided"
        )
    return value.eval()


register_fetched_value("GetSessionHandle", _handed_out)
register_feed_value(TensorHandle, _fed)


def get_session_handle(data: Any, name: str | None = None) -> Tensor:
    """A tensor that `session.run` turns into a TensorHandle of the value of `data`, which stays in the session."""
    if not isinstance(data, Tensor):
        raise TypeError("`data` must be of type Tensor.")
    with colocate_with(data):
        return apply_op("GetSessionHandle", name, value=data)


def get_session_tensor(handle: str, dtype: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(holder, tensor): feed the holder a handle, and the tensor is the value behind it."""
    return _with_holder("GetSessionTensor", handle, name, dtype=dtype)


def delete_session_tensor(handle: str, name: str | None = None) -> tuple[Tensor, Operation]:
    """(holder, operation): feed the holder a handle, and the operation forgets the value behind it."""
    return _with_holder("DeleteSessionTensor", handle, name)


def _with_holder(op_type: str, handle: str, name: str | None, **attrs: Any) -> tuple[Tensor, Any]:
    with device(_device_of(str(handle))):
        holder = placeholder(dtypes.string)
        return holder, apply_op(op_type, name, handle=convert_to_tensor(holder), **attrs)
