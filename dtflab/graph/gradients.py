"""gradients: reverse-mode differentiation that builds the derivative as more graph.

Stands for `python/ops/gradients_impl.py`, `gradients_util.py` and `python/framework/indexed_slices.py`'s share in
summing. Left out: function calls (`SymbolicGradient`), hessians.

Rule: walk back from the ys; an operation is differentiated once the gradients of all its outputs that lead to a
y have arrived, and these are summed first. Scopes are opened as TensorFlow does it, so that names agree. `Loops` has
what is special about loops, which lead back to themselves.
"""

from __future__ import annotations

import contextlib
import enum
import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dtflab.base.garbage import NO_COLLECTION
from dtflab.base.grouping import grouped
from dtflab.graph import dtypes, op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.graph import Graph
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import no_gradient
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import get_default_graph, name_scope
from dtflab.graph.static_value import declared

GradientFunction = Callable[..., Any]
Gradient = Any  # a Tensor, IndexedSlices or None

# Floating, complex, and handles of variables: what can change by a little. Integers are constants.
_TRAINABLE = {
    dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16, dtypes.complex64, dtypes.complex128,
    dtypes.resource, dtypes.variant,
}  # fmt: skip


class AggregationMethod:
    """How the gradients that reach one tensor on several paths are summed."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients(enum.Enum):
    """The gradient of an x that no y depends on."""

    NONE = "none"
    ZERO = "zero"


# -- which function differentiates an operation ---------------------------------------------------------------

_registered: dict[str, GradientFunction | None] = {}


class RegisterGradient:
    """Decorator: a function `(op, *dys) -> dxs` as the gradient of an op type, or under a name for overrides."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, function: GradientFunction) -> GradientFunction:
        _register(self._op_type, function)
        return function


def not_differentiable(op_type: str) -> None:
    """Declare that the gradient of an op type is nothing."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    _register(op_type, None)


NoGradient = NotDifferentiable = not_differentiable


def _register(name: str, function: GradientFunction | None) -> None:
    if name in _registered or getattr(op_registry._registry.get(name), "grad", None) is not None:
        raise KeyError(f"Registering two gradient with name '{name}'!")
    _registered[name] = function


def get_gradient_function(op: Operation) -> GradientFunction | None:
    """The gradient function of `op`; None if it has none by declaration, LookupError if nobody wrote one."""
    if not op.inputs:
        return None
    override = op.attrs.get("_gradient_op_type")
    name = override.decode() if override else op.type
    if name in _registered:
        return _registered[name]
    op_class = op_registry._registry.get(name)
    if op_class is None or op_class.grad is None:
        raise LookupError(f"gradient registry has no entry for: {name}")
    return None if op_class.grad is no_gradient else op_class.grad


# -- the public function --------------------------------------------------------------------------------------


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Gradient]:
    """The derivatives of the sum of `ys` with respect to each of `xs`, as new tensors of the graph.

    `grad_ys` are the gradients to start with (ones). `stop_gradients` are taken as constants. With
    `gate_gradients` all gradients of an operation are computed before any is used. Raises LookupError for an
    operation on the way that has no gradient, ValueError and TypeError for arguments that do not fit.
    """
    try:
        unconnected = UnconnectedGradients(unconnected_gradients)
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: '{unconnected_gradients}'") from None
    if aggregation_method not in (None, 0, 1, 2):
        raise ValueError(f"Invalid `aggregation_method` specified {aggregation_method}. Accepted values are [0, 1, 2].")
    ys, stops = _as_list(ys), [] if stop_gradients is None else _as_list(stop_gradients)
    xs = [x if isinstance(x, Tensor) else getattr(x, "handle", x) for x in _as_list(xs)]
    starts = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
    with NO_COLLECTION, name_scope(name, "gradients", [*ys, *xs, *stops, *starts]):
        graph = get_default_graph()
        graph.unique_name("uid")  # TensorFlow's name for this call; taken here, too, so that names agree
        ys = [convert_to_tensor(y, name="y") for y in ys]
        xs = [convert_to_tensor(x, name="x", as_ref=True) for x in xs]
        walk = _Walk(graph, colocate_gradients_with_ops, gate_gradients, aggregation_method or 0)
        first = walk.first_gradients(ys, starts)
        walk.count_pending(ys, xs)
        walk.back(ys, first, xs, [s.op for s in stops])
    walk.loops.finish()  # outside of the scope, as in TensorFlow
    return [walk.result(x, unconnected) for x in xs]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


# -- the walk back --------------------------------------------------------------------------------------------


class Loops:
    """The rules of the walk for loops. Here there are none; see ops/control/gradients_through_loops.py."""

    def entered(self, op: Operation, before: bool = False) -> contextlib.AbstractContextManager[None]:
        """Inside, the gradient of `op` is built, or `before` that its outputs' gradients are summed."""
        return contextlib.nullcontext()

    def zeros(self, op: Operation, index: int) -> Gradient:
        """The gradient of an output that nothing depends on; None where there are no zeros."""
        return _zeros_of_output(op, index)

    def unused_exits(self, pending: dict[Operation, int], started: set[Operation]) -> list[Tensor]:
        """Results of loops that no y depends on, but whose gradient is asked for as the loops are gone through."""
        return []

    def zeros_for_exit(self, tensor: Tensor) -> Gradient:
        """The gradient of such a result."""
        raise NotImplementedError

    def is_ready(self, op: Operation, awaited: int) -> bool:
        """Whether `op` is to be differentiated, that many gradients being still awaited."""
        return awaited == 0

    def released(self, tensor: Tensor, has_gradient: Callable[[Operation], bool]) -> tuple[list[Tensor], list[Tensor]]:
        """Now that `tensor` is ready: whose operations are to be differentiated, and which of these get zeros."""
        return [tensor], []

    def finish(self) -> None:
        """The walk is over."""


