"""Sets in the last dimension, dense and sparse."""

from __future__ import annotations

import itertools

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples

_HOW = ("intersection", "union", "a-b", "b-a")


def _values(v: Values, *shape: int) -> np.ndarray:
    """Few different values, so that many of them are equal."""
    if v.dtype == dtypes.string:
        return v.array(*shape)
    return v.random.integers(0, 5, shape).astype(v.dtype.as_numpy_dtype)


def _sparse(v: Values, *shape: int, filled: float = 0.6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    places = np.argwhere(v.random.uniform(size=shape) < filled).astype(np.int64)
    return places, _values(v, len(places)), np.array(shape, np.int64)


@examples("DenseToDenseSetOperation")
def dense_to_dense(v: Values) -> list[Example]:
    shapes = [((3, 4), (3, 2)), ((2, 2, 3), (2, 2, 3)), ((0, 3), (0, 2)), ((2, 0), (2, 3)), ((2, 0), (2, 0))]
    return [v(_values(v, *a), _values(v, *b), set_operation=how) for how, (a, b) in itertools.product(_HOW, shapes)]


@examples("DenseToSparseSetOperation")
def dense_to_sparse(v: Values) -> list[Example]:
    shapes = [((3, 4), (3, 2)), ((2, 2, 3), (2, 2, 3)), ((2, 0), (2, 3))]
    return [v(_values(v, *a), *_sparse(v, *b), set_operation=how) for how, (a, b) in itertools.product(_HOW, shapes)]


@examples("SparseToSparseSetOperation")
def sparse_to_sparse(v: Values) -> list[Example]:
    shapes = [((3, 4), (3, 2)), ((2, 2, 3), (2, 2, 5)), ((2, 1), (2, 3))]
    found = [v(*_sparse(v, *a), *_sparse(v, *b), set_operation=how) for how, (a, b) in itertools.product(_HOW, shapes)]
    return [*found, v(*_sparse(v, 2, 3, filled=0), *_sparse(v, 2, 3, filled=0), set_operation="UNION")]


@examples("SetSize")
def set_size(v: Values) -> list[Example]:
    return [v(*_sparse(v, *shape)) for shape in ((3, 4), (2, 2, 3), (4, 1))] + [v(*_sparse(v, 2, 3, filled=0))]
