"""Values that a kernel refuses: TensorFlow's error class, and its sentence within ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab

F, I = np.float32, np.int32  # noqa: E741 - the two dtypes of this file
Program = Callable[[Any, Callable[[Any], Any]], Any]

# Each gets `tf` and a function that hides a value from the shape rules, so that the kernel is the first to know.
PROGRAMS: dict[str, Program] = {
    "floordiv": lambda tf, v: tf.constant([7, -7]) // v(I([0, 2])),
    "floormod": lambda tf, v: tf.floormod(5, v(I(0))),
    "pow": lambda tf, v: tf.pow(v(I([2, 3])), [-1, 2]),
    "placeholder": lambda tf, v: tf.placeholder(tf.float32, [None, 3], name="x"),
    "placeholder of any shape": lambda tf, v: tf.placeholder(tf.int64, name="x"),
    "placeholder of doubles": lambda tf, v: tf.placeholder(tf.float64, [2], name="x") + 1,
    "reshape": lambda tf, v: tf.reshape(v(F([1, 2, 3])), [2, 2]),
    "reshape to free": lambda tf, v: tf.reshape(v(F([1, 2, 3])), [2, -1]),
    "reshape to two free": lambda tf, v: tf.reshape(v(F([1, 2, 3])), v(I([-1, -1]))),
    "broadcast": lambda tf, v: v(np.zeros(6, F)) + v(np.zeros(5, F)),
    "broadcast of matrices": lambda tf, v: v(np.zeros((2, 3), F)) * v(np.zeros((3, 3), F)),
    "add_n": lambda tf, v: tf.add_n([v(np.zeros(6, F)), v(np.zeros(1, F))]),
    "matmul": lambda tf, v: tf.matmul(*(tf.placeholder_with_default(F([[1, 2]]), [None, None]) for _ in "ab")),
    "gather": lambda tf, v: tf.gather([1.0, 2.0], v(I([1, 2]))),
    "gather negative": lambda tf, v: tf.gather([1.0, 2.0], v(I([[0, -1]]))),
    "gather_nd": lambda tf, v: tf.gather_nd([1.0, 2.0], v(I([[0], [3]]))),
    "reduce": lambda tf, v: tf.reduce_sum(v(F([1, 2])), v(I([2]))),
    "reduce twice": lambda tf, v: tf.reduce_sum(v(F([1, 2])), v(I([0, 0]))),
    "argmax": lambda tf, v: tf.argmax(v(F([1, 2])), v(I(3))),
    "argmax of nothing": lambda tf, v: tf.argmax(v(np.zeros((2, 0), F)), 1),
    "concat ranks": lambda tf, v: tf.concat([v(np.zeros(1, F)), v(np.zeros((6, 2), F))], 0),
    "slice": lambda tf, v: tf.slice(v(F([1, 2])), [1], v(I([3]))),
    "slice from outside": lambda tf, v: tf.slice(v(F([1, 2])), v(I([3])), [0]),
    "strided slice": lambda tf, v: v(F([1, 2]))[v(I(2))],
    "unstack": lambda tf, v: tf.unstack(v(np.zeros((6, 2), F)), num=3),
    "tile": lambda tf, v: tf.tile(v(F([1, 2])), v(I([3, 2]))),
    "expand_dims": lambda tf, v: tf.expand_dims(v(np.zeros((6, 2), F)), v(I(3))),
    "squeeze": lambda tf, v: tf.squeeze(v(np.zeros((6, 2), F)), [0]) + 1,
    "transpose": lambda tf, v: tf.transpose(v(np.zeros((6, 2), F)), v(I([0, 0]))),
    "range": lambda tf, v: tf.range(0, 5, v(I(0))),
    "range backwards": lambda tf, v: tf.range(v(I(5)), 0),
    "split": lambda tf, v: tf.split(v(np.zeros((5,), F)), 2),
    "segments": lambda tf, v: tf.unsorted_segment_sum([1.0, 2.0], v(I([0, 3])), 2),
    "invert_permutation": lambda tf, v: tf.invert_permutation(v(I([1, 1]))),
    "dynamic_partition": lambda tf, v: tf.dynamic_partition([1, 2], v(I([0, 2])), 2),
}


def raised_by(tf: Any, program: Program) -> Exception:
    with tf.Graph().as_default():
        feeds: dict[Any, Any] = {}

        def hidden(value: Any) -> Any:
            value = np.asarray(value)
            tensor = tf.placeholder(value.dtype)
            feeds[tensor] = value
            return tensor

        fetched = program(tf, hidden)
        with pytest.raises(tf.errors.OpError) as caught, tf.Session() as session:
            session.run(fetched, feeds)
    return caught.value


def sentence(error: Exception) -> str:
    """The kernel's sentence: TensorFlow puts the user's line before it and the node behind."""
    text = re.sub(r"(?s).*\nNode: '[^']*'\n", "", error.message)  # type: ignore[attr-defined]
    text = re.split(r"\s*\[\[", text)[0]
    return text.strip()


@pytest.mark.parametrize("name", PROGRAMS)
def test_refused(name):
    theirs, ours = raised_by(real_tf, PROGRAMS[name]), raised_by(dtflab, PROGRAMS[name])
    assert type(ours).__name__ == type(theirs).__name__
    assert sentence(theirs) in ours.message
