"""Allocation: GPUs of a cluster, handed out so that none is promised twice.

TensorFlow never had this: whoever names a device shares it with all others who do, and finds out when it is full. The
papers that came before it (Borg's and Spark's schedulers) leave it to the cluster's manager; here a Cluster is its own.

Rules: what is handed out is a promise about memory, per device; a promise without an amount takes the device whole. A
request that can never be met is refused at once, with the reason; one that could be met later may wait for it, in line.
A promise ends with its `with` block, its `release()`, or its container.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtflab.graph import device_spec, errors
from dtflab.machine.clock import Clock, Event

MiB = 1 << 20


class Allocation:
    """Devices that a program may use until it gives them back: `with cluster.allocate(gpus=1) as gpu, tf.device(gpu):`.

    `devices` are full names, `amounts` what is promised on each, in bytes, `holder` is whose they are. As a device
    function it gives operations that ask for no device the only device, or the next one in turn.
    """

    def __init__(self, manager: ResourceManager, devices: Sequence[str], amounts: dict[str, int], holder: str) -> None:
        self.devices = list(devices)
        self.amounts = amounts
        self.holder = holder
        self._manager = manager
        self._turn = itertools.cycle(self.devices)

    @property
    def device(self) -> str:
        """The only, or the first, device."""
        return self.devices[0]

    def __call__(self, op: Any) -> str:
        if op.device:
            return str(op.device)
        return next(self._turn)

    def release(self) -> None:
        """Give everything back; once is enough."""
        self._manager.release(self)

    close = release  # what a container does with its resources

    def __enter__(self) -> Allocation:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.release()

    def __repr__(self) -> str:
        parts = [f"{name} ({self.amounts[name] // MiB} MiB)" for name in self.devices]
        state = "" if self._manager.holds(self) else ", released"
        return f"<allocation of {self.holder}: {', '.join(parts)}{state}>"


@dataclass
class _Device:
    """A GPU, and who was promised how many bytes of it."""

    name: str
    capacity: int
    promised: dict[Allocation, int] = field(default_factory=dict)

    @property
    def free(self) -> int:
        return self.capacity - sum(self.promised.values())

    def __str__(self) -> str:
        holders = ", ".join(f"{a.holder} holds {b // MiB} MiB" for a, b in self.promised.items()) or "nobody holds any"
        return f"{self.name}: {self.free // MiB} of {self.capacity // MiB} MiB free; {holders}"


@dataclass(frozen=True)
class Request:
    """What somebody wants: `gpus` devices with `memory` bytes each (None: whole ones) that match `where`."""

    gpus: int
    memory: int | None
    where: str  # a partial device name
    holder: str

    def fits(self, device: _Device, empty: bool = False) -> bool:
        """True if this device has the memory now, or would have it when `empty`."""
        if not device_spec.matches(self.where, device.name):
            return False
        free = device.capacity if empty else device.free
        return free == device.capacity if self.memory is None else free >= self.memory

    def __str__(self) -> str:
        memory = "a whole device" if self.memory is None else f"{self.memory // MiB} MiB"
        return f"{self.gpus} GPU{'s' * (self.gpus != 1)} with {memory} each" + (f" on {self.where}" * bool(self.where))


class ResourceManager:
    """The books of one cluster. `capacities()` tells the GPUs that it has now: name → bytes."""

    def __init__(self, capacities: Callable[[], dict[str, int]], clock: Clock) -> None:
        self._capacities = capacities
        self._clock = clock
        self._lock = threading.RLock()  # a container may be reset, and release, while another one is filled
        self._devices: dict[str, _Device] = {}
        self._waiting: deque[tuple[Request, Event, list[Allocation]]] = deque()

    def allocate(self, request: Request, wait: bool, timeout: float | None) -> Allocation:
        """Hand out what is asked for.

        ResourceExhaustedError if it can never be had, or not now and `wait` is false; DeadlineExceededError after
        `timeout` seconds in line. Who waits is served in order.
        """
        with self._lock:
            self._look()
            possible = [device for device in self._devices.values() if request.fits(device, empty=True)]
            if len(possible) < request.gpus:
                raise self._refusal(request, "The cluster can never give")
            found = None if self._waiting else self._take(request)
            if found is not None:
                return found
            if not wait:
                raise self._refusal(request, "The cluster can't give now", can_wait=True)
            place = (request, self._clock.event(), list[Allocation]())
            self._waiting.append(place)
        return self._wait(place, timeout)

    def _wait(self, place: tuple[Request, Event, list[Allocation]], timeout: float | None) -> Allocation:
        request, event, granted = place
        try:
            in_time = event.wait(timeout)
        except BaseException:  # Ctrl-C
            if not self._leave(place):
                granted[0].release()  # it came at the last moment
            raise
        if in_time or not self._leave(place):
            return granted[0]
        raise errors.DeadlineExceededError(
            None, None, self._text(request, f"Within {timeout:g} s the cluster could not give")
        )

    def _leave(self, place: tuple[Request, Event, list[Allocation]]) -> bool:
        """Give up a place in the line; False if it was just served."""
        with self._lock:
            if place not in self._waiting:
                return False
            self._waiting.remove(place)
            self._serve()
            return True

    def _look(self) -> None:
        """Learn of devices that came, forget those that went."""
        now = self._capacities()
        self._devices = {name: self._devices.get(name) or _Device(name, size) for name, size in now.items()}

    def _take(self, request: Request) -> Allocation | None:
        """The fullest devices that fit, on one task if there is one with enough of them."""
        fitting = sorted((d for d in self._devices.values() if request.fits(d)), key=lambda d: (d.free, d.name))
        tasks: dict[str, list[_Device]] = {}
        for device in fitting:
            tasks.setdefault(device_spec.task_name(device.name), []).append(device)
        chosen = next((mine for mine in tasks.values() if len(mine) >= request.gpus), fitting)[: request.gpus]
        if len(chosen) < request.gpus:
            return None
        memory = {d.name: d.capacity if request.memory is None else request.memory for d in chosen}
        allocation = Allocation(self, [d.name for d in chosen], memory, request.holder)
        for device in chosen:
            device.promised[allocation] = memory[device.name]
        return allocation

    def release(self, allocation: Allocation) -> None:
        """Take a promise back, and serve those who wait."""
        with self._lock:
            for device in self._devices.values():
                device.promised.pop(allocation, None)
            self._serve()

    def holds(self, allocation: Allocation) -> bool:
        """True until it is released."""
        return any(allocation in device.promised for device in self._devices.values())

    def _serve(self) -> None:
        """Serve the line in order: who comes later does not pass one who waits for more."""
        while self._waiting:
            request, event, granted = self._waiting[0]
            found = self._take(request)
            if found is None:
                return
            self._waiting.popleft()
            granted.append(found)
            event.set()

    def promises(self) -> list[tuple[str, str, int]]:
        """(device, holder, bytes) of all promises."""
        with self._lock:
            return [(d.name, a.holder, n) for d in self._devices.values() for a, n in d.promised.items()]

    def waiting(self) -> list[str]:
        """Who waits for what, in order."""
        with self._lock:
            return [f"{request.holder} waits for {request}" for request, _, _ in self._waiting]

    def _refusal(self, request: Request, why: str, can_wait: bool = False) -> errors.OpError:
        hint = "ask for less memory or fewer GPUs, or start a cluster with more (gpus=…, gpu_memory=…)."
        hint = f"wait=True waits until it can; or {hint}" if can_wait else hint.capitalize()
        return errors.ResourceExhaustedError(None, None, f"{self._text(request, why)}\n{hint}")

    def _text(self, request: Request, why: str) -> str:
        books = [f"\n  {device}" for device in self._devices.values()] or ["\n  It has no GPU."]
        line = [f"\n  {text}" for text in self.waiting()]
        return f"{why} {request} ({request.holder})." + "".join(books + line)
