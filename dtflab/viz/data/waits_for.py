"""From what stands still to who waits for whom: a graph, its circles, and whether anything in it can move.

An op waits for a queue, and a queue for the clients that could put into it or take from it: those whose steps have done
so before, else those whose graph has such an op. A client that is blocked itself is the op that blocks it. So a circle
of arrows is a circle of clients, each of which waits for the next.

Rule: an op needs all that it waits for, a queue one of those that could help. Waiters that lead to somebody who is free
can still move, unless it is `proved`, as in virtual time, that nobody will ever do anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dtflab.base.grouping import grouped
from dtflab.graph.device_spec import label, task_name
from dtflab.graph.node_names import readable
from dtflab.runtime.standstill import Fact, InLine, Owed, Program, Reserving, Resting, Silent, Uses
from dtflab.viz.participants import client_label

_STEP = re.compile(r"step (\d+)")
_PERHAPS = "perhaps its part of a step"
_END = re.compile(r"the end of thread '(.*)'")


class Waiter(NamedTuple):
    """An op that is blocked, a queue, a task or a client; `about` is its state, `device` is empty for a client."""

    key: str
    kind: str  # op, queue, task or client
    name: str
    about: str
    device: str = ""


class Arrow(NamedTuple):
    """One waits for another, and for what; `by` is the op that could help at a queue."""

    source: str
    target: str
    what: str
    by: str = ""


class WaitsFor(NamedTuple):
    """A graph of waiters. `stuck` are those that cannot move, `circles` some of them, each waiting for the next."""

    waiters: Mapping[str, Waiter]
    arrows: Sequence[Arrow]
    stuck: frozenset[str]
    circles: Sequence[Sequence[str]]
    proved: bool


def waits_for(facts: Iterable[Fact], proved: bool = False) -> WaitsFor:
    """The graph of who waits for whom; see the module's rule for `proved`."""
    graph = _Graph(facts)
    free = {key for key, waiter in graph.waiters.items() if not proved and key in graph.free}
    after = grouped((arrow.source, arrow.target) for arrow in graph.arrows)
    while new := {
        key for key in graph.waiters.keys() - free if _can_move(graph.waiters[key], after.get(key, ()), free)
    }:
        free |= new
    stuck = frozenset(graph.waiters.keys() - free)
    return WaitsFor(graph.waiters, graph.arrows, stuck, _circles(graph.waiters, after, stuck), proved)


def _can_move(waiter: Waiter, after: Sequence[str], free: set[str]) -> bool:
    helpers = [key in free for key in after]
    return any(helpers) if waiter.kind in ("queue", "client") else bool(helpers) and all(helpers)


def _circles(keys: Iterable[str], after: Mapping[str, Sequence[str]], stuck: frozenset[str]) -> list[list[str]]:
    """A shortest circle through each group of waiters that reach each other."""
    circles: list[list[str]] = []
    for key in keys:
        circle = _way_back(key, after, stuck)
        if circle and not any(set(circle) & set(_reach(other[0], after, stuck)) for other in circles):
            circles.append(circle)
    return circles


def _way_back(key: str, after: Mapping[str, Sequence[str]], stuck: frozenset[str]) -> list[str]:
    """The shortest circle through `key`; empty if there is none."""
    before = _reach(key, after, stuck)
    if key not in before:
        return []
    circle = [key]
    while (previous := before[circle[-1]]) != key:
        circle.append(previous)
    return [key, *reversed(circle[1:])]


def _reach(key: str, after: Mapping[str, Sequence[str]], stuck: frozenset[str]) -> dict[str, str]:
    """The waiters that arrows lead to from `key`, each with the one before it on a shortest way."""
    before: dict[str, str] = {}
    line = [key] if key in stuck else []
    for source in line:
        for target in after.get(source, ()):
            if target in stuck and target not in before:
                before[target] = source
                line.append(target)
    return before


