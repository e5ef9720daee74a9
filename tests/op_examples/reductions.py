"""Products of matrices, reductions, and what runs along one axis."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import SOME_ROUNDINGS, Example, Values, examples


@examples("MatMul", roundings=SOME_ROUNDINGS)
def matmul(v: Values) -> list[Example]:
    found = [
        v(v.array(2, 3), v.array(3, 4)),
        v(v.array(0, 3), v.array(3, 4)),
        v(v.array(2, 0), v.array(0, 4)),
    ]
    found += [
        v(v.array(3, 2), v.array(3, 4), transpose_a=True),
        v(v.array(2, 3), v.array(4, 3), transpose_b=True),
    ]
    return [*found, v(v.array(3, 2), v.array(4, 3), transpose_a=True, transpose_b=True)]


@examples("_UnaryOpsComposition")
def unary_ops_composition(v: Values) -> list[Example]:
    names = ([b"Square"], [b"Tanh", b"Neg", b"Exp"], [b"Abs", b"Sqrt", b"Relu", b"Log1p", b"Sigmoid"])
    return [v(v.array(2, 3), op_names=list(n)) for n in names]


@examples("_FusedMatMul")
def fused_matmul(v: Values) -> list[Example]:
    functions: list[list[str]] = [[], ["Relu"], ["Relu6"], ["Elu"], ["LeakyRelu"], ["Tanh"], ["Sigmoid"]]
    found = [
        v(v.array(2, 3), v.array(3, 4), [v.array(4)], fused_ops=["BiasAdd", *f], leakyrelu_alpha=0.3) for f in functions
    ]
    turned = {"fused_ops": ["BiasAdd"], "transpose_a": True, "transpose_b": True}
    return [*found, v(v.array(3, 2), v.array(4, 3), [v.array(4)], **turned)]


@examples("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", roundings=SOME_ROUNDINGS)
def batch_matmul(v: Values) -> list[Example]:
    extra = {"Tout": v.dtype} if v.op == "BatchMatMulV3" else {}
    found = [
        v(v.array(2, 2, 3), v.array(2, 3, 4), **extra),
        v(v.array(2, 3, 2), v.array(2, 4, 3), adj_x=True, adj_y=True, **extra),
    ]
    if v.op != "BatchMatMul":
        found += [
            v(v.array(2, 1, 2, 3), v.array(3, 3, 2), **extra),
            v(v.array(2, 3), v.array(4, 3, 2), **extra),
        ]
    return found


@examples("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm")
def reduction(v: Values) -> list[Example]:
    axes = [0, 1, -1, [0], [0, 1], [], [-1, 0]]
    found = [v(v.array(2, 3), np.array(a, np.int32), keep_dims=k) for a in axes for k in (False, True)]
    found += [v(v.array(2, 3, 2), np.array([0, 2], np.int64)), v(v.array(), np.array([], np.int32))]
    if v.op in ("Sum", "Prod"):
        found.append(v(v.array(0, 3), np.array(0, np.int32)))
    return found


@examples("All", "Any")
def logical_reduction(v: Values) -> list[Example]:
    flags = v.random.integers(0, 2, (2, 3)).astype(bool)
    kind = v.dtype.as_numpy_dtype  # of the axes
    found = [v(flags, np.array(a, kind), keep_dims=k) for a in (0, -1, [0, 1], []) for k in (False, True)]
    return [*found, v(flags[:0], np.array(0, kind)), v(flags[0, 0], np.array([], kind))]


@examples("ArgMax", "ArgMin")
def arg_extreme(v: Values) -> list[Example]:
    found = [v(v.array(2, 3), np.array(a, np.int32)) for a in (0, 1, -1)]
    return [
        *found,
        v(v.array(4), np.array(0, np.int64), output_type=dtypes.int32),
        v(v.array(2, 3, 4), np.array(1, np.int32)),
    ]


@examples("Cumsum", "Cumprod")
def cumulative(v: Values) -> list[Example]:
    flags = [(e, r) for e in (False, True) for r in (False, True)]
    return [v(v.array(2, 3), np.array(a, np.int32), exclusive=e, reverse=r) for e, r in flags for a in (0, -1)]


@examples("SegmentSum")
def segments(v: Values) -> list[Example]:
    return [v(v.array(4, 2), np.array([0, 0, 1, 1], np.int32)), v(v.array(3), np.array([0, 2, 2], np.int64))]


@examples("UnsortedSegmentSum")
def unsorted_segments(v: Values) -> list[Example]:
    three = np.array(3, np.int32)
    found = [
        v(v.array(4, 2), np.array([2, 0, 2, -1], np.int32), three),
        v(v.array(2, 2), np.array([[0, 1], [1, 2]], np.int64), three),
    ]
    return [*found, v(v.array(0, 2), np.zeros(0, np.int32), three)]


@examples("TopKV2")
def top_k(v: Values) -> list[Example]:
    found = [v(v.array(2, 5), np.array(k, np.int32), sorted=True) for k in (1, 3, 5)]
    distinct = v.random.permutation(80).reshape(2, 40).astype(v.dtype.as_numpy_dtype)
    return [*found, v(distinct, np.array(2, np.int32)), v(v.array(2, 40), np.array(2, np.int32))]


@examples("InTopK", "InTopKV2")
def in_top_k(v: Values) -> list[Example]:
    logits = np.array([[1.0, 3, 2], [3, 2, 1]], np.float32)
    target = np.array([2, 2], v.dtype.as_numpy_dtype)
    if v.op == "InTopK":
        return [v(logits, target, k=2)]
    return [v(logits, target, np.array(2, v.dtype.as_numpy_dtype))]


@examples("BroadcastGradientArgs", "BroadcastArgs")
def broadcast_args(v: Values) -> list[Example]:
    pairs = [([2, 3], [2, 3]), ([2, 1], [3]), ([], [2, 3]), ([1, 1], [1]), ([4, 1, 3], [2, 1])]
    return [v(np.array(a, v.dtype.as_numpy_dtype), np.array(b, v.dtype.as_numpy_dtype)) for a, b in pairs]
