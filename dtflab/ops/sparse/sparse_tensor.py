"""SparseTensor: the few elements that a tensor has, and where they are.

Stands for `python/framework/sparse_tensor.py` and `sparse_placeholder` of `array_ops.py`.
Left out: type specs, eager values.

Rule: it is three tensors under one name, not a tensor itself. A session fetches and is fed all three at once; an op
that takes a dense tensor refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dtflab.base.nest import register_composite
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.default_stacks import get_default_session
from dtflab.graph.feeds import register_feed_expansion
from dtflab.graph.fetches import register_fetch_expansion
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value_as_shape
from dtflab.graph.tensor_shape import TensorShape, as_shape


class SparseTensorValue(NamedTuple):
    """The value of a SparseTensor that a session returns or is fed: three arrays."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """A tensor of shape `dense_shape` that has `values[i]` at `indices[i]` and nothing elsewhere.

    `indices` is an int64 matrix with one row for each element, `values` a vector of any dtype, `dense_shape` an
    int64 vector; `shape` is what is known of it statically. Most ops expect the rows in order; `tf.sparse_reorder`
    brings them there.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self.indices = convert_to_tensor(indices, dtypes.int64, name="indices")
            self.values = convert_to_tensor(values, name="values")
            self.dense_shape = convert_to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        self.shape = constant_value_as_shape(self.dense_shape)
        rows, columns = self.indices.shape.with_rank(2).dims
        rows.assert_is_compatible_with(self.values.shape.with_rank(1)[0])
        columns.assert_is_compatible_with(self.dense_shape.shape.with_rank(1)[0])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """The SparseTensor of a SparseTensorValue (or of a SparseTensor, again)."""
        if not is_sparse(sparse_tensor_value):
            raise TypeError(
                f"Argument sparse_tensor_value={sparse_tensor_value} is neither a SparseTensor nor SparseTensorValue."
            )
        value = sparse_tensor_value
        return SparseTensor(indices=value.indices, values=value.values, dense_shape=value.dense_shape)

    def with_values(self, new_values: Any) -> SparseTensor:
        """Other values at the same places."""
        return SparseTensor(self.indices, new_values, self.dense_shape)

    def map(self, function: Callable[[Tensor], Tensor]) -> SparseTensor:
        """The SparseTensor of `function(indices)`, `function(values)` and `function(dense_shape)`."""
        return SparseTensor(*map(function, components(self)))

    def get_shape(self) -> TensorShape:
        """Same as `.shape`."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Merge `shape` into the static shape."""
        self.shape = self.shape.merge_with(as_shape(shape))

    @property
    def dtype(self) -> dtypes.DType:
        return self.values.dtype

    @property
    def op(self) -> Operation:
        return self.values.op

    @property
    def graph(self) -> Graph:
        return self.indices.graph

    def consumers(self) -> list[Operation]:
        """The operations that take one of the three tensors as an input."""
        return list(dict.fromkeys(op for part in components(self) for op in part.consumers()))

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Run the three tensors in `session` or the default session."""
        session = session or get_default_session()
        if session is None:
            raise ValueError(
                "Cannot evaluate tensor using `eval()`: No default session is registered. Use `with "
                "sess.as_default()` or pass an explicit session to `eval(session=sess)`"
            )
        return session.run(self, feed_dict)

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def components(sparse: SparseTensor) -> list[Tensor]:
    """The three tensors that `sparse` stands for."""
    return [sparse.indices, sparse.values, sparse.dense_shape]


def _rebuilt(sparse: SparseTensor, parts: Any) -> SparseTensor:
    """The SparseTensor of other tensors, with the static shape of `sparse`."""
    result = SparseTensor(*parts)
    result.set_shape(sparse.shape)
    return result


register_fetch_expansion(SparseTensor, lambda sparse: (components(sparse), lambda parts: SparseTensorValue(*parts)))
register_feed_expansion(SparseTensor, components)
register_composite(SparseTensor, components, _rebuilt)


def is_sparse(x: Any) -> bool:
    """Whether `x` is a SparseTensor or a SparseTensorValue."""
    return isinstance(x, SparseTensor | SparseTensorValue)


def of_values(
    function: Callable[..., Tensor], sparse: SparseTensor, name: str | None, tried: str | None = None
) -> SparseTensor:
    """`function` of the values of `sparse`, for a function that maps zero to zero.

    TensorFlow first tries its op for dense tensors, `tried`, which uses up that name.
    """
    if tried is not None:
        sparse.graph.unique_name(name or tried)
    return sparse.with_values(function(sparse.values, name=name))


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """`value` as it is if it is sparse (a SparseTensorValue becomes a SparseTensor), else as a Tensor.

    Raises RuntimeError if a sparse value has another dtype than `dtype`.
    """
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    if not is_sparse(value):
        return convert_to_tensor(value, dtype, name=name)
    sparse = SparseTensor.from_value(value) if isinstance(value, SparseTensorValue) else value
    if dtype is not None and not dtype.is_compatible_with(sparse.dtype):
        raise RuntimeError(f"Sparse dtype mismatch. Requested: {dtype.name},  Actual: {sparse.dtype.name}")
    return sparse


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A SparseTensor that is fed: a SparseTensorValue, or a tuple (indices, values, dense_shape).

    If it is not fed, `dense_shape` has the value of `shape`.
    """
    part = (lambda last: f"{name}/{last}") if name is not None else (lambda last: None)
    if shape is None:
        rank = None
        dense_shape = _placeholder(dtypes.int64, [None], part("shape"))
        known = TensorShape(None)
    else:
        default, known = _default_shape(shape, part("shape_default"))
        rank = default.shape[0].value
        dense_shape = apply_op("PlaceholderWithDefault", part("shape"), input=default, shape=default.shape)
    values = _placeholder(dtype, [None], part("values"))
    sparse = SparseTensor(_placeholder(dtypes.int64, [None, rank], part("indices")), values, dense_shape)
    sparse.set_shape(known)
    return sparse


def _placeholder(dtype: Any, shape: Any, name: str | None) -> Tensor:
    return apply_op("Placeholder", name, dtype=dtype, shape=shape)


def _default_shape(shape: Any, name: str | None) -> tuple[Tensor, TensorShape]:
    """`shape` as a tensor, with -1 for unknown sizes, and as a static shape."""
    if isinstance(shape, Tensor):
        return shape, constant_value_as_shape(shape)
    dims = [getattr(dim, "value", dim) for dim in shape]
    known = TensorShape([None if dim == -1 else dim for dim in dims])
    return convert_to_tensor([-1 if d is None else d for d in dims], dtypes.int64, name=name), known
