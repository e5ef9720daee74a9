"""One layer over several devices, one network over several devices, and batches that flow through it in parts.

Sources: Dean et al., "Large Scale Distributed Deep Networks" (2012), for split layers; Huang et al., "GPipe"
(2019), for micro-batches. TensorFlow has no such functions; these are made of its ops, so that the result can be
drawn, placed and traced like any graph.

Rule: a split changes where a value is computed, never the value. Its variables are parts of one variable, as with
partitioners, so a checkpoint of the unsplit net fits the split one and vice versa; values and gradients equal those of
the unsplit net up to rounding. Results are combined on the caller's `tf.device`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import nest
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, device, name_scope
from dtflab.nets.layers.activations import activation_of
from dtflab.nets.rnn_cell import MultiRNNCell
from dtflab.nets.rnn_cell_wrappers import DeviceWrapper
from dtflab.ops.arrays.functions import concat, split
from dtflab.ops.conv.functions import conv2d as convolve
from dtflab.ops.linalg.functions import matmul
from dtflab.ops.math.functions import add_n
from dtflab.ops.nn.functions import bias_add
from dtflab.ops.variables.get_variable import get_variable, make_template
from dtflab.ops.variables.initializers import zeros_initializer
from dtflab.ops.variables.partitioned_variables import PartitionedVariable, fixed_size_partitioner
from dtflab.ops.variables.variable_scope import variable_scope

# -- layers -----------------------------------------------------------------------------------------------------------


def dense(
    inputs: Any,
    units: int,
    devices: Sequence[Any],
    by: str = "columns",
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    name: str | None = None,
) -> Tensor:
    """activation(inputs · kernel + bias), the kernel cut over `devices`: [batch, depth] → [batch, units].

    By "columns" each device has some of the units: it gets all inputs, and the results are concatenated.
    By "rows" each device has some of the inputs, and gets only those; the partial sums are added. The variables are
    `name`/kernel and `name`/bias, as those of `tf.layers.dense`; without a name it is dense, dense_1, …, as there. The
    losses of `kernel_regularizer` are those of the parts. Raises ValueError if a device has nothing to do.
    """
    inputs, label = _floating(inputs, name or "dense"), name or "dense"
    depth = inputs.shape.with_rank(2)[1].value
    if depth is None:
        raise ValueError(f"{label}: the last dimension of the inputs must be known; their shape is {inputs.shape}.")
    if by not in ("columns", "rows"):
        raise ValueError(f"{label}: by must be 'columns' or 'rows', not {by!r}.")
    axis = 1 if by == "columns" else 0
    _check_count(label, (depth, units)[axis], ("inputs", "units")[axis], devices)
    with variable_scope(name, default_name="dense"):
        shape, dtype = [depth, units], inputs.dtype
        kernels = _parts("kernel", shape, axis, devices, dtype, kernel_initializer, kernel_regularizer)
        if by == "columns":
            products = [_on(d, matmul, inputs, kernel) for d, kernel in zip(devices, kernels, strict=True)]
            outputs = _side_by_side(products, devices, use_bias, bias_initializer, axis=1)
        else:
            pieces = split(inputs, [kernel.shape[0].value for kernel in kernels], axis=1)
            products = [_on(d, matmul, x, kernel) for d, x, kernel in zip(devices, pieces, kernels, strict=True)]
            outputs = add_n(products)
            outputs = bias_add(outputs, _bias(units, dtype, bias_initializer)) if use_bias else outputs
        return _activated(outputs, activation)


def conv2d(
    inputs: Any, filters: int, kernel_size: Any, devices: Sequence[Any], by: str = "channels", strides: Any = (1, 1),
    padding: str = "VALID", activation: Any = None, use_bias: bool = True, kernel_initializer: Any = None,
    bias_initializer: Any = None, kernel_regularizer: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """activation(inputs * kernel + bias) over `devices`: images [batch, height, width, channels] → as many filters.

    By "channels" each device has some of the filters: it gets the whole images, and computes some of the channels.
    By "rows" each device computes some rows of the images: it gets the rows that those depend on, with the border that
    neighbours share, and the whole kernel, which stays on the first device. The variables are `name`/kernel and
    `name`/bias, as those of `tf.layers.conv2d`; without a name it is conv2d, conv2d_1, …, as there. The losses of
    `kernel_regularizer` are those of the kernel's parts. Raises ValueError if a device has nothing to do.
    """
    label = name or "conv2d"
    inputs = _floating(inputs, label)
    size, step = _pair(kernel_size, "kernel_size", label), _pair(strides, "strides", label)
    height, width, channels = (d.value for d in inputs.shape.with_rank(4)[1:])
    shape, padding = [*size, channels, filters], padding.upper()
    if by == "channels":
        _check_count(label, filters, "filters", devices)
        with variable_scope(name, default_name="conv2d"):
            kernels = _parts("kernel", shape, 3, devices, inputs.dtype, kernel_initializer, kernel_regularizer)
            maps = [_on(d, convolve, inputs, k, [1, *step, 1], padding) for d, k in zip(devices, kernels, strict=True)]
            return _activated(_side_by_side(maps, devices, use_bias, bias_initializer, axis=3), activation)
    if by != "rows":
        raise ValueError(f"{label}: by must be 'channels' or 'rows', not {by!r}.")
    if height is None or width is None:
        raise ValueError(f"{label}: height and width of the images must be known; their shape is {inputs.shape}.")
    _check_list(label, devices)
    bands = _bands(height, size[0], step[0], padding, len(devices), label)
    with variable_scope(name, default_name="conv2d"):
        with device(devices[0]):
            kernel = get_variable("kernel", shape, inputs.dtype, kernel_initializer, kernel_regularizer)
            offsets = _bias(filters, inputs.dtype, bias_initializer) if use_bias else None
        sides = _padding(width, size[1], step[1], padding, label)
        rows = [
            _on(d, _band_of_rows, inputs[:, band.first : band.last], kernel, step, band, sides)
            for d, band in zip(devices, bands, strict=True)
        ]
        outputs = concat(rows, 1)
        return _activated(outputs if offsets is None else bias_add(outputs, offsets), activation)


def rnn_layers(cells: Sequence[Any], devices: Sequence[Any]) -> MultiRNNCell:
    """The cell that stacks `cells`, each on one of `devices`, for `tf.nn.dynamic_rnn` and similar functions.

    While an upper layer is at one time, lower ones can be at later times. Under `static_rnn` only a layer's outputs go
    to the next device. A loop, as in `dynamic_rnn`, keeps all states on its own device, so the states of layers
    elsewhere are sent in each iteration; its gradients, if colocated, can need `allow_soft_placement`.
    """
    _check_list("rnn_layers", devices)
    if len(cells) != len(devices):
        raise ValueError(f"There are {len(cells)} layers and {len(devices)} devices. Give one device per layer.")
    return MultiRNNCell([DeviceWrapper(cell, where) for cell, where in zip(cells, devices, strict=True)])


# -- pipelines --------------------------------------------------------------------------------------------------------


def pipeline(
    stages: Sequence[Callable[[Any], Any]],
    inputs: Any,
    devices: Sequence[Any],
    micro_batches: int,
    name: str = "pipeline",
) -> list[Any]:
    """The last stage's outputs for each of `micro_batches` equal parts of the batch, in their order.

    Stage k runs on `devices[k]`; each is a function of the previous stage's outputs, the first of the inputs, a tensor
    or a structure of tensors that are cut along their first dimension. Its variables are made once, in the scope
    `stage_k`, and used for all parts. A device takes the parts in their order, while other devices work on others. For
    the backward pass, pass `colocate_gradients_with_ops=True` to `tf.gradients`. The mean of equal parts' mean losses
    is the loss of the batch. Raises ValueError for counts that do not fit; a batch that can't be cut fails in the step.
    """
    _check_list(name, devices)
    if len(stages) != len(devices):
        raise ValueError(
            f"{name}: there are {len(stages)} stages and {len(devices)} devices. Give one device per stage."
        )
    if not stages:
        raise ValueError(f"{name}: the list of stages is empty. Give at least one stage and its device.")
    if not _is_count(micro_batches):
        raise ValueError(f"{name}: micro_batches must be an integer of 1 or more, not {micro_batches!r}.")
    templates = [make_template(f"stage_{k}", stage) for k, stage in enumerate(stages)]
    with name_scope(name):
        cut = [_cut(tensor, micro_batches, name) for tensor in nest.flatten(inputs)]
        values = [nest.pack_sequence_as(inputs, parts) for parts in zip(*cut, strict=True)]
        for k, (stage, where) in enumerate(zip(templates, devices, strict=True)):
            before: list[Operation] = []  # this stage's ops of the previous micro-batch
            for m, value in enumerate(values):
                with name_scope(f"stage_{k}_of_{m}"), device(where), control_dependencies(before):
                    values[m] = stage(value)
                if any(not isinstance(part, Tensor) for part in nest.flatten(values[m])):
                    raise TypeError(f"{name}: stage {k} must return tensors, not {values[m]!r}.")
                before = [tensor.op for tensor in nest.flatten(values[m])]
        return values


# -- pieces -----------------------------------------------------------------------------------------------------------


def _cut(batch: Any, count: int, name: str) -> list[Tensor]:
    """The batch in `count` equal parts."""
    batch = convert_to_tensor(batch)
    size = batch.shape[0].value if batch.shape.ndims else None
    if size is not None and size % count:
        raise ValueError(
            f"{name}: a batch of {size} can't be cut into {count} equal parts. Choose micro_batches that divide it."
        )
    return split(batch, count, axis=0, name="micro_batches")


def _on(where: Any, function: Callable[..., Any], *args: Any) -> Any:
    with device(where):
        return function(*args)


_PART = re.compile(r"/part_(\d+)(?:/|$)")


def _parts(
    name: str, shape: Any, axis: int, devices: Sequence[Any], dtype: Any, initializer: Any, regularizer: Any = None
) -> list[Any]:
    """The variable `name` cut along `axis` into one part for each device."""

    def its_device(op: Any) -> Any:
        part = _PART.search(op.name)
        where = op.device if part is None else devices[int(part[1])]
        return where(op) if callable(where) else where

    with device(its_device):
        cut = fixed_size_partitioner(len(devices), axis)
        whole = get_variable(name, shape, dtype, initializer, regularizer, partitioner=cut)
    return list(whole) if isinstance(whole, PartitionedVariable) else [whole]


def _bias(size: int, dtype: Any, initializer: Any) -> Any:
    return get_variable("bias", [size], dtype, initializer or zeros_initializer())


def _side_by_side(pieces: list[Tensor], devices: Sequence[Any], use_bias: bool, initializer: Any, axis: int) -> Tensor:
    """The concatenated pieces, with a part of the bias, if there is one, added to each on its device."""
    if not use_bias:
        return concat(pieces, axis)
    size = sum(piece.shape[axis].value for piece in pieces)
    biases = _parts("bias", [size], 0, devices, pieces[0].dtype, initializer or zeros_initializer())
    return concat([_on(d, bias_add, y, b) for d, y, b in zip(devices, pieces, biases, strict=True)], axis)


def _activated(outputs: Tensor, activation: Any) -> Tensor:
    function = activation_of(activation)
    return outputs if function is None else function(outputs)


def _floating(inputs: Any, name: str) -> Tensor:
    tensor: Tensor = convert_to_tensor(inputs)
    if not tensor.dtype.is_floating:
        raise TypeError(f"{name}: the inputs must be floating-point numbers, not {tensor.dtype.name}; see tf.cast.")
    return tensor


def _check_list(name: str, devices: Sequence[Any]) -> None:
    if isinstance(devices, str):
        raise ValueError(f"{name}: devices must be a list with a device for each part, not {devices!r}.")


def _check_count(name: str, count: int, what: str, devices: Sequence[Any]) -> None:
    _check_list(name, devices)
    if not 1 <= len(devices) <= count:
        raise ValueError(f"{name}: {count} {what} can't be cut over {len(devices)} devices.")


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and bool(value >= 1)


def _pair(value: Any, what: str, name: str) -> list[int]:
    """Height and width, of one number or two."""
    pair = list(value) if isinstance(value, Iterable) else [value, value]
    if len(pair) != 2 or not all(map(_is_count, pair)):
        raise ValueError(f"{name}: {what} must be a whole number, 1 or more, or two of them, not {value!r}.")
    return [int(one) for one in pair]


class _Band(NamedTuple):
    """The rows from `first` to before `last` of the images, and how many rows of zeros come above and below."""

    first: int
    last: int
    zeros: tuple[int, int]


def _padding(size: int, window: int, stride: int, padding: str, name: str) -> tuple[int, int]:
    """The zeros before and after, as TensorFlow pads for SAME."""
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"{name}: padding must be 'SAME' or 'VALID', not {padding!r}.")
    total = max((-(-size // stride) - 1) * stride + window - size, 0) if padding == "SAME" else 0
    return total // 2, total - total // 2


def _bands(height: int, window: int, stride: int, padding: str, count: int, name: str) -> list[_Band]:
    """Which rows of the images each device needs to make its share of the rows of the result."""
    above, below = _padding(height, window, stride, padding, name)
    results = (height + above + below - window) // stride + 1
    if not 1 <= count <= results:
        raise ValueError(f"{name}: {max(results, 0)} rows of results can't be cut over {count} devices.")
    ends = [results * i // count for i in range(count + 1)]
    bands = []
    for start, end in pairwise(ends):
        first, last = start * stride - above, (end - 1) * stride + window - above
        bands.append(_Band(max(first, 0), min(last, height), (max(-first, 0), max(last - height, 0))))
    return bands


def _band_of_rows(rows: Tensor, kernel: Any, step: list[int], band: _Band, sides: tuple[int, int]) -> Tensor:
    return convolve(rows, kernel, [1, *step, 1], [(0, 0), band.zeros, sides, (0, 0)])
