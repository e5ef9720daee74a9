"""An estimated step as StepStats: what the timeline, and every other reader of traces, shows.

Stands for `core/common_runtime/step_stats_collector.cc`. Left out: layers; a device has a way forward and a way back.

Rule: nanoseconds since the start of the run. Only steps whose moments were kept can be shown.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural
from dtflab.hardware.schedule import Schedule
from dtflab.protos.step_stats_pb2 import DeviceStepStats, StepStats
from dtflab.sim.engine.cluster_models import ClusterModel
from dtflab.sim.engine.job import Job
from dtflab.sim.engine.record import Moments, Record
from dtflab.sim.engine.reductions import Reduction


def step_stats(
    job: Job, record: Record, cluster: ClusterModel, step: int = -1, workers: Iterable[int] = range(4)
) -> StepStats:
    """One step of some workers: their GPUs' computing, what each pulls, and what it pushes.

    ValueError for a step that was not kept: `estimate(…, trace=True)` keeps all.
    """
    moments, stats = _kept(record, step), StepStats()
    for worker in workers:
        if worker < job.workers and not np.isnan(record.started[step, worker]):
            started = float(record.started[step, worker])
            for device in np.flatnonzero(job.owner == worker).tolist():
                _device(stats.dev_stats.add(device=cluster.devices[device]), moments, device)
            _messages(stats, job, cluster, moments, worker, started)
    return stats


def of_reduction(
    job: Reduction, record: Record, cluster: ClusterModel, step: int = -1, workers: Iterable[int] = range(4)
) -> StepStats:
    """The trace of a step with an all-reduce: some devices' computing, and each sum from its start to its arrival."""
    moments, stats = _kept(record, step), StepStats()
    for device in workers:
        if device < job.devices:
            added, since = stats.dev_stats.add(device=cluster.devices[device]), 0.0
            _device(added, moments, device)
            for item in reversed(range(len(job.items.names))):
                since = max(since, float(moments.ready[item, device]))
                label = f"sum of {job.items.names[item]} = AllReduce()"
                _span(added, "AllReduce", label, since, since := float(moments.pushed[item, device]), lane=1)
    return stats


def of_schedule(schedule: Schedule) -> StepStats:
    """A step of a pipeline: what each stage computes, and what it receives."""
    stats = StepStats()
    devices = {device: stats.dev_stats.add(device=device) for device, spans in schedule.spans.items() if spans}
    for device, added in devices.items():
        for span in schedule.spans[device]:
            kind = span.name.partition(" ")[0].capitalize()
            _span(added, span.name, f"{span.name} = {kind}()", span.start, span.end)
    for message in schedule.messages:
        if message.hops:
            here, there = message.source_device, message.target_device
            label = _label(message.nbytes, message.source, here, there)
            _span(devices[there], "RecvTensor", label, message.sent, message.arrived)
    return stats


def _kept(record: Record, step: int) -> Moments:
    """The moments of a step. ValueError if they were not kept."""
    assert record.trace is not None
    kept, count = len(record.trace.forward), len(record.started)
    if not -count <= step < count:
        raise ValueError(f"No step has number {step}: the run has {plural(count, 'step')}.")
    row = range(count)[step] - (count - kept)
    if row < 0:
        raise ValueError(f"Only the last step was kept, not step {step}: estimate(…, trace=True) keeps all.")
    return Moments(*(column[row] for column in record.trace))


def _device(stats: DeviceStepStats, moments: Moments, device: int) -> None:
    forward = float(moments.forward[device])
    _span(stats, "forward", "forward = Model()", float(moments.computed_from[device]), forward)
    _span(stats, "backward", "backward = Gradients()", forward, float(moments.ready[:, device].max()))


def _messages(stats: StepStats, job: Job, cluster: ClusterModel, moments: Moments, worker: int, started: float) -> None:
    """Add the messages between a worker's first device and the servers."""
    here = cluster.devices[int(np.flatnonzero(job.owner == worker)[0])]
    by_server = grouped((cluster.servers[server], item) for item, server in enumerate(job.items.server.tolist()))
    received = stats.dev_stats.add(device=here)
    for server, items in by_server.items():
        added = stats.dev_stats.add(device=server)
        for item in items:
            name = job.items.names[item]
            label = _label(job.items.pull_bytes[item], name, server, here)
            _span(received, "RecvTensor", label, started, float(moments.pulled[item, worker]))
            label = _label(job.items.push_bytes[item], f"gradient of {name}", here, server)
            summed, pushed = float(moments.summed[item, worker]), float(moments.pushed[item, worker])
            _span(added, "RecvTensor", label, summed, pushed)


def _label(nbytes: float, tensor: str, source: str, target: str) -> str:
    return f"[{nbytes:.0f}B] {tensor} from {source} to {target}"


def _span(stats: DeviceStepStats, name: str, label: str, start: float, end: float, lane: int = 0) -> None:
    node = stats.node_stats.add(node_name=name, timeline_label=label, thread_id=lane)
    node.all_start_micros, node.all_start_nanos = round(start * 1e6), round(start * 1e9)
    node.op_end_rel_nanos = node.all_end_rel_nanos = round((end - start) * 1e9)
    node.op_end_rel_micros = node.all_end_rel_micros = round((end - start) * 1e6)
