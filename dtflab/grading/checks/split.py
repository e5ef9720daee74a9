"""Questions on networks that are split over devices.

q1: two layers over two GPUs inside a budget of virtual time. An answer builds the graph; the checks run it on a
simulated machine and look at the values, the time of a step, which weights each GPU holds and what the GPUs send. How
it is cut is up to the answer.
"""

from __future__ import annotations

import dataclasses
import functools
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.simulated import PYTHON, Stage, stage
from dtflab.graph import device_spec, dtypes
from dtflab.graph.convert import constant
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import device
from dtflab.graph.tensor_shape import TensorShape
from dtflab.hardware.catalogue import gpu
from dtflab.hardware.parts import Processor
from dtflab.ops.arrays.functions import placeholder
from dtflab.ops.linalg.functions import matmul
from dtflab.ops.nn.functions import relu
from dtflab.ops.variables.functions import global_variables_initializer
from dtflab.protos import config_pb2
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.units import byte_size
from dtflab.viz.loads import loads
from dtflab.viz.timeline import timeline

GPUS = ("/gpu:0", "/gpu:1")
BUDGET = 0.75  # of the time on one GPU
MOST_HELD = 0.6  # of all weights

_HOLD = ("Const", "Variable", "VariableV2", "VarHandleOp")
_MULTIPLIES = ("MatMul", "BatchMatMul", "BatchMatMulV2", "Einsum")

Matrix = NDArray[np.float32]

q1 = from_toml(__file__)


# -- a step of an answer -------------------------------------------------------------------------------------


class Net(NamedTuple):
    """The weights of two layers, and a batch."""

    inputs: Matrix
    first: Matrix
    second: Matrix

    @property
    def weights(self) -> int:
        """Bytes of both layers."""
        return self.first.nbytes + self.second.nbytes

    def outputs(self) -> Matrix:
        hidden: Matrix = np.maximum(self.inputs @ self.first, 0)
        return hidden @ self.second


class Step(NamedTuple):
    """The measurements of a step: the evidence. `held` and `sent` are bytes per GPU, of weights and over its lanes.

    `on_cpu` are the types of ops that do on the CPU what is the GPUs' work.
    """

    net: Net
    value: Any
    ms: float  # of virtual time
    held: dict[str, int]
    sent: int
    trace: Any
    on_cpu: frozenset[str] = frozenset()
    one_ms: float = 0.0  # of the whole net on one GPU


def drawn(random: Random) -> Net:
    """A net whose hidden layer is far wider than its inputs and outputs."""
    numbers = np.random.RandomState(random.randrange(2**31))
    sizes = 128, 96, random.choice((1410, 1538, 1666)), 64
    inputs, first, second = (numbers.standard_normal(shape).astype(np.float32) for shape in pairwise(sizes))
    return Net(inputs, first, second)


def slow_card() -> Processor:
    """A tenth of a K40: so small nets take long enough to be worth a split."""
    fast = gpu("K40")
    peaks = {name: peak / 10 for name, peak in fast.peak_flops.items()}
    bandwidth = fast.memory_bandwidth / 10
    return dataclasses.replace(fast, name="a tenth of a K40", peak_flops=peaks, memory_bandwidth=bandwidth)


def on_one_gpu(x: Tensor, first: Matrix, second: Matrix, devices: Any) -> Tensor:
    """The net on the first device."""
    with device(devices[0]):
        return matmul(relu(matmul(x, constant(first))), constant(second))


def step_of(answer: Any, net: Net) -> Step:
    """Build the answer's graph and run a step of it on a machine with two GPUs. Wrong if it gives no tensor."""
    with stage(worker=1, gpus=2, gpu=slow_card(), bus="pcie3") as on:
        with device("/cpu:0"):
            x = placeholder(dtypes.float32, net.inputs.shape, name="x")
        made = answer(x, net.first.copy(), net.second.copy(), list(GPUS))
        several = isinstance(made, list | tuple) and len(made) > 1 and all(isinstance(one, Tensor) for one in made)
        if not isinstance(made, Tensor) and not several:
            raise Wrong(f"A tensor, the output of the net, is expected, not {shown(made)}.")
        on.session.run(global_variables_initializer())
        step = _traced(on, made, x, net)
        if several:
            raise Wrong(f"One tensor, the output of the net, is expected, not {len(made)} tensors.", step)
        return step


