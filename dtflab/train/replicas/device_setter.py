"""replica_device_setter: variables to the parameter servers in turn, everything else to the worker.

Stands for `python/training/device_setter.py`. Left out: load balancing by size (in `contrib` in TF1).

Rule: a device function. What a `tf.device` block inside it has set stays; the setter fills in the rest.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.graph.device_spec import DeviceSpec

STANDARD_PS_OPS = (
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator", "DecisionTreeResource",
)  # fmt: skip


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """A device function for between-graph replication, or None if there is no parameter server.

    >>> with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:1")):
    ...     build_model()

    `ps_strategy(op)` is the task for each of `ps_ops`; by default they take turns.
    """
    if cluster is not None:
        jobs: Any = cluster if hasattr(cluster, "as_dict") else ClusterSpec(cluster)
        tasks = jobs.as_dict().get(DeviceSpec.from_string(ps_device).job)
        if tasks is None:
            return None
        ps_tasks = len(tasks)
    if ps_tasks == 0:
        return None
    if not merge_devices:
        logging.getLogger("tensorflow").warning(
            "DEPRECATION: It is recommended to set merge_devices=true in replica_device_setter"
        )
    turns = itertools.cycle(range(ps_tasks))  # tasks 0, 1, …, n-1, 0, … for one variable after the other
    strategy: Callable[[Any], int] = (lambda op: next(turns)) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise TypeError("ps_strategy must be callable")
    on_ps = set(STANDARD_PS_OPS if ps_ops is None else ps_ops)

    def device_of(op: Any) -> str:
        if not merge_devices and op.device:
            return str(op.device)
        current = DeviceSpec.from_string(op.device or "")
        if ps_device and op.type in on_ps:
            spec = DeviceSpec.from_string(ps_device)
            if spec.job and current.job in (None, spec.job):
                spec = spec.replace(task=strategy(op))
        else:
            spec = DeviceSpec.from_string(worker_device or "")
        return spec.make_merged_spec(current).to_string()

    return device_of
