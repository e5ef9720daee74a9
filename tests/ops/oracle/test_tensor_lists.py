"""Lists of tensors and optional values, as raw ops on both libraries: values, static shapes and errors."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as tf

import dtflab

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
UNKNOWN = np.int32(-1)


def reserved(lib, n, shape=(2,)):
    return lib.raw_ops.TensorListReserve(
        element_shape=np.array(shape, np.int32) if shape is not None else UNKNOWN, num_elements=n,
        element_dtype=lib.float32,
    )  # fmt: skip


def empty(lib, shape=(2,), limit=-1):
    return lib.raw_ops.EmptyTensorList(
        element_shape=np.array(shape, np.int32) if shape is not None else UNKNOWN, max_num_elements=limit,
        element_dtype=lib.float32,
    )  # fmt: skip


def of_rows(lib, rows=ROWS, shape=(2,)):
    return lib.raw_ops.TensorListFromTensor(tensor=rows, element_shape=np.array(shape, np.int32))


def push(lib, handle, row):
    return lib.raw_ops.TensorListPushBack(input_handle=handle, tensor=np.asarray(row, np.float32))


def pop(lib, handle, shape=(2,)):
    return lib.raw_ops.TensorListPopBack(
        input_handle=handle, element_shape=np.array(shape, np.int32), element_dtype=lib.float32
    )


def item(lib, handle, i, shape=(2,)):
    given = np.array(shape, np.int32) if shape is not None else UNKNOWN
    return lib.raw_ops.TensorListGetItem(input_handle=handle, index=i, element_shape=given, element_dtype=lib.float32)


def put(lib, handle, i, row, **grows):
    return lib.raw_ops.TensorListSetItem(input_handle=handle, index=i, item=np.asarray(row, np.float32), **grows)


def stack(lib, handle, shape=(2,), count=-1):
    given = np.array(shape, np.int32) if shape is not None else UNKNOWN
    return lib.raw_ops.TensorListStack(
        input_handle=handle, element_shape=given, element_dtype=lib.float32, num_elements=count
    )


def concat(lib, handle, shape, leading=()):
    return list(lib.raw_ops.TensorListConcatV2(
        input_handle=handle, element_shape=np.array(shape, np.int32), leading_dims=np.array(leading, np.int64),
        element_dtype=lib.float32,
    ))  # fmt: skip


def split(lib, lengths, shape=(-1, 2)):
    return lib.raw_ops.TensorListSplit(
        tensor=ROWS, element_shape=np.array(shape, np.int32), lengths=np.array(lengths, np.int64)
    )


def length(lib, handle):
    return lib.raw_ops.TensorListLength(input_handle=handle)


def shape_of(lib, handle, kind="int32"):
    return lib.raw_ops.TensorListElementShape(input_handle=handle, shape_type=getattr(lib, kind))


def resize(lib, handle, n):
    return lib.raw_ops.TensorListResize(input_handle=handle, size=n)


def gather(lib, handle, indices, shape=(2,)):
    return lib.raw_ops.TensorListGather(
        input_handle=handle, indices=np.array(indices, np.int32), element_shape=np.array(shape, np.int32),
        element_dtype=lib.float32,
    )  # fmt: skip


def scattered(lib, indices, n=-1, shape=(2,)):
    return lib.raw_ops.TensorListScatterV2(
        tensor=ROWS, indices=np.array(indices, np.int32), element_shape=np.array(shape, np.int32), num_elements=n
    )


def optional(lib, *values):
    return lib.raw_ops.OptionalFromValue(components=[lib.constant(v) for v in values])


def value_of(lib, handle):
    return list(lib.raw_ops.OptionalGetValue(
        optional=handle, output_types=[lib.float32, lib.int32], output_shapes=[[2], [None]]
    ))  # fmt: skip


VALUES = [
    lambda lib: [stack(lib, of_rows(lib)), length(lib, of_rows(lib)), shape_of(lib, of_rows(lib))],
    lambda lib: [stack(lib, push(lib, push(lib, empty(lib), [1, 2]), [3, 4])), length(lib, empty(lib))],
    lambda lib: [shape_of(lib, empty(lib, None), "int64"), shape_of(lib, empty(lib, (-1, 3)))],
    lambda lib: [pop(lib, of_rows(lib))[1], stack(lib, pop(lib, of_rows(lib))[0]), pop(lib, reserved(lib, 2))[1]],
    lambda lib: [stack(lib, put(lib, reserved(lib, 3), 1, [5, 6])), stack(lib, reserved(lib, 0))],
    lambda lib: [stack(lib, put(lib, reserved(lib, 1), 3, [5, 6], resize_if_index_out_of_bounds=True))],
    lambda lib: [item(lib, of_rows(lib), 2), item(lib, reserved(lib, 2), 1)],
    lambda lib: [item(lib, put(lib, reserved(lib, 2, None), 0, [1, 2, 3]), 1, None)],
    lambda lib: [stack(lib, put(lib, reserved(lib, 2, None), 0, [1, 2, 3]), None)],
    lambda lib: [stack(lib, resize(lib, of_rows(lib), 2)), stack(lib, resize(lib, of_rows(lib), 4))],
    lambda lib: [gather(lib, of_rows(lib), [2, 0, 2]), gather(lib, of_rows(lib), [])],
    lambda lib: [stack(lib, scattered(lib, [2, 0, 1])), stack(lib, scattered(lib, [4, 0, 1], 6))],
    lambda lib: [stack(lib, lib.raw_ops.TensorListScatterIntoExistingList(
        input_handle=of_rows(lib), tensor=ROWS * 10, indices=[1, 3, 0]))],
    lambda lib: [stack(lib, lib.raw_ops.TensorListConcatLists(
        input_a=of_rows(lib), input_b=of_rows(lib), element_dtype=lib.float32))],
    lambda lib: concat(lib, split(lib, [1, 0, 2]), (-1, 2)) + concat(lib, empty(lib, (-1, 2)), (-1, 2)),
    lambda lib: concat(lib, put(lib, reserved(lib, 2, (-1, 2)), 0, [[1, 2]]), (-1, 2), [1, 3]),
    lambda lib: [stack(lib, lib.zeros_like(of_rows(lib))), stack(lib, lib.raw_ops.AddN(inputs=[of_rows(lib)] * 3))],
    lambda lib: [stack(lib, lib.raw_ops.AddN(inputs=[of_rows(lib), put(lib, reserved(lib, 3), 1, [5, 6])]))],
    lambda lib: [*value_of(lib, optional(lib, [1.0, 2.0], [3])),
                 lib.raw_ops.OptionalHasValue(optional=optional(lib, 1)),
                 lib.raw_ops.OptionalHasValue(optional=lib.raw_ops.OptionalNone())],
    lambda lib: value_of(lib, lib.zeros_like(optional(lib, [1.0, 2.0], [3]))),
    lambda lib: value_of(lib, lib.raw_ops.AddN(inputs=[optional(lib, [1.0, 2.0], [3])] * 2)),
]  # fmt: skip

ERRORS = [
    lambda lib: pop(lib, empty(lib))[1],
    lambda lib: stack(lib, push(lib, empty(lib), [1, 2, 3])),
    lambda lib: stack(lib, push(lib, empty(lib, limit=0), [1, 2])),
    lambda lib: item(lib, of_rows(lib), 3),
    lambda lib: item(lib, reserved(lib, 2, None), 0, None),
    lambda lib: stack(lib, put(lib, of_rows(lib), 3, [1, 2])),
    lambda lib: stack(lib, lib.raw_ops.TensorListSetItem(  # TensorFlow's rule of shapes must not see it
        input_handle=of_rows(lib), index=0, item=lib.placeholder_with_default(np.float32([1, 2, 3]), None))),
    lambda lib: stack(lib, of_rows(lib), count=2),
    lambda lib: stack(lib, empty(lib, None), None),
    lambda lib: stack(lib, reserved(lib, 2, None), None),
    lambda lib: gather(lib, of_rows(lib), [5]),
    lambda lib: stack(lib, resize(lib, of_rows(lib), -1)),
    lambda lib: stack(lib, reserved(lib, -1)),
    lambda lib: concat(lib, split(lib, [1, 1]), (-1, 2))[0],
    lambda lib: concat(lib, split(lib, [1, 5]), (-1, 2))[0],
    lambda lib: concat(lib, empty(lib, None), (-1, -1))[0],
    lambda lib: stack(lib, lib.raw_ops.AddN(inputs=[of_rows(lib), reserved(lib, 2)])),
    lambda lib: value_of(lib, lib.raw_ops.OptionalNone())[0],
]  # fmt: skip


def x_rows(lib):
    return lib.constant(ROWS, name="x")


DERIVED = [
    lambda lib, x: stack(lib, of_rows(lib, x)) * ROWS,
    lambda lib, x: pop(lib, push_tensor(lib, of_rows(lib, x * x), x[0] * 3.0))[1] * x[1],
    lambda lib, x: stack(lib, push_tensor(lib, of_rows(lib, x), x[0] * x[1])) * np.float32(np.arange(8).reshape(4, 2)),
    lambda lib, x: item(lib, of_rows(lib, x * x), 1) * 2.0,
    lambda lib, x: stack(lib, put_tensor(lib, of_rows(lib, x), 1, x[2] * x[0])) * ROWS,
    lambda lib, x: stack(lib, resize(lib, of_rows(lib, x), 2)),
    lambda lib, x: gather(lib, of_rows(lib, x * x), [2, 0]) * np.float32([[1, 2], [3, 4]]),
    lambda lib, x: stack(lib, lib.raw_ops.TensorListScatterV2(
        tensor=x, indices=[2, 0, 1], element_shape=[2], num_elements=-1)) * ROWS,
    lambda lib, x: concat(lib, lib.raw_ops.TensorListSplit(
        tensor=x, element_shape=[-1, 2], lengths=np.array([1, 2], np.int64)), (-1, 2))[0] * ROWS,
    lambda lib, x: lib.raw_ops.OptionalGetValue(
        optional=lib.raw_ops.OptionalFromValue(components=[x[0] * x[1]]), output_types=[lib.float32],
        output_shapes=[[2]])[0],
]  # fmt: skip


def push_tensor(lib, handle, tensor):
    return lib.raw_ops.TensorListPushBack(input_handle=handle, tensor=tensor)


def put_tensor(lib, handle, i, tensor):
    return lib.raw_ops.TensorListSetItem(input_handle=handle, index=i, item=tensor)


@pytest.mark.parametrize("function", DERIVED)
def test_gradients_are_tensorflows(function):
    def program(lib):
        x = x_rows(lib)
        return lib.gradients(function(lib, x), x)

    np.testing.assert_allclose(run(dtflab, program), run(tf, program), rtol=1e-6)


def run(lib, program):
    with lib.Graph().as_default(), lib.Session() as session:
        return session.run(program(lib))


@pytest.mark.parametrize("program", VALUES)
def test_values_are_tensorflows(program):
    for ours, theirs in zip(run(dtflab, program), run(tf, program), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert np.asarray(ours).dtype == theirs.dtype


def message(lib, program):
    with pytest.raises(lib.errors.InvalidArgumentError) as caught:
        run(lib, program)
    return caught.value.message


@pytest.mark.parametrize("program", ERRORS)
def test_errors_are_tensorflows(program):
    assert message(dtflab, program).splitlines()[0] in message(tf, program)


@pytest.mark.parametrize("program", VALUES)
def test_static_shapes_are_right(program):
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        tensors = program(dtflab)
        for tensor, value in zip(tensors, session.run(tensors), strict=True):
            assert tensor.shape.is_compatible_with(np.shape(value))
