"""Whole files in a graph: read one, write one, find those that match a pattern.

Stands for `core/kernels/whole_file_read_ops.cc` and `matching_files_op.cc`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dtflab.files import gfile
from dtflab.files.paths import reported
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.messages import check_rank, invalid, shape_text


def _path(value: Any, what: str) -> str:
    check_rank(value, 0, f"{what} must be scalar, but had shape: {{}}")
    return os.fsdecode(value.item())


@op("ReadFile(filename: string) -> (contents: string)")
class ReadFile(Op):
    needs_ctx = True
    infer = shapes.fixed([], ranks=[0])
    flops = free

    def kernel(node, xp, ctx, filename):
        path = _path(filename, "Input filename tensor")
        with reported(path), ctx.env.open(path) as file:
            return np.array(file.read(), object)


@op("WriteFile(filename: string, contents: string) -> ()")
class WriteFile(Op):
    stateful = needs_ctx = True
    infer = shapes.fixed(ranks=[0, 0])
    flops = free

    def kernel(node, xp, ctx, filename, contents):
        path = _path(filename, "Input filename tensor")
        check_rank(contents, 0, "Contents tensor must be scalar, but had shape: {}")
        gfile.makedirs(os.path.dirname(ctx.env.path(path)))
        with reported(path), ctx.env.open(path, "wb") as file:
            file.write(contents.item())


@op("MatchingFiles(pattern: string) -> (filenames: string)")
class MatchingFiles(Op):
    needs_ctx = True
    flops = free

    def infer(operation):
        if (operation.inputs[0].shape.ndims or 0) > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {operation.inputs[0].shape.ndims}")
        return [TensorShape([None])]

    def kernel(node, xp, ctx, pattern):
        if pattern.ndim > 1:
            raise invalid(f"Input patterns tensor must be scalar or vector, but had shape: {shape_text(pattern)}")
        found = ctx.env.glob(os.fsdecode(one) for one in pattern.ravel().tolist())
        return np.array(sorted(map(os.fsencode, found)), object)
