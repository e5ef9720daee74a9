"""The judgement of a soak: was a step lost, did something leak?

A worker's count lives on the parameter server and goes up by one with each of its steps. Only the chief can turn it
back: each session that it makes restores the last checkpoint, as in TensorFlow, whether or not the parameter server has
died. So a count that goes down needs such a moment, and goes no lower than that checkpoint. A count that goes up by
more than one is a step whose answer was lost, and that was applied all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple


class Step(NamedTuple):
    """A step that came back: moments in seconds, and the worker's count after it."""

    began: float
    ended: float
    count: int


class Restored(NamedTuple):
    """The chief has restored a checkpoint, at some time between two moments: the counts in it."""

    began: float
    ended: float
    counts: tuple[int, ...]


class Account(NamedTuple):
    """The fate of a worker's steps."""

    returned: int
    again: int  # applied, though their answers were lost
    undone: int  # by a restored checkpoint
    longest: float  # seconds between two steps
    complaints: list[str]


def steps_of(text: str) -> list[Step]:
    """The steps in what a client has written; its last line may be cut off."""
    return [Step(*values[:2], int(values[2])) for kind, *values in _lines(text) if kind == "step"]


def restored_of(text: str) -> list[Restored]:
    """When the chief restored, by what it has written: after the line before, by itself or one that was killed."""
    found, before = [], 0.0
    for kind, first, *rest in _lines(text):
        if kind == "restored":
            found.append(Restored(before, first, tuple(map(int, rest))))
        before = rest[0] if kind == "step" else first
    return found


def _lines(text: str) -> Iterator[tuple]:
    for line in text[: text.rfind("\n") + 1].splitlines():
        kind, *values = line.split()
        yield kind, *map(float, values)


def account(worker: int, steps: Sequence[Step], restored: Sequence[Restored], final: int) -> Account:
    """Follow the counts of a worker to the final one."""
    found: list[str] = []
    again, undone, last = 0, 0, Step(0.0, 0.0, 0)
    for step in [*steps, Step(float("inf"), float("inf"), final + 1)]:  # as if one more step came back
        if step.count > last.count:
            again += step.count - last.count - 1
        else:
            between = [each for each in restored if last.began < each.ended and each.began < step.ended]
            lowest = min((each.counts[worker] for each in between), default=last.count)
            if step.count <= lowest:
                why = f"the checkpoint had {lowest}" if between else "nothing was restored"
                found.append(f"worker {worker}: {last.count} steps were counted, then {step.count}, but {why}")
            undone += last.count + 1 - step.count
        last = step
    pauses = [after.ended - before.ended for before, after in pairwise(steps)]
    return Account(len(steps), again, undone, max(pauses, default=0.0), found)


class Sample(NamedTuple):
    """A process's memory, open files and threads at a moment."""

    MB: float
    files: int
    threads: int


ALLOWED = Sample(24.0, 24, 16)  # growth from the first half of a run to its end: what 50 lost sessions may not exceed


LEAST = 8


def grown(who: str, samples: Sequence[Sample]) -> Iterator[str]:
    """A line for each thing that a process holds more of in the last quarter of its life than in the second.

    A process that lived for less than `LEAST` samples is still growing up.
    """
    if len(samples) < LEAST:
        return
    quarter = max(1, len(samples) // 4)
    for name, allowed, early, late in zip(
        Sample._fields, ALLOWED, zip(*samples[quarter : 2 * quarter]), zip(*samples[-quarter:]), strict=True
    ):
        if median(late) - median(early) > allowed:
            yield f"{who}: {name} grew from {median(early):.0f} to {median(late):.0f}"
