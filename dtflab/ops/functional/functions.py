"""Functions as arguments: map_fn, folds and scan; custom gradients; Python functions as operations.

Stands for `python/ops/map_fn.py`, `functional_ops.py`, `custom_gradient.py` and `script_ops.py`. Left out: rows that
are SparseTensors or RaggedTensors; gradients of variables that a function with a custom gradient reads on its own (give
them as arguments); `EagerPyFunc`, whose function works on eager tensors.

Rules: the rows of a map or scan are the elements of TensorArrays, and a while_loop goes over them. So the iterations of
a map may run at the same time, and gradients flow. With a custom gradient, results and arguments go together through
one IdentityN, whose gradient is the given function, so that gradients stop at the function's own operations.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.gradients import RegisterGradient
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import get_default_graph, name_scope
from dtflab.graph.tensor_shape import Dimension, TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import identity, identity_n
from dtflab.ops.control.functions import read_variable
from dtflab.ops.control.while_loop import while_loop
from dtflab.ops.functional.script import Script
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.sparse.sparse_tensor import is_sparse
from dtflab.ops.variables.variable_scope import get_variable_scope

# -- loops over rows ----------------------------------------------------------------------------------


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

    `elems` is a tensor or a nested structure of tensors with equally many rows; `fn` gets such a structure with a row
    of each. `dtype` (or `fn_output_signature`) is a structure of dtypes like what `fn` returns, if that differs from
    `elems`. With `infer_shape=False` the results may differ in shape.
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
        n = rows.value or arrays.shape(flat[0])[0]
        elements = [TensorArray(t.dtype, n, dynamic_size=False) for t in flat]
        elements = [ta.unstack(t) for ta, t in zip(elements, flat)]
        i = constant(0)
        types = [t.dtype for t in flat] if signature is None else list(nest.leaves(signature))
        results = [TensorArray(t, n, dynamic_size=False, infer_shape=infer_shape) for t in map(dtypes.as_dtype, types)]

        def body(i: Tensor, results: list[TensorArray]) -> Any:
            value = fn(nest.pack_sequence_as(elems, [ta.read(i) for ta in elements]))
            nest.assert_same_structure(elems if signature is None else signature, value)
            return i + 1, [ta.write(i, v) for ta, v in zip(results, nest.leaves(value))]

        loop: dict[str, Any] = {"back_prop": back_prop, "swap_memory": swap_memory, "maximum_iterations": n}
        _, results = while_loop(lambda i, _: i < n, body, (i, results), None, parallel_iterations or 10, **loop)
        return nest.pack_sequence_as(elems if signature is None else signature, _stacked(results, flat))


def _fold(op_name: str) -> Callable[..., Any]:
    backwards = op_name == "foldr"

    def function(
        fn: Callable[[Any, Any], Any],
        elems: Any,
        initializer: Any = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str | None = None,
    ) -> Any:
        """`a = fn(a, row)` for each row of `elems`, from the first (`foldl`) or from the last (`foldr`): the last `a`.

        It begins with `initializer`, or with the first such row. `elems` and `initializer` may be nested structures;
        `fn` returns a structure like `initializer`, or like `elems` if there is none.
        """
        _check_callable(fn)
        with name_scope(name, op_name, [elems]), _variables_read_once():
            n, elements = _rows_of(elems)

            def row(i: Any) -> Any:
                return nest.map_structure(lambda ta: ta.read(i), elements)

            a, i = initializer, n if backwards else constant(0 if initializer is not None else 1)
            if initializer is None:
                i = n - 1 if backwards else i
                a = row(i if backwards else 0)

            def body(i: Any, a: Any) -> Any:
                if backwards:
                    i -= 1
                    return [i, fn(a, row(i))]
                a = fn(a, row(i))
                return [i + 1, a]

            cond = (lambda i, a: i > 0) if backwards else (lambda i, a: i < n)
            how = {"back_prop": back_prop, "swap_memory": swap_memory, "maximum_iterations": n}
            return while_loop(cond, body, [i, a], None, parallel_iterations, **how)[1]

    function.__name__ = op_name
    return function


foldl = _fold("foldl")
foldr = _fold("foldr")


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
    """All values that `a` has in `foldl`, one below the other; with `reverse` from the last row to the first.

    Without an `initializer` the first of them is the first row.
    """
    _check_callable(fn)
    like = elems if initializer is None else initializer
    with name_scope(name, "scan", list(nest.leaves(elems))), _variables_read_once():
        flat = [convert_to_tensor(e, name="elem") for e in nest.leaves(elems)]
        n = flat[0].shape[0].value
        n = arrays.shape(flat[0])[0] if n is None else n
        elements = [TensorArray(e.dtype, n, dynamic_size=False, element_shape=e.shape[1:]) for e in flat]
        elements = [ta.unstack(e) for ta, e in zip(elements, flat)]
        a, results = _begin_scan(elements, initializer, n, infer_shape, reverse)
        done = 1 if initializer is None else 0

        def body(i: Any, a: list[Any], results: list[TensorArray]) -> Any:
            row = nest.pack_sequence_as(elems, [ta.read(i) for ta in elements])
            value = fn(nest.pack_sequence_as(like, a), row)
            nest.assert_same_structure(like, value)
            a = list(nest.leaves(value))
            results = [ta.write(i, v) for ta, v in zip(results, a)]
            return i - 1 if reverse else i + 1, a, results

        cond = (lambda i, a, _: i >= 0) if reverse else (lambda i, a, _: i < n)
        start = n - 1 - done if reverse else done
        loop: dict[str, Any] = {"back_prop": back_prop, "swap_memory": swap_memory, "maximum_iterations": n}
        _, _, results = while_loop(cond, body, (start, a, results), None, parallel_iterations, **loop)
        return nest.pack_sequence_as(like, _stacked(results, flat))


def _begin_scan(
    elements: Sequence[TensorArray], initializer: Any, n: Any, infer_shape: bool, reverse: bool
) -> tuple[list[Tensor], list[TensorArray]]:
    """The first `a`, flat, and where all of them are collected."""
    first = n - 1 if reverse and initializer is None else 0
    if initializer is None:
        a = [ta.read(first) for ta in elements]
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
                f"map_fn can't take {value} apart into rows. To change its values, make another one "
                "with fn(input.values); to go over its rows, make it dense with tf.sparse.to_dense."
            )
    return flat


def _rows_of(elems: Any) -> tuple[Any, Any]:
    """How many rows there are, and `elems` with a TensorArray of rows in the place of each tensor."""
    flat = [convert_to_tensor(elem, name="elem") for elem in nest.leaves(elems)]
    n = flat[0].shape[0].value or arrays.shape(flat[0])[0]
    return n, nest.map_structure(lambda elem: TensorArray(elem.dtype, n, dynamic_size=False).unstack(elem), elems)


def _common_rows(tensors: Sequence[Tensor]) -> Dimension:
    """The number of rows that all have, as far as the first one knows it; ValueError if another contradicts."""
    rows = tensors[0].shape.with_rank_at_least(1)[0]
    for tensor in tensors[1:]:
        rows.assert_is_compatible_with(tensor.shape.with_rank_at_least(1)[0])
    return rows


def _stacked(results: Sequence[TensorArray], elems: Sequence[Tensor]) -> list[Tensor]:
    """The elements of each array, as many as `elems` have rows."""
    found = [ta.stack() for ta in results]
    rows = TensorShape([_common_rows(elems)])
    for tensor in found:
        tensor.set_shape(rows.concatenate(tensor.shape[1:]))
    return found


# -- custom gradients ---------------------------------------------------------------------------------

_numbers = itertools.count()


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f(*tensors)` returns (results, grad); `grad(*dys)` gives the gradients of the arguments.

    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        inputs = [convert_to_tensor(x) for x in nest.flatten(args)]
        results, grad = f(*nest.pack_sequence_as(args, inputs), **kwargs)
        flat = [convert_to_tensor(x) for x in nest.flatten(results)]
        for x in flat:
            identity(x)  # of no use; it is in TensorFlow's graph, and later names count it
        name = f"CustomGradient-{next(_numbers)}"
        RegisterGradient(name)(lambda op, *dys: [None] * len(flat) + _gradients(grad, dys[: len(flat)], len(inputs)))
        with get_default_graph().gradient_override_map({"IdentityN": name}):
            handed_on = identity_n(flat + inputs)
        return nest.pack_sequence_as(results, handed_on[: len(flat)])

    return decorated


def _gradients(grad: Callable[..., Any], dys: Any, count: int) -> list[Any]:
    found = nest.flatten(grad(*dys))
    if len(found) != count:
        raise ValueError(
            f"The gradient function of a custom_gradient must return a gradient for each of its {count} arguments; it "
            f"returned {len(found)}."
        )
    return found


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` of one tensor, with the gradient of the identity."""

    @custom_gradient
    def passing(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs), lambda *dys: dys

    return passing


