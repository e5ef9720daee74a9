"""Lists of tensors on a card: their tensors lie there, and cross with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dtflab as tf
from tests.gpu.sessions import GPU, session

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
WAYS = [(GPU, GPU), (GPU, "/cpu:0"), ("/cpu:0", GPU)]


pytestmark = pytest.mark.usefixtures("cupy")


def on(made: str, read: str, make: Any, use: Any) -> Any:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 2])
        with tf.device(made):
            handle = make(x)
        with tf.device(read):
            y = use(handle)
        with session() as running:
            return running.run(y, {x: ROWS})


@pytest.mark.parametrize("made, read", WAYS)
def test_a_list(made, read):
    def make(x):
        rows = tf.raw_ops.TensorListFromTensor(tensor=x * 2.0, element_shape=[2])
        more = tf.raw_ops.TensorListPushBack(input_handle=rows, tensor=x[0] + 1.0)
        return tf.raw_ops.TensorListResize(input_handle=more, size=5)

    def use(handle):
        both = tf.raw_ops.AddN(inputs=[handle, tf.zeros_like(handle)])
        return tf.raw_ops.TensorListStack(input_handle=both, element_shape=[2], element_dtype=tf.float32) + 1.0

    expected = np.concatenate([ROWS * 2 + 1, [[2, 3], [1, 1]]])
    np.testing.assert_array_equal(on(made, read, make, use), expected)