def _traced(on: Stage, output: Any, x: Tensor, net: Net) -> Step:
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE, output_partition_graphs=True)
    trace, began, before = config_pb2.RunMetadata(), on.cluster.now(), _sent(on)
    value = on.session.run(output, {x: net.inputs}, options=options, run_metadata=trace)
    ms = 1000 * (on.cluster.now() - began)
    return Step(net, value, ms, _held(on, trace), _sent(on) - before, trace, _on_cpu(trace))


def _sent(on: Stage) -> int:
    """Bytes that GPUs have sent until now."""
    return sum(link.nbytes for link in on.cluster.loads().links if link.name.endswith("lanes up"))


def _on_cpu(trace: Any) -> frozenset[str]:
    nodes = [node for graph in trace.partition_graphs for node in graph.node if node.op in _MULTIPLIES + PYTHON]
    return frozenset(node.op for node in nodes if device_spec.parse(node.device).type != "GPU")


def _held(on: Stage, trace: Any) -> dict[str, int]:
    """Bytes of constants and variables on each GPU."""
    held = dict.fromkeys(GPUS, 0)
    for node in (node for graph in trace.partition_graphs for node in graph.node if node.op in _HOLD):
        where = device_spec.parse(node.device)
        if where.type == "GPU":
            op = on.graph.get_operation_by_name(node.name)
            shape = TensorShape(op.get_attr("shape")) if node.op != "Const" else op.outputs[0].shape
            held[GPUS[where.id or 0]] += shape.num_elements() * op.get_attr("dtype").size
    return held


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("The outputs are those of the whole net", points=3)
def values(answer: Any, random: Random) -> None:
    net = drawn(random)
    step, expected = step_of(answer, net), net.outputs()
    if np.shape(step.value) != expected.shape:
        raise Wrong(f"The output has shape {list(np.shape(step.value))}; expected: {list(expected.shape)}.", step)
    if not _is(step, expected):
        off = float(np.abs(step.value - expected).max())
        raise Wrong(f"The output differs from that of the whole net, by up to {off:.4g}.", step)


@q1.check("The GPUs multiply with weights of their own, and neither holds more than 60% of them", points=2)
def shares(answer: Any, random: Random) -> Picture:
    step = step_of(answer, drawn(random))
    held = ", ".join(f"{name} {byte_size(count)}" for name, count in step.held.items())
    picture = _held_picture(step)
    if step.on_cpu:
        raise Wrong(f"The CPU runs {', '.join(sorted(step.on_cpu))}; the products are the GPUs' work.", step, picture)
    if sum(step.held.values()) < 0.95 * step.net.weights:
        expected = f"{byte_size(step.net.weights)}, all weights of both layers, in float32"
        raise Wrong(f"The GPUs hold {held}; expected: {expected}.", step, picture)
    if max(step.held.values()) > MOST_HELD * step.net.weights:
        raise Wrong(f"Of {byte_size(step.net.weights)} of weights, the GPUs hold {held}.", step, picture)
    return picture


def _held_picture(step: Step) -> Picture:
    half = dict.fromkeys(GPUS, step.net.weights / 2)
    yours = {name: float(count) for name, count in step.held.items()}
    return loads("Weights on each GPU", {"yours": yours, "half": half})


@functools.cache
def _one_gpu_ms(inputs: int, hidden: int) -> float:
    """Milliseconds of a step on one GPU: they depend on the shapes alone."""
    sizes = 128, inputs, hidden, 64
    return step_of(on_one_gpu, Net(*(np.zeros(shape, np.float32) for shape in pairwise(sizes)))).ms


