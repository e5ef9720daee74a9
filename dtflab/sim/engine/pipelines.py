"""Pipelines: one network cut into stages over the devices, micro-batches behind each other, in modelled time.

Stands for GPipe's schedule; with one micro-batch it is plain model parallelism. Left out: layers that run next to each
other, and cells of several layers at different words, which only the graph itself shows.

Rules. A stage is a run of layers, cut so that all take about equally long. All micro-batches go forward before the
first goes back; variables are updated at the end, and the next step begins when all are. What waits for what on which
link is decided by `hardware/schedule.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dtflab.base.text_table import plural
from dtflab.hardware.schedule import Fabric, Message, Plan, Schedule, Span, Task
from dtflab.sim.engine.cluster_models import ClusterModel, reached
from dtflab.sim.engine.critical_path import Part
from dtflab.sim.engine.layer_costs import LayerTime
from dtflab.sim.engine.network_profile import Profile
from dtflab.sim.engine.parameters import Parameters
from dtflab.sim.engine.record import Record
from dtflab.sim.engine.traffic import Array


class Stage(NamedTuple):
    """Layers on one device: seconds for the whole batch, and what it sends on."""

    device: str
    forward: float
    backward: float
    update: float
    output_bytes: int
    kept: int  # bytes of its variables
    memory_bytes: int  # of these, their gradients, and what the way forward leaves for the way back


@dataclass(frozen=True)
class Pipeline:
    """Stages on the devices of a cluster."""

    batch: int
    stages: list[Stage]
    plan: Plan
    fabric: Fabric

    def schedule(self, slow: Array) -> Schedule:
        """One step, whose devices compute `slow[device]` times as long as planned."""
        number = {stage.device: k for k, stage in enumerate(self.stages)}
        factors = [float(slow[number[device]]) for device in self.plan.devices]
        seconds = [s * factors[where] for s, where in zip(self.plan.seconds, self.plan.where, strict=True)]
        return self.plan.run(self.fabric, seconds)


def pipeline(profile: Profile, cluster: ClusterModel, parameters: Parameters, micro_batches: int = 1) -> Pipeline:
    """The pipeline of `profile` over all devices of `cluster`, in their order.

    ValueError if it has fewer layers than there are devices, does not say how large its layers' outputs are, or its
    batch has fewer examples than micro-batches.
    """
    devices, processor = cluster.devices, cluster.machines.processor
    _check(profile, len(devices), micro_batches)
    per_device = [profile.times(processor(device)[0], parameters.flop_efficiency) for device in devices]
    number = stages_of([time.forward + time.backward for time in per_device[0]], len(devices))
    stages = [
        _stage(profile, device, times, [layer for layer, k in enumerate(number) if k == stage])
        for stage, (device, times) in enumerate(zip(devices, per_device, strict=True))
    ]
    plan = Plan(list(_tasks(stages, micro_batches)))
    return Pipeline(profile.batch, stages, plan, Fabric(reached(cluster.machines, parameters), plan.devices))


def stages_of(seconds: Sequence[float], stages: int) -> list[int]:
    """The stage of each layer: runs of about equal time, none of them empty."""
    middle = np.cumsum(seconds) - np.array(seconds) / 2
    number: list[int] = []
    for layer, share in enumerate(middle / (sum(seconds) or 1.0)):
        before = number[-1] if number else -1
        least = max(before, 0, stages - len(seconds) + layer)  # as many layers must be left as stages
        number.append(min(max(int(share * stages), least), before + 1))
    return number


def run(job: Pipeline, factors: Array) -> tuple[Record, Schedule]:
    """Steps one after the other, and the schedule of the last; `factors[step, device]` as in `step_model`."""
    schedules = [job.schedule(slow) for slow in factors]
    steps = np.array([one.makespan for one in schedules])
    ends = np.cumsum(steps)
    computing = np.array([sum(one.busy[stage.device] for one in schedules) for stage in job.stages])
    links = list(job.fabric.links)
    busy = np.array([sum(one.link_busy.get(link, 0.0) for one in schedules) for link in links])
    nothing = np.zeros((len(steps), 0))
    record = Record(
        updates=ends,
        steps=steps,
        seconds=float(ends[-1]),
        examples=float(len(steps) * job.batch),
        computing=computing,
        busy=busy,
        staleness=np.zeros(len(steps), int),
        started=nothing,
        ended=nothing,
    )
    return record, schedules[-1]


def _check(profile: Profile, stages: int, micro_batches: int) -> None:
    if len(profile.layers) < stages:
        raise ValueError(f"{profile.name} has {plural(len(profile.layers), 'layer')}: too few for {stages} stages.")
    if not 1 <= micro_batches <= profile.batch:
        raise ValueError(f"A batch of {profile.batch} can't be cut into {micro_batches} micro-batches.")
    if unknown := [layer.name for layer in profile.layers[:-1] if layer.output_bytes is None]:
        raise ValueError(f"{profile.name} does not say how large the output of {unknown[0]} is: it can't be cut there.")


def _stage(profile: Profile, device: str, times: Sequence[LayerTime], members: Sequence[int]) -> Stage:
    forward, backward, update = np.sum([times[layer] for layer in members], axis=0).tolist()
    part = replace(profile, layers=tuple(profile.layers[layer] for layer in members))
    output_bytes = part.layers[-1].output_bytes or 0
    return Stage(device, forward, backward, update, output_bytes, part.variable_bytes, part.memory_bytes)


def _tasks(stages: Sequence[Stage], micro_batches: int) -> Iterator[Task]:
    """Forward and backward of each micro-batch on each stage, then the updates."""
    last = len(stages) - 1
    for k, stage in enumerate(stages):
        outputs = (round(stage.output_bytes / micro_batches),)
        back = (round(stages[k - 1].output_bytes / micro_batches),) if k else (0,)
        for m in range(micro_batches):
            inputs = [(f"forward {k - 1}/{m}", 0)] if k else []
            yield Task(f"forward {k}/{m}", stage.device, stage.forward / micro_batches, inputs, (), outputs)
            inputs = [(f"forward {k}/{m}", 0)] + ([(f"backward {k + 1}/{m}", 0)] if k < last else [])
            wait = [f"forward {k}/{micro_batches - 1}"]
            yield Task(f"backward {k}/{m}", stage.device, stage.backward / micro_batches, inputs, wait, back)
        controls = [f"backward {k}/{m}" for m in range(micro_batches)]
        yield Task(f"update {k}", stage.device, stage.update, (), controls, (), stage.kept)


def critical_path(schedule: Schedule) -> list[Part]:
    """The chain of tasks and messages that the end of a step waited for."""
    return [_part(each) for each in schedule.critical_path]


def _part(each: Span | Message) -> Part:
    if isinstance(each, Span):
        return Part(each.name.partition(" ")[0], f"{each.name} on {each.device}", each.end - each.start)
    narrowest = max(each.hops, key=lambda hop: hop.end - hop.start).link.short
    return Part("push", f"output of {each.source} over {narrowest}", each.arrived - each.sent)
