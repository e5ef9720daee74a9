"""Timeline: a step's trace as a Chrome trace, for `chrome://tracing` or Perfetto.

Stands for `python/client/timeline.py`. The format is the JSON of Google's "Trace Event Format"; times are microseconds
of the day, as in StepStats. Left out: streams of GPUs, which get lanes like other devices.

>>> metadata = tf.RunMetadata()
>>> sess.run(train, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
>>> open("step.json", "w").write(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

_LABEL = re.compile(r"(?P<name>.*) = (?P<op>\w+)\((?P<inputs>.*)\)")
_PART = re.compile(r"(?P<name>.*) = (?P<op>\w+)\(.*\)(?P<part> part \d+ of \d+)")  # what an intra-op thread did
_TRANSFER = re.compile(r"(?:\[\d+B\] )?(?:\[[^]]*\] )?(?P<tensor>.+) from (?P<source>\S+) to (?P<target>\S+)")


class AllocationMaximum(NamedTuple):
    """The moment when the tensors of an allocator took the most memory."""

    timestamp: int  # microseconds
    num_bytes: int
    tensors: set[str]


class ChromeTrace:
    """A list of trace events."""

    def __init__(self) -> None:
        self._names: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def name_process(self, pid: int, name: str) -> None:
        """The title of a group of lanes."""
        self._names.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}})

    def name_thread(self, pid: int, lane: int, name: str) -> None:
        """The title of one lane."""
        self._names.append({"name": "thread_name", "ph": "M", "pid": pid, "tid": lane, "args": {"name": name}})

    def add(self, phase: str, category: str, name: str, pid: int, tid: int, ts: int, **more: Any) -> None:
        """One event; `phase` is the format's letter: X complete, s and t flow, N, O and D object, C counter."""
        self._events.append({"ph": phase, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, **more})

    def format_to_string(self, pretty: bool = False) -> str:
        """The JSON text."""
        trace = {"traceEvents": self._names + self._events}
        return json.dumps(trace, indent=4, separators=(",", ": ")) if pretty else json.dumps(trace)


class StepStatsAnalysis(NamedTuple):
    """The Chrome trace of a step, and its peaks of memory."""

    chrome_trace: ChromeTrace
    allocator_maximums: dict[str, AllocationMaximum]


class _Run(NamedTuple):
    """A node that ran, in its lane."""

    name: str
    op: str
    inputs: list[str]
    start: int
    end: int
    pid: int
    lane: int
    stats: Any


class Timeline:
    """The trace of one step, a StepStats message. `graph` is accepted as in TensorFlow, and not used."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The trace as JSON text; see `analyze_step_stats`."""
        return self.analyze_step_stats(show_dataflow, show_memory, op_time).chrome_trace.format_to_string(pretty=True)

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True, op_time: str = "schedule"
    ) -> StepStatsAnalysis:
        """Lanes of nodes per device, with arrows from producer to consumer and the memory that tensors take.

        `op_time`: `schedule` shows a node from when it is ready to when its outputs are sent, `gpu` and `all` only its
        kernel's.
        """
        if op_time not in ("schedule", "gpu", "all"):
            raise ValueError(f"op_time must be 'schedule', 'gpu' or 'all', not {op_time!r}")
        trace = ChromeTrace()
        trace.name_process(0, "Allocators")
        runs = self._runs(trace, kernels_only=op_time != "schedule")
        made_by = {run.name: run for run in runs}
        for run in runs:
            _show(trace, run)
        if show_dataflow:
            for flow, (source, run) in enumerate(_flows(runs, made_by)):
                trace.add("s", "DataFlow", source.name, source.pid, source.lane, source.end, id=flow)
                trace.add("t", "DataFlow", source.name, run.pid, run.lane, run.start, id=flow)
        return StepStatsAnalysis(trace, _memory(trace, runs, made_by, show_memory))

    def _runs(self, trace: ChromeTrace, kernels_only: bool) -> list[_Run]:
        runs = []
        for number, device in enumerate(d for d in self._step_stats.dev_stats if not d.device.endswith("/variables")):
            pid = 2 * number + 1
            trace.name_process(pid, f"{device.device} Compute")
            trace.name_process(pid + 1, f"{device.device} Tensors")
            lanes: list[tuple[int, int]] = []  # the thread of each, and when it is free again
            for stats in sorted(device.node_stats, key=lambda s: s.all_start_micros):
                start, end = _times(stats, kernels_only)
                thread = stats.thread_id
                fits = (i for i, (of, free) in enumerate(lanes) if of == thread and free <= start)
                lane = next(fits, len(lanes))
                if lane == len(lanes) and thread in device.thread_names:
                    trace.name_thread(pid, lane, device.thread_names[thread])
                lanes[lane : lane + 1] = [(thread, end)]
                runs.append(_Run(*_parts(stats), start, end, pid, lane, stats))
        return runs


