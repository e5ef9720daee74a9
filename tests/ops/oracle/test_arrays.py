"""Functions on arrays: TensorFlow's graphs, values, static shapes and errors."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from tests.oracle import answers
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()  # `function(tf)` → a list of what to fetch


@program.each("make")
@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_same_values(make):
    def answer(tf):
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(make(tf))

    for theirs, ours in zip(*answers.both(answer), strict=True):
        if theirs.dtype.kind in "fc":
            np.testing.assert_allclose(ours, theirs, 1e-5)
        else:
            np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@program.each("make")
def test_same_graph(make):
    assert_same_graph(make, gradients=True)


@program.each("make")
def test_same_static_shapes(make):
    theirs, ours = both(lambda tf: [str(t.shape) for t in make(tf)])
    assert ours == theirs


def unknown(tf: Any, value: Any, shape: Any = None) -> Any:
    """`value`, of which the graph does not know more than this shape."""
    return tf.placeholder_with_default(tf.constant(value), shape)


# -- segments -----------------------------------------------------------------------------------------------------


@program
def segments(tf):
    x, ids = tf.constant([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]), [0, 0, 2]
    return [
        tf.segment_max(x, ids), tf.segment_min(x, ids, name="least"), tf.math.segment_mean(x, ids),
        tf.segment_prod(x, ids),
    ]  # fmt: skip


@program
def unsorted_segments(tf):
    x, ids = tf.constant([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]), tf.constant([2, 0, 2])
    return [
        tf.unsorted_segment_max(x, ids, 3), tf.unsorted_segment_min(x, ids, 3, name="least"),
        tf.math.unsorted_segment_prod(x, ids, 4), tf.unsorted_segment_mean(x, ids, 4),
        tf.unsorted_segment_sqrt_n(x, unknown(tf, [0, 2, 2]), 3, name="root"),
    ]  # fmt: skip


@program
def gradients_of_segments(tf):
    x, ids = tf.constant([[1.0, 2.0], [1.0, -4.0], [0.0, 6.0]]), [0, 0, 1]
    found = [f(x, ids) for f in (tf.segment_max, tf.segment_min, tf.segment_mean, tf.segment_prod)]
    found += [
        f(x, ids, 2)
        for f in (
            tf.unsorted_segment_max, tf.unsorted_segment_min, tf.unsorted_segment_mean, tf.unsorted_segment_sqrt_n,
        )
    ]  # fmt: skip
    return [tf.gradients(y, x)[0] for y in found]


# -- order ----------------------------------------------------------------------------------------------------------


@program
def sorted_arrays(tf):
    x = tf.constant([[3.0, 1.0, 2.0], [5.0, 5.0, -4.0]])
    k = tf.constant([[[3, 1], [2, 2]], [[-(2**31), 2**31 - 1], [0, -1]]])
    return [
        tf.sort(x), tf.sort(x, axis=0, name="down"), tf.sort(k, 1, "DESCENDING"), tf.sort(unknown(tf, [2, 3, 1])),
        tf.sort(tf.constant([3, 1, 255], tf.uint8)), tf.argsort(x), tf.argsort(k, -2), tf.argsort(x, 0, "DESCENDING"),
        tf.sort(unknown(tf, [[2, 3], [1, 4]]), axis=0),
    ]  # fmt: skip


@program
def gradients_of_sorted_arrays(tf):
    x = tf.constant([[3.0, 1.0, 2.0], [5.0, 6.0, -4.0]])
    return tf.gradients(tf.sort(x, axis=0) * [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], x)


@program
def places_in_sorted_arrays(tf):
    rows = tf.constant([[[1.0, 2.0, 2.0]], [[0.0, 3.0, 9.0]]])
    values = tf.constant([[[2.0, 3.0]], [[3.0, -1.0]]])
    return [
        tf.searchsorted(rows, values), tf.searchsorted(rows, values, side="right", out_type=tf.int64, name="after"),
        tf.searchsorted([1, 3, 5], [0, 3, 9]), tf.searchsorted(unknown(tf, [1, 3]), unknown(tf, [2])),
    ]  # fmt: skip


# -- the same elements elsewhere --------------------------------------------------------------------------------------


@program
def masks(tf):
    lengths = tf.constant([1, 3, 2])
    return [
        tf.sequence_mask(lengths, 5), tf.sequence_mask([[1, 2], [0, 4]], dtype=tf.float32, name="m"),
        tf.sequence_mask(unknown(tf, [2, 1]), unknown(tf, 3), dtype=None), tf.sequence_mask(tf.constant(2, tf.int64)),
        tf.sequence_mask(lengths, dtype=tf.int32),
    ]  # fmt: skip


@program
def repeated(tf):
    x = tf.constant([[1, 2], [3, 4]])
    p = unknown(tf, [[1.0, 2.0], [3.0, 4.0]], [None, 2])
    return [
        tf.repeat(3, 4), tf.repeat(x, 2), tf.repeat(x, 3, axis=1), tf.repeat(x, [2, 0], axis=0, name="some"),
        tf.repeat(x, [1, 2], axis=-1), tf.repeat(p, unknown(tf, [2, 1], [None]), axis=0), tf.repeat(p, [3], axis=0),
        tf.repeat(["a", "b"], [2, 1], axis=0), tf.repeat(x, np.array([1, 2]), axis=1),
    ]  # fmt: skip


@program
def repeated_of_unknown_rank(tf):
    p = unknown(tf, [[1.0, 2.0], [3.0, 4.0]])
    return [tf.repeat(p, 2, axis=0), tf.repeat(p, 2, axis=1)]


@program
def gradients_of_repeated(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [*tf.gradients(tf.repeat(x, [2, 3], axis=1), x), *tf.gradients(tf.repeat(x, 2, axis=0), x)]


@program
def grids(tf):
    return [
        *tf.meshgrid([1, 2, 3], tf.constant([4, 5])), *tf.meshgrid([1.0], [2.0, 3.0], [4.0], indexing="ij", name="g"),
        *tf.meshgrid(tf.range(2), [3, 4], unknown(tf, [5, 6], [None])), *tf.meshgrid([1, 2]), *tf.meshgrid(),
    ]  # fmt: skip


@program
def rolled_and_reversed(tf):
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    a = tf.roll(x, shift=[1, -1], axis=[0, 1])
    b = tf.reverse_sequence(x, [1, 3], seq_axis=1, batch_axis=0)
    c = tf.reverse_sequence(x, tf.constant([2, 1, 0], tf.int64), seq_dim=0, batch_dim=1, name="old")
    return [a, tf.manip.roll(x, 2, 1, name="r"), b, c, *tf.gradients([a * x, b * x, c * x], x)]


# -- blocks -----------------------------------------------------------------------------------------------------------


@program
def blocks(tf):
    x = tf.reshape(tf.range(32.0), [1, 4, 4, 2])
    pads = [[0, 2], [1, 1]]
    a = tf.space_to_batch(x, pads, 2, name="a")
    b = tf.space_to_batch_nd(unknown(tf, np.ones([1, 4, 4, 2], np.float32), [None, 4, None, 2]), [2, 2], pads)
    back = [tf.batch_to_space(a, pads, 2), tf.manip.batch_to_space_nd(b, [2, 2], unknown(tf, pads))]
    c = tf.space_to_depth(x, 2)
    return [a, b, *back, c, tf.nn.depth_to_space(c, 2), *tf.gradients([back[0] * x, c**2], x)]


@program
def paddings_for_blocks(tf):
    known = tf.required_space_to_batch_paddings([5, 6], [2, 4], [[1, 0], [0, 1]])
    part = tf.required_space_to_batch_paddings(unknown(tf, [5, 6], [2]), [2, 4], name="part")
    return [*known, *part, *tf.required_space_to_batch_paddings([], tf.zeros([0], tf.int32))]


# -- the rest ---------------------------------------------------------------------------------------------------------


@program
def other_dtypes(tf):
    x = tf.constant([[300.0, -5.0], [70000.0, 2.5]])
    k = tf.constant([-1, 300, 2**31 - 1])
    c = tf.constant([1e300 + 2j, -3j], tf.complex128)
    return [
        tf.saturate_cast(x, tf.uint8), tf.saturate_cast(k, tf.int8, name="s"), tf.saturate_cast(x, tf.float16),
        tf.saturate_cast(k, tf.float32), tf.dtypes.saturate_cast(x, tf.int32), tf.saturate_cast(c, tf.complex64),
        tf.saturate_cast(x, tf.complex64), tf.bitcast(x, tf.uint8), tf.bitcast(tf.bitcast(x, tf.int32), tf.float32),
        tf.bitcast(tf.constant([[1, 2, 3, 4]], tf.uint8), tf.int32, name="b"), tf.to_complex64(x), tf.to_complex128(k),
    ]  # fmt: skip


@program
def places(tf):
    x = tf.constant([[1.0, 9.0, 3.0], [7.0, 2.0, 8.0]])
    p = unknown(tf, [[[1.0, 2.0], [3.0, 4.0]]], [None, 2, 2])
    return [
        tf.unravel_index([5, 0], [2, 3]), tf.unravel_index(unknown(tf, 4, []), [2, 3], name="u"),
        tf.batch_gather(x, [[0, 0], [2, 1]]), tf.batch_gather(p, [[[1, 0], [0, 0]]], name="g"),
        tf.batch_gather(x, [1, 0]), tf.arg_max(x, 1), tf.arg_min(x, 0, name="least"),
        *tf.unique_with_counts([3, 1, 3, 3]), *tf.unique_with_counts(["a", "b", "a"], tf.int64, name="c"),
    ]  # fmt: skip


@program
def batches_of_places(tf):
    x = tf.reshape(tf.range(24.0), [2, 3, 4])
    p = unknown(tf, [[[1.0, 2.0], [3.0, 4.0]]], [None, 2, 2])
    found = [
        tf.gather_nd(x, [[[1, 2]], [[0, 0]]], batch_dims=1),
        tf.gather_nd(x, [[[1], [0], [3]]] * 2, batch_dims=2, name="g"),
        tf.gather_nd(x, [[[2], [0]], [[1], [1]]], batch_dims=1), tf.manip.gather_nd(p, [[[1], [0]]], batch_dims=1),
    ]  # fmt: skip
    return [*found, *tf.gradients([y**2 for y in found[:3]], x)]


@program
def gradients_of_batch_gather(tf):
    x = tf.constant([[1.0, 9.0, 3.0], [7.0, 2.0, 8.0]])
    return [tf.convert_to_tensor(g) for g in tf.gradients(tf.batch_gather(x, [[0, 0], [2, 1]]) ** 2, x)]


@program
def bands_and_checks(tf):
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    a = tf.matrix_band_part(x, 0, -1)
    b = tf.linalg.band_part(x, tf.constant(1, tf.int64), tf.constant(0, tf.int64), name="b")
    c = tf.verify_tensor_all_finite(x, "told", name="v")
    d = tf.debugging.assert_all_finite(x=x, message="told")
    return [a, b, c, d, tf.guarantee_const(x), tf.parallel_stack([x, x]), *tf.gradients([a * x, b * x, c, d], x)]


@program
def patches(tf):
    x = tf.reshape(tf.range(2.0 * 5 * 4 * 3), [2, 5, 4, 3])
    a = tf.extract_image_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], "SAME")
    b = tf.image.extract_image_patches(x, sizes=[1, 2, 2, 1], strides=[1, 1, 1, 1], rates=[1, 2, 1, 1], padding="VALID")
    c = tf.image.extract_patches(unknown(tf, np.ones([1, 4, 4, 1]), [None, None, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1],
                                 [1, 1, 1, 1], "VALID", name="c")  # fmt: skip
    none = tf.extract_image_patches(x[:, :2], [1, 3, 3, 1], [1] * 4, [1] * 4, "VALID")
    return [a, b, c, none, *tf.gradients([a**2, b**3], x)]


@program
def distances(tf):
    truth = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["a", "b", "c"], [3, 2])
    guess = tf.SparseTensor([[0, 0], [1, 0], [2, 0]], ["x", "c", "d"], [3, 1])
    return [tf.edit_distance(guess, truth), tf.edit_distance(guess, truth, normalize=False, name="steps")]


@program
def random_pieces(tf):
    x = tf.reshape(tf.range(60), [3, 4, 5])
    return [tf.random_crop(x, [2, 3, 1], seed=3), tf.image.random_crop(x, [3, 1, 5], seed=4, name="piece")]


def test_timestamps():
    before = time.time()
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        first = dtflab.timestamp()
        with dtflab.control_dependencies([first]):
            second = dtflab.timestamp(name="second")
        a, b = session.run([first, second])
    assert before <= a <= b <= time.time() and a.dtype == np.float64
    assert_same_graph(lambda tf: tf.timestamp(name="now"))


# -- mistakes ---------------------------------------------------------------------------------------------------------

MISTAKES: list[Callable[[Any], Any]] = [
    lambda tf: tf.gather_nd([[1]], [[0]], batch_dims=2),
    lambda tf: tf.gather_nd([[1]], [[0]], batch_dims=-1),
    lambda tf: tf.gather_nd([[1, 2]], unknown(tf, [[0, -1]])),
    lambda tf: tf.gather_nd([[1, 2]], unknown(tf, [[[0, 0]], [[0, 2]]])),
    lambda tf: tf.scatter_nd(unknown(tf, [[3]]), [1], [3]),
    lambda tf: tf.batch_gather([1], unknown(tf, [0])),
    lambda tf: tf.matrix_band_part([[1]], unknown(tf, 3), 0),
    lambda tf: tf.bitcast(tf.constant([1], tf.uint8), tf.int32),
    lambda tf: tf.bitcast(unknown(tf, [[1]]), tf.int64),
    lambda tf: tf.unravel_index([7], [2, 3]),
    lambda tf: tf.parallel_stack([unknown(tf, [1])]),
    lambda tf: tf.extract_image_patches(np.ones([1, 2, 2, 1]), [1, 4, 3, 1], [1] * 4, [1] * 4, "VALID"),
    lambda tf: tf.extract_image_patches(
        unknown(tf, np.ones([1, 2, 2, 1])), [1, 2, 2, 1], [1] * 4, [1, 4, 1, 1], "VALID"
    ),
    lambda tf: tf.edit_distance([1], tf.SparseTensor([[0, 0]], [1], [1, 1])),
    lambda tf: tf.random_crop([[1]], [2, 1]),
    lambda tf: tf.verify_tensor_all_finite([1.0, np.nan], "told"),
    lambda tf: tf.segment_max(unknown(tf, [1.0, 2.0]), [1, 0]),
    lambda tf: tf.segment_mean(unknown(tf, [1.0, 2.0]), unknown(tf, [0])),
    lambda tf: tf.unsorted_segment_max(tf.constant([1.0, 2.0]), [0, 5], 2),
    lambda tf: tf.reverse([1], [1]),
    lambda tf: tf.unique_with_counts([[1]]),
    lambda tf: tf.sort([1.0], direction="UP"),
    lambda tf: tf.sort([1.0], axis=unknown(tf, 0)),
    lambda tf: tf.searchsorted([1], [1], side="middle"),
    lambda tf: tf.raw_ops.LowerBound(sorted_inputs=unknown(tf, [[1]]), values=unknown(tf, [[1], [2]])),
    lambda tf: tf.sequence_mask([1], maxlen=[3]),
    lambda tf: tf.meshgrid([1], indexing="ji"),
    lambda tf: tf.repeat([1], [1.5]),
    lambda tf: tf.repeat([1], 2, axis="a"),
    lambda tf: tf.repeat([1], 2, axis=3),
    lambda tf: tf.roll(unknown(tf, 1), 1, 0),
    lambda tf: tf.roll([1, 2], unknown(tf, [1, 2]), unknown(tf, [0])),
    lambda tf: tf.roll([1, 2], 1, 4),
    lambda tf: tf.roll([1, 2], unknown(tf, [[1]]), 0),
    lambda tf: tf.reverse_sequence(unknown(tf, [[1, 2]]), [3], 1, 0),
    lambda tf: tf.reverse_sequence(unknown(tf, [[1, 2]]), [-1], 1, 0),
    lambda tf: tf.reverse_sequence(unknown(tf, [[1, 2]]), [1, 1], 1, 0),
    lambda tf: tf.reverse_sequence(unknown(tf, [1, 2]), [1, 1], 1, 0),
    lambda tf: tf.reverse_sequence([[1, 2]], [1], 2, 0),
    lambda tf: tf.reverse_sequence([[1, 2]], [1], 1, 0, seq_dim=1),
    lambda tf: tf.space_to_batch_nd(unknown(tf, [[1, 2, 3]]), [2], [[0, 0]]),
    lambda tf: tf.space_to_batch_nd([[1, 2, 3]], [2], [[0, 0]]),
    lambda tf: tf.space_to_batch_nd(unknown(tf, [1, 2, 3]), [2], [[0, 0]]),
    lambda tf: tf.space_to_batch_nd(unknown(tf, [[1, 2]]), unknown(tf, [0]), [[0, 0]]),
    lambda tf: tf.space_to_batch_nd(unknown(tf, [[1, 2]]), [2], [[-1, 1]]),
    lambda tf: tf.batch_to_space_nd(unknown(tf, [[1], [2], [3]]), [2], [[0, 0]]),
    lambda tf: tf.batch_to_space_nd(unknown(tf, [[1], [2]]), [2], [[2, 1]]),
    lambda tf: tf.space_to_depth(unknown(tf, np.ones([1, 3, 2, 1])), 2),
    lambda tf: tf.depth_to_space(unknown(tf, np.ones([1, 2, 2, 3])), 2),
    lambda tf: tf.depth_to_space(np.ones([1, 2, 2, 3]), 2),
]


@pytest.mark.parametrize("make", MISTAKES)
def test_same_error(make):
    def answer(tf):
        with (
            tf.Graph().as_default(),
            tf.Session() as session,
            pytest.raises((ValueError, TypeError, tf.errors.OpError)) as info,
        ):
            session.run(make(tf))
        return info.type.__name__, told(info.value)

    theirs, ours = answers.both(answer)
    assert ours == theirs


def told(error: Exception) -> str:
    """The text of an error without the node."""
    text = getattr(error, "message", str(error))
    text = re.sub(r"(?s)^Graph execution error:.*?Node: '.*?'\n", "", text)
    return re.split(r"\n|,? for '\{\{node", text)[0].strip()
