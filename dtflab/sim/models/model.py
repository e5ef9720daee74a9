"""Model: a network as a graph that is only looked at, never run.

TensorFlow has no such class. A model is made by a function of the batch size that builds a loss with dtflab's own
layers; what it costs is read off the graph, so that a user's network is asked about in the same way as the known ones.

Rule: all shapes are static. Variables exist in the graph alone; nobody gives them values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, device as device_scope
from dtflab.ops.control.functions import group
from dtflab.train.optimizers.gradient_descent import GradientDescentOptimizer


@dataclass(frozen=True)
class Model:
    """A loss, a scalar tensor, and the graph around it; `batch` examples go through in one step."""

    name: str
    batch: int
    loss: Tensor

    @property
    def graph(self) -> Graph:
        return self.loss.graph

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order in which they were made."""
        return [op.outputs[0] for op in self.graph.get_operations() if op.type == "Placeholder"]

    @property
    def variables(self) -> list[Any]:
        """All variables, also those that no gradient changes (averages of batch normalization)."""
        found: list[Any] = self.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        return found

    @property
    def parameters(self) -> int:
        """How many numbers the variables hold: what Keras counts."""
        return sum(v.shape.num_elements() for v in self.variables)

    def train_op(self, optimizer: Any = None) -> Operation:
        """A new training step in the graph: gradients, their application, and the averages' updates."""
        return train_op(self.loss, optimizer)

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {self.parameters:,} parameters, batch of {self.batch}>"


def build(function: Callable[..., Tensor], batch: int, name: str = "", device: Any = None, **options: Any) -> Model:
    """The model whose loss `function(batch, **options)` builds, in a graph of its own.

    `device` is what `tf.device` takes: a name or a function of an operation. ValueError if there is no scalar loss,
    or no example in the batch.
    """
    if batch < 1:
        raise ValueError(f"A batch has at least one example, not {batch!r}.")
    with Graph().as_default(), device_scope(device) if device is not None else nullcontext():
        loss = function(batch, **options)
    name = name or getattr(function, "__name__", "model")
    if not isinstance(loss, Tensor) or loss.shape.ndims != 0:
        raise ValueError(f"Model '{name}': the function must return its loss, a scalar tensor, not {loss!r}.")
    return Model(name, batch, loss)


def train_op(loss: Tensor, optimizer: Any = None) -> Operation:
    """One step of `optimizer` (by default plain gradient descent) on `loss`, with all of UPDATE_OPS."""
    optimizer = optimizer or GradientDescentOptimizer(0.01)
    with loss.graph.as_default(), control_dependencies(loss.graph.get_collection(GraphKeys.UPDATE_OPS)):
        return group(optimizer.minimize(loss), name="train_step")
