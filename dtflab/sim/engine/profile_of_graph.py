"""A graph's Profile: what each operation of a training step costs, summed up by layer.

Stands for `core/grappler/costs/graph_memory.cc` and `analytical_cost_estimator.cc`. Left out: graphs whose shapes only
a step shows. The body of a loop costs what one turn costs, times the turns that the caller states; of a `cond` both
branches count.

Rules. An operation costs what `hardware.costs` says, here as in virtual time. Costs that grow with the batch are told
apart from what doesn't: a tensor grows if it depends on the step's inputs, unless it is a scalar or as large as a
variable; one that grows in part (rows of a batch and of sampled classes) is taken to grow.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.node_shapes import shapes_of
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.hardware import costs
from dtflab.sim.engine.layer_costs import Kernel, LayerCost, VariableCost
from dtflab.sim.engine.layers_of_graph import Layers
from dtflab.sim.models.model import train_op as training_step

_RANDOM, _CONSTANT = {"RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"}, {"Const", "Fill"}
_READS_ROWS = {"Gather", "GatherV2", "ResourceGather"}


def costs_of_graph(
    loss: Tensor, train_op: Operation | None = None, batch: int | None = None, loop_turns: int | None = None
) -> tuple[int, list[LayerCost]]:  # fmt: skip
    """The batch and the layers of one training step on `loss`; see Profile.from_graph.

    Args:
      train_op: the step; if there is none, one with plain gradient descent is added to the graph.
      batch: how many examples the step takes; by default the first dimension of the first input. It also stands for
        first dimensions that the graph doesn't know.
      loop_turns: how often the body of each `while_loop` runs; ValueError if there is a loop and this is not given.

    ValueError names an operation whose shapes are not known.
    """
    layers = Layers(loss, training_step(loss) if train_op is None else train_op)
    step = _Step(layers, batch, loop_turns)
    return step.batch, step.costs()


class _Step:
    """The costs of the operations of a step."""

    def __init__(self, layers: Layers, batch: int | None, loop_turns: int | None) -> None:
        self.layers, self.loop_turns, self.known_batch = layers, loop_turns, batch
        self.shapes = {tuple(v.shape.as_list()) for v in layers.known.values()}
        self.growing = _growing([*layers.forward, *layers.backward, *layers.update], layers, batch)
        self.batch = batch if batch is not None else self._first_dimension()

    def costs(self) -> list[LayerCost]:
        """One for each layer."""
        phases = [self._kernels(ops) for ops in (self.layers.forward, self.layers.backward, self.layers.update)]
        output, kept = self._crossing_bytes(), self._kept_bytes()
        found = []
        for number, name in enumerate(self.layers.names()):
            forward, backward, update = (kernels[number] for kernels in phases)
            variables = tuple(self._variable(op) for op in self.layers.variables[number])
            found.append(LayerCost(name, forward, backward, update, variables, output[number], kept[number]))
        return found

    # -- kernels ------------------------------------------------------------------------------------------------

    def _kernels(self, ops: Iterable[Operation]) -> list[tuple[Kernel, ...]]:
        """For each layer the kernels among `ops`, those of equal cost together."""
        counts: dict[int, Counter[Kernel]] = defaultdict(Counter)
        for op in ops:
            kernel = None if costs.is_free(op.op_class) else self._kernel(op)
            if kernel and (kernel.flops or kernel.bytes):
                counts[self.layers.of(op)][kernel] += self._turns(op)
        each = (counts[number].items() for number in range(len(self.layers.variables)))
        return [tuple(replace(kernel, count=count) for kernel, count in kernels) for kernels in each]

    def _kernel(self, op: Operation) -> Kernel:
        node = op.node()
        cost = costs.of_node(node, [_shape(t) for t in op.inputs], shapes_of(op), self.known_batch)
        fixed = sum(self._bytes(t) for t in (*op.inputs, *op.outputs) if not self._grows(t))
        fixed = fixed if fixed <= cost.bytes else 0  # else it reads a part of something large, such as rows
        fixed_flops = cost.flops if fixed == cost.bytes else 0
        return Kernel(op.type, costs.dtype_of(node), cost.flops, cost.bytes, fixed_flops, fixed)

    def _turns(self, op: Operation) -> int:
        """How often an operation runs in a step."""
        turns, context = 1, op._get_control_flow_context()
        context = context and context.GetWhileContext()
        while context is not None:
            if self.loop_turns is None:
                raise ValueError(
                    f"Operation '{op.name}' is in the loop '{context.name}': the graph does not give its turns. "
                    "Give sim.Profile.from_graph(…, loop_turns=…), or unroll it (tf.nn.static_rnn)."
                )
            turns *= self.loop_turns
            outer = context.outer_context
            context = outer and outer.GetWhileContext()
        return turns

    # -- tensors ------------------------------------------------------------------------------------------------

    def _bytes(self, tensor: Tensor) -> int:
        return math.prod(self._sizes(tensor)) * _itemsize(tensor)

    def _sizes(self, tensor: Tensor) -> list[int]:
        """The shape of a tensor; of a first dimension that the graph doesn't know, the batch."""
        return [self.batch if size is None else size for size in _shape(tensor).as_list()]

    def _grows(self, tensor: Tensor) -> bool:
        """Whether a larger batch makes it larger."""
        return tensor.op in self.growing and bool(tensor.shape.ndims) and tuple(self._sizes(tensor)) not in self.shapes

    def _first_dimension(self) -> int:
        """The batch, as the first of the inputs gives it."""
        for op in self.layers.forward:
            for tensor in op.outputs:
                if op in self.growing and tensor.shape.ndims and tensor.shape[0].value is not None:
                    return int(tensor.shape[0].value)
        raise ValueError("How many examples a step takes is not in the graph: give batch=….")

    def _crossing_bytes(self) -> list[int]:
        """For each layer what is made there or before and read on the way forward after it; a view is what it shows."""
        last: dict[Tensor, int] = {}
        for op in self.layers.forward:
            for tensor in op.inputs:
                root = self._root(tensor)
                last[root] = max(last.get(root, 0), self.layers.of(op))
        change = [0] * (len(self.layers.variables) + 1)
        for tensor, reader in last.items():
            first = self.layers.of(tensor.op)
            is_fed = tensor.op.type.startswith("Placeholder")
            if tensor.op in self.growing and first < reader and not is_fed:
                change[first] += self._bytes(tensor) * self._turns(tensor.op)
                change[reader] -= self._bytes(tensor) * self._turns(tensor.op)
        return list(accumulate(change[:-1]))

    def _kept_bytes(self) -> list[int]:
        """For each layer what its way forward makes, or is fed, and the way back reads."""
        forward = set(self.layers.forward)
        read = {self._root(tensor) for op in self.layers.backward for tensor in op.inputs}
        kept = [0] * len(self.layers.variables)
        for tensor in read:
            if tensor.op in forward and tensor.op in self.growing:
                kept[self.layers.of(tensor.op)] += self._bytes(tensor) * self._turns(tensor.op)
        return kept

    def _root(self, tensor: Tensor) -> Tensor:
        """The tensor that owns the memory that this one shows."""
        while tensor.op.op_class.aliasing:
            shown = [t for t in tensor.op.inputs if _is_as_large(t, tensor)]
            if len(shown) != 1:
                break
            tensor = shown[0]
        return tensor

    def _variable(self, op: Operation) -> VariableCost:
        variable, readers = self.layers.known[op], self.layers.readers.get(op, [])
        rows = None
        if readers and all(reader.type in _READS_ROWS for reader in readers):
            rows = sum(self._bytes(reader.outputs[0]) * self._turns(reader) for reader in readers)
        size = math.prod(variable.shape.as_list()) * _itemsize(variable)
        return VariableCost(op.name, size, op in self.layers.trainable, rows)