def _no_loops(between: dict[Operation, None], colocated: Callable[[Operation], Any]) -> Loops:
    return Loops()


# Makes the `Loops` of a walk; it may add to the operations to go through. Set by
# ops/control/gradients_through_loops.py.
loops_between: Callable[[dict[Operation, None], Callable[[Operation], Any]], Loops] = _no_loops


class _Walk:
    """One call of `gradients`: what is still awaited, and what has arrived."""

    def __init__(self, graph: Graph, colocate: bool, gate: bool, method: int) -> None:
        self.graph = graph
        self.colocate = colocate
        self.gate = gate
        self.method = method
        self.pending: dict[Operation, int] = {}  # gradients that an operation between ys and xs still waits for
        self.reached: set[Operation] = set()  # what depends on an x
        self.arrived: dict[Operation, list[Any]] = {}  # per output: the gradients so far, later their sum
        self.loops = Loops()

    def count_pending(self, ys: Sequence[Tensor], xs: Sequence[Tensor]) -> None:
        """Mark the operations between xs and ys, and count the uses of each by others of them."""
        self.reached = _reached_from(x.op for x in xs)
        between: dict[Operation, None] = {}
        queue = deque(y.op for y in ys)
        while queue:
            op = queue.popleft()
            if op in self.reached and op not in between:
                between[op] = None
                queue.extend(t.op for t in op.inputs)
        self.loops = loops_between(between, self._colocated)
        for op in between:
            for tensor in op.inputs:
                if tensor.op in between:
                    self.pending[tensor.op] = self.pending.get(tensor.op, 0) + 1

    def back(
        self, ys: Sequence[Tensor], first: Sequence[Gradient], xs: Sequence[Tensor], stops: Sequence[Operation]
    ) -> None:
        """Differentiate, operation by operation, from the ys to the xs."""
        for y, grad in zip(ys, first, strict=True):
            self._arrive(y, grad)
        queue = deque(dict.fromkeys(y.op for y in ys if not self.pending.get(y.op) and y.op in self.reached))
        queue += self._with_zeros(self.loops.unused_exits(self.pending, set(queue)))
        ends = {x.op for x in xs if not any(self.pending.get(t.op) for t in x.op.inputs)} | set(stops)
        while queue:
            op = queue.popleft()
            with self._colocated(op):
                self._through(op, op in ends, xs)
            for tensor in op.inputs:
                queue += self._one_less(tensor)

    def _one_less(self, tensor: Tensor) -> list[Operation]:
        """One of the gradients that the operation of `tensor` waited for is there; what is to be differentiated now."""
        awaited = self.pending[tensor.op] = self.pending.get(tensor.op, 0) - 1
        if not self.loops.is_ready(tensor.op, awaited):
            return []
        ready, unused = self.loops.released(tensor, self._has_gradient)
        self._with_zeros(unused)
        return [t.op for t in ready]

    def _with_zeros(self, exits: Sequence[Tensor]) -> list[Operation]:
        """Zeros arrive at results of loops that nothing depends on; the operations of those that can have any."""
        exits = [tensor for tensor in exits if _is_trainable(tensor.dtype)]
        for tensor in exits:
            self._arrive(tensor, self.loops.zeros_for_exit(tensor))
        return [tensor.op for tensor in exits]

    def _has_gradient(self, op: Operation) -> bool:
        """Whether a gradient arrived at one of the outputs of `op`."""
        return any(grads is not None and grads != [] for grads in self.arrived.get(op, ()))

    def _through(self, op: Operation, is_end: bool, xs: Sequence[Tensor]) -> None:
        """Sum what arrived at the outputs of `op` and pass its gradients on to its inputs."""
        with self.loops.entered(op, before=True):
            dys = self._sums(op)
        if is_end or all(dy is None for dy in dys):
            return
        try:
            function = get_gradient_function(op)
        except LookupError:
            raise LookupError(_NO_GRADIENT.format(name=op.name, type=op.type)) from None
        if function is None:
            return
        with self.loops.entered(op):
            _check_not_first_value(op, xs)
            for i, dy in enumerate(dys):
                if dy is None and _is_trainable(op.outputs[i].dtype):
                    dys[i] = self.loops.zeros(op, i)
            with name_scope(f"{op.name}_grad"):
                dxs = self._call(function, op, dys)
            for i, (tensor, dx) in enumerate(zip(op.inputs, dxs, strict=True)):
                if dx is not None:
                    _set_shape(op, i, dx)
                    self._arrive(tensor, dx)

    def _call(self, function: GradientFunction, op: Operation, dys: list[Gradient]) -> list[Gradient]:
        dxs = function(op, *dys)
        dxs = list(dxs) if isinstance(dxs, list | tuple) else [dxs]
        if len(dxs) != len(op.inputs):
            raise ValueError(
                f"Num gradients {len(dxs)} generated for op {op.node()} do not match num inputs {len(op.inputs)}"
            )
        if self.gate and sum(dx is not None for dx in dxs) > 1:
            with self.graph.device(None), self.graph.colocate_with(None, ignore_existing=True):
                dxs = gate(dxs)
        return dxs

    def _arrive(self, tensor: Tensor, grad: Gradient) -> None:
        slots = self.arrived.get(tensor.op)
        if slots is None:
            slots = self.arrived[tensor.op] = [[] for _ in tensor.op.outputs]
        if isinstance(slots[tensor.value_index], list):
            slots[tensor.value_index].append(grad)
        else:  # the Switch of a loop, which is gone through a second time
            slots[tensor.value_index] = grad

    def _sums(self, op: Operation) -> list[Gradient]:
        """The gradients of the outputs of `op`, each the sum of what arrived, None where nothing did."""
        slots = self.arrived.get(op)
        if slots is None:
            return [None] * len(op.outputs)
        for i, grads in enumerate(slots):
            if isinstance(grads, list):
                slots[i] = self._sum(op, grads)
        return list(slots)

    def _sum(self, op: Operation, grads: list[Gradient]) -> Gradient:
        if not all(isinstance(g, Tensor | IndexedSlices) for g in grads):
            raise TypeError(f"Invalid gradient {grads}. Gradients have to be either all Tensors or all IndexedSlices")
        if len(grads) < 2:
            return grads[0] if grads else None
        if not all(isinstance(g, Tensor) for g in grads):
            return sum_of_slices(grads)
        if self.method == AggregationMethod.ADD_N:
            return self._add_by_device(grads)
        with name_scope(f"{op.name}_gradient_sum"):
            return functools.reduce(lambda total, grad: _add_n([total, grad]), grads)

    def _add_by_device(self, grads: Sequence[Tensor]) -> Any:
        """Partial sums where the gradients are, then the sum of these."""
        on_device = grouped((grad.device, grad) for grad in grads)
        partial = []
        for device in sorted(on_device):
            with self.graph.colocate_with(on_device[device][0].op, ignore_existing=True):
                partial.append(_add_n(on_device[device]))
        return _add_n(partial)

    @contextlib.contextmanager
    def _colocated(self, op: Operation) -> Iterator[None]:
        if self.colocate:
            with self.graph.colocate_with(op):
                yield
        else:
            yield

    def first_gradients(self, ys: Sequence[Tensor], starts: Sequence[Any]) -> list[Gradient]:
        """A gradient for each y: the one given, or ones."""
        if len(starts) != len(ys):
            raise ValueError(f"Length mismatch. Passed {len(starts)} grad_ys for {len(ys)} ys")
        given = [
            g if g is None or isinstance(g, IndexedSlices) else convert_to_tensor(g, name=f"grad_y_{i}")
            for i, g in enumerate(starts)
        ]
        first = []
        for i, (y, grad) in enumerate(zip(ys, given, strict=True)):
            with self._colocated(y.op):
                if grad is None:
                    first.append(_ones_like(y, f"grad_ys_{i}"))
                else:
                    _check_start(y, grad)
                    first.append(_identity(grad, f"grad_ys_{i}"))
        return first

    def result(self, x: Tensor, unconnected: UnconnectedGradients) -> Gradient:
        """The gradient that arrived at `x`."""
        slots = self.arrived.get(x.op)
        found = slots[x.value_index] if slots is not None else None
        if isinstance(found, list):  # its operation was never visited: no y depends on it
            found = None
        if found is None and unconnected is UnconnectedGradients.ZERO:
            return _zeros_like(x)
        return found