# -- Python functions ---------------------------------------------------------------------------------


def py_func(func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: str | None = None) -> Any:
    """`func` of the values of `inp`, as an operation of the graph.

    `func` gets an array per tensor, bytes for a string, and returns an array (or a list of arrays) of the dtypes in
    `Tout`, whose shapes the graph does not know; see `set_shape`. It runs in this process only, when a session
    needs its result; `stateful=False` says that equal arguments give equal results. Returns a tensor; a list of tensors
    if `Tout` is a list; the Operation if that is empty. ValueError if `func` can't be called.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    types = list(Tout) if isinstance(Tout, list | tuple) else [Tout]
    script = Script(func)
    get_default_graph().outermost.keep_alive(script)
    values = [convert_to_tensor(v) if hasattr(v, "handle") or hasattr(v, "read_value") else v for v in inp]
    made = apply_op("PyFunc" if stateful else "PyFuncStateless", name, input=values, token=script.token, Tout=types)
    return made if isinstance(Tout, list | tuple) else made[0]


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """`func` of the values of `inp`, as an operation of the graph; see `py_func`."""
    return py_func(func, inp, Tout, stateful, name)  # type: ignore[arg-type]  # it refuses None


def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> NoReturn:
    """NotImplementedError: TensorFlow would call `func` with eager tensors, which a graph does not have."""
    raise NotImplementedError(
        "tf.py_function calls its function with eager tensors, which dtflab does not have. Use tf.numpy_function "
        "(or tf.py_func): its function gets arrays and returns arrays; tf.custom_gradient gives it a gradient."
    )
