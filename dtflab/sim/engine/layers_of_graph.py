"""The layers of a graph: which operation of a training step belongs to which.

Stands for nothing in TensorFlow, whose graphs have no layers. Left out: layers without variables; what they compute
belongs to the layer before.

Rules. A layer begins at the first operation that reads a variable of two dimensions or more, and all that reads it
belongs to it. Vectors (biases, scales), and what reads no variable, belong to the latest layer that they are fed by,
or, if to none, to the first that they feed. A gradient's operation belongs to the layer of the operation whose gradient
it is, sums of gradients to the earliest of theirs, an update to that of its variable.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.node import by_name
from dtflab.graph.operation import Operation, Tensor
from dtflab.runtime.prune import prune

# What hands on a variable or its value: between it and the operation that reads it.
_HANDS_ON = {"Identity", "Enter", "RefEnter", "ReadVariableOp"}


class Layers:
    """The operations of one training step, by phase (each in the graph's order) and by layer.

    `variables` are those of each layer, `readers` what reads a variable on the way forward.
    """

    def __init__(self, loss: Tensor, train_op: Operation) -> None:
        there, run = _ancestors(loss.op), _run_by(loss, train_op)
        self.forward = [op for op in run if op in there]
        rest = [op for op in run if op not in there]
        gradients = _gradients(rest, {op.name: op for op in self.forward})
        self.backward = [op for op in rest if op in gradients]
        self.update = [op for op in rest if op not in gradients]
        self.known = {v.op: v for v in loss.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
        self.trainable = {v.op for v in loss.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
        self.variables: list[list[Operation]] = []
        self.readers: dict[Operation, list[Operation]] = {}
        self._of: dict[Operation, int] = {}
        self._owner: dict[Operation, int] = {}
        self._waiting: dict[Operation, None] = {}  # made of vectors that have met no layer so far
        for op in self.forward:
            self._add_forward(op)
        self.variables = self.variables or [[]]
        self._put(list(self._waiting), 0)
        for op in self.backward:
            self._add_backward(op, gradients[op])
        for op in self.update:
            self._add_update(op)

    def of(self, op: Operation) -> int:
        """The number of the layer; what is before the first layer belongs to that."""
        return self._of.get(op, 0)

    def is_variable(self, op: Operation) -> bool:
        """True for a variable, and for what hands it on."""
        return _source(op) in self.known

    def names(self) -> list[str]:
        """For each layer what its variables' names have in common."""
        return _unique(_common_scope([v.name for v in owned]) for owned in self.variables)

    # -- each operation in its turn -----------------------------------------------------------------------------

    def _add_forward(self, op: Operation) -> None:
        if self.is_variable(op):
            return
        read = self._read_by(op)
        for variable in read:
            self.readers.setdefault(variable, []).append(op)
        layer = self._layer_for(op, read)
        if layer is not None:
            self._put([op], layer)
        elif read or any(tensor.op in self._waiting for tensor in op.inputs):
            self._waiting[op] = None

    def _layer_for(self, op: Operation, read: Sequence[Operation]) -> int | None:
        """The layer of an operation, possibly a new one; None for inputs and vectors that precede any layer."""
        owners = [self._owner[v] for v in read if v in self._owner]
        if owners:
            return max(owners)
        if any((self.known[v].shape.ndims or 0) > 1 for v in read):
            self.variables.append([])
            return len(self.variables) - 1
        return max(self._layers_before(op), default=None)

    def _put(self, ops: list[Operation], layer: int) -> None:
        """Add operations to the layer, with their variables and everything that has been waiting for a layer."""
        while ops:
            op = ops.pop(0)
            self._of[op] = layer
            self._own(self._read_by(op), layer)
            self._waiting.pop(op, None)
            ops += [tensor.op for tensor in op.inputs if tensor.op in self._waiting]

    def _add_backward(self, op: Operation, differentiated: Operation | None) -> None:
        earliest = min(self._layers_before(op), default=len(self.variables) - 1)
        self._of[op] = earliest if differentiated is None else self.of(differentiated)

    def _add_update(self, op: Operation) -> None:
        written = self._read_by(op)
        owners = [self._owner[v] for v in written if v in self._owner]
        self._of[op] = max(owners or self._layers_before(op), default=0)
        self._own(written, self._of[op])  # an average, which the way forward never reads

    def _layers_before(self, op: Operation) -> list[int]:
        return [self._of[tensor.op] for tensor in op.inputs if tensor.op in self._of]

    def _own(self, variables: Iterable[Operation], layer: int) -> None:
        for variable in variables:
            if variable not in self._owner:
                self._owner[variable] = layer
                self.variables[layer].append(variable)

    def _read_by(self, op: Operation) -> list[Operation]:
        """The variables that an operation is given, behind nothing but what hands them on."""
        sources = dict.fromkeys(_source(tensor.op) for tensor in op.inputs)
        return [source for source in sources if source in self.known]


def _source(op: Operation) -> Operation:
    """The operation whose value `op` only hands on; `op` itself if it computes."""
    while op.type in _HANDS_ON and op.inputs:
        op = op.inputs[0].op
    return op


def _run_by(loss: Tensor, train_op: Operation) -> list[Operation]:
    """The operations that a session runs for both, in the graph's order; without those that only wait for others."""
    in_order = loss.graph.get_operations()
    nodes = prune(by_name(op.node() for op in in_order), [], [loss.name], [train_op.name], "")
    kept = {node.name: node.op for node in nodes}
    return [op for op in in_order if kept.get(op.name) == op.type]


def _ancestors(op: Operation) -> set[Operation]:
    """All that runs when `op` does, itself included."""
    found, queue = {op}, [op]
    while queue:
        op = queue.pop()
        new = {*(tensor.op for tensor in op.inputs), *op.control_inputs} - found
        found |= new
        queue += new
    return found


def _gradients(behind: Sequence[Operation], forward: dict[str, Operation]) -> dict[Operation, Operation | None]:
    """The operations of `behind` that compute gradients, each with the one that it differentiates; sums have none."""
    scopes, found = set(), dict[Operation, Operation | None]()
    for op in behind:
        scope, name = _differentiated(op.name, forward)
        if name:
            found[op] = forward[name]
            scopes.add(scope)
    inside = tuple(scopes - {""})
    return found | {op: None for op in behind if op not in found and inside and op.name.startswith(inside)}


def _differentiated(name: str, forward: dict[str, Operation]) -> tuple[str, str]:
    """`gradients/a/MatMul_grad/MatMul_1` → ("gradients/", "a/MatMul"): the scope, and whose gradient that is."""
    for match in re.finditer("_grad/", name):
        head = name[: match.start()]
        for start in (0, *(slash.end() for slash in re.finditer("/", head))):
            if head[start:] in forward:
                return head[:start], head[start:]
    return "", ""


def _common_scope(names: Sequence[str]) -> str:
    """`conv1/kernel`, `conv1/bias` → `conv1`; of names without a scope in common the first."""
    parts = [name.split("/")[:-1] or [name] for name in names] or [["graph"]]
    shared = [level[0] for level in itertools.takewhile(lambda level: len({*level}) == 1, zip(*parts))]
    return "/".join(shared or parts[0])


def _unique(names: Iterable[str]) -> list[str]:
    """Names of which a second one of a kind gets a number: a, a_1, …"""
    found: list[str] = []
    for name in names:
        number, new = 0, name
        while new in found:
            number += 1
            new = f"{name}_{number}"
        found.append(new)
    return found
