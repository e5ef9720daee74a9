"""Steps: a step that its user runs by hand, one set of ready nodes after the other, and what each set did.

Stands for nothing in TensorFlow, which runs a step in one go. The step itself, which knows how to stop between two
sets, is in `runtime/step_through.py`; here is what a person holds in hand, as data and as text.

Rule: between two sets the step stands still and no thread waits for it; it ends with its last set, with its first
error, or when it is closed.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from dtflab.base import errors
from dtflab.base.text_table import text_table
from dtflab.graph import device_spec
from dtflab.graph.loops import Frames, frames_of
from dtflab.graph.node_names import told_apart

if TYPE_CHECKING:
    from dtflab.runtime.executor import Executor, Iteration
    from dtflab.runtime.runner import Step
    from dtflab.runtime.step_through import Place, StepThrough
    from dtflab.runtime.transport import Explain

SMALL = 6  # elements: what has no more is shown


class Ran(NamedTuple):
    """A node's part in a set. `state` is 'ran', 'dead' (skipped, with all that needs it), 'waits' or 'came'.

    A node 'waits' if it was started and something outside of it must happen first; in a later set it 'came'.
    """

    name: str
    op: str
    device: str
    state: str
    outputs: list[str]

    @property
    def result(self) -> str:
        """The outcome in words."""
        return {"dead": "dead: not run", "waits": "asks, and waits"}.get(self.state, ", ".join(self.outputs))


class Counter(NamedTuple):
    """A node's count of what it still waits for, before a set and after it; at 0 it is ready."""

    name: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.before} → {self.after}"


class Standing(NamedTuple):
    """A node of a step that stands still. `state` is 'done', 'dead', 'ready', 'asked' or 'waits'.

    `sources` are the nodes that it waits for, once for each input; a receive waits for its send. It reads nothing from
    its `controls`.
    """

    name: str
    device: str
    state: str
    waits_for: int
    sources: list[str]
    controls: Sequence[str] = ()


class Record(NamedTuple):
    """One set: the nodes that ran, the counters they lowered, the nodes ready now, those that wait outside."""

    number: int
    ran: list[Ran]
    counters: list[Counter]
    ready: list[str]
    waiting: list[str]

    def __str__(self) -> str:
        head = f"set {self.number}" + ("" if self.ran else ": nothing was ready")
        called = told_apart(self.names)
        ran = [(device_spec.label(r.device), called(r.name), r.op, r.result) for r in self.ran]
        counters = [(called(c.name), str(c), "" if c.after > 0 else "ready") for c in self.counters]
        parts = [text_table(("device", "node", "op", "result"), ran)] if ran else []
        parts += [text_table(("counter of", "falls", ""), counters)] if counters else []
        return "\n".join([head, *parts, self.outlook])

    @property
    def names(self) -> list[str]:
        """All nodes that it mentions, some twice."""
        return [*(ran.name for ran in self.ran), *(c.name for c in self.counters), *self.ready, *self.waiting]

    @property
    def outlook(self) -> str:
        """The next nodes, in a line or two."""
        lines = [("ready next: ", self.ready), ("asked, and waiting: ", self.waiting)]
        called = told_apart(self.names)
        texts = [what + ", ".join(map(called, names)) for what, names in lines if names]
        return "\n".join(texts) or "the step is over"


def described(value: Any) -> str:
    """A value in a few words: dtype, shape, and the elements of a small one; a variable by what it holds."""
    if hasattr(value, "read"):
        return "variable" + (f" of {described(value.value)}" if value.initialized else " without a value")
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return type(value).__name__
    name = "string" if dtype.kind == "O" else str(dtype)
    text = f"{name} {list(shape)}" if shape else name
    small = isinstance(value, np.ndarray | np.generic) and value.size <= SMALL
    return f"{text} = {' '.join(np.array2string(value, precision=4, separator=', ').split())}" if small else text


# -- the parts of a step ---------------------------------------------------------------------------------------


