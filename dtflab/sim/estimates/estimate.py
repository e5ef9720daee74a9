"""estimate: how fast a network would train on a cluster, without running either.

Left out: values, and everything before the first and after the last step.

Rule: the engines only simulate; what is asked of a run is read off its Record. The same arguments and the same seed
give the same estimate.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.base.text_table import plural
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Tensor
from dtflab.hardware.machines import Machines
from dtflab.hardware.schedule import Schedule
from dtflab.machine.bfc_allocator import human_bytes
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.sim import models
from dtflab.sim.engine import messages, pipelines, reductions, step_model
from dtflab.sim.engine.cluster_models import ClusterModel, of_machines, whole, without_trees
from dtflab.sim.engine.critical_path import critical_path
from dtflab.sim.engine.fitted import load
from dtflab.sim.engine.job import Input, job
from dtflab.sim.engine.network_profile import Profile
from dtflab.sim.engine.parameters import Parameters
from dtflab.sim.engine.stragglers import Stragglers, exponential
from dtflab.sim.engine.traffic import Array, shards
from dtflab.sim.estimates.answer import Estimate
from dtflab.sim.estimates.estimate_trace import of_reduction, of_schedule, step_stats
from dtflab.train.checkpoints.meta_graph import export_meta_graph
from dtflab.train.checkpoints.meta_graph_import import import_meta_graph

MODES = ("ps_sync", "ps_async", "ps_sync_spares", "allreduce", "model_parallel", "pipeline")
# A mechanism that can be left out, to see what it is worth.
MECHANISMS = ("overlap", "hot_variables", "pcie_tree", "local_aggregation", "stragglers", "rpc", "input")
ENGINES = ("vectorized", "events")
_SERVERS = MODES[:3]
_ONLY = {  # options that only some modes have
    "spares": ("ps_sync_spares",),
    **dict.fromkeys(("strategy", "parts", "local_aggregation", "input", "most_items"), _SERVERS),
    **dict.fromkeys(("algorithm", "fusion_bytes"), ("allreduce",)),
    "micro_batches": ("pipeline",),
}
_MESSAGES = 20_000  # of a step one way: with more, the vectorized engine takes layers together


def estimate(
    model: Any,
    cluster: Any,
    steps: int = 100,
    mode: str = "ps_sync",
    *,
    batch: int | None = None,
    single_gpu_rate: float | None = None,
    spares: int | None = None,
    stragglers: Stragglers | None = None,
    seed: int = 0,
    strategy: str = "greedy",
    parts: int = 1,
    local_aggregation: bool = True,
    input: Input | None = None,
    parameters: Parameters | None = None,
    algorithm: str = "ring",
    fusion_bytes: float = 64 << 20,
    micro_batches: int = 4,
    engine: str | None = None,
    most_items: int | None = None,
    off: Iterable[str] = (),
    trace: bool = False,
) -> Estimate:
    """How fast `model` trains on `cluster`: a dry run of `steps` steps.

    Args:
      model: a name of `sim.models`, a Profile, a Model, or the loss of a graph.
      cluster: a ClusterModel (see `sim.cluster_model`), Machines, or a `Cluster(clock="virtual")`.
      mode: "ps_sync", "ps_async", "ps_sync_spares", which needs `spares`, the number of workers that a step does not
        wait for; "allreduce" by `algorithm` ("ring", "tree", "halving_doubling") of gradients fused up to
        `fusion_bytes`; "model_parallel", or "pipeline" of `micro_batches`, over all devices of the cluster.
      batch: examples per device; by default what the model was built for, 32 for a name.
      single_gpu_rate: measured examples per second of one device, to which op times are scaled.
      parameters: what the library can't know; by default what was fitted to published measurements.
      stragglers, seed: how much longer devices compute by chance, `sim.lognormal(0.2)` or an object of one's own with
        its `factors(steps, devices, seed)`; by default the library's fitted jitter.
      strategy, parts: "greedy" by bytes or "round_robin"; large variables are cut into at most that many parts.
      local_aggregation: a worker with several GPUs pulls once, and pushes the sum of their gradients.
      input: where examples come from, in modes with servers; by default they cost nothing.
      engine: "vectorized", or "events", where every message is one. By default what is quicker; asynchronous
        workers and pipelines have only events.
      most_items: take neighbouring layers' messages to one server together until a worker has at most that many, or one
        for each server. By default the vectorized engine does so above 20,000 messages.
      off: mechanisms to leave out, of MECHANISMS.
      trace: keep the moments of all steps, not of the last alone.

    Raises:
      ResourceExhaustedError: variables, gradients and activations do not fit into a device's memory.
      ValueError: an argument that is not known or that the mode does not have, or numbers that do not go together; it
        says which there are.
    """
    options = locals()  # as they were asked for
    _check_kinds(stragglers=(stragglers, Stragglers), input=(input, Input), parameters=(parameters, Parameters))
    _check_counts(steps=steps, parts=parts, micro_batches=micro_batches)
    _check_counts(**{name: n for name, n in (("batch", batch), ("most_items", most_items)) if n is not None})
    _check_counts(least=0, spares=0 if spares is None else spares, seed=seed)
    left_out, engine = _checked(mode, off, fusion_bytes), _engine(mode, engine)
    _check_meaning(mode, options | {"spares": spares or None})
    given = parameters or _fitted()
    values = dataclasses.replace(given, **{name: 0.0 for off, name in _OFF.items() if off in left_out})
    profile, where = _profile(model, batch), _cluster(cluster)
    profile = profile if single_gpu_rate is None else profile.scaled(single_gpu_rate)
    if "pcie_tree" in left_out:
        where = dataclasses.replace(where, machines=without_trees(where.machines))
    shape = steps, len(where.devices)
    asked = _Asked(profile, where, values, mode, engine, _factors(stragglers, given, shape, seed, left_out), trace)
    if mode in ("model_parallel", "pipeline"):
        return _pipeline(asked, micro_batches if mode == "pipeline" else 1)
    if mode == "allreduce":
        _check_memory(profile, where, dict.fromkeys(where.devices, profile.memory_bytes))
        return _reduction(asked, algorithm, fusion_bytes)
    if "hot_variables" in left_out:
        strategy, parts = "greedy", len(where.servers)
    local_aggregation = local_aggregation and "local_aggregation" not in left_out
    _check_memory(profile, where, _needed(profile, where, strategy, parts))
    required = _required(where, mode, spares, local_aggregation)
    if most_items is None and asked.engine == "vectorized":
        most_items = max(_MESSAGES // len(where.devices), len(where.servers))
    placed = {"strategy": strategy, "parts": parts, "local_aggregation": local_aggregation, "most": most_items}
    return _servers(asked, required, input=None if "input" in left_out else input, **placed)


@dataclass(frozen=True)
class _Asked:
    """The arguments of an estimate in any mode."""

    profile: Profile
    cluster: ClusterModel
    parameters: Parameters
    mode: str
    engine: str
    factors: Array
    trace: bool

    def estimate(self, *found: Any) -> Estimate:
        """The answer; `found` is what the last fields of an Estimate hold."""
        return Estimate(self.profile.name, self.mode, self.engine, self.cluster, self.profile.batch, *found)


def _servers(asked: _Asked, required: int, **options: Any) -> Estimate:
    """The estimate with parameter servers."""
    ready = job(asked.profile, asked.cluster, asked.parameters, **options)
    if asked.mode == "ps_async":
        record = messages.asynchronous(ready, asked.factors, asked.trace)
    else:
        engine = messages if asked.engine == "events" else step_model
        record = engine.synchronous(ready, asked.factors, required, asked.trace)
    path = functools.partial(critical_path, ready, record, required)
    stats = functools.partial(step_stats, ready, record, asked.cluster)
    return asked.estimate(ready.items.compute_s, [wire.name for wire in ready.wires], record, path, stats)


def _reduction(asked: _Asked, algorithm: str, fusion_bytes: float) -> Estimate:
    """The estimate with an all-reduce."""
    ready = reductions.reduction(asked.profile, asked.cluster, asked.parameters, algorithm, fusion_bytes)
    run = reductions.messages_one_by_one if asked.engine == "events" else reductions.synchronous
    record = run(ready, asked.factors, asked.trace)
    path = functools.partial(reductions.critical_path, ready, record)
    stats = functools.partial(of_reduction, ready, record, asked.cluster)
    return asked.estimate(ready.items.compute_s, [wire.name for wire in ready.wires], record, path, stats)


def _pipeline(asked: _Asked, micro_batches: int) -> Estimate:
    """One network over all devices; the schedule knows only events."""
    ready = pipelines.pipeline(asked.profile, asked.cluster, asked.parameters, micro_batches)
    _check_memory(asked.profile, asked.cluster, {stage.device: stage.memory_bytes for stage in ready.stages})
    record, schedule = pipelines.run(ready, asked.factors)
    alone = asked.profile.times(asked.cluster.processor, asked.parameters.flop_efficiency)
    compute_s = sum(time.forward + time.backward for time in alone)
    path = functools.partial(pipelines.critical_path, schedule)
    stats = functools.partial(_last_step, schedule, len(record.steps))
    return asked.estimate(compute_s, [link.short for link in ready.fabric.links], record, path, stats)


def _last_step(schedule: Schedule, steps: int, step: int, _: Iterable[int]) -> StepStats:
    """All stages of the only step of which a schedule is kept."""
    if step not in (-1, steps - 1):
        raise ValueError(f"Only the last step of a pipeline is kept, not step {step}.")
    return of_schedule(schedule)


_OFF = {"overlap": "overlap", "rpc": "message_s"}


def _engine(mode: str, asked: str | None) -> str:
    """The engine that simulates a mode."""
    there = ("events",) if mode in ("ps_async", "model_parallel", "pipeline") else ENGINES
    if asked is not None and asked not in there:
        raise ValueError(f"engine={asked!r} does not simulate mode {mode!r}: take {' or '.join(map(repr, there))}.")
    return asked or there[0]


def _checked(mode: str, off: Iterable[str], fusion_bytes: Any) -> frozenset[str]:
    mechanisms = list(off) if isinstance(off, Iterable) and not isinstance(off, str) else [off]
    for what, given, known in (("mode", [mode], MODES), ("off", mechanisms, MECHANISMS)):
        if unknown := [one for one in given if one not in known]:
            raise ValueError(f"{what}={unknown[0]!r} is not known; there are {', '.join(known)}.")
    if not (isinstance(fusion_bytes, Real) and float(fusion_bytes) >= 0):
        raise ValueError(f"fusion_bytes={fusion_bytes!r} is not a number of at least 0.")
    return frozenset(mechanisms)


def _check_counts(least: int = 1, **given: Any) -> None:
    """Options that count something, from `least` up."""
    for what, number in given.items():
        whole(what, number, least)


def _check_meaning(mode: str, given: Mapping[str, Any]) -> None:
    """ValueError for an option that the mode does not have, and that is not what it is by default."""
    defaults = inspect.signature(estimate).parameters
    for what, modes in _ONLY.items():
        if mode not in modes and given[what] != defaults[what].default:
            there = " or ".join(map(repr, modes))
            raise ValueError(f"{what}={given[what]!r} has no meaning in mode {mode!r}: take {there}.")


def _check_kinds(**given: tuple[Any, type]) -> None:
    """Options that are objects: each with the class that it must be of, or like, if it is given."""
    for what, (value, kind) in given.items():
        fits = hasattr(value, "factors") if kind is Stragglers else isinstance(value, kind)
        if value is not None and not fits:
            example = "sim.lognormal(0.2)" if kind is Stragglers else f"a sim.{kind.__name__}(…)"
            raise TypeError(f"{what} must be like {example}, not {value!r}.")


def _profile(model: Any, batch: int | None) -> Profile:
    """The profile of what `estimate` takes as a model, at the batch size that is asked for."""
    if isinstance(model, str):
        return _named(model, 32 if batch is None else batch)
    loss = model if isinstance(model, Tensor | Profile) else getattr(model, "loss", None)
    if loss is None:
        raise TypeError(f"model must be a name of sim.models, a sim.Profile or the loss of a graph, not {model!r}.")
    profile = loss if isinstance(loss, Profile) else _of_graph(loss, batch)
    return profile if batch in (None, profile.batch) else profile.with_batch(batch)


def _of_graph(loss: Tensor, batch: int | None) -> Profile:
    """The profile of a graph; `batch` is asked for only if its shapes don't say how many examples a step takes."""
    try:
        return Profile.from_graph(_copied(loss))
    except ValueError:
        if batch is None:
            raise
    try:
        fed = _copied(loss, batch)
    except ValueError:  # somewhere the graph says that an input is not a batch of examples
        fed = _copied(loss)
    return Profile.from_graph(fed, batch=batch)


