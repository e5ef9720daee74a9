"""Spreading: place clusters on devices so that clusters that could run at the same time do.

Stands for nothing in TensorFlow. Rules: first each cluster has a device to itself, which shows when it would be busy
without contention. Then time is cut into slices; a slice takes as long as the busiest device needs for its work, and
clusters are moved repeatedly to where the sum of all slices and of all transfers is the least. This is an estimate: the
judge decides how good the result is.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from dtflab.hardware.machines import Machines
from dtflab.hardware.schedule import Fabric
from dtflab.placement.clusters import Clusters
from dtflab.placement.earliest_finish import mean_transfer

SLICES = 200
SWEEPS = 8


def spread(clusters: Clusters, busy: np.ndarray, devices: list[int]) -> list[int]:
    """A device for each cluster: of `devices` if it may be there, else its first; `busy` is what `busy_alone` says."""
    slices = _Slices(clusters, busy, devices)
    for cluster in np.argsort(-slices.busy.sum(axis=1), kind="stable"):
        slices.put(int(cluster))
    for _ in range(SWEEPS):
        before = list(slices.where)
        for cluster in range(len(before)):
            slices.take(cluster)
            slices.put(cluster)
        if slices.where == before:
            break
    return slices.where


class _Slices:
    """How long each device works in each slice of time, for the clusters that are on it so far."""

    def __init__(self, clusters: Clusters, busy: np.ndarray, devices: list[int]) -> None:
        problem = clusters.problem
        self.busy = busy
        self.choices = [[d for d in devices if d in found] or found[:1] for found in clusters.candidates]
        total = [sum(times) for times in problem.seconds]
        self.slowness = [seconds / total[devices[0]] if total[devices[0]] else 1.0 for seconds in total]
        self.load = np.zeros((len(problem.devices), SLICES))
        self.sent = clusters.bytes_between() * mean_transfer(problem)[0]
        self.where = [-1] * len(self.choices)

    def take(self, cluster: int) -> None:
        """Take a cluster off its device."""
        device, self.where[cluster] = self.where[cluster], -1
        self.load[device] -= self.busy[cluster] * self.slowness[device]

    def put(self, cluster: int) -> None:
        """Put a cluster on the device where it costs least; of equal devices, on the first."""
        where = np.array(self.where)
        highest = self.load.max(axis=0)
        apart = self.sent[cluster] * (where >= 0)

        def cost(device: int) -> float:
            load = self.load[device] + self.busy[cluster] * self.slowness[device]
            return float(np.maximum(highest, load).sum() + apart[where != device].sum())

        device = min(self.choices[cluster], key=cost)
        self.where[cluster] = device
        self.load[device] += self.busy[cluster] * self.slowness[device]


def busy_alone(clusters: Clusters, like: int) -> np.ndarray:
    """Seconds that each cluster works in each slice of time, if each had a device like number `like` to itself."""
    problem, count = clusters.problem, len(clusters.members)
    fabric = _one_each(problem.fabric, problem.devices[like], count)
    of_unit = clusters.assignment(list(range(count)))
    schedule = problem.plan.run(fabric, problem.seconds[like], [of_unit[unit] for unit in problem.unit_of])
    problem.spent += schedule.events
    spans = [span for spans in schedule.spans.values() for span in spans]
    rows = np.array([fabric.numbers[span.device] for span in spans], int)
    edges = np.linspace(0.0, schedule.makespan, SLICES + 1)
    done = np.zeros((count, SLICES + 1))
    for bound, sign in ((np.array([s.start for s in spans]), 1.0), (np.array([s.end for s in spans]), -1.0)):
        # Seconds since a start, less those since the end, up to each edge.
        np.add.at(done, rows, sign * np.maximum(edges[None, :] - bound[:, None], 0.0))
    return np.diff(done, axis=1)


def _one_each(fabric: Fabric, device: str, count: int) -> Fabric:
    """A host like that of `device`, with as many devices like it."""
    processor, host = fabric.machines.processor(device)
    wide = dataclasses.replace(host, gpus=(processor,) * count)
    task = device.rpartition("/device:")[0]
    machines = Machines([wide], fabric.machines.network, {task: wide.name})
    return Fabric(machines, [f"{task}/device:GPU:{i}" for i in range(count)])