def _demand_time(answer: Any, net: Net, share: float, expected: str) -> Picture:
    """Wrong unless a step takes at most this share of the time on one GPU; the timeline of the step."""
    one_ms = _one_gpu_ms(*net.first.shape)
    step = step_of(answer, net)._replace(one_ms=one_ms)
    picture = timeline(step.trace, title=f"Your step: {step.ms:.3f} ms; at most {share * one_ms:.3f} ms are expected")
    if python := step.on_cpu & set(PYTHON):
        raise Wrong(f"{', '.join(python)} runs Python, which takes no virtual time: use ops.", step, picture)
    if step.ms > share * one_ms:
        raise Wrong(f"A step takes {step.ms:.3f} ms, on one GPU {one_ms:.3f} ms; expected: {expected}.", step, picture)
    return picture


@q1.check("A step is faster than on one GPU", points=2)
def faster(answer: Any, random: Random) -> None:
    _demand_time(answer, drawn(random), 0.97, "less than that")


@q1.check("A step takes at most 75% of the time on one GPU", points=3)
def budget(answer: Any, random: Random) -> Picture:
    net = drawn(random)
    return _demand_time(answer, net, BUDGET, f"at most {round(100 * BUDGET)}% of that")


# -- mistakes ------------------------------------------------------------------------------------------------


def _halves(net: Net) -> list[Matrix]:
    """The contribution of each half of the hidden units to the outputs."""
    columns, rows = np.split(net.first, 2, axis=1), np.split(net.second, 2, axis=0)
    return [np.maximum(net.inputs @ a, 0) @ b for a, b in zip(columns, rows)]


def _is(step: Step, value: Any) -> bool:
    if isinstance(step.value, list | tuple):
        return False
    return np.shape(step.value) == np.shape(value) and bool(np.allclose(step.value, value, rtol=1e-3, atol=1e-2))


@q1.mistake()
def forgets_relu(step: Step) -> bool:
    """relu is missing between the layers. It works on each hidden unit by itself, so each GPU can do it for its own."""
    without = step.net.inputs @ step.net.first @ step.net.second
    return _is(step, without) or _is(step, np.maximum(without, 0))


@q1.mistake()
def puts_side_by_side(step: Step) -> bool:
    """The partial outputs of the two GPUs stand side by side. Each is a summand of the whole output: add them, with
    tf.add_n."""
    halves = _halves(step.net)
    if isinstance(step.value, list | tuple):
        same = (_is(step._replace(value=one), half) for one, half in zip(step.value, halves))
        return len(step.value) == len(halves) and all(same)
    return any(_is(step, np.concatenate(halves, axis=axis)) for axis in (0, 1))


@q1.mistake()
def takes_the_mean(step: Step) -> bool:
    """That is the mean of the two partial outputs, half of what it should be. Each is a summand: tf.add_n."""
    return _is(step, step.net.outputs() / 2)


@q1.mistake()
def loses_a_half(step: Step) -> bool:
    """Only half of the hidden units count: the output of one GPU is not in the result. Add both."""
    return any(_is(step, half) for half in _halves(step.net))


@q1.mistake()
def relu_at_the_end(step: Step) -> bool:
    """relu is at the end, too, and makes negative outputs zero. It belongs between the layers only."""
    return _is(step, np.maximum(step.net.outputs(), 0))


@q1.mistake()
def mixes_up_the_halves(step: Step) -> bool:
    """Hidden units of one GPU meet the rows of `second` that belong to the other one's. Columns and rows with the same
    numbers go together."""
    columns, rows = np.split(step.net.first, 2, axis=1), np.split(step.net.second, 2, axis=0)
    return _is(step, sum(np.maximum(step.net.inputs @ a, 0) @ b for a, b in zip(columns, rows[::-1])))


@q1.mistake()
def cuts_the_inputs(step: Step) -> bool:
    """`first` is cut by rows, so each GPU has a part of every hidden unit, and relu of parts is not the parts of relu.
    Cut it by columns: a hidden unit is on one GPU as a whole."""
    inputs, rows = np.split(step.net.inputs, 2, axis=1), np.split(step.net.first, 2, axis=0)
    return _is(step, sum(np.maximum(a @ b, 0) for a, b in zip(inputs, rows)) @ step.net.second)


