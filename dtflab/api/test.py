"""tf.test: the TestCase of TF1's own tests, and what stands next to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from absl.testing import absltest as _absltest

from dtflab.api import app as _app, benchmark as _benchmark
from dtflab.api.benchmark import Benchmark, benchmark_config
from dtflab.api.device_lib import list_local_devices as _list_local_devices
from dtflab.api.test_case import TestCase, get_temp_dir
from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.cluster.addresses import free_addresses as _free_addresses
from dtflab.cluster.cluster_spec import ClusterSpec as _ClusterSpec
from dtflab.cluster.server import Server as _Server
from dtflab.graph.default_stacks import get_default_session as _get_default_session
from dtflab.graph.gradients import gradients as _gradients
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.runtime.session import BaseSession

__all__ = ["Benchmark", "TestCase", "benchmark_config", "get_temp_dir", "mock"]


def main(argv: list[str] | None = None) -> None:
    """Run the tests of the program, or with `--benchmark_filter=PATTERN` its benchmarks, and exit."""
    arguments = sys.argv if argv is None else argv
    pattern = _benchmark.taken_filter(arguments)
    if pattern is None:
        _absltest.main(argv=argv)
    else:
        _app.run(lambda _: _benchmark.run_benchmarks(pattern), arguments)


def test_src_dir_path(relative_path: str) -> str:
    """The path of a file next to the sources that are tested."""
    return os.path.join(_absltest.get_default_test_srcdir(), relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]


def is_built_with_cuda() -> bool:
    """False: dtflab is not built; its GPUs are asked for when there are some."""
    return False


is_built_with_gpu_support = is_built_with_rocm = is_built_with_xla = is_built_with_cuda


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None) -> bool:
    """True if a local session has a GPU, of that compute capability (major, minor) or a later one."""
    found = [
        _capability(device.physical_device_desc) for device in _list_local_devices() if device.device_type == "GPU"
    ]
    return any(capability >= (min_cuda_compute_capability or (0, 0)) for capability in found)


def _capability(description: str) -> tuple[int, ...]:
    """(3, 0) of `… compute capability: 3.0`."""
    return tuple(int(number) for number in description.rpartition(": ")[2].split("."))


def gpu_device_name() -> str:
    """`/device:GPU:0` if a local session has it, else an empty string."""
    return next((d.name for d in _list_local_devices() if d.device_type == "GPU"), "")


def create_local_cluster(
    num_workers: int,
    num_ps: int,
    protocol: str = "grpc",
    worker_config: ConfigProto | None = None,
    ps_config: ConfigProto | None = None,
) -> tuple[list[Any], list[Any]]:
    """(workers, ps): that many servers of one cluster in this process, on free loopback ports."""
    configs = {"worker": [worker_config] * num_workers, "ps": [ps_config] * num_ps}
    addresses = _free_addresses(num_workers + num_ps)
    spec = _ClusterSpec({job: [addresses.pop() for _ in tasks] for job, tasks in configs.items() if tasks})
    made = {
        job: [_Server(spec, job, i, protocol, config) for i, config in enumerate(tasks)]
        for job, tasks in configs.items()
    }
    return made["worker"], made["ps"]


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """AssertionError unless two GraphDefs have the same nodes, in any order, attributes and devices included."""
    a, b = ({node.name: node for node in graph.node} for graph in (actual, expected))
    if a.keys() != b.keys():
        raise AssertionError(
            f"Only actual: {sorted(a.keys() - b.keys())}; only expected: {sorted(b.keys() - a.keys())}"
        )
    for name, node in a.items():
        if node != b[name]:
            raise AssertionError(f"Found unexpected difference at node {name}:\n{node}\nexpected:\n{b[name]}")


def compute_gradient(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3,
    init_targets: Any = None, extra_feed_dict: Any = None,
) -> Any:  # fmt: skip
    """(theoretical, numeric) Jacobians of `y` by `x`, matrices of shape (size of x, size of y), in the default session.

    Numeric ones are central differences over 2·`delta`. For lists of `x`, a list of pairs.
    """
    if isinstance(x, list):
        values = x_init_value if x_init_value is not None else [None] * len(x)
        found = zip(x, x_shape, values, strict=True)
        return [compute_gradient(a, s, y, y_shape, v, delta, init_targets, extra_feed_dict) for a, s, v in found]
    sess = _get_default_session()
    for target in init_targets or []:
        sess.run(target)
    start = np.random.random_sample(x_shape) if x_init_value is None else x_init_value  # noqa: NPY002 - seeded by the test
    value = np.array(start, dtype=x.dtype.as_numpy_dtype)
    feeds = dict(extra_feed_dict or {})
    return _theoretical(sess, x, value, y, y_shape, feeds), _numeric(sess, x, value, y, delta, feeds)


def compute_gradient_error(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3,
    init_targets: Any = None, extra_feed_dict: Any = None,
) -> float:  # fmt: skip
    """The largest difference between the two Jacobians of `compute_gradient`."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = found if isinstance(x, list) else [found]
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)


def _theoretical(sess: BaseSession, x: Any, value: Any, y: Any, y_shape: Any, feeds: dict[Any, Any]) -> Any:
    """One column per element of `y`: the gradient of that element."""
    from dtflab.ops.arrays.functions import placeholder

    dy = placeholder(y.dtype, y_shape)
    (dx,) = _gradients(y, x, dy)
    columns = []
    for i in range(int(np.prod(y_shape))):
        direction = np.zeros(y_shape, y.dtype.as_numpy_dtype)
        direction.flat[i] = 1
        columns.append(_dense(sess.run(dx, {**feeds, x: value, dy: direction}), value))
    return np.stack(columns, 1) if columns else np.zeros((value.size, 0))


def _dense(gradient: Any, like: Any) -> Any:
    """A gradient as a vector; slices are added where they belong."""
    if not hasattr(gradient, "indices"):
        return np.asarray(gradient).reshape(-1)
    full = np.zeros_like(like)
    np.add.at(full, gradient.indices, gradient.values)
    return full.reshape(-1)


def _numeric(sess: BaseSession, x: Any, value: Any, y: Any, delta: float, feeds: dict[Any, Any]) -> Any:
    """One row per element of `x`: what moving it does to `y`."""
    evaluate: Callable[[Any], Any] = lambda at: np.asarray(sess.run(y, {**feeds, x: at})).reshape(-1)  # noqa: E731
    rows = []
    for i in range(value.size):
        ends = [value.copy(), value.copy()]
        ends[0].flat[i] += delta
        ends[1].flat[i] -= delta
        rows.append((evaluate(ends[0]) - evaluate(ends[1])) / (2 * delta))
    return np.stack(rows) if rows else np.zeros((0, 0))


__getattr__ = _missing_in("tf.test", globals())
