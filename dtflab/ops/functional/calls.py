"""The ops that call functions: of a graph, in attributes, as TensorFlow 2 makes them; and of Python.

Stands for `functional_ops.cc` in `core/ops` and `core/kernels`, and for `script_ops.cc`. Left out: `RemoteCall`, `For`,
`SymbolicGradient`, `EagerPyFunc`.

Rule: the calls, conditionals and loops have no kernel. Before a graph is placed, `graph/inlining.py` puts the bodies in
their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.functional import script
from dtflab.ops.messages import invalid
from dtflab.ops.variants import Variant, zeros


def _pair(stateless: str, stateful: str, interface: str, base: type[Op], summary: str) -> None:
    """Register two ops that differ in whether the functions may have side effects."""
    op(stateless + interface)(type(stateless, (base,), {"__doc__": summary}))
    more = {"__doc__": f"{summary} The functions may have side effects.", "stateful": True}
    op(stateful + interface)(type(stateful, (base,), more))


# -- functions of the graph ---------------------------------------------------------------------------


class _Call(Op):
    def infer(operation: Any) -> list[TensorShape]:
        """The shapes that the builder of the bodies has noted for their results; unknown otherwise."""
        known: list[TensorShape] = operation.attrs.get("output_shapes", [])
        return known if len(known) == len(operation.outputs) else [TensorShape(None)] * len(operation.outputs)


class _Choice(_Call):
    def grad(operation: Any, *dys: Any) -> Any:
        """Refuse: the gradient would be made of new functions, which only TensorFlow 2's clients build."""
        raise NotImplementedError(
            f"dtflab has no gradient of '{operation.name}' ({operation.type}): let the client that made it make the "
            "gradient, too, before the graph is imported, or build it with tf.cond, tf.case and tf.while_loop here."
        )


_CALL = """(args: Tin) -> (output: Tout)
    Tin: list(type) >= 0, Tout: list(type) >= 0, f: func
    config: string = '', config_proto: string = '', executor_type: string = ''"""
_IF = """(cond: Tcond, input: Tin) -> (output: Tout)
    Tcond: type, Tin: list(type) >= 0, Tout: list(type) >= 0
    then_branch: func, else_branch: func, output_shapes: list(shape) = []"""
_CASE = """(branch_index: int32, input: Tin) -> (output: Tout)
    Tin: list(type) >= 0, Tout: list(type) >= 0, branches: list(func) >= 1, output_shapes: list(shape) = []"""
_WHILE = """(input: T) -> (output: T)
    T: list(type) >= 0, cond: func, body: func, output_shapes: list(shape) = [], parallel_iterations: int = 10"""

_case = "What the function of that number makes of the input; the last one if there is none."
_while = "What `body` makes of the input, repeatedly, while `cond` of it is true."
_pair("PartitionedCall", "StatefulPartitionedCall", _CALL, _Call, "What a function makes of the arguments.")
_pair("StatelessIf", "If", _IF, _Choice, "What one of two functions makes of the input.")
_pair("StatelessCase", "Case", _CASE, _Choice, _case)
_pair("StatelessWhile", "While", _WHILE, _Choice, _while)


@op("ToBool(input: T) -> (output: bool) where T: type")
class ToBool(Op):
    """A scalar is true if it is not zero or empty, another tensor if it has elements."""

    infer = shapes.scalar

    def kernel(node: Node, xp: Any, value: Any) -> Any:
        array = np.asarray(value) if xp is np else value
        return np.bool_(bool(array[()]) if array.ndim == 0 else array.size > 0)


@op("FakeParam() -> (output: dtype) where dtype: type, shape: shape")
class FakeParam(Op):
    """The output of a branch where only the other one has a value to give; it is never read."""

    infer = shapes.declared

    def bind(node: Node, xp: Any) -> Callable[[], Any]:
        sizes = [] if node["shape"].ndims is None else [size or 0 for size in node["shape"].as_list()]
        nothing = Variant() if node["dtype"] == dtypes.variant else zeros(TensorShape(sizes), node["dtype"], xp)
        return lambda: nothing


@op("_SwitchN(data: T, output_index: int32) -> (outputs: num_outs * T) where num_outs: int >= 1, T: type")
class SwitchN(Op):
    """`data` at output number `output_index`, the last one for an index out of range; the other outputs are dead."""

    control_flow = "switch"
    aliasing = True
    flops = free

    def infer(operation):
        return [operation.inputs[0].shape] * len(operation.outputs)


# -- functions of Python ------------------------------------------------------------------------------


class _PyFunc(Op):
    needs_ctx = True  # and so no rule of shapes tries it out
    calls_program = True
    grad = no_gradient

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        token, types = node["token"].decode(), node["Tout"]
        label = token.rpartition("_")[0] or token  # as TensorFlow calls it

        def call(ctx: Any, *values: Any) -> list[Any]:
            found = script.found.get(token)
            if found is None:
                raise invalid(
                    f"ValueError: Could not find callback with key={token} in the registry. The function of a "
                    f"tf.py_func is in the process, and lives as long as the graph, that made it: put '{node.name}' "
                    "on a device of that process."
                )
            return script.checked(script.called(found.function, values), types, label)

        return call


_PY_FUNC = "(input: Tin) -> (output: Tout) where token: string, Tin: list(type) >= 0, Tout: list(type) >= 0"
_pair("PyFuncStateless", "PyFunc", _PY_FUNC, _PyFunc, "The results of a Python function.")
