"""The contents of a TensorArray without a graph: who holds which array, and for how long."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.lists.state import TensorArrayState

UNKNOWN = TensorShape(None)


def array(size=2, **options):
    return TensorArrayState("ta", dtypes.float32, size, UNKNOWN, **options)


def zeros(shape):
    return np.zeros(shape, np.float32)


def read(found, index):
    return found.read(index, zeros)


@pytest.mark.parametrize("clear", [True, False])
def test_a_read_gives_the_very_array_and_lets_go_of_it_unless_told_not_to(clear):
    found, value = array(clear_after_read=clear), np.ones(3, np.float32)
    holders = sys.getrefcount(value)
    found.write(0, value)
    assert sys.getrefcount(value) == holders + 1
    assert read(found, 0) is value
    assert sys.getrefcount(value) == holders + (0 if clear else 1)


def test_closing_lets_go_of_all():
    found, value = array(), np.ones(3, np.float32)
    holders = sys.getrefcount(value)
    found.write(0, value)
    found.write(1, value)
    found.close()
    assert sys.getrefcount(value) == holders
    with pytest.raises(errors.InvalidArgumentError, match="TensorArray ta has already been closed"):
        assert found.size


def test_gradients_add_up_in_an_array_of_their_own():
    forward = array()
    for index in (0, 1):
        forward.write(index, np.ones(2, np.float32))
    gradients = forward.gradients("ta@gradients", ())
    one, two = np.array([1.0, 2.0], np.float32), np.array([10.0, 20.0], np.float32)
    for value in (one, two, two):
        gradients.write(0, value)
    assert read(gradients, 0).tolist() == [21.0, 42.0]
    assert read(gradients, 1).tolist() == [0.0, 0.0]  # nothing came
    assert (one.tolist(), two.tolist()) == ([1.0, 2.0], [10.0, 20.0])  # what others made stays as it is


def test_gradients_fit_their_elements():
    forward = array(1)
    forward.write(0, np.ones(2, np.float32))
    gradients = forward.gradients("ta@gradients", ())
    with pytest.raises(
        errors.InvalidArgumentError, match=r"the existing shape is \[2\] but the new input shape is \[3\]"
    ):
        gradients.write(0, np.ones(3, np.float32))


def test_who_has_gradients_does_not_grow():
    forward = array(1, dynamic_size=True)
    forward.write(2, np.ones(1, np.float32))
    forward.begin_gradients()
    with pytest.raises(errors.InvalidArgumentError, match="not resizeable and size is: 3"):
        forward.write(3, np.ones(1, np.float32))


def test_sums_have_no_gradients():
    gradients = array(1, is_grad=True)
    for _ in range(2):
        gradients.write(0, np.ones(1, np.float32))
    with pytest.raises(errors.InvalidArgumentError, match="multiple writes are performed to the same index"):
        gradients.begin_gradients()


def test_the_first_element_tells_the_shape_of_all():
    found = array(identical=True)
    found.write(0, np.ones((2, 3), np.float32))
    with pytest.raises(errors.InvalidArgumentError, match=r"value shape is \[3\].*shape: \[2,3\]"):
        found.write(1, np.ones(3, np.float32))
    assert read(found, 1).shape == (2, 3)  # zeros: nobody wrote it
