"""Outcome: the result of a simulated step: how long it took, which devices were busy, which links full, and why.

Rule: everything is read off the schedule; what stands for a master's calls is not shown as a device.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

from dtflab.base.text_table import html_table, percent, text_table
from dtflab.graph import device_spec
from dtflab.hardware.schedule import Message, Schedule, Span
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.sim.engine.critical_path import Part
from dtflab.sim.engine.stragglers import Stragglers
from dtflab.sim.what_ifs.step_tasks import computes, plain
from dtflab.virtual.step import LEAST_S

if TYPE_CHECKING:
    from dtflab.sim.what_ifs.what_if import WhatIf


@dataclass(frozen=True, repr=False)
class Outcome:
    """One answer of a WhatIf; `changes` is what was asked. Seconds, examples per second, shares of 1.

    `viz.timeline(outcome.step_stats())` draws it, `viz.what_if(base, outcome)` next to others.
    """

    changes: Mapping[str, Any]
    workers: int
    batch: int | None
    schedule: Schedule
    asked: WhatIf

    @property
    def makespan(self) -> float:
        """Seconds until the last worker's step is over; as in virtual time, one of nothing but constants takes some."""
        return self.schedule.makespan or LEAST_S

    @property
    def throughput(self) -> float:
        """Examples per second of all workers together; steps, if the batch is not known."""
        return self.workers * (self.batch or 1) / self.makespan

    @property
    def speedup(self) -> float:
        """How often the base's throughput."""
        return self.throughput / self.asked.base.throughput

    @property
    def busy(self) -> dict[str, float]:
        """Seconds that each device computed; on several cores at once they count several times."""
        return {device: seconds for device, seconds in self.schedule.busy.items() if computes(device)}

    @property
    def idle(self) -> dict[str, float]:
        """For each device, the share of the time in which nothing ran on it."""
        return {d: seconds / self.makespan for d, seconds in self.schedule.idle.items() if computes(d)}

    def bubble(self, devices: Sequence[str]) -> float:
        """The share of the time in which `devices` idled, from when the first of them begins to when the last ends.

        Names as of `tf.device`, one after the other in a pipeline: what `formulas.pipeline_bubble` says of equal stages
        without transfers. ValueError if one of them computes nothing.
        """
        stages = [self._stage(name) for name in devices]
        if not stages or len(set(stages)) < len(stages):
            raise ValueError(f"A pipeline needs several different devices, not {list(devices)}.")
        spans = [self.schedule.spans[stage] for stage in stages]
        whole = max(span.end for own in spans for span in own) - min(own[0].start for own in spans)
        lost = [self.schedule.idle[stage] - (self.schedule.makespan - whole) for stage in stages]
        return sum(lost) / (whole * len(stages))

    def _stage(self, name: str) -> str:
        """The one device that computes something and is meant by a name."""
        busy = [device for device, own in self.schedule.spans.items() if own and computes(device)]
        found = [device for device in busy if device_spec.matches(name, device)]
        if not found:
            raise ValueError(f"{name} computes nothing in this step, so it is not a stage of it.")
        if len(found) > 1:
            raise ValueError(f"{name} means {len(found)} devices: {', '.join(found)}. Name one.")
        return found[0]

    @cached_property
    def link_load(self) -> dict[str, float]:
        """The share of the time that each link took for its bytes, the busiest first."""
        links = sorted(self.schedule.link_busy.items(), key=lambda pair: -pair[1])
        return {link.short: seconds / self.makespan for link, seconds in links}

    @cached_property
    def messages(self) -> list[Message]:
        """The messages over links, calls included, in the order in which they set out, each with its op as `source`."""
        return [message._replace(source=self._made(message)) for message in self.schedule.messages if message.hops]

    @cached_property
    def critical_path(self) -> list[Part]:
        """The chain that the end waited for, part by part; they add up to the makespan."""
        path = self.schedule.critical_path
        return [self._part(one) for one in path if (one.hops if isinstance(one, Message) else one.end > one.start)]

    def _part(self, each: Span | Message) -> Part:
        if isinstance(each, Span):
            return Part("compute", f"{each.name} on {each.device}", each.end - each.start)
        narrowest = max(each.hops, key=lambda hop: hop.end - hop.start).link
        return Part("transfer", f"{self._made(each)} over {narrowest.short}", each.arrived - each.sent)

    def _made(self, message: Message) -> str:
        """The op whose output a message is; the call, if it is one."""
        step, name = self.asked.step, plain(message.source)
        prefix = message.source.removesuffix(name)
        return prefix + (step.by_name[name].inputs[0][0] if name in step.by_name else name.partition(":")[0])

    def step_stats(self) -> StepStats:
        """The step as a trace, which timelines, tables and Chrome read. Times begin at 0."""
        stats = StepStats()
        for device, spans in self.schedule.spans.items():
            if spans:
                nodes = stats.dev_stats.add(device=device).node_stats
                for span, lane in zip(spans, _lanes(spans), strict=True):
                    op = self.asked.step.by_name[plain(span.name)].op
                    _fill(nodes.add(thread_id=lane), span.name, f"{span.name} = {op}()", span.start, span.end)
        devices = {one.device: one for one in stats.dev_stats}
        for message in (one for one in self.messages if computes(one.source_device)):  # not the calls
            where = message.target_device
            if where not in devices:
                devices[where] = stats.dev_stats.add(device=where)
            label = f"[{message.nbytes}B] {message.source} from {message.source_device} to {where}"
            _fill(devices[where].node_stats.add(), "RecvTensor", label, message.sent, message.arrived)
        return stats

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name."""
        return {
            "changes": {what: str(value) for what, value in self.changes.items()},
            "workers": self.workers,
            "batch": self.batch,
            "makespan": self.makespan,
            "throughput": self.throughput,
            "speedup": self.speedup,
            "busy": self.busy,
            "idle": self.idle,
            "link_load": self.link_load,
            "critical_path": [part._asdict() for part in self.critical_path],
        }

    @property
    def title(self) -> str:
        """The question in words; the base, to which speedups refer, is called that."""
        return ", ".join(_words(what, value) for what, value in self.changes.items()) or "the base"

    @property
    def row(self) -> tuple[str, ...]:
        """The outcome's row in a table under `HEADS`."""
        busiest = next(iter(self.link_load.items()), None)
        return (
            self.title,
            f"{1e3 * self.makespan:.3f}",
            f"{self.rate} {self.what}",
            f"{self.speedup:.2f}",
            "" if busiest is None else f"{busiest[0]} {100 * busiest[1]:.0f}%",
            percent(sum(self.idle.values()) / max(1, len(self.idle))),
        )

    @property
    def what(self) -> str:
        """The unit of the throughput: steps or examples."""
        return "steps" if self.batch is None else "examples"

    @property
    def rate(self) -> str:
        """The throughput as people write it."""
        return f"{self.throughput:,.0f}" if self.throughput >= 1000 else f"{self.throughput:.4g}"

    @property
    def sentence(self) -> str:
        """Step time, throughput and speedup in words."""
        speedup = f", {self.speedup:.3g} × the base" if self.changes else ""
        return f"{1e3 * self.makespan:.4g} ms, {self.rate} {self.what}/s{speedup}"

    @property
    def path_rows(self) -> list[tuple[str, str, str, str]]:
        """The critical path as lines of a table under `PATH_HEADS`: its longest parts in order, the others as one."""
        path = self.critical_path
        longest = sorted(path, key=lambda part: -part.seconds)[:_MOST_PARTS]
        shown = [part for part in path if any(part is one for one in longest)]
        rest = sum(part.seconds for part in path) - sum(part.seconds for part in shown)
        others = len(path) - len(shown)
        parts = [*shown, Part("…", f"{others} shorter parts", rest)] if others else shown
        return [
            (part.kind, part.what, f"{1e3 * part.seconds:.3f}", f"{100 * part.seconds / self.makespan:.0f}%")
            for part in parts
        ]

    def __repr__(self) -> str:
        return "\n".join([f"{self.title}: {self.sentence}", *(text_table(*each) for each in self._tables)])

    def _repr_html_(self) -> str:
        head = html.escape(f"{self.title}: {self.sentence}")
        return f"<p>{head}</p>" + "".join(html_table(*each) for each in self._tables)

    @property
    def _tables(self) -> list[tuple[tuple[str, ...], Sequence[Sequence[str]]]]:
        devices = [(name, f"{1e3 * busy:.3f}", percent(self.idle[name])) for name, busy in self.busy.items()]
        links = [(link, f"{100 * load:.0f}%") for link, load in list(self.link_load.items())[:8]]
        found: list[tuple[tuple[str, ...], Sequence[Sequence[str]]]] = [
            (("device", "busy, ms", "idle"), devices),
            (("link", "load"), links),
            (PATH_HEADS, self.path_rows),
        ]
        return [each for each in found if each[1]]


