"""Predict: what the model of a step says of a published measurement's setup, in the measurement's metric and unit.

Stands for the guess that one makes before renting machines. Left out: real input data, and what nobody published: a
field that is missing gets the default that stands next to its use, or the point is skipped with a reason.

Rule: names of models and platforms are keys of tables, nothing else. A point's published value is not here at all.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dtflab.hardware import catalogue
from dtflab.sim.engine.fitted import Fitted
from dtflab.sim.engine.network_profile import Profile
from dtflab.sim.predictions import recurrent, setups, symmetric
from dtflab.sim.predictions.layers import Layer, layers_of, of_bytes, profile_of
from dtflab.sim.predictions.points import Point, Points, PredictionError, Row

ALIKE = 1.5  # GPUs whose peaks differ by less are taken to be of one generation, so one's rates predict the other's
GRPC = 6e9  # B/s through a host's TCP and gRPC, whatever its cards: assumed where a platform's own was not fitted
EXACT = 1e-6  # relative: of the time of one GPU
HOST_CPU = "2x Xeon E5-2690 v3"  # assumed where GPUs are hosted: no platform says its CPU


@dataclass(frozen=True)
class Question:
    """A setup in the words of the model: one GPU's computing, what travels, where, and how."""

    compute_s: float  # of one GPU and one step
    examples: float  # of one GPU and one step, in what the unit counts
    layers: tuple[Layer, ...]
    site: symmetric.Site
    collective: str = ""  # "ring", "halving", "tree" or COPIES; else parameter servers
    sync: bool = True

    @property
    def step_s(self) -> float:
        """Seconds of a step; of one worker's if it waits for nobody."""
        if self.collective == setups.COPIES:
            return symmetric.copied_step(self.compute_s, self.layers, self.site)
        if self.collective:
            return symmetric.all_reduce_step(self.compute_s, self.layers, self.site, self.collective)
        step = symmetric.parameter_server_step if self.sync else symmetric.asynchronous_step
        return step(self.compute_s, self.layers, self.site)

    @property
    def alone(self) -> Question:
        """One GPU without a network: what is measured where a rate of one GPU is published."""
        one = replace(self.site, hosts=1, gpus=1, nic=math.inf, servers=0, spares=0, crowding=0.0, in_halves=False)
        return replace(self, site=one, sync=True)

    def measured(self) -> Question:
        """The question with less computing: one GPU's whole step takes the time that its computing alone takes now."""
        return replace(self, compute_s=_computing(self.alone))

    @property
    def gpus(self) -> int:
        """GPUs that are waited for."""
        return (self.site.hosts - self.site.spares) * self.site.gpus

    def with_spares(self, spares: int) -> Question:
        """The question with that many spare workers; no step waits for these."""
        hosts = self.site.hosts - self.site.spares + spares
        return replace(self, site=replace(self.site, hosts=hosts, spares=spares))


@functools.lru_cache(1024)
def _computing(alone: Question) -> float:
    """The computing in one GPU's step, which `alone` takes to be all of it; many setups have it in common."""
    compute_s = alone.compute_s
    for _ in range(20):
        late = replace(alone, compute_s=compute_s).step_s - alone.compute_s
        if abs(late) < EXACT * alone.compute_s:
            break
        compute_s = max(0.0, compute_s - late)
    return compute_s


class Rate(NamedTuple):
    """A measured rate of one GPU, whose `peak` is in FLOP/s of float32."""

    peak: float
    precision: str
    per_second: float


