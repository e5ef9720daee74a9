"""The ops that write and read checkpoints.

Stands for `core/ops/io_ops.cc` and `core/kernels/{save_restore_v2_ops,save_restore_tensor}.cc`.
Left out: a preferred shard, which is for speed only.

Rule: a save writes on the task where it is placed, a restore reads there: the tasks of a cluster share a file system or
each keep their own shards. RestoreV2 also reads checkpoints of the old format (V1), as TensorFlow's does.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.files.bundle import BundleReader
from dtflab.files.bundle_writer import BundleWriter, as_array, merge_bundles
from dtflab.files.checkpoint_reader import open_checkpoint
from dtflab.files.checkpoint_v1 import V1Reader, write_v1
from dtflab.files.tensor_slice import TensorSlice, parse_shape_and_slice
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import dtype_text, invalid, shape_text


class _FileOp(Op):
    stateful = needs_ctx = True
    flops = free


def text(value: Any) -> str:
    """The only element of a string tensor."""
    array = as_array(value)
    if array.size != 1:
        raise invalid(f"a file name should have a single element, got shape {shape_text(array)} instead.")
    item = array.flat[0]
    return item if isinstance(item, str) else item.decode()


def texts(value: Any) -> list[str]:
    """The elements of a string vector."""
    return [item if isinstance(item, str) else item.decode() for item in as_array(value).flat]


# -- V2 -----------------------------------------------------------------------------------------------------


def _check_counts(operation: Any, count: int, vectors: int = 2) -> None:
    """The first input is one file name, the next `vectors` have one element per tensor."""
    operation.inputs[0].shape.with_rank(0)
    for tensor in operation.inputs[1 : 1 + vectors]:
        tensor.shape.with_rank(1)
        if tensor.shape.ndims is not None and tensor.shape.as_list()[0] not in (None, count):
            raise ValueError(f"Dimension must be {count} but is {tensor.shape[0]}")


def _block_shape(block: str) -> TensorShape:
    """The static shape of what is restored: all of a tensor, or a slice."""
    try:
        return TensorShape(parse_shape_and_slice(block)[2] if block else None)
    except errors.InvalidArgumentError as error:
        raise ValueError(error.message) from None


@op("""SaveV2(prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes) -> ()
       dtypes: list(type) >= 1""")
class SaveV2(_FileOp):
    def infer(operation):
        _check_counts(operation, len(operation.get_attr("dtypes")))
        return []

    def kernel(node, xp, ctx, prefix, names, slices, *tensors):
        with BundleWriter(text(prefix), ctx.env) as writer:
            for name, block, value in zip(texts(names), texts(slices), tensors, strict=True):
                writer.add_slice(name, *_part(block, value), value)


@op("""RestoreV2(prefix: string, tensor_names: string, shape_and_slices: string) -> (tensors: dtypes)
       dtypes: list(type) >= 1""")
class RestoreV2(_FileOp):
    def infer(operation):
        count = len(operation.outputs)
        _check_counts(operation, count)
        slices = constant_value(operation.inputs[2])
        if slices is None:
            return [TensorShape(None)] * count
        return list(map(_block_shape, texts(slices)))

    def kernel(node, xp, ctx, prefix, names, slices):
        with open_checkpoint(text(prefix), ctx.env) as reader:
            wanted = zip(texts(names), texts(slices), node["dtypes"], strict=True)
            return [_restore(reader, *what) for what in wanted]


def _restore(reader: BundleReader | V1Reader, name: str, block: str, dtype: DType) -> Any:
    """A tensor, or the slice `block` of it; errors in TensorFlow's words for the format."""
    saved, (missing, of_other_dtype, of_other_shape) = reader.find(name), _REFUSED[type(reader)]
    if saved is None:
        raise errors.NotFoundError.of(missing.format(name=name, reader=reader))
    if saved.dtype != dtype:
        raise invalid(of_other_dtype.format(name=name, wanted=dtype_text(dtype), saved=dtype_text(saved.dtype)))
    if not block:
        return reader.read(name)
    shape, extents, _ = parse_shape_and_slice(block)
    if shape != saved.shape:
        raise invalid(of_other_shape.format(name=name, wanted=shape_text(shape), saved=shape_text(saved.shape)))
    return reader.read_slice(name, extents)


