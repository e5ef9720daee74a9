"""Python functions as operations: py_func, numpy_function.

Stands for `python/ops/script_ops.py` and `python/lib/core/py_func.cc`. Left out: `EagerPyFunc`, whose function works
on eager tensors.

Rules: a graph holds a token, never code: the function is found in the process that made it, and lives as long as its
graph. It runs where the kernel runs, on host memory, and gets copies, which it may change. What it raises becomes the
error of the step, with the user's lines.
"""

from __future__ import annotations

import itertools
import os
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import _PACKAGE
from dtflab.graph.scopes import get_default_graph
from dtflab.ops.entropy import from_system
from dtflab.ops.messages import dtype_text, invalid


class _Script:
    """A function under its token."""

    def __init__(self, function: Callable[..., Any]) -> None:
        # The number is TensorFlow's; with the rest, a token of another process never names a function of this one.
        self.token = f"pyfunc_{next(_numbers)}_{from_system():016x}"
        self.function = function


_numbers = itertools.count()
_scripts: weakref.WeakValueDictionary[str, _Script] = weakref.WeakValueDictionary()

_INTERFACE = """{}(input: Tin) -> (output: Tout)
    token: string
    Tin: list(type) >= 0
    Tout: list(type) >= 0
"""


class _PyFunc(Op):
    needs_ctx = True  # and so no rule of shapes tries it out
    calls_program = True
    grad = staticmethod(no_gradient)

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., Any]:
        token, types = node["token"].decode(), node["Tout"]
        label = token.rpartition("_")[0] or token  # as TensorFlow calls it

        def call(ctx: Any, *values: Any) -> list[Any]:
            script = _scripts.get(token)
            if script is None:
                raise invalid(
                    f"ValueError: Could not find callback with key={token} in the registry. The function of a "
                    f"tf.py_func is in the process, and lives as long as the graph, that made it: put '{node.name}' "
                    "on a device of that process."
                )
            return _checked(_called(script.function, values), types, label)

        return call


@op(_INTERFACE.format("PyFunc"))
class PyFunc(_PyFunc):
    stateful = True


@op(_INTERFACE.format("PyFuncStateless"))
class PyFuncStateless(_PyFunc):
    """The same for a function that gives equal results for equal arguments."""


_CLASSES: dict[type[BaseException], type[errors.OpError]] = {
    ValueError: errors.InvalidArgumentError,
    TypeError: errors.InvalidArgumentError,
    StopIteration: errors.OutOfRangeError,
    MemoryError: errors.ResourceExhaustedError,
    NotImplementedError: errors.UnimplementedError,
}


def _called(function: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
    """What the function returns, one item per result; its exception as TensorFlow's class for it."""
    try:
        returned = function(*map(_argument, values))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        users = [frame for frame in frames if not frame.filename.startswith(_PACKAGE + "ops" + os.sep)]
        lines = "".join(traceback.format_list(users))
        name = type(error).__name__
        kind = next((c for base, c in _CLASSES.items() if isinstance(error, base)), errors.UnknownError)
        raise kind.of(f"{name}: {error}\nTraceback (most recent call last):\n{lines}{name}: {error}") from None
    if returned is None:
        return []
    return list(returned) if isinstance(returned, list | tuple) else [returned]


def _argument(value: Any) -> Any:
    """What the function gets for a tensor: bytes, a NumPy scalar, or an array of its own."""
    return value if isinstance(value, bytes) else np.array(value)[()]


def _checked(returned: list[Any], types: list[DType], label: str) -> list[Any]:
    """The results as arrays, of as many and of those dtypes that the program announced."""
    if len(returned) != len(types):
        raise invalid(f"{label} returns {len(returned)} values, but expects to see {len(types)} values.")
    found = []
    for i, (value, wanted) in enumerate(zip(returned, types, strict=True)):
        array = _array(value)
        dtype = dtypes.as_dtype(array.dtype)
        if dtype != wanted:
            raise invalid(f"{i}-th value returned by {label} is {dtype_text(dtype)}, but expects {dtype_text(wanted)}")
        found.append(array)
    return found


def _array(value: Any) -> Any:
    """An array that nobody else writes into; text is bytes."""
    array = np.asarray(value, order="C")
    if array.dtype.kind in "SU":
        flat = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
        text = np.empty(len(flat), object)
        text[:] = [value] if isinstance(value, bytes) else flat  # NumPy cuts zeros off
        return text.reshape(array.shape)
    if array.dtype == object and not all(isinstance(item, bytes) for item in array.flat):
        raise errors.InternalError.of(f"Unsupported object type {type(array.flat[0]).__name__}")
    if array is value or array.base is not None:
        array = array.copy()
    array.flags.writeable = False
    return array


# -- functions ----------------------------------------------------------------------------------------------------


def py_func(func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:
    """`func` of the values of `inp`, as an operation of the graph.

    `func` gets an array per tensor, bytes for a string, and returns an array (or a list of arrays) of the dtypes in
    `Tout`, whose shapes the graph does not know: `set_shape` tells them. It runs in this process only, when a session
    needs its result; `stateful=False` says that equal arguments give equal results. Returns a tensor; a list of tensors
    if `Tout` is a list; the Operation if that is empty. ValueError if `func` can't be called.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    types = list(Tout) if isinstance(Tout, list | tuple) else [Tout]
    script = _Script(func)
    _scripts[script.token] = script
    get_default_graph().outermost.keep_alive(script)
    values = [convert_to_tensor(v) if hasattr(v, "handle") or hasattr(v, "read_value") else v for v in inp]
    made = apply_op("PyFunc" if stateful else "PyFuncStateless", name, input=values, token=script.token, Tout=types)
    return made[0] if not isinstance(Tout, list | tuple) else made


def numpy_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, stateful: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """`func` of the values of `inp`, as an operation of the graph; see `py_func`."""
    return py_func(func, inp, Tout, stateful, name)  # type: ignore[arg-type]  # which refuses None


def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> NoReturn:
    """NotImplementedError: TensorFlow would call `func` with eager tensors, which a graph does not have."""
    raise NotImplementedError(
        "tf.py_function calls its function with eager tensors, which dtflab does not have. Use tf.numpy_function "
        "(or tf.py_func): its function gets arrays and returns arrays; tf.custom_gradient gives it a gradient."
    )
