"""Variables that live as long as a step: TemporaryVariable makes one, DestroyTemporaryVariable gives its last value.

Stands for `TemporaryVariableOp` and `DestroyTemporaryVariableOp` of `core/kernels/variable_ops.cc`. Left out: a
refusal to copy what somebody else still holds; cells copy as they need to (see `cell.py`).

Rule: a name belongs to one variable per step and iteration of a loop. What nobody destroys ends with the step.
"""

from __future__ import annotations

from dtflab.base import errors
from dtflab.graph.op_registry import Op, op
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.variables import scatter
from dtflab.ops.variables.cell import ReferenceCell


@op("""TemporaryVariable() -> (ref: Ref(dtype))
       shape: shape
       dtype: type
       var_name: string = ''""")
class TemporaryVariable(Op):
    """A variable that begins with zeros."""

    stateful = True
    needs_ctx = True
    flops = bytes = free

    def infer(operation):
        return [operation.attrs["shape"]]

    def bind(node, xp):
        name, shape, dtype = node["var_name"].decode() or node.name, node["shape"], node["dtype"]

        def make(ctx):
            if not shape.is_fully_defined():
                raise invalid(f"Shape {shape_text(shape)} is not fully defined")
            sizes = tuple(shape.as_list())
            cell = ReferenceCell(name, dtype, sizes)
            cell.memory = ctx.resources.memory
            cell.assign(scatter.blank(xp, sizes, dtype.as_numpy_dtype))
            key = name, ctx.frame_iter
            if ctx.step.temporaries.setdefault(key, cell) is not cell:
                raise errors.AlreadyExistsError.of(f"This step has a temporary variable {name!r} already.")
            return cell

        return make


@op("""DestroyTemporaryVariable(ref: Ref(T)) -> (value: T)
       T: type
       var_name: string""")
class DestroyTemporaryVariable(Op):
    """The value of a variable, and the end of the temporary variable `var_name`."""

    needs_ctx = True
    infer = staticmethod(shapes.unchanged)
    flops = bytes = free

    def bind(node, xp):
        name = node["var_name"].decode()
        if not name:
            raise invalid("Missing var_name attribute")

        def destroy(ctx, cell):
            value = cell.read()
            if ctx.step.temporaries.pop((name, ctx.frame_iter), None) is None:
                raise errors.NotFoundError.of(f"Temporary variable {name!r} of this step does not exist.")
            return value

        return destroy
