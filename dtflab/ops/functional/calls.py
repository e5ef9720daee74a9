"""Ops with functions in their attributes: calls, conditionals and loops as TensorFlow 2 makes them.

Stands for `functional_ops.cc` in `core/ops` and `core/kernels`. Left out: `RemoteCall`, `For`, `SymbolicGradient`.

Rule: none of them has a kernel. Before a graph is placed, `graph/inlining.py` puts the bodies in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.lists.variants import Variant, zeros


class _Call(Op):
    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        """Whoever built the bodies has noted the shapes of their results, or not."""
        known: list[TensorShape] = operation.attrs.get("output_shapes", [])
        return known if len(known) == len(operation.outputs) else [TensorShape(None)] * len(operation.outputs)


class _Choice(_Call):
    @staticmethod
    def grad(operation: Any, *dys: Any) -> Any:
        """Its gradient would be made of new functions, which is a matter of TensorFlow 2's clients."""
        raise NotImplementedError(
            f"dtflab has no gradient of '{operation.name}' ({operation.type}): let the client that made it make the "
            "gradient, too, before the graph is imported, or build it with tf.cond, tf.case and tf.while_loop here."
        )


_CALL = """{}(args: Tin) -> (output: Tout)
    Tin: list(type) >= 0
    Tout: list(type) >= 0
    f: func
    config: string = ""
    config_proto: string = ""
    executor_type: string = ""
"""

_IF = """{}(cond: Tcond, input: Tin) -> (output: Tout)
    Tcond: type
    Tin: list(type) >= 0
    Tout: list(type) >= 0
    then_branch: func
    else_branch: func
    output_shapes: list(shape) = []
"""

_CASE = """{}(branch_index: int32, input: Tin) -> (output: Tout)
    Tin: list(type) >= 0
    Tout: list(type) >= 0
    branches: list(func) >= 1
    output_shapes: list(shape) = []
"""

_WHILE = """{}(input: T) -> (output: T)
    T: list(type) >= 0
    cond: func
    body: func
    output_shapes: list(shape) = []
    parallel_iterations: int = 10
"""


@op(_CALL.format("PartitionedCall"))
class PartitionedCall(_Call):
    """What a function makes of the arguments."""


@op(_CALL.format("StatefulPartitionedCall"))
class StatefulPartitionedCall(_Call):
    """The same of a function with side effects."""

    stateful = True


@op(_IF.format("StatelessIf"))
class StatelessIf(_Choice):
    """What one of two functions makes of the input."""


@op(_IF.format("If"))
class If(_Choice):
    """The same of functions with side effects."""

    stateful = True


@op(_CASE.format("StatelessCase"))
class StatelessCase(_Choice):
    """What the function of that number makes of the input; the last one if there is none."""


@op(_CASE.format("Case"))
class Case(_Choice):
    """The same of functions with side effects."""

    stateful = True


@op(_WHILE.format("StatelessWhile"))
class StatelessWhile(_Choice):
    """What `body` makes of the input again and again, as long as `cond` of it is true."""


@op(_WHILE.format("While"))
class While(_Choice):
    """The same of functions with side effects."""

    stateful = True


@op("""ToBool(input: T) -> (output: bool)
       T: type""")
class ToBool(Op):
    """A scalar is true if it is not zero or empty, another tensor if it has elements."""

    def infer(operation):
        return [TensorShape([])]

    def bind(node: Any, xp: Any) -> Callable[[Any], Any]:
        def to_bool(value: Any) -> Any:
            array = np.asarray(value) if xp is np else value
            return np.bool_(bool(array[()]) if array.ndim == 0 else array.size > 0)

        return to_bool


@op("""FakeParam() -> (output: dtype)
       dtype: type
       shape: shape""")
class FakeParam(Op):
    """What a branch gives where only the other one has something to give; nobody reads it."""

    def infer(operation):
        return [operation.attrs["shape"]]

    def bind(node: Any, xp: Any) -> Callable[[], Any]:
        sizes = [] if node["shape"].ndims is None else [size or 0 for size in node["shape"].as_list()]
        nothing = Variant() if node["dtype"] == dtypes.variant else zeros(TensorShape(sizes), node["dtype"], xp)
        return lambda: nothing


@op("""_SwitchN(data: T, output_index: int32) -> (outputs: num_outs * T)
       num_outs: int >= 1
       T: type""")
class SwitchN(Op):
    """`data` at output number `output_index`, the last one for an index that is none; the other outputs are dead."""

    control_flow = "switch"
    aliasing = True
    flops = staticmethod(lambda node, ins, outs: 0)

    def infer(operation):
        return [operation.inputs[0].shape] * len(operation.outputs)