_NO_GRADIENT = (
    "No gradient defined for operation '{name}' (op type: {type}). "
    "In general every operation must have an associated `@tf.RegisterGradient` for correct autodiff, which this op is "
    "lacking. If you want to pretend this operation is a constant in your program, you may insert `tf.stop_gradient`."
)


def _is_trainable(dtype: DType) -> bool:
    return dtype.base_dtype in _TRAINABLE


def _reached_from(ops: Iterable[Operation]) -> set[Operation]:
    """All operations that the values of `ops` flow to through tensors that can change by a little."""
    reached: set[Operation] = set()
    queue = deque(ops)
    while queue:
        op = queue.popleft()
        if op not in reached:
            reached.add(op)
            for tensor in op.outputs:
                if _is_trainable(tensor.dtype):
                    queue.extend(tensor._consumers)
    return reached


def _check_not_first_value(op: Operation, xs: Sequence[Tensor]) -> None:
    """ValueError where a body asks for a gradient that goes back through the variables of its own loop."""
    context = op._control_flow_context
    here = op.op_class.control_flow == "switch" and context is op.graph._blocks.control_flow_context
    if not here or context is None or context.GetWhileContext() is not context:
        return
    ends, seen, queue = {x.op for x in xs}, set(), deque([op])
    while queue and queue[0] not in ends:
        current = queue.popleft()
        if current not in seen:
            seen.add(current)
            queue.extend(t.op for t in current.inputs)
    raise ValueError(
        f"Cannot compute gradient inside while loop with respect to op '{queue[0].name}'. We do not support taking "
        "the gradient wrt or through the initial value of a loop variable. Gradients can be computed through loop "
        "invariants or wrt the input parameters to the loop body."
    )


