"""Allocation: GPUs of a cluster, handed out so that none is promised twice.

TensorFlow never had this: programs that name the same device share it, and find out when it is full. The
papers that came before it (Borg's and Spark's schedulers) leave it to the cluster's manager; here a Cluster is its own.

Rules: what is handed out is a promise about memory, per device; a promise without an amount takes the device whole.
Tasks on one host share its cards, so a promise counts on the card, whichever task's name it has. A request that can
never be met is refused at once, with the reason; one that could be met later may wait for it, in line. A promise ends
with its `with` block, its `release()`, its container, or its task.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.base.grouping import grouped
from dtflab.base.timeouts import timeouts
from dtflab.graph import device_spec
from dtflab.machine import console
from dtflab.machine.clock import Clock, Event
from dtflab.runtime.standstill import Reserving

MiB = 1 << 20
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


class Allocation:
    """Devices that a program may use until it gives them back: `with cluster.allocate(gpus=1) as gpu, tf.device(gpu):`.

    `devices` are full names, `amounts` what is promised on each, in bytes, `holder` is whose they are. As a device
    function it leaves alone what asks for a device. A variable goes to the device that was given the fewest bytes, an
    operation next to its first input that is here, and what has no such input to the next device in turn.
    """

    def __init__(self, manager: ResourceManager, devices: Sequence[str], amounts: dict[str, int], holder: str) -> None:
        self.devices = list(devices)
        self.amounts = amounts
        self.holder = holder
        self._manager = manager
        self._turn = itertools.cycle(self.devices)
        self._variables = dict.fromkeys(self.devices, 0)  # bytes of them on each

    @property
    def device(self) -> str:
        """The only, or the first, device."""
        return self.devices[0]

    def __call__(self, op: Any) -> str:
        if not self._manager.holds(self):
            raise errors.FailedPreconditionError.of(f"{self!r} is not a device for '{op.name}': allocate again.")
        if op.device:
            return str(op.device)
        if op.type in _VARIABLES:
            device = min(self._variables, key=lambda name: self._variables[name])
            self._variables[device] += (op.attrs["shape"].num_elements() or 0) * op.attrs["dtype"].size
            return device
        of_inputs = (tensor.op.device for tensor in op.inputs if tensor.op.device in self.devices)
        return next(of_inputs, None) or next(self._turn)

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


class Capacity(NamedTuple):
    """The bytes that a task may take of a GPU, which card that is, and the card's bytes for all its tasks."""

    memory: int
    card: str
    card_memory: int


@dataclass
class _Device:
    """A GPU of a task, and the promises on its card: how many bytes, to which request, under which task's name."""

    name: str
    given: Capacity
    promised: dict[tuple[Allocation, str], int] = field(default_factory=dict)  # one for all tasks that see the card

    @property
    def capacity(self) -> int:
        return self.given.memory

    @property
    def free(self) -> int:
        mine = sum(nbytes for (_, name), nbytes in self.promised.items() if name == self.name)
        return min(self.capacity - mine, self.given.card_memory - sum(self.promised.values()))

    def __str__(self) -> str:
        held = [
            f"{allocation.holder} holds {nbytes // MiB} MiB" + f" (as {name})" * (name != self.name)
            for (allocation, name), nbytes in self.promised.items()
        ]
        holders = ", ".join(held) or "nobody holds any"
        return f"{self.name}: {self.free // MiB} of {self.capacity // MiB} MiB free; {holders}"


@dataclass(frozen=True)
class Request:
    """A request for `gpus` devices with `memory` bytes each (None: whole ones) that match `where`."""

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


_Place = tuple[Request, Event, list[Allocation | errors.OpError]]  # in the line; the list is for the answer


