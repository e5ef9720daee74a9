"""Which devices a task has: its CPUs, and the GPUs of its host that it may see.

Stands for `core/common_runtime/device_factory.cc` and `gpu/gpu_device.cc` (BaseGPUDeviceFactory).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.graph import device_spec
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.devices import Device
from dtflab.machine.discovery import tell
from dtflab.machine.hosts import Claim, Home, this_home, visible_claims

if TYPE_CHECKING:
    from dtflab.protos.config_pb2 import ConfigProto


def make_devices(
    job: str, task: int, config: ConfigProto | None = None, clock: Clock = REAL, home: Home | None = None
) -> list[Device]:
    """The devices of a task: as many CPUs as `config.device_count["CPU"]` says, one by default; then the GPUs.

    `home` says where the task lives, which host's cards it sees; this process by default.
    """
    _keep_freed_memory()
    count = config.device_count["CPU"] if config is not None and "CPU" in config.device_count else 1
    cpus = [Device(device_spec.full_name(job, 0, task, "CPU", i), clock, config=config) for i in range(max(1, count))]
    home = home or this_home()
    claims = visible_claims(home.host, home.program, home.visible, config)
    if claims:
        tell(claims, config)
    gpus = [_gpu(device_spec.full_name(job, 0, task, "GPU", i), claim, config, clock) for i, claim in enumerate(claims)]
    for gpu in gpus:  # TensorFlow 1 takes some memory of each card at once, and so all of it
        gpu.memory.other_cards = [other.memory for other in gpus if other is not gpu]
    return [*cpus, *gpus]


@functools.cache
def _keep_freed_memory() -> None:
    """Make the process's heap keep what a step frees, so that the next one finds it; once is enough.

    glibc gives free memory at the heap's end back to the system if it is more than twice the largest array that was
    ever freed (up to 32 MiB; arrays above that never come from the heap). So every step would end with that, and begin
    with hundreds of page faults. The array that is freed here is never touched: it takes no memory.
    """
    np.empty(31 << 20, np.uint8)


def _gpu(name: str, claim: Claim, config: ConfigProto | None, clock: Clock) -> Any:
    """The GPUDevice that stands for a card; what it computes with comes only now."""
    if claim.card.real:
        from dtflab.machine.cuda import CudaGPU

        return CudaGPU(name, claim, config, clock)
    from dtflab.machine.gpu import SimulatedGPU

    return SimulatedGPU(name, claim, config, clock)
