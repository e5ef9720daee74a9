"""Which devices a task has: its CPUs, and the GPUs of its host that it may see.

Stands for `core/common_runtime/device_factory.cc` and `gpu/gpu_device.cc` (BaseGPUDeviceFactory).
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import device_spec
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.devices import Device
from dtflab.machine.discovery import tell
from dtflab.machine.hosts import Claim, Home, this_home, visible_claims


def make_devices(
    job: str, task: int, config: Any = None, clock: Clock = REAL, home: Home | None = None
) -> list[Device]:
    """The devices of a task: as many CPUs as `config.device_count["CPU"]` says, one by default; then the GPUs.

    `home` says where the task lives, which host's cards it sees; this process by default.
    """
    count = config.device_count["CPU"] if config is not None and "CPU" in config.device_count else 1
    cpus = [Device(device_spec.full_name(job, 0, task, "CPU", i), clock, config=config) for i in range(max(1, count))]
    home = home or this_home()
    claims = visible_claims(home.host, home.program, home.visible, config)
    if claims:
        tell(claims, config)
    return cpus + [
        _gpu(device_spec.full_name(job, 0, task, "GPU", i), claim, config, clock) for i, claim in enumerate(claims)
    ]


def _gpu(name: str, claim: Claim, config: Any, clock: Clock) -> Device:
    """The device that stands for a card; what it computes with comes only now."""
    if claim.card.real:
        from dtflab.machine.cuda import CudaGPU

        return CudaGPU(name, claim, config, clock)
    from dtflab.machine.gpu import SimulatedGPU

    return SimulatedGPU(name, claim, config, clock)
