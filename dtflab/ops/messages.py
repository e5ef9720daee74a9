"""How TensorFlow words its errors: shapes as `[2,?]`, dtypes as `float`, the node; and arguments with two names.

Stands for `TensorShape::DebugString`, `DataTypeString` and `deprecated_argument_lookup`.
"""

from __future__ import annotations

import re
from typing import Any

from dtflab.base import errors
from dtflab.graph.dtypes import dtype_text as dtype_text
from dtflab.graph.node import Node


def invalid(message: str) -> errors.InvalidArgumentError:
    """The error of a kernel whose inputs have wrong values; the executor adds the node."""
    return errors.InvalidArgumentError.of(message)


def check_rank(array: Any, rank: int, refused: str) -> None:
    """InvalidArgumentError unless `array` has that rank; `refused` is its text, with {} where the shape stands."""
    if getattr(array, "ndim", 0) != rank:
        raise invalid(refused.format(shape_text(array)))


def shape_text(shape: Any) -> str:
    """`[2,?]` for a TensorShape, a tuple of sizes, or anything with a `shape`."""
    dims: Any = shape if isinstance(shape, tuple | list) else getattr(shape, "shape", shape)
    if hasattr(dims, "as_list"):
        if dims.ndims is None:
            return "<unknown>"
        dims = dims.as_list()
    return "[" + ",".join("?" if d is None else str(int(d)) for d in dims) + "]"


_NUMPY_BROADCAST = re.compile(r"operands could not be broadcast together with shapes \(([\d,]*)\) \(([\d,]*)\)")


def in_tensorflows_words(error: Exception) -> str:
    """The text of an error, NumPy's about shapes that do not broadcast as TensorFlow has it.

    So kernels can be bare ufuncs and still say what is wrong.
    """
    match = _NUMPY_BROADCAST.search(str(error))
    if match is None:
        return str(error)
    x, y = (dims.rstrip(",") for dims in match.groups())
    return f"Incompatible shapes: [{x}] vs. [{y}]"


def op_error(error: BaseException, node: Node, device: str) -> errors.OpError:
    """`error` as TensorFlow's class for it, its message naming the node and its device."""
    if isinstance(error, errors.OpError) and "[[{{node" in error.message:
        return error
    where = f"\n\t [[{{{{node {node.name}}}}}]] on {device}"
    if isinstance(error, errors.OpError):
        named = type(error)(error.node_def, error.op, error.message + where)
        named.report, named.exhausted = error.report, error.exhausted
        named.__notes__ = getattr(error, "__notes__", [])
        return named
    if isinstance(error, MemoryError):
        return errors.ResourceExhaustedError.of(f"OOM when running {node.op}: {error}{where}")
    if isinstance(error, ValueError | TypeError):
        return errors.InvalidArgumentError.of(f"{in_tensorflows_words(error)}{where}")
    if not isinstance(error, Exception):  # SystemExit: a py_func on a thread of a pool can't end the program
        return errors.UnknownError.of(f"{type(error).__name__}: {error}{where}")
    return errors.InternalError.of(f"{type(error).__name__} in the kernel of {node.op}: {error}{where}")


def different_sizes(node: Node, first: Any, index: int, other: Any) -> errors.InvalidArgumentError:
    """The error of a kernel whose inputs 0 and `index` should have one shape."""
    start = f"Inputs to operation {node.name} of type {node.op} must have the same size and shape."
    return invalid(f"{start}  Input 0: {shape_text(first)} != input {index}: {shape_text(other)}")


def renamed(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that may be given under its old name; ValueError if under both."""
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return old
