"""`swap_memory`: what a loop's gradient needs waits in host memory when the card's is nearly full."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.hosts import simulate_gpus


@pytest.fixture(autouse=True)
def a_card(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1, memory="1GiB")
    with tf.Graph().as_default():
        yield
    simulate_gpus(None)


def gradient(swap_memory: bool, device: str, turns: int) -> np.ndarray:
    """A loop of which each iteration keeps a megabyte for the way back, on a card of which 32 are ours."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [512, 512])
        with tf.device(device):
            y = tf.while_loop(
                lambda i, _: i < turns, lambda i, y: (i + 1, tf.sin(y) * 1.01), (0, x), swap_memory=swap_memory
            )[1]
            slope = tf.gradients(y, x)[0]
        config = tf.ConfigProto(allow_soft_placement=True)
        config.gpu_options.per_process_gpu_memory_fraction = 1 / 32
        with tf.Session(config=config) as session:
            return session.run(slope, {x: np.linspace(0, 1, 512 * 512).reshape(512, 512)})


def test_a_loop_that_would_not_fit():
    with pytest.raises(tf.errors.ResourceExhaustedError):
        gradient(False, "/gpu:0", 40)
    np.testing.assert_array_equal(gradient(True, "/gpu:0", 40), gradient(True, "/cpu:0", 40))


def test_the_oldest_large_values_leave_first():
    from dtflab.ops.control.state import OnHost, StackState

    stack, large, small = StackState("s", tf.float32, -1), np.zeros(1000, np.float32), np.float32(1)
    for value in (large, large.copy(), small, large, large.copy()):
        stack.push(value, tf.float32)
    for _ in range(3):
        stack.swap_out(np.array)
    assert [isinstance(value, OnHost) for value in stack.values] == [False, True, False, False, True]
    popped = [stack.pop() for _ in range(5)]
    assert [isinstance(value, OnHost) for value in popped] == [True, False, False, True, False]
    stack.push(large, tf.float32)
    stack.push(large.copy(), tf.float32)
    stack.swap_out(np.array)
    assert isinstance(stack.pop(), OnHost)