_SHAPES_DIFFER = "shape in shape_and_slice spec {wanted} does not match the shape stored in checkpoint: {saved}"
_REFUSED: dict[type, tuple[str, str, str]] = {
    BundleReader: (
        "Key {name} not found in checkpoint",
        "tensor_name = {name}; expected dtype {wanted} does not equal original dtype {saved}",
        "tensor_name = {name}; " + _SHAPES_DIFFER,
    ),
    V1Reader: (
        'Tensor name "{name}" not found in checkpoint files {reader.file_pattern}',
        "Expected to restore a tensor of type {wanted}, got a tensor of type {saved} instead: tensor_name = {name}",
        "Shape in shape_and_slice spec does not match the shape in the save file: {wanted}, save file shape: {saved}",
    ),
}


@op("""MergeV2Checkpoints(checkpoint_prefixes: string, destination_prefix: string) -> ()
       delete_old_dirs: bool = true, allow_missing_files: bool = false""")
class MergeV2Checkpoints(_FileOp):
    """The last step of a sharded save: bundles of one shard each become one bundle."""

    def infer(operation):
        prefixes, destination = (t.shape for t in operation.inputs)
        prefixes.with_rank(1)
        destination.with_rank(0)
        return []

    def kernel(node, xp, ctx, prefixes, destination):
        merge_bundles(texts(prefixes), text(destination), node["allow_missing_files"], ctx.env)
        if node["delete_old_dirs"]:
            emptied = {os.path.dirname(ctx.env.prefix(prefix)) for prefix in texts(prefixes)}
            _remove_empty(emptied - {os.path.dirname(ctx.env.prefix(text(destination)))})


def _remove_empty(directories: set[str]) -> None:
    for directory in directories:
        with contextlib.suppress(OSError):  # what is in use, or gone already, is not ours to remove
            os.rmdir(directory)


# -- V1, the format before TensorFlow 1.0 ---------------------------------------------------------------------


_DATA = "data: T) -> () where T: list(type) >= 1"


@op(
    f"Save(filename: string, tensor_names: string, {_DATA}",
    f"SaveSlices(filename: string, tensor_names: string, shapes_and_slices: string, {_DATA}",
)
class SaveV1(_FileOp):
    def infer(operation: Any) -> list[Any]:
        _check_counts(operation, len(operation.get_attr("T")), vectors=len(operation.op_def.inputs) - 2)
        return []

    def kernel(node: Node, xp: Any, ctx: Any, filename: Any, names: Any, *rest: Any) -> None:
        with_slices = node.op == "SaveSlices"
        slices, tensors = (texts(rest[0]), rest[1:]) if with_slices else ([""] * len(rest), rest)
        parts = sorted(zip(texts(names), slices, tensors, strict=True), key=lambda part: part[0])
        write_v1(text(filename), [(name, *_part(block, value), value) for name, block, value in parts], ctx.env)


def _part(block: str, value: Any) -> tuple[tuple[int, ...], TensorSlice]:
    """The shape of the whole tensor, and which slice of it `value` is."""
    found = np.shape(value)
    if not block:
        return found, TensorSlice.full(len(found))
    shape, extents, block_shape = parse_shape_and_slice(block)
    if block_shape != found:
        raise invalid(
            "Slice in shape_and_slice specification does not match the shape of the tensor to  save: "
            f"{block}, tensor: {shape_text(found)}"
        )
    return shape, extents


@op("Restore(file_pattern: string, tensor_name: string) -> (tensor: dt) where dt: type, preferred_shard: int = -1")
class Restore(_FileOp):
    def kernel(node: Node, xp: Any, ctx: Any, pattern: Any, name: Any, block: Any = b"") -> Any:
        with V1Reader(text(pattern), ctx.env) as reader:
            return _restore(reader, text(name), text(block), node["dt"])


@op("""RestoreSlice(file_pattern: string, tensor_name: string, shape_and_slice: string) -> (tensor: dt)
       dt: type, preferred_shard: int = -1""")
class RestoreSlice(Restore):
    def infer(operation):
        block = constant_value(operation.inputs[2])
        return [_block_shape("" if block is None else text(block))]


# -- names of shards ----------------------------------------------------------------------------------------


class _Name(Op):
    infer = shapes.scalar
    flops = free


@op("ShardedFilename(basename: string, shard: int32, num_shards: int32) -> (filename: string)")
class ShardedFilename(_Name):
    def bind(node, xp):
        return lambda base, shard, count: as_array(f"{text(base)}-{int(shard):05d}-of-{int(count):05d}".encode())


@op("ShardedFilespec(basename: string, num_shards: int32) -> (filename: string)")
class ShardedFilespec(_Name):
    def bind(node, xp):
        return lambda base, count: as_array(f"{text(base)}-?????-of-{int(count):05d}".encode())
