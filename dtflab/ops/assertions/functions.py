"""Assertions about tensors: checked at once where the graph has the answer, else by an Assert that fails in a step.

Stands for `python/ops/check_ops.py` and `control_flow_assert.py`. Left out: sizes of SparseTensors in `assert_shapes`.

Rule: an assertion is an operation, and something must wait for it: `tf.control_dependencies([tf.assert_positive(x)])`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.base.naming import named
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, name_scope
from dtflab.graph.static_value import constant_value
from dtflab.ops.arrays.functions import rank as rank_of, reshape, shape as shape_of
from dtflab.ops.control.cond import cond
from dtflab.ops.control.functions import group, no_op, with_dependencies
from dtflab.ops.math import functions as math
from dtflab.ops.math.functions import abs as abs_of
from dtflab.ops.messages import renamed
from dtflab.ops.reduce.functions import reduce_all
from dtflab.ops.sparse.sparse_tensor import SparseTensor

Condition = Callable[[Any, Any], Any]
Data = Sequence[Any] | None  # what a failed assertion shows, by default what was compared
Count = int | None  # how many elements of each tensor it shows, by default 3
Text = str | None


def _prefix(message: Text) -> str:
    return f"{message}.  " if message is not None else ""


# -- in a step ----------------------------------------------------------------------------------------------------


def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> Operation:
    """An operation that fails with InvalidArgumentError, showing `data`, if `condition` is false.

    It runs only if something depends on it: `with tf.control_dependencies([tf.Assert(...)]):`.
    """
    # As TensorFlow: a `cond` around the op, so that data in a GPU's memory is copied only if the check fails.
    with name_scope(name, "Assert", [condition, *data]):
        tensors = [convert_to_tensor(value) for value in data]

        def check() -> Operation:
            return apply_op("Assert", "Assert", condition=condition, data=list(data), summarize=summarize)

        if all(t.dtype in (dtypes.string, dtypes.int32) for t in tensors):
            return check()
        condition = convert_to_tensor(condition, name="Condition")
        return cond(condition, no_op, check, name="AssertGuard").op


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Tensor:
    """`t` after the check that every element is a finite number; else InvalidArgumentError with `msg`.

    `x` and `message` are other names of these arguments.
    """
    x, message = renamed("x", x, "t", t), renamed("message", message, "msg", msg)
    with name_scope(name, "VerifyFinite", [x]):
        x = convert_to_tensor(x, name="x")
        with colocate_with(x):
            return with_dependencies([check_numerics(x, message or "")], x)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """`tensor`, or InvalidArgumentError with `message` if an element is infinite or not a number."""
    return apply_op("CheckNumerics", name, tensor=tensor, message=message)


# -- two tensors --------------------------------------------------------------------------------------------------


def _comparison(opname: str, sign: str, condition: Condition, static: Condition) -> Callable[..., Operation]:
    """The function `opname`: an assertion that `x sign y` for all elements."""

    def check(
        x: Any, y: Any, data: Data = None, summarize: Count = None, message: Text = None, name: Text = None
    ) -> Operation:
        if sign == "==":
            with name_scope(name, opname, [x, y, data]):
                if x is y:
                    return no_op()
        with name_scope(name, opname, [x, y, data]):
            x, y = convert_to_tensor(x, name="x"), convert_to_tensor(y, name="y")
            if data is None:
                failed = f"Condition x {sign} y did not hold element-wise:"
                data = [failed, f"x ({x.name}) = ", x, f"y ({y.name}) = ", y]
            if message is not None:
                data = [message, *data]
            holds = reduce_all(condition(x, y))
            known = constant_value(x), constant_value(y)
            if known[0] is not None and known[1] is not None and not np.all(static(*known)):
                raise errors.InvalidArgumentError.of("\n".join(map(_shown, data)))
            return Assert(holds, data, summarize=summarize)

    doc = f"""An operation that fails unless `x {sign} y` for all elements, which are broadcast.

    Shows `message` and `data`, by default both tensors, as many elements of each as `summarize` says (3). Raises
    InvalidArgumentError at once if both are known.
    """
    return named(check, opname, doc)


def _shown(item: Any) -> str:
    value = constant_value(item) if isinstance(item, Tensor) else item
    return str(item if value is None else value)


assert_equal = _comparison("assert_equal", "==", math.equal, np.equal)
assert_none_equal = _comparison("assert_none_equal", "!=", math.not_equal, np.not_equal)
assert_less = _comparison("assert_less", "<", math.less, np.less)
assert_less_equal = _comparison("assert_less_equal", "<=", math.less_equal, np.less_equal)
assert_greater = _comparison("assert_greater", ">", math.greater, np.greater)
assert_greater_equal = _comparison("assert_greater_equal", ">=", math.greater_equal, np.greater_equal)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Data = None,
    summarize: Count = None,
    message: Text = None,
    name: Text = None,
) -> Operation:
    """An operation that fails unless |x - y| < atol + rtol·|y| for all elements; both are 10·eps by default."""
    with name_scope(name, "assert_near", [x, y, rtol, atol, data]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype)
        dtype = x.dtype.real_dtype
        eps = 10 * np.finfo(dtype.as_numpy_dtype).eps
        rtol = convert_to_tensor(eps if rtol is None else rtol, name="rtol", dtype=dtype)
        atol = convert_to_tensor(eps if atol is None else atol, name="atol", dtype=dtype)
        if data is None:
            failed = f"x and y not equal to tolerance rtol = {rtol}, atol = {atol}"
            data = [_prefix(message), failed, f"x ({x.name}) = ", x, f"y ({y.name}) = ", y]
        tolerance = atol + rtol * abs_of(y)
        return Assert(reduce_all(math.less(abs_of(x - y), tolerance)), data, summarize=summarize)


# -- one tensor and zero ------------------------------------------------------------------------------------------


def _signed(opname: str, sign: str, check: Callable[..., Operation], zero_first: bool) -> Callable[..., Operation]:
    """The function `opname`: an assertion that `x sign 0`."""

    def assertion(
        x: Any, data: Data = None, summarize: Count = None, message: Text = None, name: Text = None
    ) -> Operation:
        with name_scope(name, opname, [x, data]):
            x = convert_to_tensor(x, name="x")
            if data is None:
                failed = [f"Condition x {sign} 0 did not hold element-wise:", f"x ({x.name}) = "]
                if sign == "<=":
                    failed = ["".join(failed)]  # as in TensorFlow, where a comma is missing
                data = [_prefix(message), *failed, x]
            zero = convert_to_tensor(0, dtype=x.dtype)
            return check(*((zero, x) if zero_first else (x, zero)), data=data, summarize=summarize)

    doc = f"An operation that fails unless `x {sign} 0` for all elements; see `assert_equal`."
    return named(assertion, opname, doc)


assert_negative = _signed("assert_negative", "<", assert_less, zero_first=False)
assert_positive = _signed("assert_positive", ">", assert_less, zero_first=True)
assert_non_negative = _signed("assert_non_negative", ">=", assert_less_equal, zero_first=True)
assert_non_positive = _signed("assert_non_positive", "<=", assert_less_equal, zero_first=False)


# -- ranks --------------------------------------------------------------------------------------------------------


def _sparse_or_tensor(x: Any) -> Any:
    return x if isinstance(x, SparseTensor) else convert_to_tensor(x, name="x")


def _assert_ranks(
    x: Any, ranks: Sequence[Any], words: str, static: Condition, dynamic: Condition, *shown: Any
) -> Operation:
    """An assertion about the rank of `x`; ValueError at once if it is known to be wrong."""
    data, summarize, message = shown
    ranks = [convert_to_tensor(rank, name="rank") for rank in ranks]
    name = "" if isinstance(x, SparseTensor) else x.name
    if data is None:
        data = [_prefix(message), f"Tensor {name} must have {words}", *ranks, "Received shape: ", shape_of(x)]
    for rank in ranks:
        assert_type(rank, dtypes.int32)
    known = [constant_value(rank) for rank in ranks]
    if all(value is not None for value in known):
        if any(value.ndim for value in known):
            raise ValueError("Rank must be a scalar.")
        actual, wanted = x.get_shape().ndims, tuple(map(int, known))
        if actual is not None:
            if any(static(actual, value) for value in wanted):
                return no_op(name="static_checks_determined_all_ok")
            raise ValueError(
                f"{_prefix(message)}Tensor {name} must have {words} {wanted if words == 'rank in' else wanted[0]}.  "
                f"Received rank {actual}, shape {x.get_shape()}"
            )
    found = rank_of(x)
    condition = functools.reduce(math.logical_or, [dynamic(found, rank) for rank in ranks])
    for rank, value in zip(ranks, known, strict=True):
        if value is None:
            scalar = assert_rank(rank, 0, data=["Rank must be a scalar. Received rank: ", rank])
            condition = with_dependencies([scalar], condition)
    return Assert(condition, data, summarize=summarize)


def _rank_assertion(opname: str, words: str, static: Condition, dynamic: Condition) -> Callable[..., Operation]:
    def assertion(
        x: Any, rank: Any, data: Data = None, summarize: Count = None, message: Text = None, name: Text = None
    ) -> Operation:
        with name_scope(name, opname, [x, rank, *(data or ())]):
            return _assert_ranks(_sparse_or_tensor(x), [rank], words, static, dynamic, data, summarize, message)

    doc = f"An operation that fails unless `x` has {words} `rank`; ValueError if that is known."
    return named(assertion, opname, doc)


assert_rank = _rank_assertion("assert_rank", "rank", operator.eq, math.equal)
assert_rank_at_least = _rank_assertion("assert_rank_at_least", "rank at least", operator.ge, math.greater_equal)


def assert_rank_in(
    x: Any, ranks: Iterable[Any], data: Data = None, summarize: Count = None, message: Text = None, name: Text = None
) -> Operation:
    """An operation that fails unless the rank of `x` is one of `ranks`; ValueError if that is known."""
    ranks = list(ranks)
    with name_scope(name, "assert_rank_in", [x, *ranks, *(data or ())]):
        same = operator.eq, lambda found, rank: math.equal(rank, found)
        return _assert_ranks(_sparse_or_tensor(x), ranks, "rank in", *same, data, summarize, message)


# -- shapes -------------------------------------------------------------------------------------------------------


def assert_shapes(
    shapes: Any, data: Data = None, summarize: Count = None, message: Text = None, name: Text = None
) -> Operation:
    """An operation that fails unless tensors have shapes that fit together; ValueError where that is known.

    `shapes` is a dict or pairs: tensor → sizes. A size is a number, a symbol that means the same number everywhere,
    or None or "." for any; a first "*" or ... stands for any number of dimensions.

    >>> tf.debugging.assert_shapes([(x, ("N", "Q")), (y, ("N", "D")), (scalar, ())])
    """
    shown = data, summarize, message
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    with name_scope(name, "assert_shapes", [shapes, data]):
        wanted = [(convert_to_tensor(x), _symbols(x, sizes, message)) for x, sizes in pairs if sizes is not None]
        checks = [_shape_rank(x, *symbols, *shown) for x, symbols in wanted]
        known: dict[Any, tuple[Any, str]] = {}  # symbol → its size, and where that is from
        with control_dependencies([check for check in checks if check is not None]):
            for x, (open_end, symbols) in wanted:
                for i, symbol in enumerate(symbols):
                    if symbol is not None and symbol != ".":
                        checks.append(_shape_size(x, i - len(symbols) if open_end else i, symbol, known, *shown))
        return group(*[check for check in checks if check is not None])


def _symbols(x: Any, sizes: Any, message: Text) -> tuple[bool, list[Any]]:
    """(whether any dimensions may come first, the sizes of the others)."""
    tensor = f"{_prefix(message)}Tensor {getattr(x, 'name', x)}"
    if not hasattr(sizes, "__iter__"):
        raise ValueError(
            f"{tensor}.  Specified shape must be an iterable.  An iterable has the attribute `__iter__` or "
            f"`__getitem__`.  Received specified shape: {sizes}"
        )
    found = list(sizes)
    for i, symbol in enumerate(found):
        if i and (symbol is Ellipsis or symbol == "*"):
            raise ValueError(
                f"{tensor} specified shape index {i}.  Symbol `...` or `*` for a variable number of unspecified "
                "dimensions is only allowed as the first entry"
            )
    is_open = bool(found) and (found[0] is Ellipsis or found[0] == "*")
    return is_open, found[is_open:]


def _shape_rank(x: Tensor, is_open: bool, symbols: list[Any], *shown: Any) -> Operation | None:
    """A scalar counts as a vector of one."""
    if is_open:
        return assert_rank_at_least(x, len(symbols), *shown) if len(symbols) > 1 else None
    return assert_rank_in(x, [0, 1], *shown) if len(symbols) < 2 else assert_rank(x, len(symbols), *shown)


def _shape_size(x: Tensor, at: int, symbol: Any, known: dict[Any, tuple[Any, str]], *shown: Any) -> Operation | None:
    data, summarize, message = shown
    static = x.shape.as_list() if x.shape.ndims else [1] if x.shape.ndims == 0 else None
    actual = static[at] if static is not None else None
    size: Any = actual if actual is not None else reshape(shape_of(x), [-1])[at]
    if not isinstance(symbol, int | np.integer) and symbol not in known:
        known[symbol] = size, f"Specified by tensor {x.name} dimension {at}"
        return None
    wanted, source = known.get(symbol, (symbol, "Specified explicitly"))
    if actual is not None and not isinstance(wanted, Tensor):
        if actual != int(wanted):
            raise ValueError(
                f"{_prefix(message)}{source}.  Tensor {x.name} dimension {at} must have size {wanted}.  Received size "
                f"{actual}, shape {x.shape}"
            )
        return None
    if data is None:
        size_text = f"Tensor {x.name} dimension", at, "must have size", wanted
        data = [_prefix(message), source, *size_text, "Received shape: ", shape_of(x)]
    return Assert(math.equal(convert_to_tensor(size), convert_to_tensor(wanted)), data, summarize=summarize)


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """`tensor`; ValueError unless it is a scalar by its static shape."""
    with name_scope(name, "assert_scalar", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name=scope)
        if tensor.shape.ndims != 0:
            raise ValueError(f"{_prefix(message)}Expected scalar shape for {tensor.name}, saw shape: {tensor.shape}.")
        return tensor


# -- dtypes -----------------------------------------------------------------------------------------------------------


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """TypeError unless `tensor` is of that dtype; else an operation that does nothing."""
    wanted = dtypes.as_dtype(tf_type)
    with name_scope(name, "assert_type", [tensor]):
        if not isinstance(tensor, SparseTensor):
            tensor = convert_to_tensor(tensor, name="tensor")
        if tensor.dtype != wanted:
            label = getattr(tensor, "name", "tensor")
            raise TypeError(f"{_prefix(message)}{label} must be of type {wanted!r}; got {tensor.dtype!r}")
        return no_op("statically_determined_correct_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """TypeError unless `x` is of an integer dtype; else an operation that does nothing."""
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError(f'{_prefix(message)}Expected "x" to be integer type.  Found: {x.name} of dtype {x.dtype}')
        return no_op("statically_determined_was_integer")


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> dtypes.DType:
    """The floating dtype that all `tensors` and `dtype` share (float32 if none is given); ValueError if they differ."""
    first = "" if dtype is None else "the given dtype"
    for tensor in tensors or ():
        if tensor is None:
            continue
        label, found = getattr(tensor, "name", str(tensor)), tensor.dtype.base_dtype
        if dtype is not None and found != dtype:
            raise ValueError(f"{label}, type={found}, must be of the same type ({dtype}) as {first}.")
        dtype, first = found, first or label
    if dtype is None:
        return dtypes.float32
    wanted = dtypes.as_dtype(dtype)
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted}.")
    return wanted


def is_numeric_tensor(tensor: Any) -> bool:
    """True for a Tensor of numbers."""
    if not isinstance(tensor, Tensor):
        return False
    dtype = tensor.dtype
    return dtype.is_integer or dtype.is_floating or dtype.is_complex or dtype.is_quantized


def assert_proper_iterable(values: Any) -> None:
    """TypeError for what is iterable by accident, tensors, arrays and text, or not at all."""
    if isinstance(values, Tensor | SparseTensor | np.ndarray | bytes | str):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


# -- order ------------------------------------------------------------------------------------------------------------


def _ordered(x: Any, name: str | None, opname: str, compare: Condition) -> Tensor:
    with name_scope(name, opname, [x]):
        flat = reshape(convert_to_tensor(x), [-1])
        return reduce_all(compare(flat[1:], flat[:-1]))


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """A bool scalar: whether no element of `x` is less than the one before it."""
    return _ordered(x, name, "is_non_decreasing", math.greater_equal)


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """A bool scalar: whether each element of `x` is greater than the one before it."""
    return _ordered(x, name, "is_strictly_increasing", math.greater)
