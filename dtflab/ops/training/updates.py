"""One step of an optimizer as one op: from a formula, its four ops (reference or resource, dense or rows).

Stands for `core/ops/training_ops.cc` and the classes of `core/kernels/training_ops.cc`; the formulas themselves
are in `rules.py`. Left out: what only Keras uses (KerasMomentum, AdaMax, Amsgrad, AddSign, PowerSign).

Rule: a formula is elementwise and writes into its variables. So on a gradient of rows it runs on those rows, taken
out and put back; rows that repeat come one after the other. All variables of an update are locked together, so
that two workers that apply at once both count; whether a reader sees the old or the new value is decided by when
it reads (`use_locking` changes nothing).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, nbytes, op
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.cell import update_together
from dtflab.ops.handles import variable_of
from dtflab.ops.messages import invalid, shape_text

Formula = Callable[..., None]
BLOCK = 1 << 15  # elements of a variable that a formula changes at a time, so that its steps stay in the cache


@dataclass(frozen=True)
class Rule:
    """A formula and what its signature says: `def adam(xp, var, m, v, /, lr, …, grad, *, use_nesterov)`."""

    formula: Formula
    variables: tuple[str, ...]
    inputs: tuple[str, ...]  # in the order of the ops: scalars, and the gradient `grad`
    scalars: tuple[str, ...]
    attrs: tuple[str, ...]
    types: dict[str, str]  # of attributes, and of inputs that are not of the variables' type
    gradient: str  # what `grad` is called in the dense ops
    cost: int  # arithmetic operations per element
    rows: Formula  # the formula of the ops for rows: the same, unless TensorFlow rounds otherwise there
    check_rows: Formula  # what only the ops for rows ask of the scalars


def rule(
    name: str,
    sparse: bool = True,
    gradient: str = "grad",
    cost: int = 2,
    rows: Formula | None = None,
    check_rows: Formula = lambda **given: None,
    **types: str,
) -> Callable[[Formula], Formula]:
    """Decorator: register the ops `ApplyName`, `ResourceApplyName`, and if `sparse` the two for rows."""

    def register(formula: Formula) -> Formula:
        def named(kind: Any) -> tuple[str, ...]:
            return tuple(p.name for p in inspect.signature(formula).parameters.values() if p.kind is kind)

        p = inspect.Parameter
        variables, inputs = named(p.POSITIONAL_ONLY)[1:], named(p.POSITIONAL_OR_KEYWORD)
        scalars = tuple(name for name in inputs if name != "grad")
        attrs = named(p.KEYWORD_ONLY)
        found = Rule(formula, variables, inputs, scalars, attrs, types, gradient, cost, rows or formula, check_rows)
        for in_resource in (False, True):
            _register(f"Apply{name}", _Dense, found, in_resource)
            if sparse:
                _register(f"SparseApply{name}", _Rows, found, in_resource)
        return formula

    return register


def _register(name: str, base: type[_Update], rule: Rule, in_resource: bool) -> None:
    """Make one op of a rule, with TensorFlow's interface."""
    variable, prefix, output = ("resource", "Resource", "") if in_resource else ("Ref(T)", "", "out: Ref(T)")
    inputs, names, more = base.inputs_of(rule)
    types = {"indices": "Tindices", **rule.types}
    args = [f"{v}: {variable}" for v in rule.variables]
    args += [f"{shown}: {types.get(i, 'T')}" for i, shown in zip(inputs, names)]
    attrs = "".join(f"\n{attr}: {rule.types[attr]}" for attr in rule.attrs)
    interface = (
        f"{prefix}{name}({', '.join(args)}) -> ({output}) where T: numbertype{more}, use_locking: bool = false{attrs}"
    )
    body = {"rule": rule, "inputs": inputs, "stateful": in_resource, "needs_ctx": in_resource}
    op(interface)(type(f"{prefix}{name}", (base,), body))


