"""The faults of a soak, drawn from a seed: what happens to whom, after how long, and for how long.

Rule: the draw knows nothing of the run, so that a seed always means the same faults in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

WORKERS = 3
WITNESS = WORKERS - 1  # neither this worker's server nor its client is ever killed, so a leak would show in them


class Fault(NamedTuple):
    """Something that happens: what is killed is started again, what is stopped goes on, what is cut off is joined."""

    pause: float  # seconds since the last fault was over
    kind: str  # an argument of dtflab.chaos
    what: str  # its text: "ps:0", "ps|worker:1", "RecvTensor:0.05"; or "client:1"
    lasts: float  # seconds


class _Kind(NamedTuple):
    name: str
    weight: int
    choices: tuple[str, ...]
    longest: float  # seconds


_KILLED, _ALL = range(WITNESS), range(WORKERS)
KINDS = (
    _Kind("kill", 2, ("ps:0",), 1.0),
    _Kind("kill", 4, tuple(f"worker:{i}" for i in _KILLED), 1.0),
    _Kind("kill", 4, tuple(f"client:{i}" for i in _KILLED), 1.0),
    _Kind("stop", 1, ("ps:0",), 6.0),
    _Kind("stop", 2, tuple(f"worker:{i}" for i in _ALL), 6.0),
    _Kind("stop", 1, tuple(f"client:{i}" for i in _ALL), 6.0),
    _Kind("partition", 2, tuple(f"ps|worker:{i}" for i in _ALL), 6.0),
    _Kind("drop", 2, ("RecvTensor:0.05", "RunGraph:0.05"), 1.0),
)


def faults(seed: int) -> Iterator[Fault]:
    """Faults without end."""
    random = Random(seed)
    while True:
        (kind,) = random.choices(KINDS, [kind.weight for kind in KINDS])
        yield Fault(random.uniform(1, 5), kind.name, random.choice(kind.choices), random.uniform(0, kind.longest))
