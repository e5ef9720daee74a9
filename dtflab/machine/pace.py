"""Pace: how fast the devices of a task compute, and whether they do. `dtflab.chaos` slows them down and stops them.

Stands for nothing in TensorFlow, where an operator of the system would do that.

Rules: a device that is stopped begins no kernel, and no thread waits for it: its nodes are put aside. A slow one makes
a kernel last longer, and the thread that runs it with it; in virtual time, the model of that (`virtual/step.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from dtflab.machine.clock import REAL

_LEAST = 0.001  # seconds that a thread sleeps at once: a shorter sleep takes longer than it says


class Gate:
    """A place that calls pass at once while it is open, else when it opens again."""

    def __init__(self) -> None:
        self.is_open = True
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], object]] = []

    def shut(self) -> None:
        """Let nothing pass from now on."""
        self.is_open = False

    def open(self) -> None:
        """Let everything pass that waits, in its order, and all that comes."""
        with self._lock:
            self.is_open = True
            waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def pass_through(self, call: Callable[[], object]) -> None:
        """Make the call, now or when the gate opens."""
        with self._lock:
            if not self.is_open:
                self._waiting.append(call)
                return
        call()


class Pace:
    """The pace of a task's devices: by what `factor` a kernel lasts longer, and the gate before each kernel."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.gate = Gate()
        self.is_usual = True  # nothing has to be asked before a kernel, and nothing done after it
        self._behind = 0.0  # seconds that are still to be slept
        self._changed = REAL.event()

    def slow_down(self, factor: float) -> None:
        """From now on, let a kernel last `factor` times as long as it computes; 1 ends every pause."""
        self.factor, self._behind = factor, 0.0
        self._note()
        self._changed.set()
        if factor != 1.0:
            self._changed = REAL.event()

    def stop(self) -> None:
        """Let no kernel begin."""
        self.gate.shut()
        self._note()

    def go_on(self) -> None:
        """Let those begin that wait, and all later ones."""
        self.gate.open()
        self._note()

    def _note(self) -> None:
        self.is_usual = self.factor == 1.0 and self.gate.is_open

    def stretch(self, seconds: float) -> None:
        """A kernel has computed for that long on this thread: make it last longer."""
        self._behind += seconds * (self.factor - 1.0)
        if self._behind >= _LEAST:
            pause, self._behind = self._behind, 0.0
            self._changed.wait(pause)


USUAL = Pace()  # of devices that nobody slows down
