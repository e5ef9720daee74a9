"""A replayed run as rows over time, and the sentence of each of its moments.

The rows are devices with their kernels, links with messages, queues with levels, variables with their versions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base.events import Happened
from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural
from dtflab.cluster.chaos_options import short
from dtflab.cluster.replay import Difference, Run, plain_message
from dtflab.graph.device_spec import plain, task_name
from dtflab.graph.node_names import readable
from dtflab.runtime.standstill import Resting
from dtflab.virtual.deadlock import DeadlockError
from dtflab.viz.drawing.palette import in_order, look, natural
from dtflab.viz.drawing.units import byte_size, moment

MOST = {"device": 16, "link": 16, "queue": 8, "variable": 8}  # rows of a kind
_MOST_PHRASES = 5


class Row(NamedTuple):
    """A line of the picture. `items` are its kernels, messages (number and event), levels or versions."""

    kind: str  # device, link, queue or variable
    label: str
    device: str  # whose colour it has
    items: Sequence[Any]
    capacity: int = 0


class Level(NamedTuple):
    """The number of elements of a queue, from a moment on."""

    at: float
    level: int


def rows_of(runs: Sequence[Run]) -> tuple[list[list[Row]], str]:
    """The rows of each run, the same in all; and what is left out, in words."""
    own = [{(row.kind, row.device, row.label): row for row in _rows(run)} for run in runs]
    every = {key: row for rows in reversed(own) for key, row in rows.items()}
    busiest = Counter({key: sum(len(rows[key].items) for rows in own if key in rows) for key in every})
    shown: list[tuple[str, str, str]] = []
    left_out = []
    for kind, most in MOST.items():
        keys = [key for key in every if key[0] == kind]
        best = {key for key, _ in Counter({key: busiest[key] for key in keys}).most_common(most)}
        order = in_order if kind == "device" else lambda names: sorted(names, key=natural)
        by_name = {(key[1] if kind == "device" else f"{key[2]} {key[1]}"): key for key in best}
        shown += [by_name[name] for name in order(by_name)]
        if len(keys) > most:
            left_out.append(f"the busiest {most} of {len(keys)} {kind}s")
    return [[rows.get(key, every[key]._replace(items=[])) for key in shown] for rows in own], ", ".join(left_out)


def _rows(run: Run) -> Iterator[Row]:
    for device, kernels in grouped((each[1].device, each) for each in enumerate(run.kernels)).items():
        yield Row("device", look(device).label, device, kernels)
    ends = [(task_name(one.where), task_name(one.target)) for one in run.messages]
    numbered = zip(ends, enumerate(run.messages), strict=True)
    for (source, target), sent in grouped(each for each in numbered if each[0][0] != each[0][1]).items():
        yield Row("link", f"{short(source)} → {short(target)}", source, sent)
    for (device, queue), events in grouped(((event.device, event.queue), event) for event in run.queues).items():
        levels = [Level(event.at, event.level) for event in events]
        yield Row("queue", queue, device, levels, events[0].capacity)
    written = sorted((one for one in run.kernels if one.writes and math.isfinite(one.ended)), key=lambda one: one.ended)
    for (device, variable), writes in grouped(((one.device, one.writes), one) for one in written).items():
        yield Row("variable", variable, device, writes)


# -- what happened ----------------------------------------------------------------------------------------------


def sentences(run: Run) -> dict[float, str]:
    """A sentence for each moment of a run at which something happens."""
    phrases = grouped(sorted(_phrases(run), key=lambda pair: pair[0]))
    end = f"The run ends with {error_text(run.error)}" if run.error else "The run ends"
    phrases.setdefault(run.end, []).append(end)
    return {at: _joined(found) for at, found in phrases.items()}


def _joined(phrases: Sequence[str]) -> str:
    more = len(phrases) - _MOST_PHRASES
    return "; ".join(phrases[:_MOST_PHRASES]) + (f"; and {more} more." if more > 0 else ".")


def _phrases(run: Run) -> Iterator[tuple[float, str]]:
    """In the order in which one reads them: faults, messages, what ends, what begins, what waits, queues."""
    for line in run.faults:
        yield line.ended, fault_text(line)
    for message in run.messages:
        yield from _of_message(message)
    for kernel in run.kernels:
        if math.isfinite(kernel.ended):
            yield kernel.ended, f"{look(kernel.device).label} ends {readable(kernel.name)}"
    for kernel in run.kernels:
        if math.isfinite(kernel.started):
            yield kernel.started, f"{look(kernel.device).label} begins {readable(kernel.name)}"
    for kernel in run.kernels:
        if kernel.started > kernel.ready:
            yield kernel.ready, f"{readable(kernel.name)} is ready and waits for {look(kernel.device).label}"
    for event in run.queues:
        what = {"put": "has", "take": "has", "wait": f"makes {event.op} wait, with"}.get(event.what)
        if what:
            yield event.at, f"queue {event.queue} {what} {plural(event.level, 'element')}"


def _of_message(message: Happened) -> Iterator[tuple[float, str]]:
    source, target = look(message.where).label, look(message.target).label
    name = plain_message(message.what)
    if name.startswith("lost: "):
        yield message.started, f"{name.removeprefix('lost: ')} from {source} to {target} is lost"
        return
    yield message.started, f"{name} ({byte_size(message.nbytes)}) sets out from {source} to {target}"
    yield message.ended, f"{name} arrives at {target}"


def fault_text(line: Happened) -> str:
    """`worker:1 killed`."""
    return f"{short(line.where)} {line.what.removeprefix('chaos: ')}".strip()


def error_text(error: BaseException) -> str:
    """The class of an error and the first line of what it says; of a deadlock also what clients wait for."""
    said = str(getattr(error, "message", error)).partition("\n")[0].rstrip(".")
    facts = error.standstill if isinstance(error, DeadlockError) else ()
    resting = (fact for fact in facts if isinstance(fact, Resting) and fact.thread.startswith("client "))
    waits = (f"{fact.thread} waits for {fact.what.partition('. ')[0]}" for fact in resting)
    return "; ".join([f"{type(error).__name__}: {said}", *map(plain, waits)])


def difference_text(found: Difference | None) -> str:
    """The first event that differs, in words."""
    if found is None:
        return "no event differs"
    before, after = (_event(line) for line in (found.original, found.fork))
    if before == after and found.original and found.fork:  # it begins alike
        ends = [moment(1e6 * line.ended) for line in (found.original, found.fork)]
        what = (
            before
            if found.original.target
            else f"{readable(found.original.what)} of {look(found.original.where).label}"
        )
        return f"“{what}” begins alike, but ends at {ends[1]}, not at {ends[0]}"
    return f"in place of “{before}” there is “{after}”"


def _event(line: Happened | None) -> str:
    if line is None:
        return "the end of the run"
    if line.target:
        return next(text for _, text in _of_message(line))
    return f"{look(line.where).label} begins {readable(line.what)}"


def moments_of(runs: Iterable[Run], *others: float) -> list[float]:
    """All moments at which something happens in any of the runs, and others, in order."""
    found = {0.0, *others}
    for run in runs:
        moments = (each for one in run.kernels for each in (one.ready, one.started, one.ended))
        found.update(filter(math.isfinite, moments))
        found.update(each for line in run.lines if line.target or not line.step for each in (line.started, line.ended))
        found.update(event.at for event in run.queues)
        found.add(run.end)
    return sorted(found)


def busy_until(run: Run) -> float:
    """The end of a run; of one that waits for long after its last kernel and message, the end of these."""
    kernels = (one.ended for one in run.kernels if math.isfinite(one.ended))
    last = max([0.0, *kernels, *(message.ended for message in run.messages)])
    return last if 0 < 2 * last < run.end else run.end