@dataclass(frozen=True)
class Predictor:
    """Fitted parameters, and what is known besides: all models' rows, and rates of one GPU by model.

    `references` are shipped points with what was published of each, and `asked` the points of the file, both by id.

    `off` are mechanisms that are switched off: "overlap", "hot_variables", "pcie_tree", "local_aggregation",
    "stragglers", "messages", "board_sharing".
    """

    fitted: Fitted
    rows: tuple[Row, ...] = ()
    rates: dict[str, list[Rate]] = field(default_factory=dict)
    references: dict[str, tuple[Point, float]] = field(default_factory=dict)
    asked: dict[str, Point] = field(default_factory=dict)
    off: frozenset[str] = frozenset()
    profiles: dict[tuple[object, ...], Profile] = field(default_factory=dict)  # that were made before

    def __call__(self, point: Point) -> float:
        """The prediction, in the point's unit. Raises PredictionError with a reason."""
        base = re.fullmatch(r"scaling_efficiency_vs_(\d+)", point.metric)
        if base:
            return self._efficiency_from(point, int(base[1]))
        if point.metric not in METRICS:
            raise PredictionError(f"metric {point.metric!r} is not known: {', '.join(METRICS)}")
        return METRICS[point.metric](self, point)

    # ---- the setup ----

    def question(self, point: Point, **changed: object) -> Question:
        """The point's setup, with some of its fields `changed`."""
        point = replace(point, setup=replace(point.setup, values={**point.setup.values, **changed}))
        hosts, gpus = setups.hosts_of(point)
        site = self._site(point, hosts, gpus)
        if point.setup.text("kind"):
            return Question(0.0, 1.0, setups.null_layers(point.setup, max(1, site.servers)), site)
        sync = point.setup.flag("sync", default=True) and "async" not in point.setup.text("sync", "kvstore")
        examples = setups.batch_of(point) * setups.units_of(point)
        question = Question(0.0, examples, self._layers(point), site, setups.collective_of(point), sync)
        computed = replace(question, compute_s=self._compute_s(point, question))
        return computed.measured() if _is_measured(point) else computed

    def _site(self, point: Point, hosts: int, gpus: int) -> symmetric.Site:
        setup, library, row = point.setup, self.fitted.library, point.platform
        bus, collective = setups.bus_of(point), setups.collective_of(point)
        by_grpc = setups.is_by_grpc(setup) and not collective  # collectives go past the kernel
        nominal = min(setups.nominal_nic(row), GRPC) if by_grpc else setups.nominal_nic(row)
        nic, lanes, latency_s = self.fitted.of(point.platform_name, nominal, bus)
        spares = setup.count("backup") or 0
        servers = setup.count("ps_tasks") or hosts - spares  # default: as many as hosts
        distant = setup.count("ps_tasks") and not setup.flag("ps_colocated") and setup.count("nodes") != 1
        many = (hosts > 1 or distant) and not collective
        shared = "shared" in row.text("network")
        of_copies = setups.copies_to_gpus(setup) if collective == setups.COPIES else None
        site = symmetric.Site(
            hosts=hosts,
            gpus=gpus,
            nic=nic,
            bus=bus.bandwidth * library.bus_efficiency if bus.peer_bandwidth else lanes,
            peer=lanes if bus.peer_bandwidth else 0.0,
            switch=max(1, bus.tree),
            sum_rate=catalogue.cpu(HOST_CPU).memory_bandwidth / 3,  # read two, write one
            latency_s=latency_s,
            message_s=library.message_s * setups.messages_of(setup),
            servers=servers if many or setup.text("kind") else 0,
            colocated=setup.flag("ps_colocated"),
            sums_on_gpus=setups.sums_on_gpus(setup, hosts, gpus) if of_copies is None else of_copies,
            in_halves=setups.sums_in_halves(setup),
            sliced="sliced" in setup.text("array_slicing"),
            spares=spares,
            overlap=library.overlap,
            jitter=library.jitter + setups.unevenness_of(point),
            tail=library.tail_shared * shared,
            crowding=library.board_sharing * (min(gpus, setups.chips_of(point)) - 1),
        )
        return _without(site, self.off)

    def _profile(self, point: Point) -> Profile:
        """The profile of the point's model, or of its bytes if only these are given."""
        if point.given.number("gradient_bytes"):
            return of_bytes(point.given.need("gradient_bytes"), self.rows)
        if point.model is None:
            raise PredictionError("the setup names no model")
        batch, gmac = max(1, round(setups.batch_of(point))), self._gmac(point)
        if (key := (point.model_name, batch, gmac)) not in self.profiles:
            self.profiles[key] = profile_of(point.model, self.rows, batch, gmac)
        return self.profiles[key]

    def _layers(self, point: Point) -> tuple[Layer, ...]:
        part = 0.5 if setups.precision_of(point) == "fp16" else 1.0  # of float32's bytes
        return layers_of(self._profile(point), bool(setups.collective_of(point)), part)

    def _gmac(self, point: Point) -> float | None:
        """Multiply-adds of an example, if all that is known is how fast one GPU is."""
        rate, gpu = point.given.number("single_gpu"), setups.known_gpu(point)
        if not rate or gpu is None or "image" not in point.unit:
            return None
        return self.fitted.library.flop_efficiency * gpu.peak() / rate / 6e9

    # ---- how long one GPU computes ----

    def _compute_s(self, point: Point, question: Question) -> float:
        """Measured if it is given, else from a measured rate on another GPU, else by the roofline."""
        given = point.given
        if given.positive("single_gpu"):
            return question.examples / given.need("single_gpu")
        if given.positive("single_gpu_step"):
            return given.need("single_gpu_step")
        if given.positive("backprop_ms"):
            return given.need("backprop_ms") / 1e3 / (1 - symmetric.FORWARD)
        if named := given.values.get("calibrate_from"):
            return self._as_named(str(named), point) * question.examples
        return question.examples * self._per_example_s(point)

    def _as_named(self, named: str, point: Point) -> float:
        """Seconds per example of the point that is named: by what was published if it is shipped, else as it computes.

        A point that names itself computes as if it named none.
        """
        if named in self.references and named != point.id:
            return self._as_in(*self.references[named])
        if named not in self.asked:
            raise PredictionError(f"'calibrate_from' is {named!r}: no such point is in the file, or among the shipped")
        other = self.asked[named]
        plain = replace(other.given, values={**other.given.values, "calibrate_from": None})
        question = self.question(replace(other, given=plain))
        return question.compute_s / question.examples

    def _as_in(self, point: Point, published: float) -> float:
        """Seconds per example with which the model says of `point` what was published of it: by bisection."""
        if point.metric not in ("throughput", "step_time", "median_step_time"):
            raise PredictionError(f"{point.id!r} is not a throughput or a step time; calibrate_from must name one")
        question = self.question(point)
        wanted = question.gpus * question.examples / published if point.metric == "throughput" else published
        wanted /= 1 if point.metric == "throughput" else setups.per_second(point.unit)
        low, high = 0.0, wanted
        for _ in range(50):
            middle = (low + high) / 2
            if replace(question, compute_s=middle).step_s < wanted:
                low = middle
            else:
                high = middle
        return high / question.examples

    def _per_example_s(self, point: Point) -> float:
        """Seconds of one GPU: from a rate of the model on the GPU that is most like it, else by its roofline."""
        processor, precision = setups.gpu_of(point), setups.precision_of(point)
        peak = processor.peak()  # in float32; it is taken that one precision gains the same on all GPUs
        near = [
            (rate.precision != precision, abs(math.log(rate.peak / peak)), rate.peak / peak / rate.per_second)
            for rate in self.rates.get(point.model_name, ())
            if rate.precision in (precision, "fp32") and max(rate.peak, peak) < ALIKE * min(rate.peak, peak)
        ]
        if near:
            return min(near)[2]
        profile = self._profile(point)
        times = profile.times(processor, self.fitted.library.flop_efficiency)
        return sum(time.forward + time.backward for time in times) / profile.batch / setups.units_of(point)

    # ---- metrics ----

    def _step_s(self, point: Point) -> float:
        if not recurrent.is_split(point.setup):
            return self.question(point).step_s
        if point.model is None:
            raise PredictionError("the setup names no model")
        one_gpu_s = point.given.number("single_gpu_step")
        if one_gpu_s is None:
            raise PredictionError("a model split over GPUs needs the given 'single_gpu_step'")
        nominal = setups.nominal_nic(point.platform), setups.bus_of(point)
        _, bus, latency_s = self.fitted.of(point.platform_name, *nominal)
        hop_s = latency_s + 4 * setups.batch_of(point) * point.model.need("units") / bus
        gpus = int(point.setup.need("gpus"))
        return recurrent.split_step_s(one_gpu_s, point.model, point.setup.text("attention"), gpus, hop_s)

    def step_time(self, point: Point) -> float:
        """A step, in the point's unit of time."""
        return self._step_s(point) * setups.per_second(point.unit)

    def throughput(self, point: Point) -> float:
        """Examples, or tokens, per second."""
        if recurrent.is_split(point.setup):
            return setups.batch_of(point) * setups.units_of(point) / self._step_s(point)
        question = self.question(point)
        return question.gpus * question.examples / question.step_s

    def efficiency(self, point: Point) -> float:
        """The part of linear scaling from one GPU that is reached."""
        question = self.question(point)
        return question.alone.step_s / question.step_s

    def speedup(self, point: Point) -> float:
        """How often as fast as one GPU."""
        if recurrent.is_split(point.setup):
            return point.given.need("single_gpu_step") / self._step_s(point)
        return self.question(point).gpus * self.efficiency(point)

    def _efficiency_from(self, point: Point, base: int) -> float:
        """The efficiency relative to `base` GPUs, which fill one host after the other."""
        large = self.question(point)
        hosts = max(1, base // large.site.gpus)
        fewer: dict[str, object] = {"gpus": base, "nodes": hosts, "gpus_per_node": base // hosts}
        fewer |= dict.fromkeys(("workers", "workers_required", "backup"))
        if point.setup.number("global_batch") is None:  # else fewer GPUs have more of it each
            fewer["batch_per_gpu"] = setups.batch_of(point)
        small = self.question(point, **fewer)
        if large.gpus < base:
            raise PredictionError(f"{large.gpus} GPUs are fewer than the {base} that they are compared with")
        return (large.examples / large.step_s) / (small.examples / small.step_s)

    def sync_over_async(self, point: Point) -> float:
        """A synchronous step over one of a worker that waits for nobody."""
        question = self.question(point)
        return replace(question, sync=True).step_s / replace(question, sync=False).step_s

    def collective_over_servers(self, point: Point) -> float:
        """How often as fast a ring is as parameter servers on the same hosts, if each GPU is a worker in both.

        So no host sums up its GPUs' gradients before the network: plain TensorFlow has nothing that does.
        """
        servers = self.question(point, parallelism=None, all_reduce=None, variable_update="parameter_server")
        servers = replace(servers, site=replace(servers.site, aggregates=False))
        ring = self.question(point, parallelism="ring", all_reduce=None, all_reduce_spec=None, variable_update=None)
        return servers.step_s / replace(ring, compute_s=servers.compute_s).step_s

    def normalised_speedup(self, point: Point) -> float:
        """The gain of spare workers: how much shorter a step is, divided by how many more workers that takes."""
        spares = point.setup.count("backup")
        return self.speedup(point) / self.question(point).gpus if spares is None else self._gain(point, spares)

    def _gain(self, point: Point, spares: int) -> float:
        few = self.question(point, backup=0)
        many = few.with_spares(spares)
        return few.step_s / many.step_s * few.site.hosts / many.site.hosts

    def best_spares_by_time(self, point: Point) -> float:
        """The number of spare workers with which a step is shortest."""
        few = self.question(point, backup=0)
        return min(setups.spares_of(point, few.site.hosts), key=lambda spares: few.with_spares(spares).step_s)

    def best_spares_by_gain(self, point: Point) -> float:
        """The number of spare workers with which the normalized speed-up is largest."""
        hosts = self.question(point, backup=0).site.hosts
        return max(setups.spares_of(point, hosts), key=lambda spares: self._gain(point, spares))


METRICS: dict[str, Callable[[Predictor, Point], float]] = {
    "throughput": Predictor.throughput,
    "speedup": Predictor.speedup,
    "normalised_speedup": Predictor.normalised_speedup,
    "scaling_efficiency": Predictor.efficiency,
    "step_time": Predictor.step_time,
    "median_step_time": Predictor.step_time,
    "median_sync_step_over_async_step": Predictor.sync_over_async,
    "horovod_over_distributed_tf": Predictor.collective_over_servers,
    "argmin_backup_step_time": Predictor.best_spares_by_time,
    "argmax_normalised_speedup": Predictor.best_spares_by_gain,
}


def _without(site: symmetric.Site, off: Iterable[str]) -> symmetric.Site:
    """The site as it would be without some mechanisms."""
    changes: dict[str, dict[str, object]] = {
        "overlap": {"overlap": 0.0},
        "hot_variables": {"sliced": True},
        "pcie_tree": {"switch": 1},
        "local_aggregation": {"aggregates": False},
        "stragglers": {"jitter": 0.0, "tail": 0.0},
        "messages": {"message_s": 0.0},
        "board_sharing": {"crowding": 0.0},
    }
    for name in off:
        site = replace(site, **changes[name])  # type: ignore[arg-type]
    return site


# ---- all points of a file ----


@dataclass(frozen=True)
class Predictions:
    """The model's values for a file, by id, and the reason for each point that it skips."""

    values: dict[str, float]
    skipped: dict[str, str]

    def as_json(self) -> dict[str, object]:
        """The schema that predictions are exchanged in."""
        points = [{"id": point_id, "predicted": value} for point_id, value in self.values.items()]
        return {"points": points, "skipped": self.skipped}


def predictor(points: Points, fitted: Fitted, known: Points, off: Iterable[str] = ()) -> Predictor:
    """The predictor of `points`; `known` are those of the calibration, whose published values may be looked at."""
    both = (*known, *points)
    rows = {point.model_name: point.model for point in both if point.model}
    references = {p.id: (p, middle(known.published[p.id])) for p in known if p.id in known.published}
    asked = {point.id: point for point in points}
    return Predictor(fitted, tuple(rows.values()), _rates(both), references, asked, frozenset(off))


def predict(points: Points, predictor: Callable[[Point], float]) -> Predictions:
    """Predictions of all points, by a Predictor or a baseline."""
    values, skipped = {}, dict(points.refused)
    for point in points:
        try:
            values[point.id] = predictor(point)
            if not math.isfinite(values[point.id]):
                raise PredictionError(f"the prediction is not a number: {values.pop(point.id)}")
        except (ValueError, ArithmeticError) as error:  # PredictionError, or numbers that do not go together
            skipped[point.id] = str(error)
    return Predictions(values, skipped)


def middle(published: float | tuple[float, float]) -> float:
    """A published value, or the middle of a published bracket."""
    return published if isinstance(published, float) else sum(published) / 2


def _is_measured(point: Point) -> bool:
    """Whether the time of one GPU for a whole step is published."""
    return bool(point.given.number("single_gpu", "single_gpu_step"))


def _rates(points: Iterable[Point]) -> dict[str, list[Rate]]:
    """All given rates of one GPU, by model."""
    rates: dict[str, list[Rate]] = {}
    for point in points:
        try:
            gpu, rate = setups.known_gpu(point), point.given.positive("single_gpu")
        except PredictionError:  # the point itself is skipped for it
            continue
        if gpu and rate:
            rates.setdefault(point.model_name, []).append(Rate(gpu.peak(), setups.precision_of(point), rate))
    return rates
