"""Stacks of tensors, next to TensorFlow's."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from tests.oracle.graph_defs import both


def made(tf, max_size=-1, dtype=None, name=""):
    return tf.raw_ops.StackV2(max_size=max_size, elem_type=dtype or tf.float32, stack_name=name)


def pushed(tf, stack, values):
    """The values, pushed one after the other."""
    found = []
    for value in values:
        with tf.control_dependencies(found[-1:]):
            found.append(tf.raw_ops.StackPushV2(handle=stack, elem=value, swap_memory=True))
    return found


def popped(tf, stack, count, after, dtype=None):
    found = []
    for _ in range(count):
        with tf.control_dependencies(found[-1:] or after):
            found.append(tf.raw_ops.StackPopV2(handle=stack, elem_type=dtype or tf.float32))
    return found


def test_last_in_first_out():
    def run(tf):
        stack = made(tf)
        before = pushed(tf, stack, [[1.0], [2.0, 3.0], 4.0])
        after = popped(tf, stack, 3, before)
        shapes = [stack.shape.as_list(), [t.shape.as_list() for t in before], [str(t.shape) for t in after]]
        with tf.Session() as session:
            twice = [[value.tolist() for value in session.run(before + after)] for _ in range(2)]
        return shapes, twice

    theirs, ours = both(run)
    assert ours == theirs
    assert ours[1][0] == [[1.0], [2.0, 3.0], 4.0, 4.0, [2.0, 3.0], [1.0]]


def errors_of(tf, program):
    with tf.Session() as session:
        try:
            session.run(program(tf))
        except tf.errors.OpError as error:
            # The number counts the stacks of the process.
            text = next(line for line in str(error).splitlines() if line.startswith("Stack"))
            return type(error).__name__, re.sub(r"_\d+\]", "]", text)


def too_many(tf):
    stack = made(tf, 1, name="small")
    return popped(tf, stack, 1, pushed(tf, stack, [1.0, 2.0]))


def too_few(tf):
    stack = made(tf, name="empty")
    return popped(tf, stack, 2, pushed(tf, stack, [1.0]))


def closed(tf):
    stack = made(tf, name="closed")
    before = pushed(tf, stack, [1.0])
    with tf.control_dependencies(before):
        over = tf.raw_ops.StackCloseV2(handle=stack)
    return popped(tf, stack, 1, [over])


def no_scalar(tf):
    return popped(tf, made(tf, [1, 2]), 1, [])


@pytest.mark.parametrize("program", [too_many, too_few, closed, no_scalar])
def test_errors(program):
    theirs, ours = both(lambda tf: errors_of(tf, program))
    assert theirs is not None
    assert ours == theirs


def test_of_another_type():
    import dtflab

    with dtflab.Graph().as_default(), dtflab.Session() as session:
        stack = made(dtflab)
        before = pushed(dtflab, stack, [1.0])
        with pytest.raises(dtflab.errors.InvalidArgumentError, match="elements of float, not int32"):
            session.run(popped(dtflab, stack, 1, before, dtflab.int32))
        with pytest.raises(dtflab.errors.InvalidArgumentError, match="Must have type float but got int32"):
            session.run(pushed(dtflab, stack, [1]))


def test_a_stack_of_another_step():
    from dtflab.base.errors import NotFoundError
    from dtflab.ops.control.state import StackState
    from dtflab.ops.handles import ResourceHandle, found_in_step

    ctx = SimpleNamespace(device="/cpu:0", step=SimpleNamespace(temporaries={}))
    with pytest.raises(NotFoundError, match="no stack s on /cpu:0 in this step: it was made on /cpu:1"):
        found_in_step(ctx, ResourceHandle("/cpu:1", "1", "s", "tensorflow::Stack"), "stack", StackState)