class Part(Protocol):
    """A part of a step that stands still: what runs in this process, or at one task in another."""

    @property
    def ready(self) -> list[str]:
        """The nodes of its next set."""

    @property
    def waiting(self) -> list[str]:
        """The nodes that were started and wait for something outside."""

    @property
    def counts(self) -> dict[str, int]:
        """How much each node that is not ready waits for."""

    @property
    def rows(self) -> tuple[list[Ran], list[Counter]]:
        """The results of its nodes in the latest set, and the counters they lowered."""

    @property
    def nodes(self) -> list[Standing]:
        """The nodes outside of loops; all of them as waiting, whether they have run or not."""


class HeldPart(Part, Protocol):
    """A part at a task in another process. What it is asked, it answers by a post to the step."""

    @property
    def is_busy(self) -> bool:
        """True while the step has to wait for it."""

    @property
    def asks(self) -> list[str]:
        """The keys of the tensors that its nodes wait for."""

    @property
    def sent(self) -> list[str]:
        """The keys of the tensors that it sent to other tasks in the latest set."""

    def advance(self, step: Step) -> None:
        """Ask it to run its next set."""

    def settle(self, step: Step, keys: Sequence[str]) -> None:
        """Ask it to wait for the tensors of these keys, and to say how it stands."""

    def await_ready(self, step: Step) -> None:
        """Ask it to wait until a node is ready."""

    def stop(self, step: Step) -> None:
        """If it still waits for that, ask it to say how it stands."""


class Elsewhere:
    """The parts of a step by hand in other processes: those `held`, and the tasks where it runs through `unseen`."""

    def __init__(self) -> None:
        self.held: list[HeldPart] = []
        self.unseen: list[str] = []


class OwnPart:
    """The part in this process, perhaps of several tasks (Part)."""

    def __init__(self, step: StepThrough) -> None:
        self._step = step
        self._loops: dict[Executor, Mapping[str, Frames]] = {}  # of each partition, its nodes'

    @property
    def ready(self) -> list[str]:
        return self._names(self._step.held)

    @property
    def waiting(self) -> list[str]:
        return self._names(self._step.waiting)

    def _names(self, places: Iterable[Place]) -> list[str]:
        return [name_of(*place) for place in self._step.in_order(places)]

    @property
    def counts(self) -> dict[str, int]:
        living = [work for work in self._step.works() if lives(work)]
        return {name: n for work in living for name, n in _open_counts(work, self._loops_of(work)).items()}

    @property
    def rows(self) -> tuple[list[Ran], list[Counter]]:
        step = self._step
        states = dict.fromkeys(step.came, "came") | dict.fromkeys(step.ran, "ran")
        ran = [_ran(place, "waits" if place in step.waiting else states[place]) for place in step.in_order(states)]
        changed = [(work, before) for work in step.works() if (before := step.before[work]) != work.pending]
        return ran, [counter for work, before in changed for counter in _counters(work, before)]

    @property
    def nodes(self) -> list[Standing]:
        roots = [work for work in self._step.works() if work.frame is None]
        return [standing for work in roots for standing in _standings(work, self._loops_of(work))]

    def _loops_of(self, work: Iteration) -> Mapping[str, Frames]:
        if work.executor not in self._loops:
            self._loops[work.executor] = frames_of(work.executor.nodes)
        return self._loops[work.executor]


# -- reading a step that stands still; a place is a node's number in an iteration of the executor ----------------------


def lives(work: Iteration) -> bool:
    """True if an iteration is not over."""
    return work.frame is None or work in work.frame.alive


def name_of(work: Iteration, n: int) -> str:
    """The name of a node; in a loop with the number of the turn, `while/add[2]`, of loops in loops `[2,0]`."""
    turns: list[str] = []
    inner = work
    while inner.frame is not None:
        turns.insert(0, str(inner.number))
        inner = inner.frame.parent
    name = work.executor.nodes[n].name
    return f"{name}[{','.join(turns)}]" if turns else name


def _ran(place: Place, state: str) -> Ran:
    work, n = place
    dead = n in work.dead and state != "waits"
    outputs = [] if dead else [described(value) for value in _outputs(work, n) if value is not None]
    node = work.executor.nodes[n]
    return Ran(name_of(work, n), node.op, work.executor.device.name, "dead" if dead else state, outputs)


