"""TensorFlow's own message classes by name, those of its master and worker services included.

TensorFlow ships no Python module for `master.proto` and `worker.proto`, but its library holds their
descriptors.
"""

from __future__ import annotations

import functools
import importlib
import mmap
import pathlib

import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_NOT_IMPORTED_BY_TENSORFLOW = (
    "tensorflow.core.framework.cost_graph_pb2",
    "tensorflow.core.framework.reader_base_pb2",
    "tensorflow.core.framework.tensor_slice_pb2",
    "tensorflow.core.protobuf.error_codes_pb2",
    "tensorflow.core.protobuf.named_tensor_pb2",
    "tensorflow.core.protobuf.queue_runner_pb2",
    "tensorflow.core.protobuf.tensor_bundle_pb2",
    "tensorflow.core.protobuf.tensorflow_server_pb2",
    "tensorflow.core.util.saved_tensor_slice_pb2",
)
_ONLY_IN_THE_LIBRARY = ("tensorflow/core/protobuf/master.proto", "tensorflow/core/protobuf/worker.proto")


def message_class(full_name: str) -> type[Message]:
    """TensorFlow's class of that name, such as "tensorflow.GraphDef"; KeyError if there is none."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(full_name))


def enum_values(full_name: str) -> dict[str, int]:
    return {value.name: value.number for value in _pool().FindEnumTypeByName(full_name).values}


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.Default()
    for module in _NOT_IMPORTED_BY_TENSORFLOW:
        importlib.import_module(module)
    for name in _ONLY_IN_THE_LIBRARY:
        pool.AddSerializedFile(_embedded(name))
    return pool


def _embedded(name: str) -> bytes:
    """The serialized FileDescriptorProto called `name`, as protoc left it in TensorFlow's library."""
    library = pathlib.Path(tf.sysconfig.get_lib()) / "libtensorflow_cc.so.2"
    first_field = b"\n" + bytes([len(name)]) + name.encode()
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start = data.find(first_field)
        assert start >= 0, f"{library.name} holds no descriptor of {name}"
        return data[start : _end_of_message(data, start)]


def _end_of_message(data: mmap.mmap, position: int) -> int:
    """Where the fields of a FileDescriptorProto end: at the first tag that it cannot have."""
    fields = {field.number for field in descriptor_pb2.FileDescriptorProto.DESCRIPTOR.fields}
    while True:
        tag, after = _varint(data, position)
        if tag >> 3 not in fields or tag & 7 != 2:  # all that these files use are length-delimited
            return position
        length, after = _varint(data, after)
        position = after + length


def _varint(data: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position, value, shift = position + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, position