class _Update(Op):
    rule: Rule
    inputs: tuple[str, ...]  # after the variables

    def inputs_of(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """The inputs that an op of this form has, what they are called in it, and the attributes that it adds."""
        raise NotImplementedError

    @classmethod
    def check_static(cls, shape: TensorShape, given: dict[str, TensorShape]) -> TensorShape:
        """The shape of the variables, merged with the gradient's."""
        raise NotImplementedError

    @classmethod
    def writer(cls, xp: Any, attrs: dict[str, Any]) -> Callable[[list[Any], tuple[Any, ...]], None]:
        """`write(variables, values)`: check the values of the inputs, then write into the variables."""
        raise NotImplementedError

    @classmethod
    def infer(cls, operation: Any) -> list[TensorShape]:
        count = len(cls.rule.variables)
        shape = TensorShape(None)
        for variable in operation.inputs[:count]:
            shape = shape.merge_with(_variable_shape(variable))
        given = {name: t.shape for name, t in zip(cls.inputs, operation.inputs[count:])}
        for name in cls.rule.scalars:
            given[name].with_rank(0)
        shape = cls.check_static(shape, given)
        return [] if cls.stateful else [shape]

    @classmethod
    def bind(cls, node: Node, xp: Any) -> Callable[..., Any]:
        count = len(cls.rule.variables)
        write = cls.writer(xp, {name: node[name] for name in cls.rule.attrs})

        def update_references(*args: Any) -> Any:
            update_together(args[:count], xp, write, args[count:])
            return args[0]

        def update_resources(ctx: Any, *args: Any) -> None:
            update_together([variable_of(ctx, h) for h in args[:count]], xp, write, args[count:])

        return update_resources if cls.stateful else update_references

    @classmethod
    def flops(cls, node: Node, ins: Any, outs: Any) -> int:
        return cls.rule.cost * elements(cls._gradient(ins))

    @classmethod
    def bytes(cls, node: Node, ins: Any, outs: Any) -> int:
        """The inputs, and what they touch of each variable, read and written."""
        variables = len(cls.rule.variables)
        return sum(map(nbytes, ins[variables:])) + 2 * variables * nbytes(cls._gradient(ins))

    @classmethod
    def _gradient(cls, ins: Any) -> Any:
        return ins[len(cls.rule.variables) + cls.inputs.index("grad")]


def _check(rule: Rule, variables: list[Any], scalars: Iterable[Any]) -> None:
    """The slots are of the variable's shape, everything but the gradient is a scalar."""
    shape = variables[0].shape
    for name, value in zip(rule.variables, variables):
        if value.shape != shape:
            raise _shapes_differ(name, shape, value)
    for name, value in zip(rule.scalars, scalars):
        if value.ndim:
            raise invalid(f"{name} is not a scalar: {shape_text(value)}")


def _shapes_differ(name: str, shape: tuple[int, ...], value: Any) -> Exception:
    return invalid(f"var and {name} do not have the same shape{shape_text(shape)} {shape_text(value.shape)}")


def _variable_shape(variable: Any) -> TensorShape:
    """The shape of a variable: a reference or a handle."""
    if variable.dtype._is_ref_dtype:
        return variable.shape
    known = declared(variable)
    return known[0] if known else TensorShape(None)


class _Dense(_Update):
    """A gradient for each element."""

    def inputs_of(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        names = tuple(rule.gradient if name == "grad" else name for name in rule.inputs)
        return rule.inputs, names, ""

    @classmethod
    def check_static(cls, shape: TensorShape, given: dict[str, TensorShape]) -> TensorShape:
        return shape.merge_with(given["grad"])

    @classmethod
    def writer(cls, xp: Any, attrs: dict[str, Any]) -> Callable[[list[Any], tuple[Any, ...]], None]:
        rule, formula, at = cls.rule, functools.partial(cls.rule.formula, xp, **attrs), cls.inputs.index("grad")

        def write(variables: list[Any], values: tuple[Any, ...]) -> None:
            _check(rule, variables, values[:at] + values[at + 1 :])
            if values[at].shape != variables[0].shape:
                raise _shapes_differ(rule.gradient, variables[0].shape, values[at])
            for rows in _blocks(xp, values[at]):
                formula(*[v[rows] for v in variables], *values[:at], values[at][rows], *values[at + 1 :])

        return write


def _blocks(xp: Any, grad: Any) -> list[Any]:
    """The rows of the variables in blocks, as indices; a GPU changes all of them at once."""
    if grad.size <= BLOCK or xp is not np:
        return [...]
    rows = max(1, BLOCK * len(grad) // grad.size)
    return [slice(i, i + rows) for i in range(0, len(grad), rows)]


class _Rows(_Update):
    """A gradient for some rows: `grad[i]` belongs to the row `indices[i]`."""

    def inputs_of(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        after = rule.inputs.index("grad") + 1
        inputs = (*rule.inputs[:after], "indices", *rule.inputs[after:])
        return inputs, inputs, "\nTindices: {int32, int64}"

    @classmethod
    def check_static(cls, shape: TensorShape, given: dict[str, TensorShape]) -> TensorShape:
        count, grad = given["indices"].with_rank(1), given["grad"]
        if shape.ndims is not None and grad.ndims is not None:
            grad.merge_with(count.concatenate(shape[1:]))
        return shape

    @classmethod
    def writer(cls, xp: Any, attrs: dict[str, Any]) -> Callable[[list[Any], tuple[Any, ...]], None]:
        rule, names = cls.rule, cls.inputs

        def write(variables: list[Any], values: tuple[Any, ...]) -> None:
            scalars = dict(zip(names, values))
            indices, grad = scalars.pop("indices"), scalars.pop("grad")
            _check(rule, variables, scalars.values())
            rule.check_rows(**scalars, **attrs)
            _check_rows(xp, variables[0], grad, indices)
            for rows in _without_repeats(xp, indices):
                at = indices[rows]
                parts = [variable[at] for variable in variables]
                rule.rows(xp, *parts, grad=grad[rows], **scalars, **attrs)
                for variable, part in zip(variables, parts):
                    variable[at] = part

        return write


def _check_rows(xp: Any, variable: Any, grad: Any, indices: Any) -> None:
    if variable.ndim == 0:
        raise invalid("var must be at least 1 dimensional")
    if indices.ndim != 1:
        raise invalid("indices must be one-dimensional")
    if grad.ndim != variable.ndim:
        raise invalid("var and grad must have the same number of dimensions")
    for axis in range(1, variable.ndim):
        if variable.shape[axis] != grad.shape[axis]:
            raise invalid(f"var and grad must match in dimension {axis}")
    if grad.shape[0] != indices.shape[0]:
        raise invalid("grad must be the same size as indices in the first dimension.")
    outside = xp.flatnonzero((indices < 0) | (indices >= variable.shape[0]))
    if len(outside):
        raise invalid(f"Index {indices[outside[0]]} at offset {outside[0]} in indices is out of range")


def _without_repeats(xp: Any, indices: Any) -> list[Any]:
    """The positions in groups without equal indices, first come first."""
    if len(xp.unique(indices)) == len(indices):
        return [slice(None)]
    return [slice(i, i + 1) for i in range(len(indices))]
