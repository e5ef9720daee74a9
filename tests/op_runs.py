"""The examples of an op, built once in dtflab, run there and, through a GraphDef, in TensorFlow."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import kernels

import dtflab
from dtflab.graph import dtypes, op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.dtypes import DType
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape
from tests import conditions
from tests.conditions import Exact
from tests.evaluate import evaluate
from tests.op_examples import ROUNDINGS, Example, Var, dtypes_of, examples_of

tf.disable_v2_behavior()


@dataclasses.dataclass
class Built:
    """An example as an operation of a graph."""

    example: Example
    op: Operation
    fetches: list[Tensor]  # the outputs that have values, and the variables' values afterwards

    def __repr__(self) -> str:
        shown = ", ".join(_shown(v) for v in self.example.inputs)
        return f"{self.op.type}({shown}, {self.example.attrs})"


def _shown(value: Any) -> str:
    if isinstance(value, Var):
        return f"Var {_shown(value.value)}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    text = np.array2string(value, threshold=20).replace("\n", "")
    return f"{value.dtype}{list(value.shape)} {text}"


def build(op_type: str, example: Example, name: str, source: Any = constant) -> Built:
    """Add the example to the default graph; `source(array, name=...)` makes the tensors of its inputs."""
    op_def = op_registry.get(op_type).op_def
    given: dict[str, Any] = {}
    variables: list[Tensor] = []
    wait: list[Any] = []
    for arg, value in zip(op_def.inputs, example.inputs, strict=True):
        if isinstance(value, Var):
            variable, ready = _variable(value.value, f"{name}/{arg.name}", arg.is_ref)
            given[arg.name] = variable
            variables.append(variable)
            wait += [] if op_type in _MAKES_THE_VALUE else [ready]
        elif isinstance(value, list):
            given[arg.name] = [source(v, name=f"{name}/{arg.name}_{i}") for i, v in enumerate(value)]
        else:
            given[arg.name] = source(value, name=f"{name}/{arg.name}")
    with dtflab.control_dependencies(wait):
        made = apply_op(op_type, name, **given, **example.attrs)
    op = made if isinstance(made, Operation) else next(_first(made)).op
    return Built(example, op, [t for t in op.outputs if _has_value(t)] + _afterwards(variables, op))


_MAKES_THE_VALUE = ("Assign", "AssignVariableOp")


def _first(value: Any) -> Iterator[Tensor]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _first(item)
    else:
        yield value


def _has_value(tensor: Tensor) -> bool:
    return tensor.dtype.base_dtype not in (dtypes.resource, dtypes.variant)


def _variable(value: np.ndarray, name: str, is_ref: bool) -> tuple[Tensor, Operation]:
    dtype, shape = dtypes.as_dtype(value.dtype), TensorShape(value.shape)
    if is_ref:
        variable = apply_op("VariableV2", name, shape=shape, dtype=dtype)
        return variable, apply_op("Assign", f"{name}/init", ref=variable, value=constant(value, dtype)).op
    handle = apply_op("VarHandleOp", name, shape=shape, dtype=dtype, shared_name=name)
    return handle, apply_op("AssignVariableOp", f"{name}/init", resource=handle, value=constant(value, dtype))


def _afterwards(variables: Sequence[Tensor], op: Operation) -> list[Tensor]:
    return [_value_after(op, v, f"{op.name}/after_{i}") for i, v in enumerate(variables)]


def _value_after(op: Operation, variable: Tensor, name: str) -> Tensor:
    with dtflab.control_dependencies([op]):
        if variable.dtype == dtypes.resource:
            dtype = variable.op.get_attr("dtype")
            return apply_op("ReadVariableOp", name, resource=variable, dtype=dtype)
        return apply_op("Identity", name, input=variable)


def values_here(built: Sequence[Built]) -> list[list[Any]]:
    """The values that dtflab computes, one list per example."""
    graph = built[0].op.graph
    if any(isinstance(v, Var) for b in built for v in b.example.inputs) or built[0].op.op_class.needs_ctx:
        with dtflab.Session(graph=graph) as session:
            return [session.run(b.fetches) for b in built]
    return [evaluate(b.fetches) for b in built]


# -- TensorFlow's side -------------------------------------------------------------------------------------------


def imported(graph: Graph) -> tf.Graph:
    theirs = tf.Graph()
    with theirs.as_default():
        tf.import_graph_def(as_theirs(graph), name="")
    return theirs


def as_theirs(graph: Graph) -> tf.GraphDef:
    return tf.GraphDef.FromString(graph.as_graph_def().SerializeToString())


def session_of(graph: tf.Graph) -> tf.Session:
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    return tf.Session(graph=graph, config=config)


@functools.cache
def _cpu_kernels(op_type: str) -> list[Any]:
    return [k for k in kernels.get_registered_kernels_for_op(op_type).kernel if k.device_type in ("CPU", "DEFAULT")]


# Kernels that are registered and refuse when they run; the shape rule of Range does.
_REFUSED = {("Tile", dtypes.uint16), ("Where", dtypes.float16), ("Range", dtypes.float16)}


def tensorflow_runs(op: Operation) -> bool:
    """Whether TensorFlow has a kernel for this operation on the CPU."""
    if any((op.type, t.dtype) in _REFUSED for t in op.inputs):
        return False

    def fits(constraint: Any) -> bool:
        allowed = constraint.allowed_values.list
        value = op.attrs[constraint.name]
        values = value if isinstance(value, list) else [value]
        return {getattr(v, "as_datatype_enum", v) for v in values} <= {*allowed.type, *allowed.s}

    return any(all(map(fits, kernel.constraint)) for kernel in _cpu_kernels(op.type))


# -- one op ------------------------------------------------------------------------------------------------------


class Runs:
    """The examples of one op that TensorFlow can run, and their values there."""

    def __init__(self, op_type: str) -> None:
        self.op_type = op_type
        self.op_class = op_registry.get(op_type)
        examples = {
            f"{dtype.name}_{i}": example
            for dtype in dtypes_of(self.op_class.op_def)
            for i, example in enumerate(examples_of(op_type, dtype))
        }
        self._build(examples)
        unsupported = [built.op.name for built in self.built if not tensorflow_runs(built.op)]
        if unsupported:  # TensorFlow places all nodes of a graph, so that it must have a kernel for each
            self._build({name: example for name, example in examples.items() if name not in unsupported})

    def _build(self, examples: dict[str, Example]) -> None:
        with Graph().as_default() as self.graph:
            self.built = [build(self.op_type, example, name) for name, example in examples.items()]

    @functools.cached_property
    def exact(self) -> list[list[Exact | None]]:
        """The examples' values in double precision, for ops that are judged by their condition number."""
        roundings = ROUNDINGS.get(self.op_type)
        found: list[list[Exact | None]] = [[None] * len(b.fetches) for b in self.built]
        for i, built in enumerate(self.built if roundings else []):
            compute, inputs = in_double(built)
            if inputs:
                found[i] = [*conditions.exact(compute, inputs, roundings)]
        return found

    @functools.cached_property
    def theirs(self) -> tf.Graph:
        return imported(self.graph)

    @functools.cached_property
    def their_values(self) -> list[list[Any]]:
        with session_of(self.theirs) as session:
            return session.run([[t.name for t in b.fetches] for b in self.built])


