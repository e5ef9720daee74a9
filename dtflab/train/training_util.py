"""The global step: the variable that counts how often the model was updated, by all workers together.

Stands for `python/training/training_util.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.base import tf_logging
from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, get_default_graph
from dtflab.ops.control.cond import cond
from dtflab.ops.variables.functions import assign_add, is_variable_initialized
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.initializers import zeros_initializer
from dtflab.ops.variables.policies import VariableAggregation
from dtflab.ops.variables.variable import Variable


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps done, as a Python integer; the tensor may be a vector of one."""
    return int(np.squeeze(sess.run(global_step_tensor)))


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step of `graph`, or None: the one in its collection, else the tensor `global_step:0`."""
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        tf_logging.error("Multiple tensors in global_step collection.")
        return None
    try:
        step = found[0] if found else graph.get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    assert_global_step(step)
    return step


def create_global_step(graph: Graph | None = None) -> Variable:
    """Make the global step of `graph`; ValueError if it has one."""
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        collections = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
        options: dict[str, Any] = {"trainable": False, "collections": collections}
        options |= {"aggregation": VariableAggregation.ONLY_FIRST_REPLICA}
        return get_variable(GraphKeys.GLOBAL_STEP, [], dtypes.int64, zeros_initializer(), **options)


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step of `graph`, made if there is none."""
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor: Any) -> None:
    """TypeError unless it is an integer scalar, as a variable or a tensor."""
    if not isinstance(global_step_tensor, Variable | Tensor):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    dtype, shape = global_step_tensor.dtype, global_step_tensor.shape
    if not dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {dtype}')
    if shape.ndims != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')


_READ_KEY = "global_step_read_op_cache"  # the collection that keeps the read that hooks share


def _get_or_create_global_step_read(graph: Graph | None = None) -> Any:
    """The tensor by which hooks read the global step, one for all of them; None if there is no global step.

    It works before the variable is initialized, and its value is a copy that later updates do not change.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(_READ_KEY)
    if len(found) > 1:
        raise RuntimeError(f"There are multiple items in collection {_READ_KEY}. There should be only one.")
    step = None if found else get_global_step(graph)
    if step is None:
        return found[0] if found else None
    with graph.as_default(), graph.name_scope(None), graph.name_scope(f"{step.op.name}/"):
        value = step
        if isinstance(step, Variable):
            value = cond(is_variable_initialized(step), step.read_value, lambda: step.initial_value)
        read = value + 0
    graph.add_to_collection(_READ_KEY, read)
    return read


def _increment_global_step(increment: int, graph: Graph | None = None) -> Any:
    """A tensor that adds `increment` to the global step, after the read of `_get_or_create_global_step_read`."""
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise ValueError(
            "Global step tensor should be created by tf.train.get_or_create_global_step before calling increment."
        )
    read = _get_or_create_global_step_read(graph)
    with graph.as_default(), graph.name_scope(None), graph.name_scope(f"{step.op.name}/"), control_dependencies([read]):
        return assign_add(step, increment)
