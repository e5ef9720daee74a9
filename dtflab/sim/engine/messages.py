"""Messages: the same job as `step_model` simulates, with every message an event on the engine of virtual time.

Left out: nothing that `step_model` has; unlike there, messages of different steps meet on a wire in order of time.

Rules. A message's event is the moment at which it is sent: then it reserves its wires (the rule in `transfers`), and
its arrival is known. A worker sends its pulls at one moment, one by one, so that those of several workers take turns.
"""

from __future__ import annotations

from array import array

import numpy as np

from dtflab.sim.engine.job import Job
from dtflab.sim.engine.message_rules import Alone, Rule, Spares, Together
from dtflab.sim.engine.record import Log, Moments, Record
from dtflab.sim.engine.traffic import Array
from dtflab.sim.engine.transfers import Flow
from dtflab.virtual.engine import Engine

Stop = tuple[int, float, float]  # wire, seconds on it, seconds until the next wire may begin
Way = tuple[tuple[Stop, ...], float]  # and the sum of latencies


def synchronous(job: Job, factors: Array, required: int, trace: bool = False) -> Record:
    """Steps of workers that wait for each other, by events; see `step_model.synchronous`."""
    run = _run(job, factors, trace)
    run.rule = rule = Spares(run, required) if required < job.workers else Together(run)
    run.go()
    return run.log.synchronous(factors, required, rule.dropped)


def asynchronous(job: Job, factors: Array, trace: bool = False) -> Record:
    """Steps of workers that never wait for each other; `factors[step, device]` as in `step_model`."""
    run = _run(job, factors, trace)
    run.rule = Alone(run)
    run.go()
    return run.log.asynchronous(factors)


def _run(job: Job, factors: Array, trace: bool) -> _Run:
    return (_Grouped if job.scatter else _Run)(job, factors, trace)


def _ways(job: Job, flow: Flow) -> list[Way]:
    """The stops of each message; equal ones are one object."""
    known: dict[tuple[int, float, float], Stop] = {}

    def stop(wire: int, nbytes: float, count: float) -> Stop:
        one = job.wires[wire]
        held = one.overhead_s * count
        return known.setdefault((wire, nbytes, count), (wire, held + nbytes / one.bandwidth, held))

    return [
        (
            tuple(stop(wire, nbytes, count) for wire in route if wire not in job.idle),
            sum(job.wires[wire].latency_s for wire in route),
        )
        for route, nbytes, count in zip(flow.routes, flow.nbytes.tolist(), flow.counts.tolist(), strict=True)
    ]