def _outputs(work: Iteration, n: int) -> list[Any]:
    """The values that a node has just handed on, read off the edges: its consumers have not run yet."""
    node, targets = work.executor.nodes[n], work.executor.items[n].targets
    if node.op == "_Retval" and work.ctx.results is not None:
        return [work.ctx.results[node.attrs["index"]]]
    outputs = targets if isinstance(targets, list) else [targets]
    there = _handed_to(work, n)
    if there is None:  # no further turn could begin yet, which the frame keeps the value for
        deferred = work.frame.deferred if work.frame is not None else ()
        return [value for late, value in deferred if late == n]
    return [there.inputs[consumers[0][0]] for consumers in outputs if consumers]


def _handed_to(work: Iteration, n: int) -> Iteration | None:
    """The iteration whose edges a node fills: its own, but Enter, NextIteration and Exit fill another's."""
    kind = work.executor.control_flow[n]
    if kind == "enter":
        return work.frames[work.executor.nodes[n].attrs["frame_name"]].alive[0]
    frame = work.frame
    if frame is not None and kind == "next_iteration":
        return next((other for other in frame.alive if other.number == work.number + 1), None)
    return frame.parent if frame is not None and kind == "exit" else work


def _counters(work: Iteration, before: list[int]) -> list[Counter]:
    """The counters that are lower than they were."""
    changed = [(n, b, a) for n, (b, a) in enumerate(zip(before, work.pending, strict=True)) if a < b and b > 0]
    return [Counter(name_of(work, n), b, max(0, a)) for n, b, a in changed]


def _open_counts(work: Iteration, loops: Mapping[str, Frames]) -> dict[str, int]:
    """The nodes of the iteration's own loop that are not ready yet, and what they wait for."""
    here: Frames = ()
    frame = work.frame
    while frame is not None:
        here, frame = (frame.name, *here), frame.parent.frame
    nodes = enumerate(work.executor.nodes)
    return {name_of(work, n): work.pending[n] for n, x in nodes if work.pending[n] > 0 and loops[x.name] == here}


def _standings(work: Iteration, loops: Mapping[str, Frames]) -> Iterator[Standing]:
    executor = work.executor
    folded = {executor.nodes[n].name for n in executor.constants}
    for node, count in zip(executor.nodes, work.pending, strict=True):
        if not loops[node.name] and node.name not in folded:
            reads = [name for name, _ in node.inputs]
            sources = [f"{node.name[:-5]}/send"] if node.name.endswith("/recv") else reads + node.controls
            left = [name for name in sources if name not in folded]
            controls = sorted({*left}.intersection(node.controls).difference(reads))
            yield Standing(node.name, executor.device.name, "waits", max(0, count), left, controls)


# -- in hand ---------------------------------------------------------------------------------------------------