def _copied(loss: Tensor, batch: int = -1) -> Tensor:
    """The loss in a copy of its graph, whose inputs have `batch` examples if it leaves open how many they are.

    The step that is priced is made there: a question changes nobody's graph, not even a finalized one.
    """
    meta_graph = export_meta_graph(graph=loss.graph)
    for node in meta_graph.graph_def.node:
        given = [node.attr["shape"].shape] if node.op.startswith("Placeholder") else []
        for shape in node.attr["output_shapes"].list.shape if node.op == "IteratorGetNext" else given:
            if shape.dim and shape.dim[0].size < 0:
                shape.dim[0].size = batch
    with Graph().as_default() as copy:
        import_meta_graph(meta_graph)
        return copy.get_tensor_by_name(loss.name)


@functools.cache
def _fitted() -> Parameters:
    """The parameters that `calibrate` found for the library."""
    return load().library


@functools.lru_cache(maxsize=32)
def _named(name: str, batch: int) -> Profile:
    """The profile of a known network; building its graph takes a second or so."""
    return dataclasses.replace(Profile.from_graph(models.get(name)(batch).loss), name=name)


def _cluster(given: Any) -> ClusterModel:
    if isinstance(given, ClusterModel):
        return given
    machines = given if isinstance(given, Machines) else getattr(given, "machines", None)
    if not isinstance(machines, Machines):
        raise TypeError(f"cluster must be sim.cluster_model(…), Machines or Cluster(clock='virtual'), not {given!r}.")
    return of_machines(machines)


