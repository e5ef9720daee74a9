"""Tensors as strings, and Examples out of JSON.

Stands for `core/kernels/{parse_tensor_op,decode_json_example}.cc`.
"""

from __future__ import annotations

import base64

import numpy as np
from google.protobuf.message import DecodeError

from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_proto import make_ndarray, make_tensor_proto
from dtflab.ops import shapes
from dtflab.ops.messages import check_rank, dtype_text, invalid
from dtflab.protos.example_pb2 import Example
from dtflab.protos.tensor_pb2 import TensorProto


@op("SerializeTensor(tensor: T) -> (serialized: string) where T: type")
class SerializeTensor(Op):
    grad = no_gradient
    infer = shapes.scalar

    def kernel(node, xp, value):
        dtype = node["T"]
        proto = make_tensor_proto(np.asarray(value), dtype)
        if dtype.is_numpy_compatible and dtype != dtypes.string and not proto.tensor_content:
            proto = TensorProto(dtype=proto.dtype, tensor_shape=proto.tensor_shape)
            proto.tensor_content = np.asarray(value).tobytes()
        return np.array(proto.SerializeToString(deterministic=True), object)


@op("ParseTensor(serialized: string) -> (output: out_type) where out_type: type")
class ParseTensor(Op):
    grad = no_gradient

    def kernel(node, xp, serialized):
        wanted = node["out_type"]
        check_rank(serialized, 0, "Expected `serialized` to be a scalar, got shape: {}")
        try:
            proto = TensorProto.FromString(serialized.item())
        except DecodeError:
            shown = base64.b64encode(serialized.item()).decode()
            raise invalid(f"Could not parse `serialized` as TensorProto, base64: {shown}") from None
        if proto.dtype != wanted.as_datatype_enum:
            found = dtype_text(dtypes.as_dtype(proto.dtype))
            raise invalid(f"Type mismatch between parsed tensor ({found}) and dtype ({dtype_text(wanted)})")
        return make_ndarray(proto)


@op("DecodeJSONExample(json_examples: string) -> (binary_examples: string)")
class DecodeJSONExample(Op):
    infer = shapes.unchanged

    def kernel(node, xp, texts):
        found = [_from_json(text) for text in texts.ravel().tolist()]
        return np.array(found, object).reshape(texts.shape)


def _from_json(text: bytes) -> bytes:
    from google.protobuf import json_format  # `import dtflab` need not wait for it

    try:
        return json_format.Parse(text, Example()).SerializeToString(deterministic=True)
    except (json_format.ParseError, UnicodeDecodeError) as error:
        raise invalid(f"Error while parsing JSON: {error}") from None