def _times(stats: Any, kernels_only: bool) -> tuple[int, int]:
    """Start and end in microseconds; the shortest is 1, so that it can be seen."""
    start, seconds = stats.all_start_micros, stats.all_end_rel_micros
    if kernels_only:
        start, seconds = start + stats.op_start_rel_micros, stats.op_end_rel_micros - stats.op_start_rel_micros
    return start, start + max(1, seconds)


def _parts(stats: Any) -> tuple[str, str, list[str]]:
    """Name, op and inputs of a node, as its label says; a transfer is a RecvTensor of the tensor that came."""
    transfer = _TRANSFER.match(stats.timeline_label) if stats.node_name == "RecvTensor" else None
    if transfer is not None:
        return transfer["tensor"], "RecvTensor", []
    part = _PART.fullmatch(stats.timeline_label)
    if part is not None:  # a name of its own and no inputs, so that no arrow starts or ends there
        return part["name"] + part["part"], part["op"], []
    label = _LABEL.match(stats.timeline_label)
    if label is None:
        return stats.node_name, stats.timeline_label or stats.node_name, []
    inputs = [name.strip().lstrip("^") for name in label["inputs"].split(",") if name.strip()]
    return label["name"], label["op"], inputs


def _show(trace: ChromeTrace, run: _Run) -> None:
    args = {"name": run.name, "op": run.op, **{f"input{i}": name for i, name in enumerate(run.inputs)}}
    trace.add("X", "Op", run.op, run.pid, run.lane, run.start, dur=run.end - run.start, args=args)


def _flows(runs: Iterable[_Run], made_by: dict[str, _Run]) -> Iterable[tuple[_Run, _Run]]:
    """Producer and consumer of each tensor that changed its lane."""
    for run in runs:
        for name in run.inputs:
            source = made_by.get(name.partition(":")[0])
            if source is not None and (source.pid, source.lane) != (run.pid, run.lane):
                yield source, run


def _memory(trace: ChromeTrace, runs: list[_Run], made_by: dict[str, _Run], show: bool) -> dict[str, AllocationMaximum]:
    """Follow each output from its making to its last use, a variable to the end; the highest level per allocator."""
    end = max((run.end for run in runs), default=0)
    last_use = {run.name: end if run.op.startswith("Variable") else run.end for run in runs}
    for run in runs:
        for name in run.inputs:
            producer = name.partition(":")[0]
            if producer in made_by:
                last_use[producer] = max(last_use[producer], run.end)
    changes: dict[str, list[tuple[int, int, str]]] = {}
    for run in runs:
        for output in run.stats.output:
            made = output.tensor_description.allocation_description
            moments = changes.setdefault(made.allocator_name or "unknown", [])
            size = made.allocated_bytes or made.requested_bytes
            moments += [(run.start, size, run.name), (last_use[run.name], -size, run.name)]
            if show:
                _show_tensor(trace, run, output, last_use[run.name])
    return {name: _highest(trace, name, sorted(moments), show) for name, moments in changes.items()}


def _show_tensor(trace: ChromeTrace, run: _Run, output: Any, freed: int) -> None:
    label = {"id": f"{run.name}:{output.slot}"}
    snapshot = {"tensor_description": str(output.tensor_description).replace('"', "")}
    trace.add("N", "Tensor", run.name, run.pid + 1, output.slot, run.start, **label)
    trace.add("O", "Tensor", run.name, run.pid + 1, output.slot, run.end, args={"snapshot": snapshot}, **label)
    trace.add("D", "Tensor", run.name, run.pid + 1, output.slot, freed, **label)


def _highest(trace: ChromeTrace, allocator: str, changes: list[tuple[int, int, str]], show: bool) -> AllocationMaximum:
    level, alive = 0, dict[str, int]()
    highest = AllocationMaximum(0, 0, set())
    for moment, size, tensor in changes:
        level += size
        alive[tensor] = alive.get(tensor, 0) + (1 if size >= 0 else -1)
        if level > highest.num_bytes:
            highest = AllocationMaximum(moment, level, {name for name, count in alive.items() if count > 0})
        if show:
            trace.add("C", "Memory", allocator, 0, 0, moment, args={allocator: level})
    return highest
