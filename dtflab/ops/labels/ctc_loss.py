"""Connectionist temporal classification: how unlikely a sequence of labels is, whenever each of them is said.

Stands for `core/util/ctc/ctc_loss_calculator.h`, `core/kernels/ctc_loss_op.cc` and the gradient in `ctc_ops.py`. Left
out: CTCLossV2, which only cuDNN has, and the losses of dense labels.

How (Graves): the labels with a blank before, between and after them are states; in each step a path stays, goes one
state on, or two to skip a blank between different labels. alpha sums up the paths to a state, beta those from it on,
in logarithms; beta is the same recursion with time and states reversed. All examples go through time together.

Rule: the blank is the last class; the loss is of examples, and its gradient, computed along with it, is in the op's
second output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_input
from dtflab.ops.messages import invalid


@op("""CTCLoss(inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32) -> (loss: T, gradient: T)
       preprocess_collapse_repeated: bool = false, ctc_merge_repeated: bool = true
       ignore_longer_outputs_than_inputs: bool = false, T: {float, double} = float""")
class CTCLoss(Op):
    flops = per_input(30)

    def infer(op):
        inputs, indices, values, lengths = (x.shape for x in op.inputs)
        inputs, indices = inputs.with_rank(3), indices.with_rank(2)
        values.with_rank(1)[0].assert_is_compatible_with(indices[0])
        batch = inputs[1].merge_with(lengths.with_rank(1)[0])
        return [TensorShape([batch]), TensorShape([inputs[0], batch, inputs[2]])]

    def kernel(node: Node, xp: Any, inputs: Any, indices: Any, values: Any, lengths: Any) -> Any:
        collapse, merge = node["preprocess_collapse_repeated"], node["ctc_merge_repeated"]
        ignore = node["ignore_longer_outputs_than_inputs"]
        labels = _by_example(inputs, indices, values, lengths)
        states, counts = _states(labels, lengths, inputs.shape[2], collapse, ignore)
        too_long = np.array([len(each) for each in labels]) > lengths
        return _loss_and_gradient(inputs, states, counts, lengths * ~too_long, merge)

    def grad(op, dloss, _):
        fused = "due to the fused implementation's interaction  with tf.gradients()"
        message = f"Currently there is no way to take the second  derivative of ctc_loss {fused}"
        gradient = arrays.prevent_gradient(op.outputs[1], message=message)
        return [arrays.expand_dims(dloss, -1) * gradient, None, None, None]


def _by_example(inputs: Any, indices: Any, values: Any, lengths: Any) -> list[list[int]]:
    """The labels of each example, after what the inputs must be like has been checked."""
    if inputs.ndim != 3:
        raise invalid("inputs is not a 3-Tensor")
    if lengths.ndim != 1:
        raise invalid("sequence_length is not a vector")
    if indices.ndim != 2:
        raise invalid("labels_indices is not a matrix")
    if values.ndim != 1:
        raise invalid("labels_values is not a vector")
    max_time, batch = inputs.shape[:2]
    if batch == 0:
        raise invalid("batch_size must not be 0")
    if len(lengths) != batch:
        raise invalid(f"len(sequence_length) != batch_size.  len(sequence_length):  {len(lengths)} batch_size: {batch}")
    if len(indices) != len(values):
        raise invalid("labels_indices and labels_values must contain the same number of rows")
    for b, length in enumerate(lengths.tolist()):
        if length > max_time:
            raise invalid(f"sequence_length({b}) <= {max_time}")
        if length < 0:
            raise invalid(f"seq_len({b}) < 0")
    owners = indices[:, 0]
    return [values[owners == b].tolist() for b in range(batch)]


def _states(labels: list[list[int]], lengths: Any, num_classes: int, collapse: bool, ignore: bool) -> tuple[Any, Any]:
    """[batch, states]: a blank before each label and one at the end, filled up with blanks; and how many there are."""
    blank = num_classes - 1
    targets = [_target(b, each, blank, collapse) for b, each in enumerate(labels)]
    if not ignore:
        for b, (each, length) in enumerate(zip(labels, lengths.tolist())):
            if len(each) > length:
                raise invalid(
                    f"Not enough time for target transition sequence (required: {len(each)}, available: {length}){b}"
                    "You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs"
                )
    counts = np.array([2 * len(target) + 1 for target in targets])
    states = np.full((len(targets), counts.max()), blank)
    for row, target in zip(states, targets):
        row[1 : 2 * len(target) : 2] = target
    return states, counts


def _target(b: int, label: list[int], blank: int, collapse: bool) -> list[int]:
    """The labels without repetitions (if they are to be collapsed) and without blanks at the end."""
    if not label:
        raise invalid(f"Labels length is zero in batch {b}")
    kept = [x for i, x in enumerate(label) if i == 0 or not collapse or x != label[i - 1]]
    target = [x for x in kept if x < blank]
    if kept[: len(target)] != target:
        text = f"batch: {b} num_classes: {blank + 1} labels: {','.join(map(str, label))}"
        raise invalid(f"Saw a non-null label (index >= num_classes - 1) following a null label, {text}")
    if min(target, default=0) < 0:
        raise invalid(f"All labels must be nonnegative integers, batch: {b} labels: {','.join(map(str, target))}")
    return target


def _loss_and_gradient(inputs: Any, states: Any, counts: Any, lengths: Any, merge: bool) -> tuple[Any, Any]:
    """The losses and their gradients by `inputs`; both are 0 for examples without time."""
    shifted = inputs - inputs.max(2, keepdims=True)
    y = np.exp(shifted)
    y /= y.sum(2, keepdims=True)
    emitted = np.take_along_axis(np.log(y), states[None], 2)  # [time, batch, states]
    emitted[:, np.arange(states.shape[1]) >= counts[:, None]] = -np.inf
    backwards = _reversal(counts, lengths, emitted.shape)
    alpha = _arrivals(emitted, states, merge, inputs.shape[2] - 1) + emitted
    turned = states[np.arange(len(states))[:, None], backwards[2][0]]
    beta = _arrivals(emitted[backwards], turned, merge, inputs.shape[2] - 1)[backwards]
    there = alpha + beta
    log_p = np.logaddexp.reduce(there[0], 1)
    with_time = lengths > 0
    loss = np.where(with_time, -log_p, 0).astype(inputs.dtype)
    expected = np.zeros_like(y)  # how often each class is said, given the labels
    steps, rows = np.ogrid[: len(y), : len(states)]
    impossible = np.isneginf(log_p)
    share = np.exp(there - np.where(impossible, 0, log_p)[:, None])
    np.add.at(expected, (steps[..., None], rows[..., None], states[None]), share)
    in_time = np.arange(len(y))[:, None] < lengths
    return loss, np.where(in_time[..., None], y - expected, 0).astype(inputs.dtype)


def _arrivals(emitted: Any, states: Any, merge: bool, blank: int) -> Any:
    """log of the sum of all paths that arrive at each state in each step; what is emitted there not counted."""
    is_blank = states == blank
    skip = np.zeros_like(is_blank)
    skip[:, 2:] = ~is_blank[:, 2:] & ~(merge & (states[:, 2:] == states[:, :-2]))
    may_stay = is_blank | merge
    found = np.full_like(emitted, -np.inf)
    found[0, :, :2] = 0
    for t in range(1, len(emitted)):
        before = found[t - 1] + emitted[t - 1]
        now = np.where(may_stay, before, -np.inf)
        now[:, 1:] = np.logaddexp(now[:, 1:], before[:, :-1])
        now[:, 2:] = np.where(skip[:, 2:], np.logaddexp(now[:, 2:], before[:, :-2]), now[:, 2:])
        found[t] = now
    return found


def _reversal(counts: Any, lengths: Any, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Indices that turn round the steps and states that each example has; applied twice they do nothing."""

    def turned(size: int, limits: Any) -> Any:
        places = np.arange(size)
        return np.where(places < limits[:, None], limits[:, None] - 1 - places, places)

    times, places = turned(shape[0], lengths).T, turned(shape[2], counts)
    return times[..., None], np.arange(shape[1])[None, :, None], places[None]
