"""The critical path of a synchronous step: what its last update waited for, part by part.

Left out: what else waited.

Rule: the parts add up to the step. Of a transfer, what it takes alone and what it waits in queues are two parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dtflab.sim.engine.job import Job
from dtflab.sim.engine.record import Moments, Record
from dtflab.sim.engine.transfers import Flow


class Part(NamedTuple):
    """A part of the path.

    `kind` is "wait", "input", "pull", "forward", "backward", "sum", "push", "queue" or "update"; `what` says more.
    """

    kind: str
    what: str
    seconds: float


def critical_path(job: Job, record: Record, required: int) -> list[Part]:
    """The parts of the last step of a record, in their order."""
    assert record.trace is not None
    moments = Moments(*(column[-1] for column in record.trace))
    pushed = np.where(np.isnan(record.started[-1]), np.inf, moments.pushed)
    order = np.argsort(pushed, axis=1, kind="stable")[:, required - 1]
    last = pushed[np.arange(len(order)), order] + job.items.apply_s
    item = int(last.argmax())
    worker = int(order[item])
    devices = np.flatnonzero(job.owner == worker)
    device = int(devices[moments.ready[item, devices].argmax()])
    before = float(record.updates[-2]) if len(record.updates) > 1 else 0.0
    started = float(record.started[-1, worker])
    parts = [Part("wait", f"worker {worker} starts after the update before", started - before)]
    parts += _forward(job, moments, started, worker, device)
    name, ready = job.items.names[item], float(moments.ready[item, device])
    parts.append(Part("backward", f"to the gradient of {name}", ready - float(moments.forward[device])))
    sent = float(moments.summed[item, worker])
    if job.gather:
        parts.append(Part("sum", f"gradients of {name} of worker {worker}", sent - ready))
    number = (len(job.items.names) - 1 - item) * job.workers + worker
    parts += _transfer(job, job.push, number, "push", name, sent, float(moments.pushed[item, worker]))
    return [*parts, Part("update", f"of {name}", float(job.items.apply_s[item]))]


def _forward(job: Job, moments: Moments, started: float, worker: int, device: int) -> list[Part]:
    """From the start of a step to the end of the way forward on one device."""
    items, done = job.items, float(moments.forward[device])
    since = float(moments.computed_from[device])
    fed = [Part("input", f"examples of worker {worker}", since - started)] if job.inputs else []
    tail = np.cumsum(items.forward_s[::-1])[::-1]
    there = moments.there[:, device]
    waited = there + _slowness(job, moments, device) * tail
    item = int(waited.argmax())
    if waited[item] < done - 1e-12 * done:
        return [*fed, Part("forward", f"all of it on worker {worker}", done - since)]
    number, name = item * job.workers + worker, items.names[item]
    parts = _transfer(job, job.pull, number, "pull", name, started, float(moments.pulled[item, worker]))
    if job.scatter:
        parts.append(Part("pull", f"{name} to the device", float(there[item] - moments.pulled[item, worker])))
    return [*parts, Part("forward", f"from {name} on", done - float(there[item]))]


def _slowness(job: Job, moments: Moments, device: int) -> float:
    """How much longer than planned a device computed."""
    first = int(job.items.ready_s.argmax())
    return float((moments.ready[first, device] - moments.forward[device]) / job.items.ready_s[first])


def _transfer(job: Job, flow: Flow, number: int, kind: str, name: str, sent: float, arrived: float) -> list[Part]:
    """A message, and what it waited for others."""
    route = [job.wires[wire] for wire in flow.routes[number]]
    nbytes, count = float(flow.nbytes[number]), float(flow.counts[number])
    start = end = 0.0
    for wire in route:
        held = count * wire.overhead_s
        start, end = start + held, max(start + held + nbytes / wire.bandwidth, end)
    alone = min(end + sum(wire.latency_s for wire in route), arrived - sent)
    narrowest = max(route, key=lambda wire: count * wire.overhead_s + nbytes / wire.bandwidth, default=None)
    over = f" over {narrowest.name}" if narrowest else ""
    return [Part(kind, f"{name}{over}", alone), Part("queue", f"{name} behind others", arrived - sent - alone)]