def _needed(profile: Profile, cluster: ClusterModel, strategy: str, parts: int) -> dict[str, float]:
    """Bytes on each device: servers hold the variables, and workers what a step fetches of them and makes of that."""
    needed: dict[str, float] = dict.fromkeys(cluster.devices, profile.fetched_memory_bytes)
    for each in shards(profile, len(cluster.servers), strategy, parts):
        for shard in each:
            server = cluster.servers[shard.server]
            needed[server] = needed.get(server, 0) + shard.bytes
    return needed


def _check_memory(profile: Profile, cluster: ClusterModel, needed: Mapping[str, float]) -> None:
    """Raise ResourceExhaustedError if what is needed does not fit into every device."""
    for device, nbytes in needed.items():
        there = cluster.machines.processor(device)[0]
        if nbytes > there.memory_bytes:
            needs, has = human_bytes(math.ceil(nbytes)), human_bytes(there.memory_bytes)
            raise errors.ResourceExhaustedError.of(
                f"OOM when training {profile.name} with a batch of {profile.batch} on {device}: it needs {needs}, "
                f"{there.name} has {has}. Take a smaller batch, more devices or larger ones."
            )


def _required(cluster: ClusterModel, mode: str, spares: int | None, local_aggregation: bool) -> int:
    """How many workers' gradients a step needs."""
    workers = len(cluster.gpus) if local_aggregation else len(cluster.devices)
    if spares is None and mode == "ps_sync_spares":
        raise ValueError(
            f"mode='ps_sync_spares' needs spares=..., how many of the {plural(workers, 'worker')} a step does not wait "
            f"for: from 0 to {workers - 1}, for example spares={min(1, workers - 1)}."
        )
    if not 0 <= (spares or 0) < workers:
        raise ValueError(f"Of {plural(workers, 'worker')} {spares} can't be spares: at least one must be waited for.")
    return workers - (spares or 0)


def _factors(
    given: Stragglers | None, values: Parameters, shape: tuple[int, int], seed: int, left_out: frozenset[str]
) -> Array:
    """How much longer than planned each device computes in each step."""
    if "stragglers" in left_out:
        return np.ones(shape)
    if given is not None:
        return given.factors(*shape, seed)
    # A measured rate of one device has its jitter in it: only the differences are added.
    return exponential(values.jitter).factors(*shape, seed) / (1 + values.jitter)