class Steps:
    """A step in hand: `next()` runs the nodes that are ready now, `finish()` all that are left, `close()` gives it up.

    Made by `Session.step_through`. Iterating runs it to its end and gives the record of every set.

    >>> import dtflab as tf
    >>> a = tf.placeholder(tf.float32, name="a")
    >>> with tf.Session() as session:
    ...     steps = session.step_through(tf.negative(a * a, name="n"), {a: 3.0})
    ...     while not steps.over:
    ...         print([r.name for r in steps.next().ran])
    ...     steps.finish()
    ['_arg_a_0_0']
    ['mul']
    ['n']
    ['_retval_n_0_0']
    np.float32(-9.0)
    """

    def __init__(
        self, step: StepThrough, collect: Callable[[], object], end: Callable[[], object], explained: Explain
    ) -> None:
        """`step` is a StepThrough that was started; `collect()` gives the values, `end()` lets go of what it holds."""
        self.records: list[Record] = []
        self._step = step
        self._collect = collect
        self._end = end
        self._explained = explained
        self._lock = threading.Lock()
        self._own = OwnPart(step)
        self._values: list[object] = []  # of the fetches, once they are known
        self._run()

    @property
    def error(self) -> BaseException | None:
        """Why the step has failed."""
        return self._step.error

    @property
    def unseen(self) -> list[str]:
        """The tasks whose part runs through in one go: servers of TensorFlow."""
        return list(self._step.elsewhere.unseen)

    def _parts(self) -> list[Part]:
        """In the order in which they were started."""
        held, own_is_at = self._step.elsewhere.held, self._step.position
        return [*held[:own_is_at], self._own, *held[own_is_at:]]

    @property
    def ready(self) -> list[str]:
        """The nodes that the next set runs. In a loop, `name[2]` is the node in the third turn."""
        return [name for part in self._parts() for name in part.ready]

    @property
    def counts(self) -> dict[str, int]:
        """How many inputs and control inputs each node that is not ready waits for; of loops, in the living turns."""
        return {name: count for part in self._parts() for name, count in part.counts.items()}

    @property
    def waiting(self) -> list[str]:
        """The nodes that were started and wait for something outside: a queue, another task."""
        return [name for part in self._parts() for name in part.waiting]

    @property
    def over(self) -> bool:
        """True if there is nothing left to run, or the step failed or was closed."""
        return self._step.over

    @property
    def nodes(self) -> list[Standing]:
        """Every node outside of loops, and how it stands. Folded nodes are left out."""
        states = {ran.name: "dead" if ran.state == "dead" else "done" for r in self.records for ran in r.ran}
        states |= dict.fromkeys(self.waiting, "asked") | dict.fromkeys(self.ready, "ready")
        standings = [standing for part in self._parts() for standing in part.nodes]
        return [standing._replace(state=states.get(standing.name, "waits")) for standing in standings]

    def next(self, patient: bool = False) -> Record:
        """Run the nodes that are ready, all of them and no other, and say what they did.

        If none is ready, because all wait for something outside, a `patient` call waits for that; another one says that
        nothing ran, and `next` may be called again. Raises the error of the step, and RuntimeError when it is over.
        """
        if self.over and self.error is None:
            raise RuntimeError("The step is over; finish() gives its values.")
        return self._run(patient)

    def finish(self) -> Any:
        """Run what is left, and return the values of the fetches; as `Session.run`, it waits as long as that takes."""
        for _ in self:
            pass
        if self.error is not None:
            raise self.error
        return self._collect() if not self._values else self._values[0]

    def printed(self) -> object:
        """Finish the step and print every record: what `run` does in a session with `step_through=True`."""
        with self:
            for record in self:
                print(record, end="\n\n", flush=True)
            return self.finish()

    def close(self) -> None:
        """Give the step up: its requests are cancelled, its tensors are freed. A step that is over stays as it is."""
        if self.over:
            return
        self._step.cancel(errors.CancelledError.of("The step was closed."))
        with self._lock, contextlib.suppress(errors.OpError):
            self._step.drive()
        self._let_go()

    def _let_go(self) -> None:
        """Free what the step holds; of one that was given up or failed, also the values that nobody has used yet."""
        self._end()
        if self._step.error is not None:
            for work in self._step.before:
                work.inputs.clear()

    def __del__(self) -> None:
        if hasattr(self, "_lock") and not sys.is_finalizing():
            self.close()

    def _run(self, patient: bool = False) -> Record:
        """One set; the first call only finds out which nodes are ready."""
        with self._lock:
            try:
                self._step.advance(patient)
                if self.over:
                    self._values.append(self._collect())
            except (errors.OpError, KeyboardInterrupt) as error:
                raise self._explained(error) from None
            finally:
                if self.over:
                    self._let_go()
            record = self._record()
            if record.ran:
                self.records.append(record)
            return record

    def _record(self) -> Record:
        rows = [part.rows for part in self._parts()]
        ran = [one for part_ran, _ in rows for one in part_ran]
        counters = [counter for _, part_counters in rows for counter in part_counters]
        return Record(len(self.records) + 1, ran, counters, self.ready, self.waiting)

    def __iter__(self) -> Iterator[Record]:
        while not self.over:
            yield self._run(patient=True)

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if (error := self.error) is not None:
            return f"step failed after set {len(self.records)}: {getattr(error, 'message', error)}"
        open_counts = self.counts
        called = told_apart(open_counts)
        counts = [(called(name), count) for name, count in open_counts.items()]
        head = f"step after set {len(self.records)}" if self.records else "step, not begun"
        last = self.records[-1] if self.records else Record(0, [], [], [], [])
        parts = [head, last._replace(ready=self.ready, waiting=self.waiting).outlook]
        return "\n".join(parts + ([text_table(("node", "waits for"), counts)] if counts else []))
