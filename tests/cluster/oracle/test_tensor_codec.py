"""TensorFlow's C++ reads dtflab's bytes, and the other way round, for every dtype and form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("tensorflow")
import tensorflow as tf

from dtflab.base import errors
from dtflab.base.varint import put_varint
from dtflab.cluster import tensor_codec
from dtflab.graph import dtypes
from dtflab.graph.tensor_proto import make_tensor_proto, string_content
from dtflab.protos.tensor_pb2 import TensorProto, VariantTensorDataProto

pytestmark = pytest.mark.usefixtures("eager")

ALL_DTYPES = [d for d in map(dtypes.DType, range(1, 34)) if d not in (dtypes.resource, dtypes.variant)]
NUMERIC = [d for d in ALL_DTYPES if d.is_numeric and not d.is_quantized]


def read_by_tensorflow(proto: TensorProto) -> Any:
    return tf.io.parse_tensor(proto.SerializeToString(), tf.dtypes.as_dtype(proto.dtype)).numpy()


def written_by_tensorflow(value: Any, dtype: dtypes.DType) -> TensorProto:
    tensor = tf.constant(value, tf.dtypes.as_dtype(dtype.as_datatype_enum))
    return TensorProto.FromString(tf.io.serialize_tensor(tensor).numpy())


def assert_same(ours: Any, real: Any) -> None:
    real = np.asarray(real)
    assert ours.dtype == real.dtype and ours.shape == real.shape
    assert ours.tobytes() == real.tobytes() if ours.dtype != object else ours.tolist() == real.tolist()


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0, 3), (2, 1, 2)], ids=str)
def test_numbers_both_ways(dtype: dtypes.DType, shape: tuple[int, ...]) -> None:
    value = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype.as_numpy_dtype)
    assert_same(read_by_tensorflow(tensor_codec.to_proto(value)), value)
    assert_same(tensor_codec.from_proto(tensor_codec.to_proto(value)), value)
    assert_same(tensor_codec.from_proto(written_by_tensorflow(value, dtype)), value)


@pytest.mark.parametrize(
    "value", [b"", b"zero\0", b"x" * 300, [b"a", b"\xff\0", b""], [[b"a"], [b"b"]], np.zeros((0, 2))]
)
def test_strings_both_ways(value: Any) -> None:
    array = np.empty(np.shape(value), object)
    array[...] = value
    assert_same(np.asarray(read_by_tensorflow(tensor_codec.to_proto(array)), object), array)
    assert_same(tensor_codec.from_proto(written_by_tensorflow(array.astype(object), dtypes.string)), array)


def test_bytes_and_text_are_strings() -> None:
    assert read_by_tensorflow(tensor_codec.to_proto(b"a\0")) == b"a\0"
    assert read_by_tensorflow(tensor_codec.to_proto("é")) == "é".encode()
    assert read_by_tensorflow(tensor_codec.to_proto(np.array(["é", "b"]))).tolist() == ["é".encode(), b"b"]


@pytest.mark.parametrize("strings", [[b"a", b"bcd", b""], [b"x" * 300], []], ids=str)
def test_strings_as_content_are_read_as_tensorflow_reads_them(strings: list[bytes]) -> None:
    lengths = b"".join(put_varint(len(s)) for s in strings)
    proto = make_tensor_proto(np.array(strings, object))
    proto.ClearField("string_val")
    proto.tensor_content = lengths + b"".join(strings)
    assert_same(tensor_codec.from_proto(proto), read_by_tensorflow(proto))


@pytest.mark.parametrize("dtype", [d for d in NUMERIC if not d.name.startswith("float8")], ids=str)
def test_listed_values_are_read_as_tensorflow_reads_them(dtype: dtypes.DType) -> None:
    proto = make_tensor_proto(np.array(1, dtype.as_numpy_dtype))
    for size in (2, 3):
        proto.tensor_shape.dim.add(size=size)
    value = tensor_codec.from_proto(proto)
    assert_same(value, read_by_tensorflow(proto))
    assert value.real.astype(int).tolist() == [[1, 1, 1], [1, 1, 1]]


@given(hnp.arrays(st.sampled_from([np.float32, np.int64, np.complex64, np.bool_]), hnp.array_shapes(min_dims=0)))
def test_random_arrays(value: np.ndarray) -> None:
    assert_same(read_by_tensorflow(tensor_codec.to_proto(value)), value)


CONTRADICTIONS = {
    "too little content": TensorProto(dtype=1, tensor_content=b"1234", tensor_shape={"dim": [{"size": 2}]}),
    "too much content": TensorProto(dtype=1, tensor_content=b"12345678", tensor_shape={"dim": [{"size": 1}]}),
    "no whole element": TensorProto(dtype=1, tensor_content=b"12345", tensor_shape={"dim": [{"size": 1}]}),
    "too many values": TensorProto(dtype=3, int_val=[1, 2]),
    "a size below 0": TensorProto(dtype=1, tensor_shape={"dim": [{"size": -1}]}),
    "unknown rank": TensorProto(dtype=1, tensor_shape={"unknown_rank": True}),
    "strings too short": TensorProto(dtype=7, tensor_content=b"\x05abc"),
    "strings too long": TensorProto(dtype=7, tensor_content=b"\x01abc"),
    "no strings": TensorProto(dtype=7, tensor_content=b"\xff", tensor_shape={"dim": [{"size": 3}]}),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_contradictions_are_refused_as_tensorflow_refuses_them(what: str) -> None:
    proto = CONTRADICTIONS[what]
    with pytest.raises(errors.InvalidArgumentError, match="Cannot parse tensor from proto"):
        tensor_codec.from_proto(proto)
    if what not in ("too many values", "unknown rank"):  # there TensorFlow takes the first one
        with pytest.raises(tf.errors.InvalidArgumentError):
            read_by_tensorflow(proto)


def test_no_dtype_and_unknown_dtypes() -> None:
    for number in (0, 21, 99):
        with pytest.raises(errors.InvalidArgumentError):
            tensor_codec.from_proto(TensorProto(dtype=number))


def list_of(items: list[Any], element_shape: Any) -> Any:
    """A list in TensorFlow with these items; None leaves one unset."""
    made = tf.raw_ops.TensorListReserve(element_shape=element_shape, num_elements=len(items), element_dtype=tf.float32)
    for i, item in enumerate(items):
        if item is not None:
            made = tf.raw_ops.TensorListSetItem(input_handle=made, index=i, item=tf.constant(item))
    return made


def only_variant(message: TensorProto) -> Any:
    """The variant of a scalar, which TensorFlow puts into `tensor_content`: its length, then its bytes."""
    (data,) = string_content(memoryview(message.tensor_content), 1)
    return VariantTensorDataProto.FromString(bytes(data))


def told(message: Any) -> Any:
    """All but the tensors, which have several forms."""
    return message.type_name, message.metadata, len(message.tensors)


@pytest.mark.parametrize("items", [[], [[1.0, 2.0]], [None, [1.0, 2.0], None, [3.0, 4.0]]], ids=str)
@pytest.mark.parametrize("element_shape", [-1, [2], [-1]], ids=str)
def test_lists_of_tensors_both_ways(items: list[Any], element_shape: Any) -> None:
    theirs = tf.io.serialize_tensor(list_of(items, element_shape)).numpy()
    ours = tensor_codec.from_proto(TensorProto.FromString(theirs))
    assert [None if item is None else item.tolist() for item in ours.items] == items
    assert (ours.dtype, ours.limit) == (dtypes.float32, -1)
    assert str(ours.element_shape) == {"-1": "<unknown>", "[2]": "(2,)", "[-1]": "(?,)"}[str(element_shape)]
    sent = tensor_codec.to_proto(ours)
    assert told(sent.variant_val[0]) == told(only_variant(TensorProto.FromString(theirs)))
    back = tf.io.parse_tensor(sent.SerializeToString(), tf.variant)
    assert tf.raw_ops.TensorListLength(input_handle=back).numpy() == len(items)
    for i, item in enumerate(items):
        read = tf.raw_ops.TensorListGetItem(input_handle=back, index=i, element_shape=[2], element_dtype=tf.float32)
        assert read.numpy().tolist() == (item or [0.0, 0.0])


@pytest.mark.parametrize("values", [None, [[1.0, 2.0], 3]], ids=str)
def test_optional_values_both_ways(values: Any) -> None:
    made = tf.raw_ops.OptionalNone() if values is None else tf.raw_ops.OptionalFromValue(components=values)
    theirs = TensorProto.FromString(tf.io.serialize_tensor(made).numpy())
    ours = tensor_codec.from_proto(theirs)
    assert (ours.values is None) == (values is None)
    assert values is None or [v.tolist() for v in ours.values] == values
    assert told(tensor_codec.to_proto(ours).variant_val[0]) == told(only_variant(theirs))


def test_other_variants_are_refused() -> None:
    data = tf.data.Dataset.range(3)._variant_tensor
    with pytest.raises(errors.InvalidArgumentError, match="no variants of type"):
        tensor_codec.from_proto(TensorProto.FromString(tf.io.serialize_tensor(data).numpy()))