def _set_shape(op: Operation, index: int, dx: Any) -> None:
    """Give the gradient the static shape of the input."""
    tensor = op.inputs[index]
    if not isinstance(dx, Tensor) or tensor.dtype == dtypes.resource:
        return
    try:
        dx.set_shape(tensor.shape)
    except ValueError:
        raise ValueError(
            f"Incompatible shapes between op input and calculated input gradient. Forward operation: {op.name}. "
            f"Input index: {index}. Original input shape: {tensor.shape}. "
            f"Calculated input gradient shape: {dx.shape}"
        ) from None


def _check_start(y: Tensor, grad: Any) -> None:
    """TypeError if `grad` can't be the gradient of `y`."""
    real, given = y.dtype.is_floating or y.dtype.is_integer, grad.dtype.is_floating or grad.dtype.is_integer
    text = f"Gradient type {grad.dtype.name} generated for"
    if real and not given:
        raise TypeError(f"{text} real or integer-valued tensor {y} with type {y.dtype.name} must be real or integer")
    if y.dtype.is_complex and not grad.dtype.is_complex:
        raise TypeError(f"{text} complex-valued tensor {y} with type {y.dtype.name} must be real")
    if y.dtype == dtypes.resource and grad.dtype == dtypes.resource:
        raise TypeError(f"Input gradient {grad} for resource tensor {y} should not be a resource")
    if not real and not y.dtype.is_complex and y.dtype not in (dtypes.resource, dtypes.variant):
        raise TypeError(f"Tensor {y} with type {y.dtype.name} must be numeric to obtain a default gradient")


