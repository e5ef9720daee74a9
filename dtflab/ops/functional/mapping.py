"""Loops over the rows of tensors: map_fn, foldl, foldr, scan.

Stands for `python/ops/map_fn.py` and `functional_ops.py`. Left out: rows that are SparseTensors or RaggedTensors.

Rule: the rows are the elements of TensorArrays, and a while_loop goes over them. So the iterations of a map may run at
the same time, and gradients flow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import Dimension, TensorShape
from dtflab.ops.arrays import functions as arrays_functions
from dtflab.ops.control.cond_context import read_variable
from dtflab.ops.control.while_loop import while_loop
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.sparse.sparse_tensor import is_sparse
from dtflab.ops.variables.variable_scope import get_variable_scope


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` of each row of `elems`, one below the other.

    `elems` is a tensor or a nested structure of tensors with equally many rows; `fn` gets the like of it with a row of
    each. `dtype` (or `fn_output_signature`) is a structure of dtypes like what `fn` returns, if that differs from
    `elems`. With `infer_shape=False` nothing is concluded from the shape of the first result.
    Raises TypeError and ValueError for what can't be taken apart, and for a result of another structure or dtype.
    """
    _check_callable(fn)
    signature = dtype if fn_output_signature is None else fn_output_signature
    elems = nest.map_structure(read_variable, elems)
    given = _dense_leaves(elems)
    with name_scope(name, "map", given), _variables_read_once():
        flat = [convert_to_tensor(e, name="elem") for e in given]
        if flat[0].shape.ndims == 0:
            raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
        rows = _common_rows(flat)
        n = rows.value or arrays_functions.shape(flat[0])[0]
        arrays = [TensorArray(t.dtype, n, dynamic_size=False) for t in flat]
        arrays = [ta.unstack(t) for ta, t in zip(arrays, flat)]
        i = constant(0)
        types = [t.dtype for t in flat] if signature is None else list(nest.leaves(signature))
        results = [TensorArray(t, n, dynamic_size=False, infer_shape=infer_shape) for t in map(dtypes.as_dtype, types)]

        def body(i: Tensor, results: list[TensorArray]) -> Any:
            value = fn(nest.pack_sequence_as(elems, [ta.read(i) for ta in arrays]))
            nest.assert_same_structure(elems if signature is None else signature, value)
            return i + 1, [ta.write(i, v) for ta, v in zip(results, nest.leaves(value))]

        _, results = while_loop(
            lambda i, _: i < n, body, (i, results), parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop, swap_memory=swap_memory, maximum_iterations=n,
        )  # fmt: skip
        return nest.pack_sequence_as(elems if signature is None else signature, _stacked(results, flat))


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """`a = fn(a, row)` for each row of `elems`, from the first to the last: the last `a`.

    It begins with `initializer`, or with the first row. `elems` and `initializer` may be nested structures; `fn`
    returns the like of `initializer`, or of `elems` if there is none.
    """
    _check_callable(fn)
    with name_scope(name, "foldl", [elems]), _variables_read_once():
        n, arrays = _rows_of(elems)
        a, i = initializer, constant(0 if initializer is not None else 1)
        if initializer is None:
            a = nest.map_structure(lambda ta: ta.read(0), arrays)

        def body(i: Tensor, a: Any) -> Any:
            row = nest.map_structure(lambda ta: ta.read(i), arrays)
            a = fn(a, row)
            return [i + 1, a]

        _, folded = while_loop(
            lambda i, a: i < n, body, [i, a], parallel_iterations=parallel_iterations, back_prop=back_prop,
            swap_memory=swap_memory, maximum_iterations=n,
        )  # fmt: skip
        return folded


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """As `foldl`, from the last row to the first."""
    _check_callable(fn)
    with name_scope(name, "foldr", [elems]), _variables_read_once():
        n, arrays = _rows_of(elems)
        a, i = initializer, n
        if initializer is None:
            i = n - 1
            a = nest.map_structure(lambda ta: ta.read(i), arrays)

        def body(i: Any, a: Any) -> Any:
            i -= 1
            row = nest.map_structure(lambda ta: ta.read(i), arrays)
            return [i, fn(a, row)]

        _, folded = while_loop(
            lambda i, a: i > 0, body, [i, a], parallel_iterations=parallel_iterations, back_prop=back_prop,
            swap_memory=swap_memory, maximum_iterations=n,
        )  # fmt: skip
        return folded


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """As `foldl`, but all values of `a`, one below the other; with `reverse` from the last row to the first.

    Without an `initializer` the first of them is the first row.
    """
    _check_callable(fn)
    like = elems if initializer is None else initializer
    with name_scope(name, "scan", list(nest.leaves(elems))), _variables_read_once():
        flat = [convert_to_tensor(e, name="elem") for e in nest.leaves(elems)]
        n = flat[0].shape[0].value
        n = arrays_functions.shape(flat[0])[0] if n is None else n
        arrays = [TensorArray(e.dtype, n, dynamic_size=False, element_shape=e.shape[1:]) for e in flat]
        arrays = [ta.unstack(e) for ta, e in zip(arrays, flat)]
        a, results = _begin_scan(arrays, initializer, n, infer_shape, reverse)
        done = 1 if initializer is None else 0

        def body(i: Any, a: list[Any], results: list[TensorArray]) -> Any:
            row = nest.pack_sequence_as(elems, [ta.read(i) for ta in arrays])
            value = fn(nest.pack_sequence_as(like, a), row)
            nest.assert_same_structure(like, value)
            a = list(nest.leaves(value))
            results = [ta.write(i, v) for ta, v in zip(results, a)]
            return i - 1 if reverse else i + 1, a, results

        _, _, results = while_loop(
            (lambda i, a, _: i >= 0) if reverse else (lambda i, a, _: i < n), body,
            (n - 1 - done if reverse else done, a, results), parallel_iterations=parallel_iterations,
            back_prop=back_prop, swap_memory=swap_memory, maximum_iterations=n,
        )  # fmt: skip
        return nest.pack_sequence_as(like, _stacked(results, flat))


