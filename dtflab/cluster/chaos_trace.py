"""The faults of a step, as lines of its trace: pictures and Chrome traces then show them with what ran.

Rule: a fault stands next to the CPU of its task, in a line of its own (`…/device:CPU:0/chaos`), for as long as it was
there within the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

LINE = "chaos"


class Shown(NamedTuple):
    """A fault of a task between two moments of the clock; both are equal for a call that was lost."""

    label: str
    task: str
    began: float
    ended: float


def write(step_stats: Any, shown: Iterable[Shown], offset: float) -> None:
    """Add the faults of its tasks to a StepStats; `offset`, in seconds, is from their clock to the time of day."""
    nodes = [node for device in step_stats.dev_stats for node in device.node_stats]
    if not nodes:
        return
    first = min(node.all_start_micros for node in nodes)
    last = max(node.all_start_micros + node.all_end_rel_micros for node in nodes)
    tasks = {device.device.partition("/device:")[0] for device in step_stats.dev_stats}
    devices: dict[str, Any] = {}
    for fault in sorted(shown, key=lambda fault: fault.began):
        began = max(first, int((fault.began + offset) * 1e6))
        ended = int(min(last, (fault.ended + offset) * 1e6))
        if fault.task not in tasks or ended < began:
            continue
        if fault.task not in devices:
            devices[fault.task] = step_stats.dev_stats.add(device=f"{fault.task}/device:CPU:0/{LINE}")
        stats = devices[fault.task].node_stats.add(node_name=fault.label)
        stats.all_start_micros, stats.all_end_rel_micros = began, ended - began
        stats.op_end_rel_micros = ended - began
