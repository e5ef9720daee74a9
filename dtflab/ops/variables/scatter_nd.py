"""Writing slices of a variable or tensor by position: ScatterNdUpdate and its kin, for both kinds of variables.

Stands for `core/kernels/scatter_nd_op.cc` and its parts of `python/ops/state_ops.py` and `array_grad.py`.
`scatter_nd` itself, which writes into zeros, is in `gathering.py`. Left out: what GPUs do with a bad position.

Rule: the last axis of `indices` is a position; what stands there may be a slice. Of positions named twice, `update`
keeps the last, the others count each. A bad position is an error before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import scatterer
from dtflab.ops.arrays import casting, constant as constants, gathering, identity as array, joining, reshaping
from dtflab.ops.costs import free, of_part, overwritten, updated
from dtflab.ops.handles import ResourceHandle
from dtflab.ops.math import logic
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.type_sets import NUMBER_BOOL
from dtflab.ops.variables.handle_ops import find
from dtflab.ops.variables.handle_rows import variable_shape
from dtflab.ops.variables.scatter import UFUNCS
from dtflab.ops.variables.scatter_nd_shapes import check_static, check_tensor, check_variable
from dtflab.ops.variables.state import is_ref

Shape = tuple[int, ...]


def _writer(how: str, xp: Any) -> Callable[[Any, Any, Any, Any], Any]:
    """A function (old, out, indices, updates) → new, written into `out` if given, else a copy of `old`."""
    scatter = scatterer(xp, UFUNCS[how]) if how in UFUNCS else None

    def write(old: Any, out: Any, indices: Any, updates: Any) -> Any:
        places = _places(indices, old.shape)
        new = old.copy() if out is None else out
        if scatter is None:
            new[places] = updates
        else:
            scatter(new, places, updates)
        return new

    return write


def _places(indices: Any, shape: Shape) -> tuple[Any, ...]:
    """The positions as NumPy wants them; an error names the first one outside of `shape`."""
    depth = indices.shape[-1]
    wrong = ((indices < 0) | (indices >= np.array(shape[:depth], np.int64, like=indices))).any(-1)
    if np.any(wrong):
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        position = ", ".join(str(i) for i in indices[where])
        raise invalid(
            f"indices[{','.join(map(str, where))}] = [{position}] does not index into shape {shape_text(shape)}"
        )
    return tuple(np.moveaxis(indices, -1, 0))


# -- reference variables ------------------------------------------------------------------------------


class _Scatter(Op):
    how = ""
    bytes = staticmethod(updated)

    @staticmethod
    def infer(op: Any) -> list[TensorShape]:
        check_static(*(t.shape for t in op.inputs))
        return [op.inputs[0].shape]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        write = _writer(cls.how, xp)

        def update(cell: Any, indices: Any, updates: Any) -> Any:
            def compute(old: Any, out: Any) -> Any:
                check_variable(old.shape, indices, updates)
                return write(old, out, indices, updates)

            cell.update(compute)
            return cell

        return update

    @staticmethod
    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(ins[2])


_REF = "(ref: Ref(T), indices: Tindices, updates: T) -> (output_ref: Ref(T))"
_ATTRS = """
       Tindices: {int32, int64}
       use_locking: bool = {}
       bad_indices_policy: string = ''"""
_LOCKED, _UNLOCKED = _ATTRS.replace("{}", "true"), _ATTRS.replace("{}", "false")


@op(f"""ScatterNdUpdate{_REF}
       T: type{_LOCKED}""")
class ScatterNdUpdate(_Scatter):
    how = "update"
    bytes = overwritten
    grad = no_gradient


@op(f"""ScatterNdAdd{_REF}
       T: numbertype{_UNLOCKED}""")
class ScatterNdAdd(_Scatter):
    how = "add"
    grad = no_gradient


@op(f"""ScatterNdSub{_REF}
       T: numbertype{_UNLOCKED}""")
class ScatterNdSub(_Scatter):
    how = "sub"
    grad = no_gradient


@op(f"""ScatterNdMin{_REF}
       T: numbertype{_UNLOCKED}""")
class ScatterNdMin(_Scatter):
    how = "min"


@op(f"""ScatterNdMax{_REF}
       T: numbertype{_UNLOCKED}""")
class ScatterNdMax(_Scatter):
    how = "max"


# -- resource variables -------------------------------------------------------------------------------


class _ResourceScatter(_Scatter):
    stateful = True
    needs_ctx = True

    @staticmethod
    def infer(op: Any) -> list[TensorShape]:
        known = declared(op.inputs[0])
        check_static(TensorShape(None) if known is None else known[0], op.inputs[1].shape, op.inputs[2].shape)
        return []

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        update = super().bind(node, xp)

        def update_resource(ctx: Any, handle: ResourceHandle, indices: Any, updates: Any) -> None:
            update(find(ctx, handle), indices, updates)

        return update_resource


_RESOURCE = "(ref: resource, indices: Tindices, updates: T) -> ()"


@op(f"""ResourceScatterNdUpdate{_RESOURCE}
       T: type{_LOCKED}""")
class ResourceScatterNdUpdate(_ResourceScatter):
    how = "update"
    bytes = overwritten


@op(f"""ResourceScatterNdAdd{_RESOURCE}
       T: type{_LOCKED}""")
class ResourceScatterNdAdd(_ResourceScatter):
    how = "add"


@op(f"""ResourceScatterNdSub{_RESOURCE}
       T: type{_LOCKED}""")
class ResourceScatterNdSub(_ResourceScatter):
    how = "sub"


@op(f"""ResourceScatterNdMin{_RESOURCE}
       T: type{_LOCKED}""")
class ResourceScatterNdMin(_ResourceScatter):
    how = "min"


@op(f"""ResourceScatterNdMax{_RESOURCE}
       T: type{_LOCKED}""")
class ResourceScatterNdMax(_ResourceScatter):
    how = "max"


@op("""ResourceGatherNd(resource: resource, indices: Tindices) -> (output: dtype)
       dtype: type
       Tindices: {int32, int64}""")
class ResourceGatherNd(Op):
    """The slices of a variable at positions, read where it lives."""

    stateful = True
    needs_ctx = True

    def infer(op):
        known, indices = declared(op.inputs[0]), op.inputs[1].shape
        if known is None or indices.ndims is None or indices[-1].value is None:
            return [TensorShape(None)]
        return [indices[:-1].concatenate(known[0][indices[-1].value :])]

    def bind(node, xp):
        gather = gathering.GatherNd.bind(node.replace(attrs={"Tparams": node["dtype"]}), xp)
        return lambda ctx, handle, indices: gather(find(ctx, handle).read(), indices)

    flops = free
    bytes = of_part

    def grad(op, dy):
        handle, indices = op.inputs
        shape = variable_shape(handle, indices.dtype)
        if indices.shape.ndims == 2 and indices.shape[-1].value == 1:
            return [IndexedSlices(dy, reshaping.squeeze(indices, axis=-1), shape), None]
        return [gathering.scatter_nd(indices, dy, shape), None]


# -- tensors ------------------------------------------------------------------------------------------


class _TensorScatter(Op):
    """A copy of the input, with slices at positions written."""

    how = ""
    check = staticmethod(check_tensor)

    @staticmethod
    def infer(op: Any) -> list[TensorShape]:
        check_static(*(t.shape for t in op.inputs))
        return [op.inputs[0].shape]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        write = _writer(cls.how, xp)

        def kernel(tensor: Any, indices: Any, updates: Any) -> Any:
            cls.check(tensor.shape, indices, updates)
            return write(tensor, None, indices, updates)

        return kernel

    @staticmethod
    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(ins[2])


_TENSOR = "(tensor: T, indices: Tindices, updates: T) -> (output: T)"
_PLAIN = """
       T: type
       Tindices: {int32, int64}
       bad_indices_policy: string = ''"""


@op(f"""TensorScatterUpdate{_TENSOR}
       T: type
       Tindices: {{int16, int32, int64, uint16}}
       bad_indices_policy: string = ''""")
class TensorScatterUpdate(_TensorScatter):
    how = "update"

    def grad(op, dy):
        _, indices, updates = op.inputs
        blank = constants.zeros_like(updates, dtype=dy.dtype)
        return [tensor_scatter_update(array.identity(dy), indices, blank), None, gathering.gather_nd(dy, indices)]


@op(f"TensorScatterAdd{_TENSOR}{_PLAIN}")
class TensorScatterAdd(_TensorScatter):
    how = "add"

    def grad(op, dy):
        return [array.identity(dy), None, gathering.gather_nd(dy, op.inputs[1])]


@op(f"""ScatterNdNonAliasingAdd(input: T, indices: Tindices, updates: T) -> (output: T)
       T: {NUMBER_BOOL}
       Tindices: {{int32, int64}}
       bad_indices_policy: string = ''""")
class ScatterNdNonAliasingAdd(TensorScatterAdd):
    """TensorScatterAdd under an older name."""

    check = staticmethod(check_variable)


@op(f"TensorScatterSub{_TENSOR}{_PLAIN}")
class TensorScatterSub(_TensorScatter):
    how = "sub"

    def grad(op, dy):
        return [array.identity(dy), None, -gathering.gather_nd(dy, op.inputs[1])]


class _TensorScatterExtreme(_TensorScatter):
    @staticmethod
    def grad(op: Any, dy: Any) -> list[Any]:
        """Whoever is the extreme gets the gradient; several share it."""
        (tensor, indices, updates), output = op.inputs, op.outputs[0]
        kept = casting.cast(logic.equal(tensor, output), dy.dtype)
        written = casting.cast(logic.equal(updates, gathering.gather_nd(output, indices)), dy.dtype)
        shape = array.shape(tensor, out_type=indices.dtype)
        share = dy / (kept + gathering.scatter_nd(indices, written, shape))
        return [share * kept, None, gathering.gather_nd(share, indices) * written]


@op(f"TensorScatterMin{_TENSOR}{_PLAIN}")
class TensorScatterMin(_TensorScatterExtreme):
    how = "min"


@op(f"TensorScatterMax{_TENSOR}{_PLAIN}")
class TensorScatterMax(_TensorScatterExtreme):
    how = "max"


# -- functions ----------------------------------------------------------------------------------------


def _on_variable(how: str, default_locking: bool) -> Callable[..., Any]:
    def function(
        ref: Any, indices: Any, updates: Any, use_locking: bool = default_locking, name: str | None = None
    ) -> Any:
        if is_ref(ref):
            return apply_op(f"ScatterNd{how}", name, ref=ref, indices=indices, updates=updates, use_locking=use_locking)
        updates = convert_to_tensor(updates, ref.dtype)
        return ref._lazy_read(
            apply_op(f"ResourceScatterNd{how}", name, ref=ref.handle, indices=indices, updates=updates)
        )

    function.__name__ = f"scatter_nd_{how.lower()}"
    function.__doc__ = f"Update ({how.lower()}) the slices of a variable at the positions `indices` by `updates`."
    return function


scatter_nd_update = _on_variable("Update", True)
scatter_nd_add = _on_variable("Add", False)
scatter_nd_sub = _on_variable("Sub", False)
scatter_nd_max = _on_variable("Max", False)
scatter_nd_min = _on_variable("Min", False)
SCATTERS = (scatter_nd_update, scatter_nd_add, scatter_nd_sub, scatter_nd_max, scatter_nd_min)


def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """ref[i…, indices[i…, j]] = updates[i…, j]: the last axis of `indices` are rows, the others go together."""
    with name_scope(name):
        indices = convert_to_tensor(indices, name="indices")
        sizes = array.shape(indices)
        if indices.shape.ndims is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        rows = reshaping.expand_dims(indices, axis=-1)
        positions = []
        for axis in range(indices.shape.ndims - 1):
            shape: list[Any] = [1] * (indices.shape.ndims + 1)
            size = shape[axis] = sizes[axis]
            steps = reshaping.reshape(apply_op("Range", start=0, limit=size, delta=1), shape)
            positions.append(casting.cast(steps, rows.dtype) * constants.ones_like(rows))
        return scatter_nd_update(ref, joining.concat([*positions, rows], axis=-1), updates, use_locking)


def _on_tensor(how: str) -> Callable[..., Tensor]:
    def function(
        tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
    ) -> Tensor:
        return apply_op(
            f"TensorScatter{how}", name, tensor=tensor, indices=indices, updates=updates,
            bad_indices_policy=bad_indices_policy,
        )  # fmt: skip

    function.__name__ = f"tensor_scatter_{how.lower()}"
    function.__doc__ = f"A copy of `tensor`, its slices at `indices` written ({how.lower()}) with `updates`."
    return function


tensor_scatter_add = _on_tensor("Add")
tensor_scatter_sub = _on_tensor("Sub")
tensor_scatter_max = _on_tensor("Max")
tensor_scatter_min = _on_tensor("Min")


def tensor_scatter_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """A copy of `tensor`, its slices at the positions `indices` replaced by `updates`."""
    return apply_op("TensorScatterUpdate", name, tensor=tensor, indices=indices, updates=updates)
