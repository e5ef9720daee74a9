"""make_tensor_proto and make_ndarray give what TensorFlow's give: the same bytes, arrays and errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("tensorflow")
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_proto import make_ndarray, make_tensor_proto
from dtflab.graph.tensor_shape import TensorShape
from dtflab.protos.tensor_pb2 import TensorProto

BFLOAT16 = ml_dtypes.bfloat16
# TensorFlow's Python has no code for these, although its DType exists.
UNSUPPORTED = {dtypes.float8_e4m3fnuz, dtypes.float8_e4m3b11fnuz, dtypes.float8_e5m2fnuz}
ALL_DTYPES = [d for d in map(dtypes.DType, range(1, 34)) if d not in UNSUPPORTED]
NUMERIC = [d for d in ALL_DTYPES if d.is_numeric and not d.is_quantized]
BYTE_FLOATS = [d for d in NUMERIC if d.is_floating and d.size == 1]


def their_dtype(dtype: dtypes.DType | None) -> Any:
    return None if dtype is None else tf.dtypes.as_dtype(dtype.as_datatype_enum)


def outcome(make: Any, values: Any, dtype: Any, options: dict[str, Any]) -> Any:
    try:
        return make(values, dtype, **options).SerializeToString(deterministic=True)
    except Exception as error:
        return type(error), str(error)


def check(values: Any, dtype: dtypes.DType | None = None, **options: Any) -> Any:
    """Both give the same bytes, or the same error with the same message."""
    ours = outcome(make_tensor_proto, values, dtype, options)
    assert ours == outcome(tf.make_tensor_proto, values, their_dtype(dtype), options)
    if isinstance(ours, bytes):
        check_ndarray(ours)
    return ours


def check_ndarray(wire: bytes) -> None:
    try:
        real = tf.make_ndarray(as_theirs(wire))
    except ValueError:  # more values than the shape has room for
        with pytest.raises(ValueError, match="cannot hold"):
            make_ndarray(TensorProto.FromString(wire))
        return
    ours = make_ndarray(TensorProto.FromString(wire))
    assert ours.dtype == real.dtype and ours.shape == real.shape
    assert ours.tolist() == real.tolist() if ours.dtype == object else ours.tobytes() == real.tobytes()


def as_theirs(wire: bytes) -> Any:
    return tensor_pb2.TensorProto.FromString(wire)


PYTHON_VALUES = [
    *(0, 1, -1, 1.5, -0.0, float("inf"), 1 + 2j, True, False, 2**31, 2**40, -(2**31), 2**63, 2**64),
    *("", "text", b"bytes", b"zero at the end\0", "ünïcödé", "a" * 300, bytearray(b"ab"), memoryview(b"ab")),
    *([], [[]], [[], []], [1], [1, 2], [[1, 2], [3, 4]], (1, 2), [(1, 2), [3, 4]], [1, 2.5], [1, True]),
    *([True, False], [[True], [False]], [1, 2**40], [1.0, 2**40], [2**63], [-1, 2**63], [1j, 2]),
    *([float("nan")], ["a", "bc"], [["a"], ["b"]], [b"\0", "a"], ["a", 1], [1, "a"]),
    *(None, [None], [[1], [2, 3]], [["a"], ["b", "c"]], [1, [2]], {1, 2}, object, range(3), [range(2)]),
]
NUMPY_VALUES = [
    *(np.float64(2.5), np.int64(3), np.bool_(True), np.str_("s"), np.bytes_(b"s"), np.datetime64("2020")),
    *(
        [np.bool_(True)],
        [np.float16(1)],
        [np.float32(1), np.float64(2)],
        [np.array([1, 2]), np.array([3, 4])],
    ),
    *(
        np.array(["a", "bc"]),
        np.array([b"a", b"bc"]),
        np.array(["a", b"b"], object),
        np.array([1, "a"], object),
    ),
    *(
        np.array(7),
        np.zeros((0, 3)),
        np.zeros((2, 0), np.int64),
        np.array([[True]]),
        np.array([1j], np.complex64),
    ),
    *(np.arange(6).reshape(2, 3).T, np.arange(10, dtype=np.float32)[::2], np.array([1.5], np.float16)),
    *(np.array(1.5, BFLOAT16), np.array([1.5, 2], BFLOAT16)),
]


@pytest.mark.parametrize("dtype", [None, *ALL_DTYPES], ids=str)
@pytest.mark.filterwarnings("ignore")  # NumPy's about values that do not fit, in both
def test_any_value_as_any_dtype(dtype: dtypes.DType | None) -> None:
    for values in PYTHON_VALUES + NUMPY_VALUES:
        check(values, dtype)


@pytest.mark.parametrize(
    "values", [1, 1.5, "a", [1], [1, 2], [[1, 2, 3]], ["a", "b"], [], np.arange(4), np.float32(1)], ids=repr
)
@pytest.mark.parametrize(
    "shape", [[], [1], [2], [2, 2], [4], [3, 0], [0], (2, 3), [np.int64(2)], 5, [-1], [None]], ids=repr
)
@pytest.mark.parametrize("option", [{}, {"verify_shape": True}, {"allow_broadcast": True}], ids=str)
def test_shapes(values: Any, shape: Any, option: dict[str, bool]) -> None:
    check(values, shape=shape, **option)


def test_a_shape_that_is_a_tensor_shape() -> None:
    real = tf.make_tensor_proto(1, shape=tf.TensorShape([2, 3])).SerializeToString()
    assert make_tensor_proto(1, shape=TensorShape([2, 3])).SerializeToString() == real


def test_options_that_contradict_each_other() -> None:
    assert check(1, shape=[1], verify_shape=True, allow_broadcast=True)[0] is ValueError


@pytest.mark.parametrize(
    "values", [(1,), [(1,), (2,)], [[(1,)]], 1, [1], [(1.5,)], np.array([1, 2], np.int8)], ids=repr
)
@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if d.is_quantized], ids=str)
def test_quantized(values: Any, dtype: dtypes.DType) -> None:
    check(values, dtype)


@pytest.mark.parametrize("dtype", [d for d in NUMERIC if d.size <= 2], ids=str)
def test_every_bit_pattern(dtype: dtypes.DType) -> None:
    bits = np.arange(2 ** (8 * dtype.size), dtype=f"u{dtype.size}").view(dtype.as_numpy_dtype)
    check(bits)
    for element in bits[:: max(1, len(bits) // 64)]:
        check(np.array(element), dtype)


@given(st.data())
def test_random_arrays(data: st.DataObject) -> None:
    kinds = [
        np.float16,
        np.float32,
        np.float64,
        np.int8,
        np.int32,
        np.int64,
        np.uint8,
        np.uint32,
        np.uint64,
        np.bool_,
    ]
    kind = data.draw(st.sampled_from([*kinds, np.complex64, np.complex128]))
    check(data.draw(hnp.arrays(kind, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))))


NESTED = st.recursive(
    st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.text(max_size=3), st.binary(max_size=3)),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(NESTED, st.sampled_from([None, *ALL_DTYPES]))
@pytest.mark.filterwarnings("ignore")
def test_random_lists(values: Any, dtype: dtypes.DType | None) -> None:
    check(values, dtype)


def test_a_tensor_proto_is_returned_as_it_is() -> None:
    proto = make_tensor_proto([1, 2])
    assert make_tensor_proto(proto) is proto


@pytest.mark.parametrize("dtype", [None, *ALL_DTYPES], ids=str)
def test_a_dict_is_no_tensor(dtype: dtypes.DType | None) -> None:
    for make, kind in ((make_tensor_proto, dtype), (tf.make_tensor_proto, their_dtype(dtype))):
        with pytest.raises((TypeError, ValueError)):
            make({"a": 1}, kind)


def test_a_tensor_has_no_value_yet() -> None:
    tensor = object.__new__(Tensor)
    for values in (tensor, [tensor], [[1, tensor]]):
        with pytest.raises(TypeError, match=r"Expected any non-tensor type, but got a tensor instead."):
            make_tensor_proto(values)
    graph = tf.Graph()
    with graph.as_default():
        constant = tf.constant(1)
    with pytest.raises(TypeError, match=r"Expected any non-tensor type, but got a tensor instead."):
        tf.make_tensor_proto([[1, constant]])


def test_foreign_byte_order_keeps_its_values() -> None:
    assert make_tensor_proto(np.array([1, 2], ">i4")) == make_tensor_proto([1, 2])  # TensorFlow: 16777216, …


# ---- back to arrays ----


@pytest.mark.parametrize("dtype", [d for d in NUMERIC if d not in BYTE_FLOATS], ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 6])
def test_the_last_value_repeats(dtype: dtypes.DType, count: int) -> None:
    listed = [1, 0, 1, 1, 0, 1][:count]
    proto = TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=TensorShape([2, 3]).as_proto())
    for value in listed:
        element = make_tensor_proto(np.array(value, dtype.as_numpy_dtype))
        element.ClearField("tensor_shape")
        proto.MergeFrom(element)  # adds to the list
    wanted = [*listed, *[listed[-1] if listed else 0] * 6][:6]
    assert make_ndarray(proto).reshape(-1).real.astype(int).tolist() == wanted
    check_ndarray(proto.SerializeToString())


def test_the_last_string_repeats() -> None:
    proto = make_tensor_proto(["a", "b"])
    proto.tensor_shape.dim[0].size = 4
    check_ndarray(proto.SerializeToString())
    assert make_ndarray(proto).tolist() == [b"a", b"b", b"b", b"b"]


def test_missing_strings_are_empty_bytes() -> None:
    proto = make_tensor_proto("")
    proto.ClearField("string_val")
    assert make_ndarray(proto)[()] == b""  # TensorFlow's Python says '', its runtime b''


def test_too_many_values() -> None:
    proto = make_tensor_proto(1.0)
    proto.float_val.append(2.0)
    with pytest.raises(ValueError, match=r"shape \[\] cannot hold the 2 values"):
        make_ndarray(proto)
    with pytest.raises(ValueError):
        tf.make_ndarray(as_theirs(proto.SerializeToString()))


@pytest.mark.parametrize("dtype", [dtypes.resource, dtypes.variant], ids=str)
def test_handles_have_no_array_form(dtype: dtypes.DType) -> None:
    wire = TensorProto(dtype=dtype.as_datatype_enum).SerializeToString()
    with pytest.raises(KeyError):
        make_ndarray(TensorProto.FromString(wire))
    with pytest.raises(KeyError):
        tf.make_ndarray(as_theirs(wire))


def test_arrays_are_the_callers_own() -> None:
    value = make_ndarray(make_tensor_proto([1.0, 2.0]))
    value[0] = 5
    assert value.tolist() == [5, 2]