class _Run:
    """Workers of one device each, that begin a step, pull, compute, push, and finish; the rule decides what follows.

    Messages have their numbers in the job's flows, item by item, and are recorded in that order.
    """

    rule: Rule

    def __init__(self, job: Job, factors: Array, trace: bool) -> None:
        self.job, self.engine, self.log = job, Engine(), Log(job, len(factors), trace)
        self.workers, self.count = job.workers, job.workers * len(job.items.names)
        self.steps, self.rows = len(factors), len(self.log.trace.pulled)
        self.factors = (factors * job.slowness).tolist()
        self.free = [0.0] * len(job.wires)
        self.pulls, self.pushes = _ways(job, job.pull), _ways(job, job.push)
        self.inputs = _ways(job, job.inputs) if job.inputs else []
        self.compute_s = job.items.head_s + float(job.items.forward_s.sum())
        self.tail = np.cumsum(job.items.forward_s[::-1])[::-1].repeat(job.workers).tolist()
        self.ready = job.items.ready_s[::-1].repeat(job.workers).tolist()
        self.step, self.row = [0] * job.workers, [0] * job.workers  # that each is in; where it is written down
        self.slow, self.forward = [0.0] * job.devices, [0.0] * job.devices
        self.slowed = np.full((self.rows, job.devices), np.nan)
        self.read, self.ended = [0.0] * job.workers, [0.0] * job.workers
        self.pulled, self.pushed = self.table(job.workers), self.table(job.workers)

    def table(self, ends: int) -> array[float]:
        """For moments of all messages of one kind."""
        return array("d", [np.nan]) * (self.rows * len(self.job.items.names) * ends)

    def go(self) -> None:
        """Run to the end."""
        for worker in range(self.workers):
            self.engine.at(0.0, self.begin, worker)
        self.engine.run()
        for kept, moments in zip(self.log.trace, self.moments(), strict=True):
            kept[:] = moments

    # -- a worker's step ----------------------------------------------------------------------------------------

    def begin(self, worker: int) -> None:
        """A worker starts its step."""
        now, step = self.engine.now, self.step[worker]
        self.row[worker] = min(step, self.rows - 1)
        self.log.started[step, worker] = self.ended[worker] = now
        since = self.fed(worker) if self.inputs else now
        for device in self.devices(worker):
            self.slow[device] = slow = self.factors[step][device]
            self.forward[device] = since + slow * self.compute_s
            self.log.trace.computed_from[self.row[worker], device] = since
        self.pull(worker)

    def devices(self, worker: int) -> range:
        return range(worker, worker + 1)

    def fed(self, worker: int) -> float:
        """When the step's examples are there."""
        if not self.job.reads_ahead or not self.step[worker]:
            self.read_next(worker)
        there = self.read[worker]
        if self.job.reads_ahead:
            self.engine.at(self.engine.now, self.read_next, worker)
        return max(self.engine.now, there)

    def read_next(self, worker: int) -> None:
        self.read[worker] = self.send(self.inputs[worker])

    def send(self, way: Way) -> float:
        """Send a message; returns its arrival. `hardware/cut_through.pass_link`, written out: it is called most."""
        free = self.free
        start = end = self.engine.now
        for wire, service, overhead in way[0]:
            since, done = free[wire], start + service
            if since > start:
                spare = end - done
                done = since + service
                if spare > 0:
                    since -= spare
                if since > start:
                    start = since
            free[wire] = done
            if done > end:
                end = done
            start += overhead
        return end + way[1]

    def pull(self, number: int) -> None:
        """Send one item to its worker; the next follows at once."""
        arrival = self.send(self.pulls[number])
        worker = number % self.workers
        self.pulled[self.row[worker] * self.count + number] = arrival
        done = arrival + self.slow[worker] * self.tail[number]
        if done > self.forward[worker]:
            self.forward[worker] = done
        number += self.workers
        if number < self.count:
            self.engine.at(self.engine.now, self.pull, number)
        else:  # all arrivals are known, and so is when the way forward is done
            self.engine.at(self.forward[worker] + self.slow[worker] * self.ready[worker], self.push, worker)

    def push(self, number: int) -> None:
        """Send one gradient; the next follows when it is computed."""
        worker = number % self.workers
        self.leave(number, worker)
        number += self.workers
        if number < self.count:
            self.engine.at(self.forward[worker] + self.slow[worker] * self.ready[number], self.push, number)
        else:
            self.engine.at(self.ended[worker], self.finish, worker)

    def leave(self, number: int, worker: int) -> None:
        """Send a worker's gradient to its server."""
        arrival = self.send(self.pushes[number])
        self.pushed[self.row[worker] * self.count + number] = arrival
        done = arrival + self.rule.waits_s[number // self.workers]
        if done > self.ended[worker]:
            self.ended[worker] = done
        if self.rule.counts:
            self.engine.at(arrival, self.rule.added, number, self.step[worker])

    def finish(self, worker: int) -> None:
        """A worker's step is over: all its gradients are on their servers."""
        step, row = self.step[worker], self.row[worker]
        self.log.ended[step, worker] = self.engine.now
        for device in self.devices(worker):
            self.log.trace.forward[row, device], self.slowed[row, device] = self.forward[device], self.slow[device]
        self.rule.finished(worker)

    # -- what is written down -----------------------------------------------------------------------------------

    def moments(self) -> Moments:
        """Fill in the moments that are not in the log yet, or follow from others."""
        pulled, pushed = self.shaped(self.pulled), self.shaped(self.pushed)[:, ::-1]
        ready = self.computed()
        return Moments(pulled, pulled, self.log.trace.computed_from, self.log.trace.forward, ready, ready, pushed)

    def computed(self) -> Array:
        """When each device had computed each gradient."""
        ready: Array = self.log.trace.forward[:, None] + self.slowed[:, None] * self.job.items.ready_s[:, None]
        return ready

    def shaped(self, table: array[float]) -> Array:
        return np.array(table).reshape(self.rows, len(self.job.items.names), -1)


class _Grouped(_Run):
    """Workers of several devices: they hand on what they pull, and sum the gradients before they push."""

    def __init__(self, job: Job, factors: Array, trace: bool) -> None:
        super().__init__(job, factors, trace)
        assert job.scatter and job.gather
        self.scatters, self.gathers = _ways(job, job.scatter), _ways(job, job.gather)
        self.owner = job.owner.tolist()
        self.first = [*np.flatnonzero(np.diff(job.owner, prepend=-1)).tolist(), job.devices]
        self.there, self.summed = self.table(job.devices), self.table(job.workers)
        self.missing = [0] * job.workers  # items that are not there yet
        self.adding = [0] * self.count  # devices whose gradient is not there yet
        self.pushing = [0] * job.workers  # gradients that have not left yet

    def devices(self, worker: int) -> range:
        return range(self.first[worker], self.first[worker + 1])

    def begin(self, worker: int) -> None:
        items = len(self.job.items.names)
        self.missing[worker] = self.pushing[worker] = items
        self.adding[worker :: self.workers] = [len(self.devices(worker))] * items
        super().begin(worker)

    def pull(self, number: int) -> None:
        arrival = self.send(self.pulls[number])
        worker = number % self.workers
        self.pulled[self.row[worker] * self.count + number] = arrival
        self.engine.at(arrival, self.hand_on, number)
        if number + self.workers < self.count:
            self.engine.at(self.engine.now, self.pull, number + self.workers)

    def hand_on(self, number: int) -> None:
        """An item has reached a worker, and goes on to its devices."""
        item, worker = divmod(number, self.workers)
        first, row = item * self.job.devices, self.row[worker] * len(self.there) // self.rows
        for device in self.devices(worker):
            there = self.there[row + first + device] = self.send(self.scatters[first + device])
            self.forward[device] = max(self.forward[device], there + self.slow[device] * self.tail[number])
        self.missing[worker] -= 1
        if not self.missing[worker]:
            for device in self.devices(worker):
                self.engine.at(self.forward[device] + self.slow[device] * self.ready[0], self.gather, 0, device)

    def gather(self, item: int, device: int) -> None:
        """Send a device's gradient to be summed; the next follows when it is computed."""
        arrival = self.send(self.gathers[item * self.job.devices + device])
        worker = self.owner[device]
        number = item * self.workers + worker
        place = self.row[worker] * self.count + number
        self.adding[number] -= 1
        self.summed[place] = arrival if not self.summed[place] > arrival else self.summed[place]
        if not self.adding[number]:
            self.engine.at(self.summed[place], self.push, number)
        if number + self.workers < self.count:
            moment = self.forward[device] + self.slow[device] * self.ready[number + self.workers]
            self.engine.at(moment, self.gather, item + 1, device)

    def push(self, number: int) -> None:
        worker = number % self.workers
        self.leave(number, worker)
        self.pushing[worker] -= 1
        if not self.pushing[worker]:
            self.engine.at(self.ended[worker], self.finish, worker)

    def moments(self) -> Moments:
        summed, there = self.shaped(self.summed)[:, ::-1], self.shaped(self.there)
        return super().moments()._replace(there=there, summed=summed)
