"""sim: questions asked of simulated hardware: how fast would this model train on that cluster, and what if …?

`sim.sleep(seconds)` and `sim.now()` are for programs that run in virtual time (`Cluster(clock="virtual")`): what a
client does between its steps takes none unless it says so.
"""

from __future__ import annotations

from dtflab.machine.clock import CURRENT
from dtflab.sim.stragglers import exponential, lognormal, pareto, uniform

__all__ = ["exponential", "lognormal", "now", "pareto", "sleep", "uniform"]


def sleep(seconds: float) -> None:
    """Let virtual seconds pass for the client that calls; real ones outside of virtual time."""
    CURRENT.sleep(seconds)


def now() -> float:
    """Seconds on the clock that counts for the caller: virtual ones since its cluster was made, if it has one."""
    return CURRENT.now()
