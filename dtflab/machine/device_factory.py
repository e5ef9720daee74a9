"""Which devices a task has: its CPUs, and the GPUs of its host that it may see.

Stands for `core/common_runtime/device_factory.cc` and `gpu/gpu_device.cc` (BaseGPUDeviceFactory).
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import device_spec
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.devices import Device


def make_devices(job: str, task: int, config: Any = None, clock: Clock = REAL) -> list[Device]:
    """The devices of a task: as many CPUs as `config.device_count["CPU"]` says, one by default."""
    count = config.device_count["CPU"] if config is not None and "CPU" in config.device_count else 1
    return [Device(device_spec.full_name(job, 0, task, "CPU", i), clock) for i in range(max(1, count))]
