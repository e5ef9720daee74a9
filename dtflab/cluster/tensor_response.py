"""The answer to a RecvTensor, written and read; a tensor that is pushed travels as one, too.

Stands for `rpc/grpc_tensor_coding.cc` and `tensor_coding.cc` (TensorResponse).

Rule: a dead tensor is an answer without one. A pushed tensor is framed if that is possible, which is faster to read.
"""

from __future__ import annotations

from dtflab.cluster.tensor_codec import NO_HEADER, Buffer, Pieces, framed, parse, serialize, unframed
from dtflab.protos.worker_pb2 import RecvTensorResponse
from dtflab.runtime.rendezvous import DEAD


def recv_tensor_response(value: object) -> Pieces:
    """The answer to a RecvTensor."""
    response = RecvTensorResponse()
    if value is DEAD:
        response.is_dead = True
        return [response.SerializeToString()]
    return serialize(response, "tensor", [value])


def received(data: Buffer) -> object:
    """The value in the answer to a RecvTensor."""
    response, tensors = parse(RecvTensorResponse, data, "tensor")
    return DEAD if response.is_dead else tensors[0]


def pushed_tensor(value: object) -> Pieces:
    """A tensor that is pushed: framed, or as the answer to a RecvTensor."""
    return framed(value) or [NO_HEADER, *recv_tensor_response(value)]


def received_push(data: Buffer) -> object:
    """The value that was pushed; a class of `errors` if it can't be read."""
    if data[: len(NO_HEADER)] != NO_HEADER:
        return unframed(data)
    return received(data[len(NO_HEADER) :])