class _Graph:
    """Waiters and arrows, as they are found; `free` are those that wait for nothing that is known."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        given = list(facts)
        self._in_line = [fact for fact in given if isinstance(fact, InLine)]
        self._owed = [fact for fact in given if isinstance(fact, Owed)]
        self._programs = [fact for fact in given if isinstance(fact, Program)]
        self._reserving = [fact for fact in given if isinstance(fact, Reserving)]
        self._silent = {fact.task: fact.why for fact in given if isinstance(fact, Silent)}
        resting = [fact for fact in given if isinstance(fact, Resting)]
        self._thread_of = {int(m[1]): fact.thread for fact in resting if (m := _STEP.fullmatch(fact.what))}
        self._resting = {fact.thread: fact.what for fact in resting if not _STEP.fullmatch(fact.what)}
        self._labels = dict(self._label_programs())
        self._step_of = {step: program for program in self._programs for step in program.steps}
        self.waiters: dict[str, Waiter] = {}
        self.arrows: list[Arrow] = []
        self.free: set[str] = set()
        for line in self._in_line:
            self._add_line(line)
        self._away = self._ways_out()
        for owed in grouped(((fact.step, fact.receiver, fact.owes), fact) for fact in self._owed).values():
            self._add_owed(owed)
        for reserving in self._reserving:
            self._add_reserving(reserving)
        for program in self._programs:
            if self._silent and program.steps and not self._blocked(program):
                self._add_perhaps(program)
        self.arrows = list(dict.fromkeys(self.arrows))

    # -- clients ----------------------------------------------------------------------------------------------

    def _label_programs(self) -> Iterator[tuple[str, str]]:
        """The label of the client of each session; of those that share one, with a number."""
        named = [(self._plain_label(program), program.handle) for program in self._programs]
        for name, handles in grouped(named).items():
            for i, handle in enumerate(handles, 1):
                yield handle, f"{name} ({i})" if len(handles) > 1 else name

    def _plain_label(self, program: Program) -> str:
        thread = next(filter(None, map(self._thread_of.get, program.steps)), program.client)
        if thread:
            return client_label(thread)
        return "client" if "/job:localhost" in program.master else f"client of {label(program.master)}"

    def _client(self, step: int) -> str:
        if step in self._thread_of:
            return client_label(self._thread_of[step])
        return self._labels[self._step_of[step].handle] if step in self._step_of else "another client"

    def _blocked(self, program: Program) -> list[str]:
        """The ops at which the steps of a client are blocked; if none, where it waits outside of a step."""
        steps = [_op_key(fact) for fact in self._in_line if fact.step in program.steps]
        return steps or [_task_key(fact.receiver, fact.step) for fact in self._owed if fact.step in program.steps]

    def _add_client(self, name: str, about: str = "in no step now") -> str:
        """A client that no other step blocks: what else it waits for, if that is known, or that it is free."""
        key = f"client {name}"
        if key not in self.waiters:
            thread = next((thread for thread in self._resting if client_label(thread) == name), "")
            waits = self._resting.get(thread, "")
            about = f"waits for {waits}" if waits else about
            self.waiters[key] = Waiter(key, "client", name, about)
            if ended := _END.fullmatch(waits):
                self.arrows += [Arrow(key, target, "its end") for target in self._where(client_label(ended[1]))]
            elif not waits and not any(client_label(fact.holder) == name for fact in self._reserving):
                self.free.add(key)
        return key

    def _where(self, name: str) -> list[str]:
        """Where a client stands: the ops that block it, or the client itself."""
        programs = [program for program in self._programs if self._labels[program.handle] == name]
        blocked = [key for program in programs for key in self._blocked(program)]
        return blocked or [self._add_client(name)]

    # -- queues -----------------------------------------------------------------------------------------------

    def _add_line(self, fact: InLine) -> None:
        op, queue = _op_key(fact), f"queue {fact.needs} {fact.device} {fact.container} {fact.name}"
        self.waiters[op] = Waiter(op, "op", readable(fact.op), self._client(fact.step), fact.device)
        self.arrows.append(Arrow(op, queue, fact.wants))
        if queue not in self.waiters:
            self.waiters[queue] = Waiter(queue, "queue", fact.name, fact.level, fact.device)
            self.arrows += self._helpers(queue, fact)

    def _helpers(self, queue: str, fact: InLine) -> Iterator[Arrow]:
        """From a queue to where each client stands that could put into it, or take from it."""
        here = [other for other in self._in_line if _same(other, fact)]
        steps = {other.step for other in here}
        able = [
            (program, use)
            for program in self._programs
            for use in program.uses
            if _helps(use, fact) and (not fact.private or steps & set(program.steps))
        ]
        others = [pair for pair in able if not steps & set(pair[0].steps)]
        for program, use in [pair for pair in others if pair[1].has_run] or others or able:
            waiting = {_op_key(other) for other in here}
            blocked = [key for key in self._blocked(program) if key not in waiting]
            about = "in this step itself" if steps >= {*program.steps} else "at work on a step"
            about = about if program.steps else "in no step now"
            targets = blocked or [self._add_client(self._labels[program.handle], about)]
            op = readable(use.op)
            yield from (Arrow(queue, target, f"a {fact.needs} by {op}", op) for target in targets)

    # -- tensors and GPUs -------------------------------------------------------------------------------------

    def _ways_out(self) -> dict[tuple[int, str], int]:
        """How far a task of a step is from one of that step that a queue blocks, or that waits for no tensor.

        Tensors of a step never wait for each other in a circle. So of tasks that owe each other some, one leads to such
        a task; those that lead to none compute.
        """
        waits = {(fact.step, fact.receiver) for fact in self._owed}
        ends = [(o.step, o.owes) for o in self._owed if self._at(o) or (o.step, o.owes) not in waits]
        before = grouped(((fact.step, fact.owes), (fact.step, fact.receiver)) for fact in self._owed)
        away = dict.fromkeys(ends, 0)
        line = [*away]
        for place in line:
            for source in before.get(place, ()):
                if source not in away:
                    away[source] = away[place] + 1
                    line.append(source)
        return away

    def _at(self, fact: Owed) -> list[str]:
        """The ops of the step that are blocked on the task that owes a tensor."""
        return [_op_key(o) for o in self._in_line if o.step == fact.step and task_name(o.device) == fact.owes]

    def _add_owed(self, facts: Sequence[Owed]) -> None:
        """A task waits for tensors of another one: for the ops of the step that are blocked there, or for the task."""
        fact, more = facts[0], len(facts) - 1
        key = _task_key(fact.receiver, fact.step)
        waiter = Waiter(key, "task", label(fact.receiver), self._client(fact.step), fact.receiver)
        self.waiters.setdefault(key, waiter)
        there, here, other = self._at(fact), (fact.step, fact.receiver), (fact.step, fact.owes)
        if not there and self._away.get(other, 0):
            if 0 < self._away[here] <= self._away[other]:
                return  # this one is nearer to what blocks the step
            there = [_task_key(fact.owes, fact.step)]
        what = readable(fact.tensor) + (f" and {more} more" if more else "")
        self.arrows += [Arrow(key, target, what) for target in there or [self._add_task(fact.owes)]]

    def _add_task(self, task: str) -> str:
        key = _task_key(task)
        self.waiters[key] = Waiter(key, "task", label(task), self._silent.get(task, "is at work"), task)
        if task not in self._silent:
            self.free.add(key)
        return key

    def _add_perhaps(self, program: Program) -> None:
        """A step that nothing is known to block may have a part at a task that does not answer."""
        client = self._add_client(self._labels[program.handle], "at work on a step")
        self.arrows += [Arrow(client, self._add_task(task), _PERHAPS) for task in self._silent]

    def _add_reserving(self, fact: Reserving) -> None:
        name = client_label(fact.holder)
        key = f"client {name}"
        self.waiters[key] = Waiter(key, "client", name, f"waits for {fact.wants}")
        holders = [holder for holder in fact.held_by if holder != fact.holder] or fact.held_by
        for holder in holders:
            self.arrows += [Arrow(key, target, fact.wants) for target in self._where(client_label(holder))]


def _op_key(fact: InLine) -> str:
    return f"op {fact.step} {fact.device} {fact.op}"


def _task_key(task: str, step: int = 0) -> str:
    return f"task {task} {step}"


def _same(one: InLine, other: InLine) -> bool:
    return _place(one) == _place(other) and one.needs == other.needs


def _place(one: InLine | Uses) -> tuple[str, str, str]:
    return one.device, one.container, one.name


def _helps(use: Uses, fact: InLine) -> bool:
    return use.does == fact.needs and _place(use) == _place(fact)


# -- in words -------------------------------------------------------------------------------------------------


def sentences(found: WaitsFor) -> list[str]:
    """Each circle, and each wait that nobody can end, in a sentence; or that somebody can still move."""
    said = [_circle(found, circle) for circle in found.circles]
    after = grouped((arrow.source, arrow) for arrow in found.arrows)
    for waiter in found.waiters.values():
        if waiter.kind == "queue" and waiter.key not in after:
            ops = [found.waiters[arrow.source] for arrow in found.arrows if arrow.target == waiter.key]
            one, wait = (f"{ops[0].name} ({ops[0].about})", "waits") if len(ops) == 1 else (f"{len(ops)} ops", "wait")
            said.append(f"{one} {wait} for {waiter.name}, and no open session has an op that {_does(waiter)} it.")
        if waiter.kind == "task" and waiter.key in found.stuck and waiter.key not in after:
            known = any(arrow.target == waiter.key and arrow.what != _PERHAPS for arrow in found.arrows)
            who = "others wait" if known else "a step may wait"
            said.append(f"{waiter.name}, for which {who}, does not answer: {waiter.about}")
    if not said and not found.waiters:
        return ["Nobody waits."]
    if not said and not found.proved and found.waiters.keys() - found.stuck:
        helpers = [w.name for w in found.waiters.values() if w.key not in found.stuck and w.key not in after]
        return [f"No circle: {', '.join(helpers)} can still move."]
    ends = [f"{w.name}, {w.about}" for w in found.waiters.values() if w.about and w.key not in after]
    if not said and found.proved and ends:
        return [f"No circle, but nobody is left who helps. At the end of the line: {'; '.join(ends)}."]
    return said or ["No circle is known. The help may come from outside."]


def _circle(found: WaitsFor, circle: Sequence[str]) -> str:
    """`A (op) waits until B puts into q, B (op) until A …`: who waits for whom around a circle.

    Where A and B are threads of one client, the op that would put says more than the client.
    """
    own = [found.waiters[key] for key in circle if found.waiters[key].kind != "queue"]
    queues = {circle[i - 1]: found.waiters[key] for i, key in enumerate(circle) if found.waiters[key].kind == "queue"}
    by = {(arrow.source, arrow.target): arrow.by for arrow in found.arrows}
    parts = []
    for i, waiter in enumerate(own):
        other = own[(i + 1) % len(own)]
        queue = queues.get(waiter.key)
        whom = "itself" if other is waiter else _who(other)
        if queue and whom == _who(waiter):
            whom = by[queue.key, other.key]
        wait = f"until {whom} {_does(queue)} {queue.name}" if queue else f"for {whom}"
        op = f" ({waiter.name})" if waiter.kind == "op" else ""
        parts.append(f"{_who(waiter)}{op} {wait if i else f'waits {wait}'}")
    end = "Nobody can move." if found.proved else "None of them can move by itself."
    return f"A circle: {', '.join(parts)}. {end}"


def _who(waiter: Waiter) -> str:
    return waiter.about if waiter.kind == "op" else waiter.name


def _does(queue: Waiter) -> str:
    return "takes from" if queue.key.startswith("queue take") else "puts into"
