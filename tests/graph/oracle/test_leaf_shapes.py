from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dtflab.graph import tensor_shape as ours
from tests.house import without_address
from tests.oracle.leaf import outcome

tf = pytest.importorskip("tensorflow")
theirs = pytest.importorskip("tensorflow.python.framework.tensor_shape")
common_shapes = pytest.importorskip("tensorflow.python.framework.common_shapes")
theirs_pb = pytest.importorskip("tensorflow.core.framework.tensor_shape_pb2")

SIDES = (ours, theirs)


@pytest.fixture(scope="module", autouse=True)
def tf1_shapes():
    """The effect of disable_v2_tensorshape(), for this file only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs, "_TENSORSHAPE_V2_OVERRIDE", False)
        yield


def same(call):
    """`call` gets one of the two modules."""
    a, b = (outcome(lambda lib=lib: call(lib)) for lib in SIDES)
    assert a == b


# -- Dimension --

OPERANDS = [0, 1, 2, 7, None, -1, "a", 2.0, [1], np.int64(2), object]
OPERATORS = [
    *[operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod],
    *[operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.pow],
]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("operand", OPERANDS, ids=repr)
@pytest.mark.parametrize("value", [0, 7, None])
def test_dimension_arithmetic(op, operand, value):
    same(lambda lib: op(lib.Dimension(value), operand))
    same(lambda lib: op(operand, lib.Dimension(value)))
    if operand is None or (isinstance(operand, int) and operand >= 0):
        same(lambda lib: op(lib.Dimension(value), lib.Dimension(operand)))


@pytest.mark.parametrize("value", [0, 3, None, -1, -2, 3.0, "3", [1], np.int64(3), np.array(3), np.array([3])])
def test_dimension(value):
    for use in (
        repr,
        str,
        int,
        bool,
        hash,
        float,
        abs,
        operator.index,
        range,
        lambda d: d.value,
        "{}".format,
    ):
        same(lambda lib, use=use: use(lib.Dimension(value)))
    same(lambda lib: lib.Dimension(lib.Dimension(value)))
    same(lambda lib: np.zeros(lib.Dimension(value)))
    for other in (0, 3, 4, None, "a", -1):
        same(lambda lib, other=other: lib.Dimension(value).is_compatible_with(other))
        same(lambda lib, other=other: lib.Dimension(value).assert_is_compatible_with(other))
        same(lambda lib, other=other: lib.Dimension(value).merge_with(other))


# -- TensorShape --

MAKERS = [
    *[lambda value=value: value for value in (None, [], (), [1, 2], [None, 2], 3, 0, -1, [-1], [-2], ["3"])],
    *[lambda value=value: value for value in ([[1]], [1.0], 1.5, range(3), {1}, [2**40], b"a", object)],
    *[lambda value=value: value for value in (np.array([1, 2]), np.int32(3), np.array(3), [np.int64(3)])],
    lambda: iter([1, 2]),
    lambda: theirs_pb.TensorShapeProto(),
    lambda: theirs_pb.TensorShapeProto(unknown_rank=True),
    *[
        lambda size=size: theirs_pb.TensorShapeProto(dim=[theirs_pb.TensorShapeProto.Dim(size=size)])
        for size in (-1, 0, 3)
    ],
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: without_address(make()))
def test_constructor(make):
    for use in (lambda lib, v: lib.TensorShape(v), lambda lib, v: lib.as_shape(v)):
        same(lambda lib, use=use: use(lib, make()))
        same(lambda lib, use=use: str(use(lib, make())))


@pytest.mark.parametrize("value", ["abc", "3", {"a": 1}], ids=repr)
def test_constructor_refuses(value):
    for lib in SIDES:  # the same text but for the quotes
        with pytest.raises(TypeError, match=r"Failed to convert .* to a shape: .*could not be converted"):
            lib.TensorShape(value)


SHAPES = [None, [], [3], [None], [1, 2, 3], [None, 2], [None, None], [3, 2], [0, 2]]
CALLS = {
    "as_list": [()],
    "num_elements": [()],
    "is_fully_defined": [()],
    "assert_is_fully_defined": [()],
    "assert_has_rank": [(0,), (2,)],
    "with_rank": [(2,), (None,), (-1,)],
    "with_rank_at_least": [(2,)],
    "with_rank_at_most": [(1,)],
    "assert_same_rank": [([1, 2],), (None,)],
    "assert_is_compatible_with": [([3, 2],), (None,)],
    "is_compatible_with": [([3, 2],), (None,), ([],), (5,)],
    "merge_with": [([3, 2],), (None,), ([None, 2],), ([None],), (3,)],
    "concatenate": [([4],), (None,), (3,)],
    "most_specific_compatible_shape": [([3, 2],), ([3, 5],), ([None],), (None,)],
    "foo": [()],
}


@pytest.mark.parametrize("dims", SHAPES, ids=repr)
def test_methods(dims):
    for name, arguments in CALLS.items():
        for args in arguments:
            same(lambda lib, name=name, args=args: getattr(lib.TensorShape(dims), name)(*args))
    for name in ("rank", "ndims", "dims", "_dims"):
        same(lambda lib, name=name: getattr(lib.TensorShape(dims), name))
    for use in (len, bool, list, tuple, repr, str, np.zeros):
        same(lambda lib, use=use: use(lib.TensorShape(dims)))
    for other in ([1], None, (1,), 3, "x", [3, "x"], [3, 2], object, [-1]):
        for op in (operator.add, operator.eq, operator.ne):
            same(lambda lib, op=op, other=other: op(lib.TensorShape(dims), other))
            same(lambda lib, op=op, other=other: op(other, lib.TensorShape(dims)))
    same(lambda lib: lib.TensorShape(dims) < lib.TensorShape(dims))
    for index in (0, 1, -1, 5):
        same(lambda lib, index=index: lib.dimension_at_index(lib.TensorShape(dims), index))


KEYS = [
    0,
    -1,
    1,
    5,
    "a",
    None,
    np.int64(0),
    slice(None),
    slice(5, None),
    slice(None, None, -1),
    slice(1, None, 2),
]


@pytest.mark.parametrize("dims", SHAPES, ids=repr)
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing(dims, key):
    same(lambda lib: lib.TensorShape(dims)[key])


ENDS = st.none() | st.integers(-4, 4)


@given(dims=st.sampled_from(SHAPES), start=ENDS, stop=ENDS)
def test_slices(dims, start, stop):
    same(lambda lib: lib.TensorShape(dims)[start:stop])


DIMS = st.none() | st.lists(st.none() | st.sampled_from([0, 1, 2, 3]), max_size=3)


@given(a=DIMS, b=DIMS)
def test_pairs(a, b):
    for name in (
        "merge_with",
        "concatenate",
        "is_compatible_with",
        "most_specific_compatible_shape",
        "__eq__",
    ):
        same(lambda lib, name=name: getattr(lib.TensorShape(a), name)(lib.TensorShape(b)))
    same(lambda lib: hash(lib.TensorShape(a)) == hash(lib.TensorShape(b)))


@given(a=DIMS, b=DIMS)
def test_broadcast_as_python_sees_it(a, b):
    def broadcast(lib):
        function = lib.broadcast_shape if lib is ours else common_shapes.broadcast_shape
        return function(lib.TensorShape(a), lib.TensorShape(b))

    same(broadcast)


@given(a=DIMS, b=DIMS)
def test_broadcast_as_the_shape_rule_of_an_op_sees_it(a, b):
    with tf.Graph().as_default():
        x, y = (tf.compat.v1.placeholder(tf.float32, dims) for dims in (a, b))
        kind, text = outcome(lambda: tf.raw_ops.AddV2(x=x, y=y).shape)
    ours_kind, ours_text = outcome(lambda: ours.infer_broadcast(ours.TensorShape(a), ours.TensorShape(b)))
    if ours_kind == "ValueError":
        assert kind == "ValueError" and text.startswith(ours_text + " for '{{node")
    else:
        assert (ours_kind, ours_text) == (kind, text)


def test_functions():
    for call in (
        lambda lib: lib.unknown_shape(),
        lambda lib: lib.unknown_shape(2),
        lambda lib: lib.unknown_shape(rank=0),
        lambda lib: lib.unknown_shape(ndims=2),
        lambda lib: lib.unknown_shape(ndims=2, rank=3),
        lambda lib: lib.unknown_shape(foo=1),
        lambda lib: lib.unknown_shape(-1),
        lambda lib: lib.as_dimension(3),
        lambda lib: lib.as_dimension(None),
        *(lambda lib, v=v: lib.dimension_value(v) for v in (3, None, "a")),
        *(lambda lib, v=v: lib.dimension_value(lib.Dimension(v)) for v in (3, None)),
    ):
        same(call)


@pytest.mark.parametrize("dims", SHAPES, ids=repr)
def test_proto(dims):
    a, b = (lib.TensorShape(dims).as_proto() for lib in SIDES)
    assert a.SerializeToString() == b.SerializeToString()
    assert ours.TensorShape(b) == ours.TensorShape(dims)
