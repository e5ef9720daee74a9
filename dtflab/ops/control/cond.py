"""tf.cond: one of two pieces of graph runs, and its results go on.

Stands for `python/ops/cond.py` in TF1's form: Switch and Merge in one graph, no functions.

Rule: both branches are built, once, when `cond` is called; the predicate decides in each step which of them is alive
(see `control_flow_context.py`). The Merges after them take the value that is alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import add_to_collection, name_scope
from dtflab.graph.static_value import folded_value
from dtflab.ops.arrays.functions import cast
from dtflab.ops.control.cond_context import CondContext
from dtflab.ops.control.functions import merge, switch


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """The result of `true_fn()` if the scalar bool tensor `pred` is true, else that of `false_fn()`.

    Both functions are called here, and must return the same structure of tensors (of equal dtypes) or operations.
    Only the operations that the chosen function makes run; operations made outside of both run in any case. A list of
    one item counts as that item unless `strict`. An operation becomes a bool tensor that is available once it has run.
    `fn1` and `fn2` are older names. TypeError and ValueError for functions that do not fit together.
    """
    true_fn = _function(true_fn, fn1, "true_fn", "fn1")
    false_fn = _function(false_fn, fn2, "false_fn", "fn2")
    with name_scope(name, "cond", [pred]):
        if isinstance(pred, bool):
            raise TypeError("'pred' must not be a Python bool.")
        pred, if_true, if_false = _pivots(pred)
        on_true = CondContext(pred, if_true, 1)
        returned, results = on_true.build(true_fn, "true_fn")
        on_false = CondContext(pred, if_false, 0)
        others, other_results = on_false.build(false_fn, "false_fn")
        if not strict:
            returned, others = _unpacked(returned), _unpacked(others)
        _check_same(returned, others)
        merged = _merged(results, other_results)
        if on_true.outer_context is None:  # a meta graph keeps the outermost contexts, and these those inside
            for context in (on_true, on_false):
                add_to_collection(GraphKeys.COND_CONTEXT, context)
        packed = nest.pack_sequence_as(returned, merged, expand_composites=True)
        return packed if strict else _unpacked(packed)


def smart_cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """`cond`, or the result of one function if `pred` is a bool or known when the graph is built."""
    known = folded_value(pred) if isinstance(pred, Tensor) else bool(pred)
    if known is None:
        return cond(pred, true_fn, false_fn)
    return true_fn() if known else false_fn()


def _function(given: Any, older: Any, name: str, older_name: str) -> Callable[[], Any]:
    if given is not None and older is not None:
        raise TypeError(f"cond(): '{name}' and '{older_name}' may not be set simultaneously.")
    function: Any = given if older is None else older
    if function is None:
        raise TypeError(f"cond(): '{name}' argument required")
    if not callable(function):
        raise TypeError(f"'{name}' must be callable.")
    return function


def _pivots(pred: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The predicate as both branches see it, and a tensor for each that is alive if the branch is taken."""
    if_false, if_true = switch(pred, pred)
    pivot_true = apply_op("Identity", "switch_t", input=if_true)
    pivot_false = apply_op("Identity", "switch_f", input=if_false)
    pred_id = apply_op("Identity", "pred_id", input=pred)
    for tensor in (if_true, if_false, pivot_true, pivot_false, pred_id):
        tensor.graph.prevent_fetching(tensor.op)
    return pred_id, pivot_true, pivot_false


def _unpacked(structure: Any) -> Any:
    return structure[0] if isinstance(structure, list | tuple) and len(structure) == 1 else structure


def _check_same(returned: Any, others: Any) -> None:
    try:
        nest.assert_same_structure(returned, others, expand_composites=True)
    except (TypeError, ValueError) as error:
        what = "types" if isinstance(error, TypeError) else "values"
        raise type(error)(f"Incompatible return {what} of 'true_fn' and 'false_fn': {error}") from None
    if isinstance(returned, list | tuple) and not returned:
        raise ValueError("'true_fn' and 'false_fn' must return at least one result.")


def _merged(if_true: Any, if_false: Any) -> list[Tensor]:
    """For each pair of results the one that is alive."""
    _unify_indices(if_true, if_false)
    pairs = list(zip(nest.leaves(if_true, expand_composites=True), nest.leaves(if_false, expand_composites=True)))
    for one, other in pairs:
        if one.dtype.base_dtype != other.dtype.base_dtype:
            raise ValueError(
                "Outputs of 'true_fn' and 'false_fn' must have the same type(s). "
                f"Received {one.dtype.name} from 'true_fn' and {other.dtype.name} from 'false_fn'."
            )
    return [merge([other, one])[0] for one, other in pairs]


def _unify_indices(if_true: Any, if_false: Any) -> None:
    """Rows of IndexedSlices may be numbered by int32 in one branch and by int64 in the other."""
    for pair in zip(nest.leaves(if_true), nest.leaves(if_false)):
        if all(isinstance(slices, IndexedSlices) for slices in pair) and pair[0].indices.dtype != pair[1].indices.dtype:
            for slices in pair:
                slices.indices = cast(slices.indices, dtypes.int64)