def _shape(tensor: Tensor) -> TensorShape:
    return shapes_of(tensor.op)[tensor.value_index]


def _itemsize(tensor: Any) -> int:
    """Bytes of one element; a handle has none."""
    if tensor.dtype.base_dtype in (dtypes.resource, dtypes.variant):
        return 0
    return int(np.dtype(tensor.dtype.base_dtype.as_numpy_dtype).itemsize)


def _is_as_large(tensor: Tensor, view: Tensor) -> bool:
    """Whether `view` can show that tensor, as far as their shapes say."""
    sizes = [_shape(t).num_elements() for t in (tensor, view)]
    return tensor.dtype.base_dtype == view.dtype.base_dtype and (sizes[0] or 0) >= (sizes[1] or 0)


def _growing(ops: Iterable[Operation], layers: Layers, batch: int | None) -> set[Operation]:
    """The operations that depend on the step's inputs: on anything that is neither a variable nor a constant."""
    every = list(ops)
    growing = {op for op in every if _is_input(op, layers) or _is_made_up(op, batch)}
    before = 0
    while before < len(growing):  # an op may be older than what feeds it, in branches and loops
        before = len(growing)
        for op in every:
            if any(tensor.op in growing for tensor in op.inputs):
                growing.add(op)
    return growing


def _is_made_up(op: Operation, batch: int | None) -> bool:
    """Random numbers, or a constant with a row for each example: many programs take them for examples."""
    if op.type in _CONSTANT:
        sizes = _shape(op.outputs[0]).as_list() if batch and op.outputs[0].dtype.is_floating else []
        return len(sizes) > 1 and sizes[0] == batch
    return op.type in _RANDOM


def _is_input(op: Operation, layers: Layers) -> bool:
    """A placeholder, a dequeue, a data set's next: it makes values of nothing, or of something that a handle names."""
    if op.type == "Const" or layers.is_variable(op) or all(_is_handle(tensor) for tensor in op.outputs):
        return False
    return not op.inputs or any(_is_handle(t) and not layers.is_variable(t.op) for t in op.inputs)


def _is_handle(tensor: Tensor) -> bool:
    return tensor.dtype._is_ref_dtype or tensor.dtype == dtypes.resource