@q1.mistake()
def loses_the_last_units(step: Step) -> bool:
    """The last hidden unit of each half is left out. A slice ends before its second number: [:half] and [half:] are the
    whole."""
    half = step.net.first.shape[1] // 2
    left = np.delete(np.arange(2 * half), [half - 1, 2 * half - 1])
    return _is(step, np.maximum(step.net.inputs @ step.net.first[:, left], 0) @ step.net.second[left])


@q1.mistake()
def runs_python(step: Step) -> bool:
    """A function of Python multiplies, on the CPU. Build the products of ops, tf.matmul and tf.nn.relu, inside of `with
    tf.device(…)` of a GPU."""
    return bool(step.on_cpu & set(PYTHON))


@q1.mistake()
def computes_on_the_cpu(step: Step) -> bool:
    """The CPU multiplies. Build tf.matmul inside of `with tf.device(…)` of the GPU that has these weights."""
    return bool(step.on_cpu)


@q1.mistake()
def copies_the_weights(step: Step) -> bool:
    """Each GPU has all of the weights and half of the batch: that is data parallelism. It is fast, but a net that is
    too large for one GPU stays too large. Cut the weights."""
    return min(step.held.values()) > 0.9 * step.net.weights


@q1.mistake()
def leaves_weights_elsewhere(step: Step) -> bool:
    """The weights are not on the GPUs that work with them, and travel at each step. Make each constant or variable
    inside `with tf.device(…)` of its GPU, already cut; a slice of a constant leaves the whole where it was made."""
    travel = min(step.held.values()) == 0 and step.sent > 0.4 * step.net.weights
    return travel or sum(step.held.values()) < 0.05 * step.net.weights


@q1.mistake()
def uses_one_gpu(step: Step) -> bool:
    """One GPU does all the work. Use both names in `devices`."""
    return min(step.held.values()) == 0 and max(step.held.values()) > 0.95 * step.net.weights


@q1.mistake()
def cuts_between_layers(step: Step) -> bool:
    """A layer on each GPU: the second waits for the first, so they never compute at the same time, and the first holds
    nearly all. Cut through the layers, not between them."""
    return sorted(step.held.values()) == sorted([step.net.first.nbytes, step.net.second.nbytes])


@q1.mistake()
def copies_the_first_layer(step: Step) -> bool:
    """Each GPU has all of the first layer, and computes all hidden units; only the second is cut. Cut `first` by
    columns, too: a GPU then computes the hidden units that it needs, and no others."""
    first, second = step.net.first.nbytes, step.net.second.nbytes
    return all(abs(held - first - second / 2) < 0.05 * second for held in step.held.values())


@q1.mistake()
def cuts_unevenly(step: Step) -> bool:
    """The weights are cut, but not in the middle: one GPU has more work than the other, which waits for it. Cut the
    hidden units into two halves, with np.split(first, 2, axis=1) and the rows of `second` in the same way."""
    less, more = sorted(step.held.values())
    whole = 0.95 * step.net.weights < less + more < 1.05 * step.net.weights
    return whole and less > 0 and more > MOST_HELD * step.net.weights and _is(step, step.net.outputs())


@q1.mistake()
def sends_hidden_units(step: Step) -> bool:
    """The hidden units travel between the GPUs: with both layers cut by columns, each GPU needs all of them for the
    second. Cut the second layer so that a GPU needs only the hidden units that it has."""
    return _sends_hidden(step, 1)


def _sends_hidden(step: Step, times: int) -> bool:
    """Whether GPUs send what all hidden units have, that number of times, and little more: summands, the result."""
    (batch, outputs), hidden = step.net.outputs().shape, step.net.first.shape[1]
    return bool(0 <= step.sent - times * 4 * batch * hidden <= 2 * 4 * batch * outputs)


@q1.mistake()
def exchanges_sums(step: Step) -> bool:
    """Each GPU sends a number for every hidden unit: `first` is cut by rows, so that each has a summand of all of them,
    and relu needs the sum. Cut `first` by columns: then a hidden unit is on one GPU as a whole."""
    return _sends_hidden(step, 2)
