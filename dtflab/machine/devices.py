"""Devices: where kernels run, on which array module, with how many threads.

Stands for `core/common_runtime/device.h` and `local_device.cc`. A device here is a CPU; `gpu.py` has the others.

Rule: a device binds nodes to kernels over its array module, and holds the state that outlives steps.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.base import errors
from dtflab.base.malformed import said
from dtflab.files.env import DEFAULT
from dtflab.graph import op_registry
from dtflab.graph.node import Node
from dtflab.machine.clock import REAL, Clock, Pool
from dtflab.machine.meter import Meter
from dtflab.machine.pace import USUAL
from dtflab.machine.pools import IntraOpPool, inter_op_threads, intra_op_threads
from dtflab.ops.blas import on_one_thread
from dtflab.ops.entropy import from_system
from dtflab.ops.forwarding import forwarding
from dtflab.ops.resource_mgr import ResourceMgr

if TYPE_CHECKING:
    from dtflab.machine.step_stats import StepStatsCollector
    from dtflab.protos.config_pb2 import ConfigProto
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes


class Device:
    """One device of a task: `/job:worker/replica:0/task:1/device:CPU:0`."""

    def __init__(
        self, name: str, clock: Clock = REAL, memory_limit: int = 256 << 20, config: ConfigProto | None = None
    ) -> None:
        """`memory_limit`, in bytes, is what `list_devices` says; 256 MiB is what TensorFlow says of each CPU."""
        self.name = name
        self.type, _, self.index = name.rpartition("/device:")[2].partition(":")
        self.incarnation = from_system() >> 1 | 1  # never 0
        self.memory_limit = memory_limit
        self.clock = clock
        self.pace = USUAL
        self.meter = Meter()  # that of its task, if it has one
        self.xp = np
        self.resources = ResourceMgr()
        self.env = DEFAULT  # or what a server lets steps open
        label = f"{self.type}:{self.index}"
        self._pool = Pool(clock, f"{label} inter-op", limit=inter_op_threads(config))
        self.inter_op = [self._pool]  # or others, in whose place a session puts its own
        self.intra_op = IntraOpPool(label, intra_op_threads(config))

    def renamed(self, task: str, isolated: bool) -> Device:
        """This device by the name that it has in a session which calls its task so; `isolated`: with its own state."""
        other = copy.copy(self)
        other.name = f"{task}/device:{self.type}:{self.index}"
        if isolated:
            other.resources = ResourceMgr()
            other.resources.memory = self.resources.memory
        return other

    def bind(self, node: Node) -> Callable[..., Any]:
        """The kernel of `node` on this device; an op without one is an error that names both."""
        op = op_registry.get(node.op)
        try:
            xp = self.module_of(node)
            given = (node, xp, self.intra_op.shard) if op.shards and xp is np else (node, xp)
            kernel = self.wrapped(op.bind(*given), node)
        except NotImplementedError as error:
            raise errors.UnimplementedError.of(f"{error}\n\t [[{{{{node {node.name}}}}}]] on {self.name}") from None
        except (LookupError, ArithmeticError, AttributeError) as error:  # of attributes that no program can give
            text = f"{said(error)}\n\t [[{{{{node {node.name}}}}}]] on {self.name}"
            raise errors.InvalidArgumentError.of(text) from error
        if op.into is not None and self.xp is np:
            kernel = forwarding(self.wrapped(op.into(*given), node), kernel, len(node.inputs))
        return on_one_thread(kernel) if op.blas else kernel

    def wrapped(self, kernel: Callable[..., Any], node: Node) -> Callable[..., Any]:
        """A kernel with what this kind of device does around it."""
        return kernel

    def module_of(self, node: Node) -> Any:
        """The array module over which the kernel of `node` works."""
        return self.xp

    def traced(
        self, trace: StepStatsCollector, node: Node, started: float, ended: float, value: Any, parts: Sequence[Any] = ()
    ) -> None:
        """Write into a trace that a node has run here, between two moments of the clock."""
        trace.add(self.name, node, started, ended, value, parts)

    def attributes(self) -> DeviceAttributes:
        """This device as a message."""
        from dtflab.protos import device_attributes_pb2

        return device_attributes_pb2.DeviceAttributes(
            name=self.name, device_type=self.type, memory_limit=self.memory_limit, incarnation=self.incarnation
        )

    def inter_op_pool(self, number: int) -> Pool:
        """The pool that a step chose by number, if this device has several; its only one if not."""
        return self.inter_op[number % len(self.inter_op)]

    def close(self) -> None:
        """Nothing more will run here: let the threads of the device's own pools end."""
        self._pool.close()
        self.intra_op.close()

    def __repr__(self) -> str:
        return f"<device {self.name}>"
