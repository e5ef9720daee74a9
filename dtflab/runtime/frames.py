"""Frames: loops and conditionals, as the executor sees them.

Stands for FrameState and IterationState in `core/common_runtime/propagator_state.cc`.

Theory of operation (the 2015 white paper, 4.4; Yu et al., EuroSys 2018). A loop's values come in through Enter nodes,
which share a frame name; each turn of the loop is an Iteration of the same nodes. Merge lets in the first of (value
from Enter, value from NextIteration); Switch sends it to the body or, when LoopCond is false, to Exit, which leaves the
frame. A frame is over when every Enter has come and nothing in it is ready or awaited; only then is an Exit that never
got a live value known to be dead.

Rule: at most `parallel_iterations` iterations are alive; the values of later ones wait in `deferred`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.base.hashing import combine, hash64
from dtflab.runtime.rendezvous import DEAD

if TYPE_CHECKING:
    from dtflab.runtime.executor import Iteration


IMMORTAL = ("merge", "control_trigger")  # they run even if what they only wait for is dead


class Frame:
    """One entry of one loop: its living iterations, and what it still waits for."""

    def __init__(self, parent: Iteration, name: bytes, enters: int, parallel: int) -> None:
        self.parent = parent
        self.name = name
        self.id = combine(parent.ctx.frame_id, combine(parent.number, hash64(name)))
        self.enters_to_come = enters
        self.parallel = max(1, parallel)
        # What every iteration begins as: one that never runs, with the loop's constants on its edges.
        self.pattern = type(parent)(parent.executor, parent.step, parent.ctx, None, -1)
        self.deferred: list[tuple[int, Any]] = []  # (NextIteration node, value) for the iteration after the newest
        self.dead_exits: list[int] = []
        self.started = 0
        self.alive: deque[Iteration] = deque()
        self.next_iteration()

    def next_iteration(self) -> Iteration:
        """Begin the next turn of the loop."""
        parent = self.parent
        # Which iteration it is matters to kernels that take the context only, and so to loops inside.
        ctx = parent.ctx.in_frame(self.id, self.started) if parent.executor.ctx_slots else parent.ctx
        iteration = type(parent)(parent.executor, parent.step, ctx, self, self.started)
        iteration.ready += self.pattern.ready
        iteration.dead |= self.pattern.dead
        self.started += 1
        self.alive.append(iteration)
        self.dead_exits.clear()
        return iteration

    def enter(self, n: int, value: Any, is_constant: bool) -> None:
        """A value comes in from outside."""
        self.enters_to_come -= 1
        if is_constant:
            _hand_in(self.pattern, n, value)
        for iteration in self.alive if is_constant else [self.alive[0]]:
            _hand_in(iteration, n, value)
            iteration.enqueue()

    def advance(self, iteration: Iteration, n: int, value: Any) -> None:
        """A value goes from `iteration` to the one after it."""
        place = iteration.number + 1 - self.alive[0].number  # their numbers have no gaps
        if place < len(self.alive):
            following = self.alive[place]
        elif len(self.alive) < self.parallel:
            following = self.next_iteration()
        else:
            self.deferred.append((n, value))
            return
        following.hand_on(n, (value,))
        following.enqueue()

    def settle(self) -> None:
        """Drop the iterations that are over; end the frame when the last one is."""
        while self.alive and self.enters_to_come == 0 and _is_over(self.alive[0]):
            self.alive.popleft()
            if self.deferred:
                waiting, self.deferred = self.deferred, []
                iteration = self.next_iteration()
                for n, value in waiting:
                    iteration.hand_on(n, (value,))
                iteration.enqueue()
        if not self.alive and self.parent.frames.get(self.name) is self:
            self._end()

    def _end(self) -> None:
        parent = self.parent
        del parent.frames[self.name]
        for n in self.dead_exits:
            parent.hand_on(n, (DEAD,), alive=False)
        if parent.ready:
            parent.enqueue()
        elif parent.frame is not None:
            parent.frame.settle()


def _switch(iteration: Iteration, n: int, value: Any, taken: Any) -> None:
    sides: list[Any] = [DEAD] * len(iteration.executor.items[n].targets)
    side = int(taken)
    sides[side if 0 <= side < len(sides) else -1] = value
    iteration.hand_on(n, sides)


def _merge(iteration: Iteration, n: int, *args: Any) -> None:
    index = next(i for i, x in enumerate(args) if x is not None)
    iteration.hand_on(n, (args[index], np.int32(index)))


def _enter(iteration: Iteration, n: int, value: Any) -> None:
    executor, attrs = iteration.executor, iteration.executor.nodes[n].attrs
    name = attrs["frame_name"]
    frame = iteration.frames.get(name)
    if frame is None:
        frame = iteration.frames[name] = Frame(iteration, name, executor.enters[name], attrs["parallel_iterations"])
    frame.enter(n, value, attrs["is_constant"])


def _exit(iteration: Iteration, n: int, value: Any) -> None:
    assert iteration.frame is not None
    parent = iteration.frame.parent
    parent.hand_on(n, (value,))
    parent.enqueue()


def _next_iteration(iteration: Iteration, n: int, value: Any) -> None:
    assert iteration.frame is not None
    iteration.frame.advance(iteration, n, value)


def _trigger(iteration: Iteration, n: int) -> None:
    iteration.hand_on(n, ())


# A live control flow node runs as KERNELS[kind](iteration, n, *inputs), which hands its outputs on.
KERNELS: dict[str, Callable[..., None]] = {
    "switch": _switch,
    "merge": _merge,
    "enter": _enter,
    "exit": _exit,
    "next_iteration": _next_iteration,
    "control_trigger": _trigger,
}


def stops_death(iteration: Iteration, n: int) -> bool:
    """Run a dead control flow node; True if its outputs are not simply dead in this iteration."""
    kind = iteration.executor.control_flow[n]
    if kind == "enter":
        _enter(iteration, n, DEAD)
    elif kind == "exit":
        note_dead_exit(iteration, n)
    return kind in ("enter", "exit", "next_iteration")


def note_dead_exit(iteration: Iteration, n: int) -> None:
    """An Exit is dead in this turn; unless a later turn begins, what it gives is dead."""
    frame = iteration.frame
    if frame is not None and iteration is frame.alive[-1]:
        frame.dead_exits.append(n)


def place_of(iteration: Iteration) -> str:
    """Which turn of which loops it is, for an error: ` in iteration 6 of while/while_context`."""
    frame = iteration.frame
    return f" in iteration {iteration.number} of {frame.name.decode()}{place_of(frame.parent)}" if frame else ""


def _hand_in(iteration: Iteration, enter: int, value: Any) -> None:
    # A loop on the untaken branch of a conditional: its Merge gets no second value that could be dead, too.
    iteration.hand_on(enter, (value,), alive=value is not DEAD, for_good=True)


def _is_over(iteration: Iteration) -> bool:
    return not (iteration.ready or iteration.queued or iteration.in_flight or iteration.frames)
