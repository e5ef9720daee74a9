"""Shapes, and tensors cut, joined and rearranged."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples


@examples("Shape", "Size", "Rank")
def about_shape(v: Values) -> list[Example]:
    found = [v(v.array(2, 3)), v(v.array()), v(v.array(0, 2))]
    return found if v.op == "Rank" else [*found, v(v.array(2), out_type=dtypes.int64)]


@examples("ShapeN")
def shape_n(v: Values) -> list[Example]:
    return [v([v.array(2, 3), v.array()]), v([v.array(3)], out_type=dtypes.int64)]


@examples("Reshape")
def reshape(v: Values) -> list[Example]:
    shapes = [[3, 2], [-1], [6], [2, -1], [1, 6, 1]]
    return [v(v.array(2, 3), np.array(s, t)) for s in shapes for t in (np.int32, np.int64)] + [
        v(v.array(0, 2), np.array([2, 0, 5], np.int32))
    ]


@examples("ExpandDims")
def expand_dims(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array(a, t)) for a in (0, 1, 2, -1, -3) for t in (np.int32, np.int64)]


@examples("Squeeze")
def squeeze(v: Values) -> list[Example]:
    return [
        v(v.array(1, 2, 1)),
        v(v.array(1, 2, 1), squeeze_dims=[0]),
        v(v.array(1, 2, 1), squeeze_dims=[-1, 0]),
        v(v.array(2)),
    ]


@examples("EnsureShape")
def ensure_shape(v: Values) -> list[Example]:
    shapes = [[2, 3], [None, 3]]
    return [v(v.array(2, 3), shape=s) for s in shapes]


@examples("Transpose", "ConjugateTranspose")
def transpose(v: Values) -> list[Example]:
    found = [v(v.array(2, 3), np.array([1, 0], np.int32)), v(v.array(2, 3, 4), np.array([2, 0, 1], np.int64))]
    if v.op == "Transpose":  # the other aborts TensorFlow's process on scalars
        found.append(v(v.array(), np.array([], np.int32)))
    return found


@examples("InvertPermutation")
def invert_permutation(v: Values) -> list[Example]:
    return [v(np.array(p, v.dtype.as_numpy_dtype)) for p in ([2, 0, 1], [0], [])]


@examples("Concat")
def concat(v: Values) -> list[Example]:
    return [
        v(np.array(0, np.int32), [v.array(2, 3), v.array(1, 3)]),
        v(np.array(1, np.int32), [v.array(2, 3), v.array(2, 0)]),
    ]


@examples("ConcatV2")
def concat_v2(v: Values) -> list[Example]:
    found = [
        v([v.array(2, 3), v.array(1, 3)], np.array(0, np.int32)),
        v([v.array(2, 3), v.array(2, 0), v.array(2, 1)], np.array(-1, np.int64), gradient=False),
    ]
    return [*found, v([v.array(2, 2, 2), v.array(2, 2, 2)], np.array(1, np.int32))]


@examples("ConcatOffset")
def concat_offset(v: Values) -> list[Example]:
    kind = np.int32
    return [v(np.array(1, np.int32), [np.array([2, 3], kind), np.array([2, 5], kind), np.array([2, 1], kind)])]


@examples("Split")
def split(v: Values) -> list[Example]:
    return [v(np.array(a, np.int32), v.array(4, 6), num_split=n) for a, n in ((0, 2), (1, 3), (-1, 2), (0, 1))]


@examples("SplitV")
def split_v(v: Values) -> list[Example]:
    sizes = [([1, 3], 0), ([2, -1, 1], 1), ([4], 0)]
    return [
        v(v.array(4, 6), np.array(s, t), np.array(a, np.int32), num_split=len(s))
        for s, a in sizes
        for t in (np.int32, np.int64)
    ]


@examples("Pack", "ParallelStack")
def pack(v: Values) -> list[Example]:
    if v.op == "ParallelStack":
        return [v([v.array(1, 3), v.array(1, 3)], shape=[2, 3])]
    single = [v([v.array()]), v([v.array(), v.array()])]  # of strings, too
    return [v([v.array(2, 3) for _ in range(3)], axis=a) for a in (0, 1, 2, -1)] + single


@examples("Unpack")
def unpack(v: Values) -> list[Example]:
    return [v(v.array(2, 3), num=n, axis=a) for n, a in ((2, 0), (3, 1), (3, -1))]


@examples("Slice")
def slice_(v: Values) -> list[Example]:
    cuts = [([0, 0], [2, 3]), ([1, 0], [1, -1]), ([0, 1], [-1, 1]), ([0, 0], [0, 2])]
    return [v(v.array(2, 3), np.array(b, t), np.array(s, t)) for b, s in cuts for t in (np.int32, np.int64)]


STRIDES: list[tuple[list[int], list[int], list[int], dict[str, int]]] = [
    ([0, 0], [2, 3], [1, 1], {}),
    ([1, 0], [2, 3], [1, 2], {}),
    ([-1, 2], [-3, 0], [-1, -1], {}),
    ([0], [2], [1], {"shrink_axis_mask": 1}),
    ([0, 1], [0, 2], [1, 1], {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2}),
    ([0, 0, 1], [0, 0, 2], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}),
    ([0, 0], [0, 0], [1, 1], {"begin_mask": 3, "end_mask": 3, "new_axis_mask": 0}),
    ([5, 0], [9, 1], [1, 1], {}),
]


@examples("StridedSlice")
def strided_slice(v: Values) -> list[Example]:
    return [v(v.array(2, 3), *(np.array(x, np.int32) for x in (b, e, s)), **masks) for b, e, s, masks in STRIDES]


@examples("StridedSliceGrad")
def strided_slice_grad(v: Values) -> list[Example]:
    found = [
        ([2, 3], [1, 0], [2, 3], [1, 2], {}, (1, 2)),
        ([2, 3], [0], [2], [1], {"shrink_axis_mask": 1}, (3,)),
    ]
    return [
        v(*(np.array(x, np.int32) for x in (shape, b, e, s)), v.array(*dy), **masks)
        for shape, b, e, s, masks, dy in found
    ]


@examples("Gather")
def gather(v: Values) -> list[Example]:
    return [v(v.array(4, 3), v.index(4, 2, dtype=t)) for t in (np.int32, np.int64)] + [v(v.array(4), v.index(4, 2, 2))]


@examples("GatherV2")
def gather_v2(v: Values) -> list[Example]:
    found = [
        v(v.array(4, 3), v.index(3, 2, dtype=t), np.array(a, np.int32))
        for t in (np.int32, np.int64)
        for a in (0, 1, -1)
    ]
    found += [
        v(v.array(4, 3), v.index(3), np.array(1, np.int64)),
        v(v.array(4, 3), v.index(3, 2, 2), np.array(0, np.int32)),
    ]
    batches = [((2, 3, 4), 4, (2, 2), 2, 1), ((2, 3, 4), 4, (2, 3, 2, 2), 2, 2), ((2, 3, 4), 3, (2,), 1, 1)]
    batches += [((2, 5, 3, 2), 3, (2, 4, 1), 2, 1), ((2, 3), 3, (2, 2), 1, -1), ((2, 3, 0), 3, (2, 2), 1, 1)]
    return found + [
        v(v.array(*shape), v.index(n, *where), np.array(axis, np.int32), batch_dims=batch)
        for shape, n, where, axis, batch in batches
    ]


@examples("GatherNd")
def gather_nd(v: Values) -> list[Example]:
    places = ([[0, 1], [3, 2]], [[1], [1]], [[[0], [2]]])
    found = [v(v.array(4, 3), np.array(at, t)) for t in (np.int32, np.int64) for at in places]
    none = [v(v.array(4, 3), np.zeros(s, np.int32), smooth=False, gradient=False) for s in ([2, 0], [0, 2], [1])]
    return found + none  # TensorFlow has no gradient for them


@examples("ScatterNd")
def scatter_nd(v: Values) -> list[Example]:
    where = np.array([[1], [3], [1]], np.int32)
    return [
        v(where, v.array(3), np.array([5], np.int32)),
        v(where, v.array(3, 2), np.array([5, 2], np.int32)),
        v(np.array([[0, 1], [1, 0]], np.int64), v.array(2), np.array([2, 2], np.int64)),
        v(where[:0], v.array(0, 2), np.array([5, 2], np.int32)),
    ]


@examples("Tile")
def tile(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array(m, t)) for m in ([1, 1], [2, 1], [2, 3], [0, 1]) for t in (np.int32, np.int64)]


@examples("BroadcastTo")
def broadcast_to(v: Values) -> list[Example]:
    return [
        v(v.array(3), np.array([2, 3], np.int32)),
        v(v.array(), np.array([2, 2], np.int64)),
        v(v.array(2, 1), np.array([4, 2, 3], np.int32)),
    ]


@examples("Pad")
def pad(v: Values) -> list[Example]:
    return [
        v(v.array(2, 3), np.array(p, t)) for p in ([[1, 0], [0, 2]], [[0, 0], [0, 0]]) for t in (np.int32, np.int64)
    ]


@examples("PadV2")
def pad_v2(v: Values) -> list[Example]:
    pads = ([[1, 0], [0, 2]], [[0, 0], [0, 0]])
    found = [v(v.array(2, 3), np.array(p, t), v.array()) for p in pads for t in (np.int32, np.int64)]
    return [*found, v(v.array(0, 3), np.array([[1, 1], [0, 1]], np.int32), v.array())]


@examples("MirrorPad")
def mirror_pad(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array([[1, 0], [0, 2]], np.int32), mode=m) for m in ("REFLECT", "SYMMETRIC")]


@examples("Reverse")
def reverse(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array([True, False]))]


@examples("ReverseV2")
def reverse_v2(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array(a, np.int32)) for a in ([0], [-1], [0, 1], [])]


@examples("Where")
def where(v: Values) -> list[Example]:
    return [v(v.array(2, 3)), v(v.array(4)), v(v.array(0))]


@examples("OneHot")
def one_hot(v: Values) -> list[Example]:
    on, off = v.array(), v.array()
    where = np.array([0, 2, -1, 5])
    found = [v(where.astype(t), np.array(3, np.int32), on, off) for t in (np.int32, np.int64)] + [
        v(where[:3].astype(np.uint8), np.array(3, np.int32), on, off)
    ]
    return [
        *found,
        v(np.array([[0, 1], [2, 0]], np.int32), np.array(3, np.int32), on, off, axis=1),
        v(np.array(1, np.int32), np.array(3, np.int32), on, off, axis=0),
    ]


@examples("Unique", "UniqueWithCounts")
def unique(v: Values) -> list[Example]:
    found = [v(v.array(8, low=0, high=2)), v(v.array(3), out_idx=dtypes.int64), v(v.array(0))]
    return [*found, v(np.tile(v.special(), 2))] if v.dtype.is_floating else found  # no NaN equals another


@examples("ListDiff")
def list_diff(v: Values) -> list[Example]:
    return [v(v.array(6), v.array(2)), v(v.array(3), v.array(0), out_idx=dtypes.int64)]


@examples("Diag", "MatrixDiag")
def diag(v: Values) -> list[Example]:
    return [v(v.array(3)), v(v.array(2, 2))]


@examples("DiagPart", "MatrixDiagPart")
def diag_part(v: Values) -> list[Example]:
    return [v(v.array(3, 3)), v(v.array(2, 2, 2, 2))]


@examples("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(v: Values) -> list[Example]:
    i = np.int32
    return [
        v([np.array([0, 2], i), np.array([1], i)], [v.array(2, 3), v.array(1, 3)]),
        v([np.array(1, i), np.array([[0, 2]], i)], [v.array(), v.array(1, 2)]),
    ]


@examples("DynamicPartition")
def dynamic_partition(v: Values) -> list[Example]:
    return [v(v.array(4, 2), np.array([1, 0, 1, 2], np.int32), num_partitions=3)]


@examples("IdentityN")
def identity_n(v: Values) -> list[Example]:
    return [v([v.array(2), v.array(2, 3)])]
