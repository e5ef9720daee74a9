"""tf.raw_ops: every op as a function of its inputs and attributes, given by their names.

>>> y = tf.raw_ops.AddV2(x=1.0, y=2.0)

Stands for the modules that TensorFlow generates from its OpDefs (`python/ops/gen_array_ops.py`, …).

Rule: an attribute that follows from the dtypes or the number of the inputs is not an argument.
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any as _Any

from dtflab.base.missing_names import missing as _missing
from dtflab.graph import op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import OpDef

_REDUCTIONS = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
_RENAMED = {
    **{reduction: {"reduction_indices": "axis"} for reduction in _REDUCTIONS},
    "ExpandDims": {"dim": "axis"},
    "Select": {"t": "x", "e": "y"},
    "Split": {"split_dim": "axis"},
    "SplitV": {"split_dim": "axis"},
    "Squeeze": {"squeeze_dims": "axis"},
    "Where": {"input": "condition"},
}  # op → its name → the argument's


@cache
def function_of(op_type: str, by_name_only: bool = True) -> Callable[..., _Any]:
    """The function that adds an op of that type; `name` is its last argument.

    It gives a tensor, a list of tensors for a list output, a named tuple for several outputs, and the operation if it
    has none.
    """
    op_def = op_registry.get(op_type).op_def
    renamed = {argument: name for name, argument in _RENAMED.get(op_type, {}).items()}
    signature = _signature(op_def, by_name_only)
    results = collections.namedtuple(op_type, [arg.name for arg in op_def.outputs], rename=True)  # type: ignore[misc]

    def function(*args: _Any, **kwargs: _Any) -> _Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{op_type}{signature}: {error}") from None
        name = given.pop("name", None)
        made = apply_op(op_type, name, **{renamed.get(key, key): value for key, value in given.items()})
        return results(*made) if len(op_def.outputs) > 1 else made

    function.__name__ = function.__qualname__ = op_type
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _signature(op_def: OpDef, by_name_only: bool) -> inspect.Signature:
    """Inputs, attributes that must be given, attributes that may be, name."""
    kind = inspect.Parameter.KEYWORD_ONLY if by_name_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    renamed = _RENAMED.get(op_def.name, {})
    inferred = {attr for arg in op_def.inputs for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    attrs = [a for a in op_def.attrs.values() if a.name not in inferred]
    required = [arg.name for arg in op_def.inputs] + [a.name for a in attrs if not a.has_default]
    optional = {**{a.name: _text(a.default) for a in attrs if a.has_default}, "name": None}
    return inspect.Signature(
        [inspect.Parameter(renamed.get(name, name), kind) for name in required]
        + [inspect.Parameter(renamed.get(name, name), kind, default=value) for name, value in optional.items()]
    )


def _text(default: _Any) -> _Any:
    return default.decode() if isinstance(default, bytes) else default


def __getattr__(name: str) -> _Any:
    if name in op_registry.names() and not name.startswith("_"):
        return function_of(name)
    raise _missing("tf.raw_ops", name, op_registry.names())


def __dir__() -> list[str]:
    return [name for name in op_registry.names() if not name.startswith("_")]
