"""The words of chaos: what goes wrong, where, from when and for how long, as in `worker:1@step5=2s`.

Rule: a text is wrong before anything goes wrong: a ValueError names it, what there is, and an example.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from dtflab.base.suggestions import near
from dtflab.cluster.faults import METHODS, MOST_SLOW

EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "kill": "worker:1@step5",
        "slow": "ps:0=4x",
        "drop": "RecvTensor:0.1",
        "partition": "ps|worker:2",
        "stop": "worker:0=3s",
    }
)
_NUMBER = r"[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?"


class Fault(NamedTuple):
    """A fault as it was asked for. `groups` are the names of the tasks concerned, several only for a partition."""

    kind: str
    text: str
    groups: tuple[tuple[str, ...], ...]
    at_step: int = 0  # begins before the step of this number
    at_seconds: float = 0.0  # or so long after the block; 0 for both: at once
    lasts: float = math.inf  # seconds
    factor: float = 1.0
    method: str = ""
    probability: float = 0.0

    @property
    def tasks(self) -> list[str]:
        """All tasks concerned."""
        return [task for group in self.groups for task in group]


def fault(kind: str, text: str, tasks: Sequence[str]) -> Fault:
    """The fault that a text asks for in a cluster of these tasks (full names)."""
    what, *parts = re.split(r"(?=[@=])", text.strip())
    found = _WHAT[kind](Fault(kind, text.strip(), ()), what.strip(), tasks)
    for part in parts:
        found = _with_part(found, part.strip())
    if kind == "slow" and found.factor == 1.0:
        raise _wrong(found, "does not say how slow")
    return found


def _with_part(found: Fault, part: str) -> Fault:
    if step := re.fullmatch(r"@\s*step\s*([0-9]+)", part):
        if int(step[1]) < 1:
            raise _wrong(found, "names step 0, but the first step is step1")
        return _once(found, part, at_step=int(step[1]))
    if moment := re.fullmatch(rf"@\s*({_NUMBER})\s*s", part):
        return _once(found, part, at_seconds=float(moment[1]))
    if seconds := re.fullmatch(rf"=\s*({_NUMBER})\s*s", part):
        if not float(seconds[1]):
            raise _wrong(found, "lasts 0 s; leave that out, or give it some time")
        return _once(found, part, lasts=float(seconds[1]))
    if (factor := re.fullmatch(rf"=\s*({_NUMBER})\s*x", part)) and found.kind == "slow":
        if not 1.0 < float(factor[1]) <= MOST_SLOW:
            raise _wrong(found, f"is slow by {part[1:]}, which must be above 1x and at most {MOST_SLOW:g}x")
        return _once(found, part, factor=float(factor[1]))
    amounts = "=4x for how slow, =3s for how long" if found.kind == "slow" else "=3s for how long"
    raise _wrong(found, f"has the part {part!r}, but there are @step5 and @2.5s for when it begins, {amounts}")


_BLANK = Fault("", "", ())
_EITHER = ("at_step", "at_seconds")  # a fault has one moment


def _once(found: Fault, part: str, **given: Any) -> Fault:
    """The fault with one more part; ValueError if it has that already."""
    (name,) = given
    before, blank = found._asdict(), _BLANK._asdict()
    if any(before[field] != blank[field] for field in (_EITHER if name in _EITHER else (name,))):
        raise _wrong(found, f"says twice {'when it begins' if name in _EITHER else 'how much'}: {part!r}")
    return found._replace(**given)


def _of_tasks(found: Fault, what: str, tasks: Sequence[str]) -> Fault:
    return found._replace(groups=(_group(found, what, tasks),))


def _parted(found: Fault, what: str, tasks: Sequence[str]) -> Fault:
    groups = tuple(_group(found, part, tasks) for part in what.split("|"))
    if len(groups) < 2:
        raise _wrong(found, "is one group; write | between those that can't reach each other")
    named = [task for group in groups for task in group]
    if twice := sorted({task for task in named if named.count(task) > 1}):
        raise _wrong(found, f"has {short(twice[0])} on both sides")
    return found._replace(groups=groups)


def _dropped(found: Fault, what: str, tasks: Sequence[str]) -> Fault:
    method, _, chance = (part.strip() for part in what.partition(":"))
    if method not in METHODS:
        raise _wrong(found, f"names the method {method!r}{_meant(method, METHODS)}; there are {', '.join(METHODS)}")
    if not chance:
        raise _wrong(found, "does not say with which probability calls are lost")
    if not re.fullmatch(_NUMBER, chance) or not 0 < float(chance) <= 1:
        raise _wrong(found, f"has the probability {chance!r}, which must be a number above 0 and at most 1")
    return found._replace(groups=(tuple(tasks),), method=method, probability=float(chance))


_WHAT: Mapping[str, Callable[[Fault, str, Sequence[str]], Fault]] = MappingProxyType(
    {"kill": _of_tasks, "slow": _of_tasks, "drop": _dropped, "partition": _parted, "stop": _of_tasks}
)
KINDS = tuple(_WHAT)


def _group(found: Fault, what: str, tasks: Sequence[str]) -> tuple[str, ...]:
    """The tasks that a text like `ps,worker:1` names."""
    known = {short(task): task for task in tasks}
    chosen: list[str] = []
    for name in (part.strip() for part in what.split(",")):
        own = [task for short, task in known.items() if name in (short, short.partition(":")[0])]
        if not own:
            jobs = dict.fromkeys(short.partition(":")[0] for short in known)
            meant = _meant(name, [*jobs, *known])
            raise _wrong(found, f"names the task {name!r}{meant}; there are {', '.join(known)}")
        chosen += [task for task in own if task not in chosen]
    return tuple(chosen)


def _meant(name: str, known: Iterable[str]) -> str:
    found = near(name, known)
    return f" (did you mean {found[0]}?)" if found else ""


def short(task: str) -> str:
    """`worker:1` for `/job:worker/replica:0/task:1`."""
    return task.removeprefix("/job:").replace("/replica:0/task", "")


def _wrong(found: Fault, why: str) -> ValueError:
    return ValueError(f"{found.kind}={found.text!r} {why}. For example: {found.kind}={EXAMPLES[found.kind]!r}")
