"""Estimate: what a dry run found, in words, as tables and as numbers.

Left out: pictures, which are `viz.estimate` and `viz.timeline`.

Rule: nothing is worked out before it is asked for.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dtflab.base.text_table import plural, text_table
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.sim.engine.cluster_models import ClusterModel
from dtflab.sim.engine.critical_path import Part
from dtflab.sim.engine.record import Record
from dtflab.sim.engine.traffic import Array


@dataclass(frozen=True)
class Estimate:
    """The result of `estimate`. `print` shows a table, `viz.estimate` a picture, `to_json` gives the numbers.

    `batch` examples go through the first device in `compute_s` if nothing keeps it waiting. `links` are the names of
    those that the record counts.
    """

    model: str
    mode: str
    engine: str
    cluster: ClusterModel
    batch: int
    compute_s: float
    links: Sequence[str]
    record: Record
    path: Callable[[], list[Part]]
    stats: Callable[[int, Iterable[int]], StepStats]

    @property
    def throughput(self) -> float:
        """Examples per second whose gradients counted."""
        return self.record.examples / self.record.seconds

    @property
    def step_times(self) -> Array:
        """Seconds of each step: of all workers together, or of each if they are asynchronous."""
        return self.record.steps

    @property
    def step_time(self) -> float:
        """The median step, in seconds."""
        return float(np.median(self.step_times))

    @property
    def single(self) -> float:
        """Examples per second of the first device alone, which nothing keeps waiting."""
        return self.batch / self.compute_s

    @property
    def speedup(self) -> float:
        """How often as fast as the first device alone."""
        return self.throughput / self.single

    @property
    def efficiency(self) -> float:
        """The part of linear scaling that is reached."""
        return self.speedup / len(self.cluster.devices)

    def percentiles(self, of: Iterable[float] = (1, 10, 50, 90, 99)) -> dict[float, float]:
        """Step times in seconds by percentile."""
        wanted = list(of)
        return dict(zip(wanted, np.percentile(self.step_times, wanted).tolist(), strict=True))

    def histogram(self, bins: int = 20) -> tuple[Array, Array]:
        """How many steps took how long: counts, and the edges of the bins in seconds."""
        first, last = float(self.step_times.min()), float(self.step_times.max())
        return np.histogram(self.step_times, np.linspace(first, max(last, first * 1.000001), bins + 1))

    @cached_property
    def link_load(self) -> dict[str, float]:
        """The part of the time for which each link was taken, the busiest first."""
        load = dict(zip(self.links, (self.record.busy / self.record.seconds).tolist(), strict=True))
        return dict(sorted(load.items(), key=lambda pair: -pair[1]))

    @property
    def device_load(self) -> dict[str, float]:
        """The part of the time for which each device computed."""
        return dict(zip(self.cluster.devices, (self.record.computing / self.record.seconds).tolist(), strict=True))

    @property
    def staleness(self) -> Array:
        """For each update, how many others came since its worker pulled; 0 where workers wait for each other."""
        return self.record.staleness

    @cached_property
    def critical_path(self) -> list[Part]:
        """The chain that the last step waited for; its parts add up to its length. ValueError if asynchronous."""
        if self.mode == "ps_async":
            raise ValueError(
                "Asynchronous workers have no step in common, so no path is critical for all of them. Look at single "
                "workers with step_stats(workers=[0]), or estimate another mode."
            )
        return self.path()

    def step_stats(self, step: int = -1, workers: Iterable[int] = range(4)) -> StepStats:
        """A step of some workers as a trace, for `viz.timeline`; all steps but the last need `trace=True`.

        Of an all-reduce `workers` are devices; of a pipeline all are shown, and only the last step. ValueError if its
        moments were not kept.
        """
        return self.stats(step, workers)

    def to_dict(self) -> dict[str, Any]:
        """All numbers, by name; seconds, examples per second, parts of 1."""
        histogram = self.histogram()
        path = [] if self.mode == "ps_async" else self.critical_path
        return {
            "model": self.model,
            "mode": self.mode,
            "engine": self.engine,
            "workers": len(self.cluster.gpus),
            "devices": len(self.cluster.devices),
            "servers": len(self.cluster.servers),
            "throughput": self.throughput,
            "speedup": self.speedup,
            "efficiency": self.efficiency,
            "step_time_percentiles": {f"{p:g}": seconds for p, seconds in self.percentiles().items()},
            "step_time_histogram": {"counts": histogram[0].tolist(), "edges": histogram[1].tolist()},
            "link_load": self.link_load,
            "device_load": self.device_load,
            "critical_path": [part._asdict() for part in path],
            "mean_staleness": float(self.staleness.mean()),
            "dropped_gradients": self.record.dropped,
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)

    @property
    def tables(self) -> list[tuple[str, list[str], list[list[Any]]]]:
        """The printed tables: title, heads and rows of each."""
        times = [[f"{p:g}%", _ms(seconds)] for p, seconds in self.percentiles().items()]
        links = [[name, round(100 * load, 1)] for name, load in list(self.link_load.items())[:5]]
        path = [] if self.mode == "ps_async" else self.critical_path
        largest = sorted(path, key=lambda part: -part.seconds)[:8]
        parts = [[part.kind, part.what, _ms(part.seconds)] for part in path if part in largest]
        found = [("Step times", ["percentile", "ms"], times), ("Busiest links", ["link", "busy %"], links)]
        return found + ([("Critical path of the last step", ["kind", "what", "ms"], parts)] if parts else [])

    def __str__(self) -> str:
        return "\n\n".join([repr(self), *(f"{title}\n{text_table(heads, rows)}" for title, heads, rows in self.tables)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __repr__(self) -> str:
        devices = plural(len(self.cluster.devices), "device")
        return (
            f"<Estimate: {self.model}, {self.mode}, {devices}: {self.throughput:,.4g} examples/s, {self.speedup:.3g}×, "
            f"median step {self.step_time:.4g} s>"
        )


def _ms(seconds: float) -> float:
    return float(f"{1000 * seconds:.4g}")
