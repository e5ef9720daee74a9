"""what_if: one step of a program again, on other hardware, with more workers, with another batch.

Stands for nothing in TensorFlow. Left out: what clients do between steps, memory, and the steps before and after; of
several workers, each makes one step, and all begin at once.

Rules: a step is read once (`step_graph`) and simulated as often as one likes (`hardware/schedule.py`). The base is what
the virtual runner does without stragglers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from dtflab.base.garbage import NO_COLLECTION
from dtflab.base.text_table import plural
from dtflab.graph import device_spec
from dtflab.graph.operation import Operation, Tensor
from dtflab.hardware.machines import Machines, task_of
from dtflab.hardware.parts import Bus, Network, Nic, Processor
from dtflab.hardware.schedule import Plan
from dtflab.protos.config_pb2 import RunMetadata, RunOptions
from dtflab.runtime.session import BaseSession
from dtflab.sim.engine.cluster_models import whole
from dtflab.sim.engine.stragglers import Stragglers
from dtflab.sim.what_ifs.changed_job import altered, first_worker, is_factor, with_local, with_workers
from dtflab.sim.what_ifs.outcomes import Outcome, Outcomes, table
from dtflab.sim.what_ifs.step_graph import StepGraph, planned, remembered, traced
from dtflab.sim.what_ifs.step_tasks import StepFabric, computes, copy_of, plain, replicas, tasks_of
from dtflab.virtual.clock import VirtualClock


def what_if(
    of: Any,
    cluster: Any = None,
    *,
    fetches: Any = None,
    feed_dict: Mapping[Any, Any] | None = None,
    batch: int | None = None,
    master: str | None = None,
    measured: bool | None = None,
    placer: Any = None,
) -> WhatIf:
    """Prepare a step to be simulated on other hardware.

    Args:
      of: a Session, in which a step of `fetches` and `feed_dict` is run and traced; the RunMetadata of a step that ran
        with FULL_TRACE and output_partition_graphs, here or in TensorFlow; or what a step would fetch (tensors and
        operations of one graph), which is placed as a session of `master` would place it, and never run.
      cluster: the hardware: a `Cluster(clock="virtual")`, Machines, or a `sim.cluster_model`. By default that of the
        session's cluster. A session without a cluster runs where the first worker is.
      batch: how many examples are in the step; by default the first dimension of all that is fed, 32 if a step that
        never runs leaves that open. Without any, throughput counts steps.
      master: the task whose client runs the step, "/job:worker/task:0"; by default the session's, the one that fed or
        fetched, or the first worker.
      measured: take the times that were measured, in the ratio of the models on other hardware; by default of sessions
        in real time, whose kernels NumPy computes.
      placer: of a step that is not run, as in `Session(placer=…)`.

    Raises:
      ValueError: something is missing; the message says what, and how to get it. TypeError: `of` is not one of these.
    """
    own = None if master is None else task_of(master)
    batch = None if batch is None else whole("batch", batch)
    if isinstance(of, BaseSession):
        return _of_session(of, cluster, fetches, feed_dict, batch, own, measured)
    if fetches is not None or feed_dict is not None:
        raise ValueError("fetches and feed_dict are only used with a session. For a planned step, give batch=.")
    if cluster is None:
        raise ValueError("what_if needs hardware: what_if(…, cluster), a Cluster, Machines or a sim.cluster_model.")
    machines = _machines(cluster)
    if hasattr(of, "partition_graphs"):
        return WhatIf(traced(of, own, batch, bool(measured)), machines)
    wanted = list(of) if isinstance(of, list | tuple) else [of]
    if not wanted or not all(isinstance(one, Tensor | Operation) for one in wanted):
        raise TypeError(f"what_if needs a Session, RunMetadata, or tensors and operations, not {of!r}.")
    fetched = [one.name for one in wanted if isinstance(one, Tensor)]
    targets = [one.name for one in wanted if isinstance(one, Operation)]
    own = own or first_worker(machines)
    return WhatIf(planned(wanted[0].graph, fetched, targets, machines, own, batch, placer), machines)


def _of_session(
    session: Any, cluster: Any, fetches: Any, feed_dict: Any, batch: int | None, own: str | None, measured: bool | None
) -> WhatIf:
    """Run a step, keep all that can be known of it, and prepare that."""
    if fetches is None:
        raise ValueError("what_if needs what the step fetches: give what_if(session, fetches=…, feed_dict=…).")
    options = RunOptions(trace_level=RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = RunMetadata()
    session.run(fetches, feed_dict, options=options, run_metadata=metadata)
    master = session.master_session().master
    world = master.clock.world if isinstance(master.clock, VirtualClock) else None
    if cluster is None and world is None:
        raise ValueError("A session in real time says no hardware: give what_if(session, cluster, fetches=…).")
    real = world is None if measured is None else measured
    return WhatIf(traced(metadata, own or master.task, batch, real), _machines(world if cluster is None else cluster))


def _machines(cluster: Any) -> Machines:
    machines = cluster if isinstance(cluster, Machines) else getattr(cluster, "machines", None)
    if not isinstance(machines, Machines):
        raise TypeError(f"cluster must be Cluster(clock='virtual'), Machines or sim.cluster_model(…), not {cluster!r}.")
    return machines


class WhatIf:
    """A step, ready to be simulated; `base` is how it is. `step` says what runs where, `machines` on what."""

    def __init__(self, step: StepGraph, machines: Machines) -> None:
        self.step = step
        self.machines = machines = with_local(machines, step.master)
        self._plans: dict[tuple[int, int | None], Plan] = {}
        for device in dict.fromkeys(node.device for node in step.nodes):
            machines.place(device)  # ValueError if it is not there

    def __repr__(self) -> str:
        return f"<WhatIf: a step of {plural(len(self.step.nodes), 'node')}, {self.base.makespan:.6g} s>"

    @cached_property
    def base(self) -> Outcome:
        """The step as it is."""
        return self._run({}, self.machines, 1, self.step.batch, None, 0)

    def run(
        self,
        *,
        network: str | float | Nic | Network | None = None,
        latency: float | None = None,
        bus: str | float | Bus | None = None,
        gpu: str | float | Processor | None = None,
        cpu: str | float | Processor | None = None,
        workers: int | None = None,
        batch: int | None = None,
        stragglers: Stragglers | Mapping[str, float] | None = None,
        seed: int = 0,
    ) -> Outcome:
        """The step if something were otherwise; what is None is as it is.

        Args:
          network, bus, gpu, cpu: a name, a part, or how many times as fast as now: `network="1Gb/s"`, `gpu=2.0`.
          latency: how many times as long the latencies of network and bus are; 0: none.
          workers: that many workers, each a copy of the step's master, make the same step, beginning at once. Hosts
            that are not there yet are like the first one's.
          batch: examples per worker, where no op has a fixed batch size.
          stragglers: a distribution (`sim.lognormal(0.2)`), from which `seed` draws a factor for what each worker's
            own task computes; or factors by name of task or device.

        Raises:
          ValueError: unknown names, numbers that can't be, a batch or a number of workers that can't be changed.
        """
        asked: dict[str, Any] = {"network": network, "latency": latency, "bus": bus, "gpu": gpu, "cpu": cpu}
        count = 1 if workers is None else whole("workers", workers)
        size = self.step.batch if batch is None else whole("batch", batch)
        if size is not None and size != self.step.batch:
            self.step.check_batch(size)
        machines = altered(self._populated(count), **asked)
        asked |= {"workers": workers, "batch": batch, "stragglers": stragglers}
        if stragglers is not None and not isinstance(stragglers, Mapping):
            asked["seed"] = seed = whole("seed", seed, 0)
        changes = {what: value for what, value in asked.items() if value is not None}
        with NO_COLLECTION:  # thousands of spans, which stay
            return self._run(changes, machines, count, size, stragglers, seed)

    def sweep(self, **values: Any) -> Outcomes:
        """An outcome for each value of one thing: `sweep(workers=[1, 2, 4, 8])`; others may stand, `network="1Gb/s"`.

        ValueError if not exactly one thing has several values.
        """
        several = [what for what, value in values.items() if _several(value)]
        if len(several) != 1:
            found = " and ".join(several) or "none"
            raise ValueError(f"A sweep varies one parameter, such as workers=[1, 2, 4]; given: {found}.")
        (what,) = several
        return Outcomes(self.run(**values | {what: value}) for value in values[what])

    def table(self, **values: Any) -> str:
        """A sweep as text, below the base: `print(w.table(network=["1Gb/s", "10Gb/s"]))`."""
        return table([self.base, *self.sweep(**values)])

    def _populated(self, workers: int) -> Machines:
        """Machines for that many workers."""
        job = copy_of(self.step.master, 0)
        peers = [task for task in self.step.tasks if copy_of(task, 0) == job]
        if workers > 1 and len(peers) > 1:
            raise ValueError(
                f"The step computes on {len(peers)} tasks of one job ({', '.join(peers)}). Only the step of one worker "
                "can be copied: build the graph for one, as between-graph replication does."
            )
        return self.machines if workers == 1 else with_workers(self.machines, self.step.master, workers)

    def _run(
        self,
        changes: Mapping[str, Any],
        machines: Machines,
        workers: int,
        batch: int | None,
        stragglers: Any,
        seed: int,
    ) -> Outcome:
        plan = self._plan(workers, batch)
        slow = self._slowness(stragglers, seed, plan.devices, workers)
        times = [self._times(machines, device, batch) for device in plan.devices]
        seconds = [times[d].get(plain(name), 0.0) * slow[d] for name, d in zip(plan.names, plan.where, strict=True)]
        return Outcome(changes, workers, batch, plan.run(StepFabric(machines, plan.devices), seconds), self)

    def _plan(self, workers: int, batch: int | None) -> Plan:
        def made() -> Plan:
            return Plan([task for one in replicas(self.step, workers) for task in tasks_of(self.step, one, batch)])

        return remembered(self._plans, (workers, batch), made)

    def _times(self, machines: Machines, device: str, batch: int | None) -> dict[str, float]:
        """The seconds of the nodes on a device; nothing computes where calls come and go."""
        if not computes(device):
            return {}
        return self.step.times(machines.processor(device)[0], self.machines, batch)

    def _slowness(self, stragglers: Any, seed: int, devices: Sequence[str], workers: int) -> list[float]:
        """By how much each device computes longer."""
        if stragglers is None:
            return [1.0] * len(devices)
        if not isinstance(stragglers, Mapping):
            if not hasattr(stragglers, "factors"):
                raise ValueError(
                    f"stragglers={stragglers!r}: give a distribution, such as sim.lognormal(0.2), or a factor by name, "
                    'such as {"/job:worker/task:1": 2.0}.'
                )
            drawn = stragglers.factors(1, workers, seed)[0].tolist()
            stragglers = {one.master: drawn[i] for i, one in enumerate(replicas(self.step, workers))}
        factors = [1.0] * len(devices)
        for name, factor in stragglers.items():
            for i in _hit(name, factor, devices):
                factors[i] *= factor
        return factors


def _hit(name: str, factor: Any, devices: Sequence[str]) -> list[int]:
    """Which devices a name means."""
    hit = [i for i, device in enumerate(devices) if device_spec.matches(name, device)]
    if not hit or not is_factor(factor) or not 0 <= factor < float("inf"):
        known = ", ".join(filter(computes, devices))
        raise ValueError(
            f"stragglers={{{name!r}: {factor!r}}}: name a task or device of the step, and how many times as long it "
            f"computes. There are {known}."
        )
    return hit


def _several(value: Any) -> bool:
    """True for a list of values, of whatever kind; names and factors by name are one."""
    return isinstance(value, Iterable) and not isinstance(value, str | Mapping)