def _begin_scan(
    arrays: Sequence[TensorArray], initializer: Any, n: Any, infer_shape: bool, reverse: bool
) -> tuple[list[Tensor], list[TensorArray]]:
    """The first `a`, flat, and where all of them are collected."""
    first = n - 1 if reverse and initializer is None else 0
    if initializer is None:
        a = [ta.read(first) for ta in arrays]
    else:
        a = [convert_to_tensor(value) for value in nest.leaves(initializer)]
    results = [
        TensorArray(v.dtype, n, False, element_shape=v.shape if infer_shape else None, infer_shape=infer_shape)
        for v in a
    ]
    if initializer is None:
        results = [ta.write(first, v) for ta, v in zip(results, a)]
    return a, results


# -- rows ---------------------------------------------------------------------------------------------


def _check_callable(fn: Any) -> None:
    if not callable(fn):
        raise TypeError(f"{fn} is not callable. Please provide a callable function.")


@contextlib.contextmanager
def _variables_read_once() -> Iterator[None]:
    """A variable that the function asks for is fetched once per step, not in each iteration."""
    scope = get_variable_scope()
    if scope.caching_device is not None:
        yield
        return
    scope.set_caching_device(lambda operation: operation.device)
    try:
        yield
    finally:
        scope.set_caching_device(None)


def _dense_leaves(elems: Any) -> list[Any]:
    flat = list(nest.leaves(elems))
    if not flat:
        raise ValueError(
            "elems must be a Tensor or (possibly nested) sequence of Tensors. "
            f"Got {elems}, which does not contain any Tensors."
        )
    for value in flat:
        if is_sparse(value) or isinstance(value, IndexedSlices):
            raise TypeError(
                f"map_fn can't take {value} apart into rows. To change its values use the like of it with "
                "fn(input.values); for its rows make it dense, with tf.sparse.to_dense."
            )
    return flat


def _rows_of(elems: Any) -> tuple[Any, Any]:
    """How many rows there are, and the like of `elems` with a TensorArray of rows for each tensor."""
    flat = [convert_to_tensor(elem, name="elem") for elem in nest.leaves(elems)]
    n = flat[0].shape[0].value or arrays_functions.shape(flat[0])[0]
    return n, nest.map_structure(lambda elem: TensorArray(elem.dtype, n, dynamic_size=False).unstack(elem), elems)


def _common_rows(tensors: Sequence[Tensor]) -> Dimension:
    """The number of rows that all have, as far as the first one tells; ValueError if another contradicts."""
    rows = tensors[0].shape.with_rank_at_least(1)[0]
    for tensor in tensors[1:]:
        rows.assert_is_compatible_with(tensor.shape.with_rank_at_least(1)[0])
    return rows


def _stacked(arrays: Sequence[TensorArray], elems: Sequence[Tensor]) -> list[Tensor]:
    """The elements of each array, as many as `elems` have rows."""
    found = [ta.stack() for ta in arrays]
    rows = TensorShape([_common_rows(elems)])
    for tensor in found:
        tensor.set_shape(rows.concatenate(tensor.shape[1:]))
    return found
