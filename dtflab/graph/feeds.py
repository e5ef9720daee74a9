"""The feeds of `run`: tensor → array of its dtype, checked, and copied where the cluster could keep it.

Stands for the feed half of `BaseSession._run` in `python/client/session.py`.

Rule: once a step is over, the client may change its own array. A feed is a copy, unless only matrix products and
convolutions take it in a step that ends before the call does: their results never share its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.array_value import as_array
from dtflab.graph.fetches import noted
from dtflab.graph.nested_values import leaves
from dtflab.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from dtflab.graph.graph import Graph

Pairs = Callable[[Any, Any], Sequence[tuple[Any, Any]]]
Expansion = Callable[[Any], Sequence[Any]]

_expansions: list[tuple[type, Pairs, Expansion | None]] = []


def register_feed_pairs(kind: type, pairs: Pairs, expand: Expansion | None = None) -> None:
    """A key of `kind` with a value stands for `pairs(key, value)`; where there is no value yet, for `expand(key)`."""
    _expansions.append((kind, pairs, expand))


def register_feed_expansion(kind: type, expand: Expansion) -> None:
    """A key of `kind` stands for the tensors `expand(key)`, its value for the values of the first ones."""

    def pairs(key: Any, value: Any) -> list[tuple[Any, Any]]:
        values = [part for part in value if part is not None]
        return _zipped(key, expand(key)[: len(values)], values)

    register_feed_pairs(kind, pairs, expand)


_values: list[tuple[type, Callable[[Any, Tensor], Any]]] = []


def register_feed_value(kind: type, convert: Callable[[Any, Tensor], Any]) -> None:
    """A fed value of `kind` stands for `convert(value, tensor)`."""
    _values.append((kind, convert))


def checked_feeds(graph: Graph, feed_dict: object, copy: bool = True) -> dict[Tensor, object]:
    """The feeds of one step; TypeError or ValueError for what can't be fed, or not with that value.

    Without `copy`, an array may be the client's own if nothing keeps it beyond the step.
    """
    if not isinstance(feed_dict, dict):
        if not isinstance(feed_dict, Tensor) and not feed_dict:
            return {}
        several = " To fetch several, give a list of them." if isinstance(feed_dict, Tensor | Operation) else ""
        raise TypeError(f"feed_dict must be a dictionary of tensors and their values, not {feed_dict!r}.{several}")
    feeds: dict[Tensor, object] = {}
    for key, value in feed_dict.items():
        for element, part in _pairs(key, value):
            tensor = _tensor(graph, element)
            feeds[tensor] = _array(tensor, part, copy or not all(op.op_class.shards for op in tensor._consumers))
    return feeds


def feed_tensors(graph: Graph, keys: Iterable[object]) -> list[Tensor]:
    """The tensors that `keys` stand for, in order; TypeError or ValueError for what can't be fed."""
    found: list[Tensor] = []
    for key in keys:
        expand = next((expand for kind, _, expand in _expansions if isinstance(key, kind)), None)
        found += [_tensor(graph, element) for element in (expand(key) if expand is not None else [key])]
    return found


def _pairs(key: Any, value: Any) -> list[tuple[Any, Any]]:
    """A tuple of tensors is fed a structure of as many values, and so is what stands for several tensors."""
    if type(key) is Tensor:
        return [(key, value)]
    for kind, pairs, _ in _expansions:
        if isinstance(key, kind):
            return list(pairs(key, value))
    if not isinstance(key, tuple):
        return [(key, value)]
    return _zipped(key, list(leaves(key)), list(leaves(value)))


def _zipped(key: Any, keys: Sequence[Any], values: Sequence[Any]) -> list[tuple[Any, Any]]:
    if len(keys) != len(values):
        raise ValueError(f"Could not feed {key} with {values!r}: {len(keys)} tensors, {len(values)} values.")
    return list(zip(keys, values, strict=True))


def _tensor(graph: Graph, key: Any) -> Tensor:
    try:
        known = type(key) is Tensor and key.graph is graph
        tensor: Tensor = key if known else graph.as_graph_element(key, allow_operation=False)
    except (TypeError, ValueError, KeyError) as error:
        wrong = TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}")
        raise noted(wrong, graph, key, ":0") from None
    if not graph.is_feedable(tensor):
        raise ValueError(f"Tensor {tensor.name} may not be fed.")
    return tensor


def _array(tensor: Tensor, value: Any, copy: bool) -> Any:
    """`value`, or a copy of it, as an array that fits `tensor`."""
    for kind, convert in _values:
        if isinstance(value, kind):
            value = convert(value, tensor)
    if isinstance(value, Tensor):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, strings, "
            f"lists, numpy ndarrays. For reference, the tensor object was {value} which was passed to the feed with "
            f"key {tensor.name}."
        )
    try:
        array = _converted(tensor.dtype.base_dtype, value, copy)
    except (TypeError, ValueError) as error:  # NumPy's, which knows no tensor
        error.add_note(f"The value is fed to {tensor.name}, whose dtype is {tensor.dtype.name}.")
        raise
    if not tensor.shape.admits(array.shape):
        raise ValueError(
            f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, which has shape {tensor.shape}"
        )
    return array


def _converted(dtype: dtypes.DType, value: Any, copy: bool) -> Any:
    wanted = dtype.as_numpy_dtype
    if type(value) is float and wanted in _FLOATS:
        return wanted(value)
    text = dtype == dtypes.string
    if isinstance(value, int) and (text or wanted(np.array(value).astype(wanted)) != value):
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type {wanted}. Try "
            "explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
        )
    if text:
        try:
            return as_array(value, dtype)
        except (TypeError, ValueError) as error:
            raise errors.InternalError.of(f"Unsupported object type {type(value).__name__}: {error}") from None
    # Numbers as NumPy casts them: 2.7 is 2 for an integer, a complex number its real part.
    if _is_number(wanted):
        given = np.asarray(value)
        array = given.astype(wanted, copy=copy or not given.flags.carray)
    else:
        array = np.array(value, wanted)
    return array if array.ndim or array.dtype == object else array[()]  # NumPy's scalars are faster


_FLOATS = (np.float32, np.float64)  # of a Python float each makes what a cast makes, four times as fast


@cache
def _is_number(kind: type) -> bool:
    return np.issubdtype(kind, np.number)
