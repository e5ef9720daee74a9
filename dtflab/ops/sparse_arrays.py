"""Where the elements of sparse tensors are: order, checks, and rows as sparse tensors of their own.

Stands for `core/util/sparse/sparse_tensor.h`. Holds no op; kernels call it.

Rule: a sparse tensor enters as indices (int64, one row for each element), values and shape. Elements stay in the
order of their indices, the last axis fastest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import check_rank, invalid, shape_text


class Sparse(NamedTuple):
    """The arrays of one SparseTensor."""

    indices: np.ndarray
    values: np.ndarray
    shape: np.ndarray


def order(indices: Any) -> Any:
    """The permutation that sorts the rows of `indices`."""
    return np.lexsort(indices.T[::-1]) if len(indices) and indices.shape[1] else np.arange(len(indices))


def shapes_of(rows: Any, rank: Any) -> list[TensorShape]:
    """The static shapes of indices, values and dense shape."""
    return [TensorShape([rows, rank]), TensorShape([rows]), TensorShape([rank])]


def check_sparse(indices: Any, values: Any, shape: Any) -> None:
    """Raise InvalidArgumentError if the three do not belong together."""
    for what, array, rank in (("indices", indices, 2), ("values", values, 1), ("shape", shape, 1)):
        if array.ndim != rank:
            raise invalid(f"Sparse {what} must be rank {rank} but is rank {array.ndim}")
    if len(indices) != len(values):
        raise invalid(f"Number of elements in indices ({len(indices)}) and values ({len(values)}) do not match")
    if indices.shape[1] != len(shape):
        raise invalid(f"Index rank ({indices.shape[1]}) and shape rank ({len(shape)}) do not match")


def check_order(places: Any, shape: Any) -> None:
    """Raise InvalidArgumentError for the first element that is out of bounds, out of order, or repeated."""
    outside = ((places < 0) | (places >= shape)).any(1)
    before = np.zeros(len(places), bool)
    again = np.zeros(len(places), bool)
    if len(places) > 1:
        steps = np.sign(places[1:] - places[:-1])
        first = np.take_along_axis(steps, (steps != 0).argmax(1)[:, None], 1)[:, 0]  # 0 where all are equal
        before[1:], again[1:] = first < 0, first == 0
    wrong = outside | before | again
    if not wrong.any():
        return
    at = int(wrong.argmax())
    text = f"indices[{at}] = [{','.join(map(str, places[at]))}] is"
    if outside[at]:
        raise invalid(f"{text} out of bounds: need 0 <= index < {shape_text(shape.tolist())}")
    if before[at]:
        raise invalid(
            f"{text} out of order. Many sparse ops require sorted indices.\n    "
            "Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n"
        )
    raise invalid(f"{text} repeated")


def strides(shape: Any) -> Any:
    """How many elements lie between neighbours along each axis."""
    return np.append(np.cumprod(shape[:0:-1])[::-1], 1)[: len(shape)].astype(np.int64)


def united(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """All places of two sparse tensors in order, and where the places of each are among them."""
    both = np.concatenate([a, b])
    if not both.shape[1]:
        return both[:1], np.zeros(len(a), int), np.zeros(len(b), int)
    found, inverse = np.unique(both, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    return found, inverse[: len(a)], inverse[len(a) :]


def box(indices: Any, values: Any, shape: Any, start: Any, size: Any) -> Sparse:
    """The elements from `start` on, `size` along each axis, as a sparse tensor of their own."""
    sizes = np.clip(np.minimum(size, shape - start), 0, None)
    inside = ((indices >= start) & (indices < start + sizes)).all(1)
    return Sparse(indices[inside] - start, values[inside], sizes.astype(np.int64))


# -- rows ---------------------------------------------------------------------------------------------


def checked(indices: Any, values: Any, shape: Any) -> Sparse:
    """The three as one. Raises InvalidArgumentError if they do not belong together."""
    check_rank(indices, 2, "Input indices should be a matrix but received shape {}")
    check_rank(values, 1, "Input values should be a vector but received shape {}")
    check_rank(shape, 1, "Input shape should be a vector but received shape {}")
    if len(indices) != len(values):
        raise invalid(
            "indices and values rows (indexing dimension) must match. "
            f"(indices = {len(indices)}, values = {len(values)})"
        )
    if indices.shape[1] != len(shape):
        raise invalid("Order length must be SparseTensor rank.")
    return Sparse(indices, values, shape)


def rows_of(sparse: Sparse) -> list[Sparse]:
    """The slices along the first axis."""
    if len(sparse.shape) <= 1:
        raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(sparse.shape)}")
    check_order(sparse.indices, sparse.shape)
    borders = np.searchsorted(sparse.indices[:, 0], np.arange(sparse.shape[0] + 1))
    parts = [slice(begin, end) for begin, end in itertools.pairwise(borders)]
    return [Sparse(sparse.indices[part, 1:], sparse.values[part], sparse.shape[1:]) for part in parts]


def stacked(parts: Sequence[Sparse], dtype: Any) -> Sparse:
    """One sparse tensor whose rows are `parts`, as wide as the widest."""
    for i, part in enumerate(parts):
        if part.values.dtype != dtype.as_numpy_dtype:
            raise invalid(
                f"Requested SparseTensor of type {dtype.name} but SparseTensor[{i}].dtype() == {part.values.dtype}"
            )
        if len(part.shape) != len(parts[0].shape):
            raise invalid(
                f"Inconsistent rank across SparseTensors: rank prior to SparseTensor[{i}] was: "
                f"{len(parts[0].shape) + 1} but rank of SparseTensor[{i}] is: {len(part.shape) + 1}"
            )
    rows = np.repeat(np.arange(len(parts)), [len(part.values) for part in parts])
    indices = np.column_stack([rows, np.concatenate([part.indices for part in parts])])
    shape = [len(parts), *np.max([part.shape for part in parts], axis=0)]
    return Sparse(indices, np.concatenate([part.values for part in parts]), np.array(shape, np.int64))


def sparse_rows(rows: Sequence[Any], dtype: DType) -> tuple[Any, Any, Any]:
    """Indices, values and shape of a sparse matrix with these rows, as wide as the longest."""
    lengths = np.array([len(row) for row in rows], np.int64)
    indices = np.stack([np.repeat(np.arange(len(rows)), lengths), counted(lengths)], 1)
    return indices, array_of(itertools.chain(*rows), dtype), np.array([len(rows), lengths.max(initial=0)], np.int64)


def array_of(values: Any, dtype: DType) -> Any:
    """A list of values as a vector."""
    return np.array(list(values), dtype.as_numpy_dtype)


def counted(lengths: Any) -> Any:
    """0, 1, … for each length, one after the other: [2, 3] gives 0 1 0 1 2."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) - np.repeat(starts, lengths)