class ResourceManager:
    """The allocations of one cluster. `capacities()` gives the GPUs that it has now, by name."""

    def __init__(self, capacities: Callable[[], dict[str, Capacity]], clock: Clock) -> None:
        self._capacities = capacities
        self._clock = clock
        self._lock = threading.RLock()  # a container may be reset, and release, while another one is filled
        self._devices: dict[str, _Device] = {}
        self._waiting: deque[_Place] = deque()

    def allocate(self, request: Request, wait: bool, timeout: float | None) -> Allocation:
        """Hand out what is asked for.

        ResourceExhaustedError if it can never be had, or not now and `wait` is false; DeadlineExceededError after
        `timeout` seconds in line. Requests are served in order.
        """
        with self._lock:
            self._look()
            if not self._possible(request):
                raise self._refusal(request, "The cluster can never give")
            place = (request, self._event(), list[Allocation | errors.OpError]())
            self._waiting.append(place)
            self._serve()
            if not wait and self._leave(place):
                raise self._refusal(request, "The cluster can't give now", can_wait=True)
        return self._wait(place, timeout)

    def _event(self) -> Event:
        event = self._clock.event()
        event.what = "GPUs"
        return event

    def _wait(self, place: _Place, timeout: float | None) -> Allocation:
        request, event, answer = place
        try:
            in_time = self._await(request, event, timeout)
        except BaseException:  # Ctrl-C
            if not self._leave(place) and isinstance(answer[0], Allocation):
                answer[0].release()  # it came at the last moment
            raise
        if in_time or not self._leave(place):
            if isinstance(answer[0], errors.OpError):
                raise answer[0]
            return answer[0]
        raise errors.DeadlineExceededError.of(self._text(request, f"Within {timeout:g} s the cluster could not give"))

    def _await(self, request: Request, event: Event, timeout: float | None) -> bool:
        """Wait for an answer; say once that somebody waits, as it may be for something in the same notebook."""
        if timeout is not None and timeout <= timeouts.notice:
            return event.wait(timeout)
        if event.wait(timeouts.notice):
            return True
        with self._lock:
            console.say(self._text(request, "The cluster can't give yet") + "\nWaiting until somebody calls release().")
        return event.wait(None if timeout is None else timeout - timeouts.notice)

    def _leave(self, place: _Place) -> bool:
        """Give up a place in the line; False if it was just served."""
        with self._lock:
            if place not in self._waiting:
                return False
            self._waiting.remove(place)
            self._serve()
            return True

    def _look(self) -> None:
        """Learn of devices that came, forget those that went."""
        now, known = self._capacities(), self._devices
        cards: dict[str, dict[tuple[Allocation, str], int]] = {given.card: {} for given in now.values()}
        for (allocation, name), nbytes in {k: v for old in known.values() for k, v in old.promised.items()}.items():
            if name in now:
                cards[now[name].card][allocation, name] = nbytes
        self._devices = {name: _Device(name, given, cards[given.card]) for name, given in now.items()}

    def look_again(self) -> None:
        """End the promises of tasks that went; serve waiting requests, or refuse those that became impossible."""
        with self._lock:
            self._look()
            for place in [place for place in self._waiting if not self._possible(place[0])]:
                self._waiting.remove(place)
                self._answer(place, self._refusal(place[0], "The cluster can no longer give"))
            self._serve()

    def _possible(self, request: Request) -> bool:
        """Whether the request could be met if nobody else had anything."""
        return len(self._cards_for(request)) >= request.gpus

    def _cards_for(self, request: Request) -> set[str]:
        """The cards that could serve the request if nobody else had anything."""
        return {device.given.card for device in self._devices.values() if request.fits(device, empty=True)}

    def _take(self, request: Request) -> Allocation | None:
        """The fullest devices that fit, on one task if there is one with enough of them."""
        fitting = sorted((d for d in self._devices.values() if request.fits(d)), key=lambda d: (d.free, d.name))
        tasks = grouped((device_spec.task_name(device.name), device) for device in fitting)
        each_card_once = list({device.given.card: device for device in reversed(fitting)}.values())[::-1]
        chosen = next((mine for mine in tasks.values() if len(mine) >= request.gpus), each_card_once)[: request.gpus]
        if len(chosen) < request.gpus:
            return None
        memory = {d.name: d.capacity if request.memory is None else request.memory for d in chosen}
        allocation = Allocation(self, [d.name for d in chosen], memory, request.holder)
        for device in chosen:
            device.promised[allocation, device.name] = memory[device.name]
        return allocation

    def release(self, allocation: Allocation) -> None:
        """Take a promise back, and serve those who wait."""
        with self._lock:
            for device in self._devices.values():
                device.promised.pop((allocation, device.name), None)
            self._serve()

    def holds(self, allocation: Allocation) -> bool:
        """True until it is released."""
        return any((allocation, device.name) in device.promised for device in self._devices.values())

    def _serve(self) -> None:
        """Serve the line in order: no request overtakes one that waits for more of the same cards."""
        wanted: set[str] = set()
        for place in list(self._waiting):
            cards = self._cards_for(place[0])
            found = None if cards & wanted else self._take(place[0])
            if found is None:
                wanted |= cards
            else:
                self._waiting.remove(place)
                self._answer(place, found)

    @staticmethod
    def _answer(place: _Place, answer: Allocation | errors.OpError) -> None:
        place[2].append(answer)
        place[1].set()

    def promises(self) -> list[tuple[str, str, int]]:
        """(device, holder, bytes) of all promises."""
        return [(name, one.holder, one.amounts[name]) for one in self.allocations() for name in one.devices]

    def allocations(self) -> list[Allocation]:
        """All that are not released, the oldest first."""
        with self._lock:
            cards = {device.given.card: device.promised for device in self._devices.values()}
            return list(dict.fromkeys(allocation for promised in cards.values() for allocation, _ in promised))

    def waiting(self) -> list[str]:
        """The requests that wait, in order, and what each waits for."""
        with self._lock:
            return [f"{request.holder} waits for {request}" for request, _, _ in self._waiting]

    def reserving(self) -> list[Reserving]:
        """The requests that wait, with the clients that hold GPUs which fit."""
        with self._lock:
            return [
                Reserving(
                    request.holder,
                    str(request),
                    tuple(
                        dict.fromkeys(
                            allocation.holder
                            for device in self._devices.values()
                            if request.fits(device, empty=True)
                            for allocation, _ in device.promised
                        )
                    ),
                )
                for request, _, _ in self._waiting
            ]

    def _refusal(self, request: Request, why: str, can_wait: bool = False) -> errors.OpError:
        hint = "Ask for less memory or fewer GPUs, or start a cluster with more (gpus=…, gpu_memory=…)."
        if can_wait:
            hint = f"release() what nobody needs (cluster.allocations()), or wait for others (wait=True). {hint}"
        return errors.ResourceExhaustedError.of(f"{self._text(request, why)}\n{hint}")

    def _text(self, request: Request, why: str) -> str:
        devices = [f"\n  {device}" for device in self._devices.values()] or ["\n  It has no GPU."]
        line = [f"\n  {text}" for text in self.waiting()]
        return f"{why} {request} ({request.holder})." + "".join(devices + line)