class Outcomes(list[Outcome]):
    """Answers under each other, as a table in text and in a notebook."""

    def __repr__(self) -> str:
        return table(self)

    def _repr_html_(self) -> str:
        return html_table(HEADS, [one.row for one in self])


FACTORS = ("network", "latency", "bus", "gpu", "cpu")  # of these a number says how many times as much


def _words(what: str, value: Any) -> str:
    """A change in words: "workers 4", "gpu × 2", "stragglers lognormal(0.3)"."""
    if isinstance(value, Mapping):
        return ", ".join(f"{device_spec.label(name)} {factor:g} × as slow" for name, factor in value.items())
    if what in FACTORS and isinstance(value, Real):
        return f"{what} × {value:g}"
    size = f"({value.size:g})" if isinstance(value, Stragglers) else ""
    return f"{what} {getattr(value, 'name', value)}{size}"


PATH_HEADS = ("critical path", "what", "ms", "of the step")
_MOST_PARTS = 12  # of a critical path, in its table
HEADS = ("what if", "step, ms", "per second", "speedup", "busiest link", "idle")


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each: step time, throughput, speedup, the busiest link and how idle devices are on average."""
    return text_table(HEADS, [one.row for one in outcomes])


def _lanes(spans: Sequence[Span]) -> list[int]:
    """For each span, in order of their start, a lane in which nothing else runs: a core."""
    free: list[float] = []
    lanes = []
    for span in spans:
        lane = next((i for i, until in enumerate(free) if until <= span.start), len(free))
        free[lane : lane + 1] = [span.end]
        lanes.append(lane)
    return lanes


def _fill(stats: Any, name: str, label: str, start: float, end: float) -> None:
    stats.node_name, stats.timeline_label = name, label
    stats.all_start_nanos, stats.all_start_micros = round(start * 1e9), int(start * 1e6)
    nanos = round((end - start) * 1e9)
    stats.op_end_rel_nanos = stats.all_end_rel_nanos = nanos
    stats.op_end_rel_micros = stats.all_end_rel_micros = nanos // 1000
