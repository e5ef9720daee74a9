"""Decorators and helpers of TensorFlow's own tests, under `tensorflow.python.framework.test_util` there.

Stands for `python/framework/test_util.py`. Left out: what inspects eager tensors, XLA and memory.

Rule: there are graphs only. What asks for them, or for more than them, changes nothing; what asks for TF2 is skipped.
"""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from dtflab.api.test import assert_equal_graph_def, create_local_cluster, gpu_device_name, is_built_with_gpu_support
from dtflab.api.test import is_gpu_available
from dtflab.api.test_case import TestCase as TensorFlowTestCase
from dtflab.graph import scopes
from dtflab.graph.graph import Graph


def _unchanged(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The test as it is, whether the decorator is called with arguments or not."""
    return function if callable(function) else lambda test: test


run_deprecated_v1 = deprecated_graph_mode_only = run_all_in_deprecated_graph_mode_only = run_v1_only = _unchanged
run_in_graph_and_eager_modes = run_all_in_graph_and_eager_modes = run_in_v1_v2 = _unchanged
also_run_as_tf_function = py_func_if_in_function = run_in_async_and_sync_mode = _unchanged
assert_no_new_tensors = assert_no_garbage_created = assert_no_new_pyobjects_executing_eagerly = _unchanged
disable_xla = disable_tfrt = disable_control_flow_v2 = no_xla_auto_jit = run_without_tensor_float_32 = _unchanged


enable_control_flow_v2 = with_control_flow_v2 = _unchanged
IsMklEnabled = IsGoogleCudaEnabled = IsBuiltWithROCm = is_built_with_gpu_support


@contextlib.contextmanager
def device(use_gpu: bool) -> Iterator[None]:
    """Operations made inside stand on the GPU if it is asked for and there is one, else on the CPU."""
    with scopes.device((gpu_device_name() if use_gpu else "") or "/device:CPU:0"):
        yield


def use_gpu() -> contextlib.AbstractContextManager[None]:
    """Operations made inside stand on the GPU, if there is one."""
    return device(use_gpu=True)


def force_cpu() -> contextlib.AbstractContextManager[None]:
    """Operations made inside stand on the CPU."""
    return device(use_gpu=False)


def run_v2_only(function: Any = None, reason: str | None = None) -> Any:
    """Skip a test of TF2."""
    skip = unittest.skip(reason or "It tests TensorFlow 2.")
    return skip(function) if callable(function) else skip


def run_gpu_only(function: Any) -> Any:
    """Skip a test where there is no GPU."""
    return unittest.skipUnless(is_gpu_available(), "It needs a GPU.")(function)


run_cuda_only = run_gpu_only


def skip_if(condition: Callable[[], bool] | bool) -> Callable[[Any], Any]:
    """Skip a test if a condition holds."""
    return unittest.skipIf(condition() if callable(condition) else condition, "Its condition holds.")


def assert_ops_in_graph(expected_ops: dict[str, str], graph: Graph) -> dict[str, Any]:
    """The nodes of a graph that have these names; ValueError unless all are there and of these types."""
    nodes = {node.name: node for node in graph.as_graph_def().node if node.name in expected_ops}
    for name, op_type in expected_ops.items():
        if name not in nodes:
            raise ValueError(f"There is no operation {name!r} in the graph.")
        if nodes[name].op != op_type:
            raise ValueError(f"Operation {name!r} is of type {nodes[name].op}, not {op_type}.")
    return nodes


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """The node of a GraphDef that has this name, or None."""
    return next((node for node in graph_def.node if node.name == node_name), None)
