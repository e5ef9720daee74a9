"""Watch of a live panel for a circle of waits: a deadlock in real time, which hangs without an error.

Rule: a task that does not answer costs seconds, so a thread of its own asks, never the panel's ticker. In virtual time
a step that cannot end raises a DeadlockError instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dtflab.base import errors
from dtflab.cluster.cluster import Cluster
from dtflab.machine.clock import REAL, Thread, using
from dtflab.runtime.standstill import Fact
from dtflab.viz.data.waits_for import waits_for
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.waits import waits

LONG_S = 1.0  # a wait that may be part of a circle
_EVERY_S = 2.0  # between two questions
_AGAIN_S = 0.2  # after a circle was found: tasks answer one after another, of steps that may be over by then


class CircleWatch:
    """The picture of who waits for whom in a cluster, while some wait in a circle."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.picture: Picture | None = None
        self._facts: Sequence[Fact] = ()
        self._thread: Thread | None = None  # the one that asks, or the last that did
        self._next = -math.inf

    def look(self, is_long: bool) -> None:
        """Ask soon, if something has waited for long; else there is no circle."""
        if not is_long:
            self.picture = None
        elif REAL.now() >= self._next and not (self._thread and self._thread.is_alive()):
            self._thread = REAL.spawn(self._ask, name=f"circle of {self.cluster.name}")

    def before_the_interrupt(self) -> Picture | None:
        """The picture of a circle that an interrupt has just broken."""
        return self.picture and waits(self._facts, title="Waits before the interrupt")

    def _ask(self) -> None:
        try:
            with using(REAL):
                self._facts = self.cluster.standstill()
                if found := _circles(self._facts):
                    REAL.sleep(_AGAIN_S)
                    self._facts = self.cluster.standstill()
                lasts = found & _circles(self._facts)
                self.picture = waits(self._facts, title="Waits now") if lasts else None
        except errors.OpError:  # a task has just ended
            self.picture = None
        finally:
            self._next = REAL.now() + _EVERY_S


def _circles(facts: Sequence[Fact]) -> set[frozenset[str]]:
    return {frozenset(circle) for circle in waits_for(facts).circles}