# -- the few graph pieces that the walk itself adds -------------------------------------------------------------


def _ones_like(y: Tensor, name: str) -> Any:
    if y.dtype.is_complex:
        raise TypeError(f"Gradients of complex tensors ({y}) must set grad_ys (y.dtype = {y.dtype.name})")
    shape = _shape_of(y)
    with name_scope(name) as scope:
        return apply_op("Fill", scope, dims=shape, value=constant(y.dtype.is_bool or 1, y.dtype))


def _shape_of(tensor: Tensor) -> Any:
    """The shape as a tensor: a constant where it is known."""
    if tensor.shape.is_fully_defined():
        return constant(tensor.shape.as_list(), dtypes.int32, name="Shape")
    return apply_op("Shape", "Shape", input=tensor)


def _zeros_like(x: Tensor) -> Any:
    if x.dtype == dtypes.resource:
        return _zeros_of_variable(x)
    with name_scope("zeros_like") as scope:
        if not x.shape.is_fully_defined():
            return apply_op("ZerosLike", scope, x=x)
        size = x.shape.num_elements()
        zero = False if x.dtype.is_bool else b"" if x.dtype == dtypes.string else 0
        if size is not None and size < 1000:
            return constant(zero, x.dtype, shape=x.shape, name=scope)
        dims = constant(x.shape.as_list(), dtypes.int32, name="shape_as_tensor")
        return apply_op("Fill", scope, dims=dims, value=constant(zero, x.dtype))


def _zeros_of_output(op: Operation, index: int) -> Any:
    """The gradient of an output that nothing depends on; None where there are no zeros."""
    if op.op_class.zeros is not None:
        return op.op_class.zeros(op, index)
    if op.outputs[index].dtype.is_numeric:
        return apply_op("ZerosLike", "zeros_like", x=op.outputs[index])
    return None


def _zeros_of_variable(handle: Tensor) -> Any:
    """Zeros in the shape of a resource variable."""
    known = declared(handle)
    if known is None:
        raise ValueError(f"The variable behind {handle} is not known; its unconnected gradient can't be zero.")
    shape, dtype = known
    if shape.is_fully_defined():
        dims = constant(shape.as_list(), dtypes.int32)
    else:
        dims = apply_op("VariableShape", None, input=handle)
    with name_scope("zeros") as scope:
        return apply_op("Fill", scope, dims=dims, value=constant(0, dtype))


def _identity(grad: Any, name: str) -> Any:
    if not isinstance(grad, IndexedSlices):
        return apply_op("Identity", name, input=grad)
    shape = grad.dense_shape
    return IndexedSlices(
        indices=apply_op("Identity", f"{name}_indices", input=grad.indices),
        values=apply_op("Identity", f"{name}_values", input=grad.values),
        dense_shape=None if shape is None else apply_op("Identity", f"{name}_shape", input=shape),
    )


def _add_n(grads: Sequence[Any]) -> Any:
    return grads[0] if len(grads) == 1 else apply_op("AddN", None, inputs=list(grads))


def sum_of_slices(grads: Sequence[Any]) -> Any:
    """The sum of gradients of which some are IndexedSlices: their rows one after the other, or a dense sum."""
    if any(isinstance(g, Tensor) for g in grads):
        return _add_n(grads)
    indices = [g.indices for g in grads]
    if len({i.dtype for i in indices}) > 1:
        indices = [apply_op("Cast", None, x=i, DstT=dtypes.int64) if i.dtype == dtypes.int32 else i for i in indices]
    values = apply_op("ConcatV2", "concat", values=[g.values for g in grads], axis=0)
    return IndexedSlices(values, apply_op("ConcatV2", "concat", values=indices, axis=0), grads[0].dense_shape)


def _gate_by_itself(grads: Sequence[Gradient]) -> list[Gradient]:
    raise NotImplementedError("`tf.tuple` is not loaded: import dtflab.ops.control.flow_ops")


# `tf.tuple`, which upper rooms define: ops/control/flow_ops.py puts it here.
gate: Callable[[Sequence[Gradient]], list[Gradient]] = _gate_by_itself
