"""Messages with tensors mean the same bytes, no matter who puts them together, and copy little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from dtflab.base import errors
from dtflab.cluster import tensor_codec
from dtflab.ops.handles import ResourceHandle
from dtflab.protos.master_pb2 import RunCallableRequest, RunStepRequest, RunStepResponse
from dtflab.protos.resource_handle_pb2 import ResourceHandleProto
from dtflab.protos.tensor_pb2 import TensorProto
from dtflab.protos.worker_pb2 import RecvTensorResponse, RunGraphRequest

HANDLE = ResourceHandle("/job:ps/replica:0/task:0/device:CPU:0", "localhost", "w", "tensorflow::Var")
LARGE = np.arange(20_000, dtype=np.float32).reshape(200, 100)
VALUES = {
    "scalar": np.float32(1.5),
    "vector": np.arange(3),
    "large": LARGE,
    "large, transposed": LARGE.T,
    "large, strided": LARGE[::2, ::2],
    "large booleans": np.arange(50_000) % 3 == 0,
    "large bytes": np.arange(40_000, dtype=np.uint8),
    "large and empty": LARGE[:0],
    "large complex": LARGE.astype(np.complex64) * 1j,
    "strings": np.array([b"a", b"b\0" * 30_000], object),
}


def equal(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("kind", [RunStepRequest, RunGraphRequest], ids=lambda k: k.DESCRIPTOR.name)
def test_named_tensors(kind: Any, name: str) -> None:
    field = "feed" if kind is RunStepRequest else "send"
    message, value = kind(session_handle="h", request_id=7), VALUES[name]
    data = b"".join(tensor_codec.serialize_named(message, field, [("a:0", value), ("b:0", np.int32(3))]))
    by_protobuf = kind.FromString(data)  # protobuf reads what was joined …
    assert [one.name for one in getattr(by_protobuf, field)] == ["a:0", "b:0"]
    for wire in (data, by_protobuf.SerializeToString()):  # … and the other way round
        rest, tensors = tensor_codec.parse_named(kind, wire, field)
        assert rest == message
        assert [name for name, _ in tensors] == ["a:0", "b:0"]
        assert equal(tensors[0][1], value) and equal(tensors[1][1], np.int32(3))


@pytest.mark.parametrize("name", VALUES)
def test_one_tensor(name: str) -> None:
    message = RecvTensorResponse(send_start_micros=5, require_ack=True)
    data = b"".join(tensor_codec.serialize(message, "tensor", [VALUES[name]]))
    for wire in (data, RecvTensorResponse.FromString(data).SerializeToString()):
        rest, (value,) = tensor_codec.parse(RecvTensorResponse, wire, "tensor")
        assert rest == message and equal(value, VALUES[name])


def test_a_dead_tensor_is_none_at_all() -> None:
    data = b"".join(tensor_codec.serialize(RecvTensorResponse(is_dead=True), "tensor", []))
    assert tensor_codec.parse(RecvTensorResponse, data, "tensor") == (RecvTensorResponse(is_dead=True), [])


def test_unnamed_tensors_keep_their_order() -> None:
    data = b"".join(tensor_codec.serialize(RunCallableRequest(handle=1), "feed", VALUES.values()))
    _, values = tensor_codec.parse(RunCallableRequest, data, "feed")
    assert all(map(equal, values, VALUES.values()))


def test_what_else_is_in_a_large_message_survives() -> None:
    message = RunStepResponse(status_code=3, status_error_message="é" * 9)
    message.metadata.step_stats.dev_stats.add(device="/cpu:0").thread_names[1] = "main"
    unknown = b"\x98\x3f\x05"  # field 1011, from a newer TensorFlow
    data = b"".join(tensor_codec.serialize_named(message, "tensor", [("x:0", LARGE)])) + unknown
    rest, _ = tensor_codec.parse_named(RunStepResponse, data, "tensor")
    assert rest.SerializeToString() == message.SerializeToString() + unknown


def test_arrays_arrive_read_only() -> None:
    for value in (np.arange(4), LARGE):
        data = b"".join(tensor_codec.serialize(RunCallableRequest(), "feed", [value]))
        _, (arrived,) = tensor_codec.parse(RunCallableRequest, data, "feed")
        assert not arrived.flags.writeable and arrived.flags.aligned


def test_aligned_elements_are_not_copied() -> None:
    bytes_value = np.arange(40_000, dtype=np.uint8)  # always aligned
    data = b"".join(tensor_codec.serialize(RunCallableRequest(), "feed", [bytes_value]))
    _, (arrived,) = tensor_codec.parse(RunCallableRequest, data, "feed")
    assert np.shares_memory(arrived, np.frombuffer(data, np.uint8))


def test_what_was_sent_may_change_afterwards() -> None:
    value = LARGE.copy()
    data = b"".join(tensor_codec.serialize(RunCallableRequest(), "feed", [value]))
    value[:] = 0
    assert equal(tensor_codec.parse(RunCallableRequest, data, "feed")[1][0], LARGE)


# ---- handles ----


def test_a_handle_is_a_scalar() -> None:
    proto = tensor_codec.to_proto(HANDLE)
    assert proto.resource_handle_val[0].name == "w" and not proto.tensor_shape.dim
    assert tensor_codec.from_proto(proto) == HANDLE


def test_handles_in_an_array() -> None:
    array = np.empty(2, object)
    array[0], array[1] = HANDLE, HANDLE._replace(name="b")
    arrived = tensor_codec.from_proto(tensor_codec.to_proto(array))
    assert arrived.tolist() == array.tolist()


def test_a_handle_as_tensorflows_worker_sends_it() -> None:
    handle = ResourceHandleProto(
        device="d", container="c", name="n", hash_code=1, maybe_type_name="t"
    ).SerializeToString()
    proto = TensorProto(dtype=20, tensor_content=bytes([len(handle)]) + handle)
    assert tensor_codec.from_proto(proto) == ResourceHandle("d", "c", "n", "t")


@pytest.mark.parametrize("item", [np.array(b"pointer", object), np.zeros(4), bytearray(b"ab"), memoryview(b"ab")])
def test_an_element_that_is_not_text_is_never_sent_as_the_memory_that_it_is(item: Any) -> None:
    strings = np.empty(2, object)
    strings[0], strings[1] = b"a", item
    with pytest.raises(errors.InternalError, match=f"not {type(item).__name__}"):
        tensor_codec.to_proto(strings)


# ---- bytes that are not a message ----


def test_every_cut_is_noticed() -> None:
    data = b"".join(tensor_codec.serialize_named(RunStepRequest(session_handle="h"), "feed", [("a:0", LARGE)]))
    for end in [*range(tensor_codec._LARGE, tensor_codec._LARGE + 20), len(data) - 1]:
        with pytest.raises(DecodeError):
            tensor_codec.parse_named(RunStepRequest, data[:end], "feed")


@given(st.binary(max_size=60), st.integers(0, 80))
def test_noise_gives_an_error_or_what_protobuf_gives(noise: bytes, at: int) -> None:
    request = tensor_codec.serialize_named(RunStepRequest(session_handle="h"), "feed", [("a:0", LARGE)])
    data = bytearray(b"".join(request))
    data[at : at + len(noise)] = noise
    try:
        rest, _ = tensor_codec.parse_named(RunStepRequest, bytes(data), "feed")
    except (DecodeError, errors.InvalidArgumentError, UnicodeDecodeError):
        return
    expected = RunStepRequest.FromString(bytes(data))
    expected.ClearField("feed")
    assert rest == expected