def in_double(built: Built) -> tuple[Callable[[list[np.ndarray]], list[Any]], list[np.ndarray]]:
    """A function that computes the example in double precision, and its inputs as they are: those other than integers.

    By dtflab's kernels, because TensorFlow's are not there for each example; the examples in double precision compare
    these kernels with TensorFlow's.
    """
    inputs: dict[Tensor, np.ndarray] = {}

    def source(array: np.ndarray, name: str) -> Tensor:
        if not conditions.is_inexact(array.dtype):
            return constant(array, dtypes.as_dtype(array.dtype), name=name)
        wide = dtflab.placeholder(dtypes.as_dtype(conditions.widened(array).dtype), array.shape, name=name)
        inputs[wide] = array
        return wide

    with Graph().as_default():
        fetches = build(built.op.type, built.example, "exact", source).fetches
    return lambda given: evaluate(fetches, dict(zip(inputs, given))), [*inputs.values()]


@functools.cache
def runs_of(op_type: str) -> Runs:
    return Runs(op_type)


_TOLERANCE = {
    dtypes.float64: 1e-11,
    dtypes.complex128: 1e-11,
    dtypes.float32: 4e-6,
    dtypes.complex64: 4e-6,
    dtypes.float16: 4e-3,
    dtypes.bfloat16: 3e-2,
}


def difference(ours: Any, theirs: Any, dtype: DType, loose: float = 1, exact: Exact | None = None) -> str:
    """Empty if two values agree, within rounding for floating dtypes; else what is wrong."""
    kind = object if dtype == dtypes.string else None  # NumPy's own strings lose zeros at their end
    ours, theirs = np.asarray(ours, kind), np.asarray(theirs, kind)
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, TensorFlow {theirs.shape}"
    if dtype == dtypes.string:
        ours, theirs = ours.tolist(), theirs.tolist()  # `repr`: an array of one string equals that string
        return "" if repr(ours) == repr(theirs) else f"{ours}, TensorFlow {theirs}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, TensorFlow {theirs.dtype}"
    if exact is not None and conditions.is_inexact(ours.dtype):
        return exact.wrong(ours, "dtflab") or exact.wrong(theirs, "TensorFlow")
    tolerance = _TOLERANCE.get(dtype.base_dtype)
    if tolerance is None:
        return "" if np.array_equal(ours, theirs) else f"{ours}, TensorFlow {theirs}"
    wide = np.complex128 if dtype.is_complex else np.float64
    with np.errstate(all="ignore"):
        same = np.isclose(
            ours.astype(wide),
            theirs.astype(wide),
            tolerance * loose,
            1e-30 + tolerance * loose / 100,
            equal_nan=True,
        )
    if same.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"at {at} {ours[at]!r}, TensorFlow {theirs[at]!r} ({(~same).sum()} of {same.size} differ)"
