"""Executor: runs one partition. A node is ready when all its inputs are there; ready nodes run; that is all.

Stands for `core/common_runtime/executor.cc` (ExecutorState::Process, PropagateOutputs, NodeDone).
Left out: NUMA, the ready-count heuristics for handing work to other threads.

Theory of operation. An `Executor` is made once per registered partition: its nodes become flat arrays of bound
kernels. A step makes an `Iteration` of it, which has one input slot per edge and one pending count per node. The loop
in `Iteration.process` takes a ready node, calls its kernel on its slots, and drops the result into the slots of the
consumers, whose counts go down by one. Values known before the step, constants and its context, are in their slots from
the start. A loop of the graph (Enter, Merge, Switch, NextIteration, Exit) makes more Iterations of the same arrays, in
a `Frame` (frames.py).

Rules: a node runs once per iteration. An edge carries a value, a variable's Cell (read when the consumer starts), or
DEAD. A node with a dead input does not run and its outputs are dead; Merge, `_Send` and `_Recv` are the exceptions.
There is one loop for all modes: tracing and thread pools are flags of it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dtflab.graph import op_registry
from dtflab.graph.node import Node
from dtflab.machine import costs
from dtflab.machine.clock import REAL
from dtflab.machine.pace import USUAL
from dtflab.machine.pools import Part, noted_parts
from dtflab.ops.blas import NANOSECONDS_PER_FLOP
from dtflab.ops.cell import Cell
from dtflab.ops.forwarding import reading
from dtflab.runtime import frames, remembering
from dtflab.runtime.cell_edges import CellEdges, handing_on, hands_on
from dtflab.runtime.metering import driving, fail, on_a_pool
from dtflab.runtime.rendezvous import DEAD

if TYPE_CHECKING:
    from dtflab.machine.devices import Device
    from dtflab.runtime.graph_mgr import StepContext
    from dtflab.runtime.runner import Step

# Special properties of a node; 0 is a plain kernel with one output.
MANY_OUTPUTS, ASYNC, COSTLY, TRANSFER, CONTROL_FLOW, READS_FIRST, COST_UNKNOWN = 1, 2, 4, 8, 16, 32, 64

_TRANSFERS = ("_Send", "_Recv", "_HostSend", "_HostRecv")

_DELIVERED = object()  # instead of an output: it has been handed to its consumers, or will be


class Item(NamedTuple):
    """A node, ready to be run."""

    kernel: Callable[..., Any]
    slots: slice  # of its inputs; the step's context, if it takes that, is in the first
    empty: list[None]  # as many Nones
    mode: int
    # Where the outputs go: [(slot, consumer)] of the only output, or a list of those per output if MANY_OUTPUTS.
    targets: Any
    controls: tuple[int, ...]  # nodes that wait for this one to finish


class Executor:
    """A partition on one device, bound and flattened."""

    def __init__(
        self, nodes: Sequence[Node], device: Device, of_function: bool = False, going: Callable[[], object] = bool
    ) -> None:
        """`going` is called before each node is bound, and ends the work by an error."""
        self.nodes = list(nodes)
        self.device = device
        self.pace = USUAL if of_function else device.pace  # that of the kernel that calls the function
        # In TensorFlow, too, the body of a function calls one after the other. In virtual time threads take turns.
        self._may_meet = not of_function and device.clock is REAL
        index = {node.name: i for i, node in enumerate(nodes)}
        takes_ctx = [op.needs_ctx or op.is_async for op in (op_registry.get(n.op) for n in nodes)]
        first = [0]
        for node, ctx in zip(nodes, takes_ctx, strict=True):
            first.append(first[-1] + ctx + len(node.inputs))
        self.ctx_slots = [slot for slot, ctx in zip(first, takes_ctx, strict=False) if ctx]
        self.control_flow = [op_registry.get(n.op).control_flow for n in nodes]
        # A Merge waits for its control inputs and for one of its data inputs.
        self.pending = [
            len(n.controls) + (1 if kind == "merge" else len(n.inputs))
            for n, kind in zip(nodes, self.control_flow, strict=True)
        ]
        targets: list[list[list[tuple[int, int]]]] = [[[] for _ in n.output_types] for n in nodes]
        controls: list[list[int]] = [[] for _ in nodes]
        for i, node in enumerate(nodes):
            for position, (source, output) in enumerate(node.inputs):
                targets[index[source]][output].append((first[i] + takes_ctx[i] + position, i))
            for source in node.controls:
                controls[index[source]].append(i)
        # How many values each loop waits for, by frame name.
        kinds = zip(nodes, self.control_flow, strict=True)
        self.enters = Counter(node["frame_name"] for node, kind in kinds if kind == "enter")
        cells = CellEdges(nodes)
        self._of_shapes = remembering.of_shapes(nodes)
        self.items: list[Item] = []
        for i, node in enumerate(nodes):
            going()
            self.items.append(self._item(node, slice(first[i], first[i + 1]), targets[i], controls[i], cells))
        # A kernel of the whole device gains nothing by another thread, unless transfers or waits go on meanwhile.
        alone = device.type == "CPU" and not any(item.mode & (ASYNC | TRANSFER) for item in self.items)
        most = device.intra_op.all_threads / NANOSECONDS_PER_FLOP if alone else math.inf
        self.costs = {n: costs.known(nodes[n], most) for n, item in enumerate(self.items) if item.mode & COSTLY}
        self.multiplies = any(op_registry.get(nodes[n].op).blas for n in self.costs)
        self.steps_until_costs = 2  # steps until it learns which nodes are costly
        self.inputs: list[Any] = [None] * first[-1]  # the slots as a step finds them
        self.constants: dict[int, Any] = {}
        for n, node in enumerate(nodes):
            if node.op in remembering.FOLDED and self.pending[n] == 0:
                self._fold(n)
        self.sources = [n for n, count in enumerate(self.pending) if count <= 0 and n not in self.constants]

    def _fold(self, n: int) -> None:
        """Run a node that depends on constants only, once and for all: its value is on its edges in every step."""
        item = self.items[n]
        args = self.inputs[item.slots]
        if sum(x.nbytes for x in args) > 1024:  # what is large would be kept for nothing if it is wanted but once
            return
        try:
            with np.errstate(all="ignore"):
                value = self.constants[n] = remembering.frozen(item.kernel(*args))
        except Exception:
            return  # the step that runs it will say so
        for slot, consumer in item.targets:
            self.inputs[slot] = value
            self.pending[consumer] -= 1
        for consumer in item.controls:
            self.pending[consumer] -= 1

    def _item(self, node: Node, slots: slice, targets: list[Any], controls: list[int], cells: CellEdges) -> Item:
        op = op_registry.get(node.op)
        merges = op.control_flow == "merge" and len(node.inputs) == 2 and not targets[1]
        sends = bool(op.control_flow) and op.control_flow != "loop_cond" and not merges  # the others are as any kernel
        kernel = frames.KERNELS[op.control_flow] if sends else _the_one_that_came if merges else self.device.bind(node)
        if node.name in self._of_shapes and self.device.type == "CPU":
            kernel = remembering.wrapped(kernel, node)
        refs = [i for i, edge in enumerate(node.inputs) if edge in cells]
        wants_refs = [t._is_ref_dtype for t in op.op_def.input_types(node.attrs)]
        to_read = [i for i in refs if not wants_refs[i]]
        if to_read and hands_on(node):
            kernel = handing_on(kernel)
        elif to_read:
            context = 2 if sends else op.needs_ctx or op.is_async
            kernel = reading(kernel, [context + i for i in to_read])
        single = merges or (len(op.op_def.outputs) == 1 and not op.op_def.outputs[0].is_list)
        mode = (
            ASYNC * op.is_async
            | MANY_OUTPUTS * (len(op.op_def.outputs) > 0 and not single)
            | TRANSFER * (node.op in _TRANSFERS)
            | CONTROL_FLOW * sends
            | COSTLY * ((op.blas or (op.calls_program and self._may_meet)) and self.device.xp is np)
            | READS_FIRST * (bool(to_read) and node.op == "Identity")
        )
        out: Any = targets if mode & MANY_OUTPUTS or sends else tuple(targets[0]) if targets else ()
        return Item(kernel, slots, [None] * (slots.stop - slots.start), mode, out, tuple(controls))

    def _grow(self) -> None:
        """A step begins. In the second one it shows what the nodes cost: what runs only once need not know."""
        self.steps_until_costs = max(0, self.steps_until_costs - 1)
        if not self.steps_until_costs and self.device.xp is np:
            for n, node in enumerate(self.nodes):
                if costs.is_learned(op_registry.get(node.op)):
                    self.items[n] = self.items[n]._replace(mode=self.items[n].mode | COST_UNKNOWN)

    def learn(self, n: int, args: Sequence[Any], value: Any) -> None:
        """A node has run: now it is plain again, or known to be costly."""
        item = self.items[n]
        rule = costs.learned(self.nodes[n], args, value)
        if rule is not None:
            self.costs.setdefault(n, rule)
        self.items[n] = item._replace(mode=item.mode & ~(COST_UNKNOWN | COSTLY) | COSTLY * (rule is not None))

    def start(self, step: Step, ctx: StepContext) -> None:
        """Put the sources of this partition into the step's queue."""
        if self.steps_until_costs:
            self._grow()
        is_metered = self.device.meter.counts(step.step_id)
        root = (MeteredIteration if is_metered else Iteration)(self, step, ctx, None, 0)
        root.ready.extend(self.sources)
        step.multiplies |= self.multiplies
        step.careful |= not self.pace.is_usual
        if step.trace is not None:
            constants = [(self.nodes[n], value) for n, value in self.constants.items()]
            step.trace.begin(self.device.name, self.device.resources, constants)
        if self.sources:
            root.queued = True
            step.enqueue(root)


class Iteration:
    """One run of (a frame of) a partition: the values on its edges and the counts of its nodes."""

    __slots__ = tuple(
        "ctx dead dead_counts executor frame frames in_flight inputs number pending queued ready step".split()
    )

    def __init__(
        self, executor: Executor, step: Step, ctx: StepContext, frame: frames.Frame | None, number: int
    ) -> None:
        self.executor = executor
        self.step = step
        self.ctx = ctx
        self.frame = frame
        self.number = number
        pattern: Executor | Iteration = executor if frame is None else frame.pattern
        self.inputs: list[Any] = pattern.inputs.copy()
        for slot in executor.ctx_slots:
            self.inputs[slot] = ctx
        self.pending: list[int] = pattern.pending.copy()
        self.ready: deque[int] = deque()
        self.dead: set[int] = set()  # nodes with a dead input
        self.dead_counts: dict[int, int] = {}  # of Merge nodes
        self.queued = False
        self.in_flight = 0
        self.frames: dict[bytes, frames.Frame] = {}  # loops entered from this iteration

    def enqueue(self) -> None:
        """Ask the step to process this iteration, once."""
        if not self.queued:
            self.queued = True
            self.step.enqueue(self)

    def process(self) -> None:
        """Run ready nodes until none is left. This is the loop that everything goes through."""
        self.queued = False
        items, inputs, pending = self.executor.items, self.inputs, self.pending
        ready, dead, step = self.ready, self.dead, self.step
        take = step.order(ready)
        n = -1
        try:
            while ready:
                n = take()
                kernel, slots, empty, mode, targets, controls = items[n]
                args = value = None  # what was made last is on its edges now, and its buffer perhaps free
                if mode or step.careful or (dead and n in dead):
                    value = self._run(n)
                    if value is _DELIVERED:
                        continue
                else:
                    args = inputs[slots]
                    inputs[slots] = empty  # a value is freed at its last use, or its buffer taken for the result
                    value = kernel(*args)
                for slot, consumer in targets:
                    inputs[slot] = value
                    pending[consumer] -= 1
                    if not pending[consumer]:
                        ready.append(consumer)
                for consumer in controls:
                    pending[consumer] -= 1
                    if not pending[consumer]:
                        ready.append(consumer)
        except Exception as error:
            fail(self, n, error)
        else:
            if self.frame is not None:
                self.frame.settle()

    def _run(self, n: int) -> Any:
        """Run one ready node, whatever is special about it; its only output, or _DELIVERED."""
        kernel, slots, empty, mode, _, _ = self.executor.items[n]
        if self.step.careful and self.step.holds_back(self, n):
            return _DELIVERED
        self.step.send_off_in_time()
        args = self.inputs[slots]
        if n in self.dead:
            if not mode & TRANSFER:
                self.propagate_dead(n)
                return _DELIVERED
            args[1:] = [DEAD] * (len(args) - 1)  # what a _Send tells the other side
        self.inputs[slots] = empty
        if mode & CONTROL_FLOW:
            kernel(self, n, *args)
            return _DELIVERED
        if mode & COSTLY and self._is_costly(n, args):
            self.step.send_off()
            if self._has_others():
                self._run_on_pool(n, args)
                return _DELIVERED
        value = self._run_async(n, args) if mode & ASYNC else self._compute(n, args)
        if mode & COST_UNKNOWN:
            self.executor.learn(n, args, value)
        if value is _DELIVERED or (value is not DEAD and not mode & (MANY_OUTPUTS | READS_FIRST)):
            return value
        already = len(self.ready)
        self.propagate(n, value)
        if mode & READS_FIRST:  # readers that are ready run before an update that is ready
            self.ready.rotate(len(self.ready) - already)
        return _DELIVERED

    def _run_async(self, n: int, args: list[Any]) -> Any:
        """Start a kernel that will say when it is done, from any thread; its value if that is at once, from this one.

        Else _DELIVERED: what it gives will be handed on later.
        """
        step, started = self.step, 0.0 if self.step.trace is None else self.step.clock.now()
        answer: list[Any] = []
        starting: int | None = get_ident()  # the thread that starts it, until it has

        def done(value: Any, error: Exception | None = None) -> None:
            if error is None and value is not DEAD:
                self.record(n, started, value)
            if get_ident() == starting:
                answer[:] = value, error
            else:
                step.post(self.finish, n, [value, error])

        value = self.executor.items[n].kernel(*args, done)
        starting = None
        if value is not None:  # it had nothing to wait for, and returned what it gives
            self.record(n, started, value)
            return value
        if not answer:
            self.in_flight += 1
            step.expect()
            return _DELIVERED
        value, error = answer
        if error is not None:
            raise error
        return value

    def _is_costly(self, n: int, args: list[Any]) -> bool:
        """True if a node takes long, or waits, and there is something to do or to send off before it ends."""
        return (self.step.holds or self._has_others()) and self.executor.costs[n](args)

    def _has_others(self) -> bool:
        """True if another thread may run what takes long, while this one does something else."""
        return self.step.inter_op >= 0 and bool(self.ready or not self.step.idle)

    def _run_on_pool(self, n: int, args: list[Any]) -> None:
        """Run a costly kernel on the device's pool while other nodes run here."""
        step, pool = self.step, self.executor.device.inter_op_pool(self.step.inter_op)
        args = [x.read() if isinstance(x, Cell) else x for x in args]  # before an update that is ready, too

        def task() -> None:
            try:
                with np.errstate(all="ignore"):  # what was in line when the step failed does not run any more
                    answer = [self._compute(n, args) if step.error is None else None, None]
            except BaseException as raised:  # also a SystemExit of the program's function
                answer = [None, raised]
            args.clear()  # what a step frees is free at once, though this thread may be slow to end
            ended()
            step.post(self.finish, n, answer)

        ended = step.on_cancel(lambda error: pool.let_go(step.step_id))  # a function may wait forever
        pool.submit(task, step.step_id)  # first: where no thread can be started, nothing is to be expected
        self.in_flight += 1
        step.expect()

    def _compute(self, n: int, args: list[Any]) -> Any:
        """Run a kernel on this thread. A trace gets its time, and that of its parts on other threads."""
        kernel, pace = self.executor.items[n].kernel, self.executor.pace
        if self.step.trace is None and pace.factor == 1.0:
            return kernel(*args)
        started = self.step.clock.now()
        with noted_parts() as parts:
            value = kernel(*args)
        pace.stretch(self.step.clock.now() - started)
        self.record(n, started, value, parts)
        return value

    def finish(self, n: int, answer: list[Any]) -> None:
        """An asynchronous node is done (called by the driving thread): its value and its error, of which one is."""
        error, value = answer.pop(), answer.pop()  # the other thread has the list, and no more
        self.in_flight -= 1
        if error is not None:
            fail(self, n, error)
        if self.step.error is not None:
            return
        self.propagate(n, value)
        if self.ready:
            self.enqueue()
        elif self.frame is not None:
            self.frame.settle()

    def propagate(self, n: int, value: Any) -> None:
        """Hand on what the kernel of node `n` gave."""
        if value is DEAD:
            self.propagate_dead(n)
        else:
            self.hand_on(n, value if self.executor.items[n].mode & MANY_OUTPUTS else (value,))

    def propagate_dead(self, n: int) -> None:
        """Node `n` did not run: neither will those that need it."""
        item = self.executor.items[n]
        self.inputs[item.slots] = item.empty
        if not (item.mode & CONTROL_FLOW and frames.stops_death(self, n)):
            self.hand_on(n, repeat(DEAD), alive=False)

    def hand_on(self, n: int, values: Iterable[Any], alive: bool = True, for_good: bool = False) -> None:
        """Put the outputs of node `n` on edges of this iteration, and notify those that wait for its end.

        A value that is dead `for_good` is the only one that a Merge will get.
        """
        item, inputs, pending, ready = self.executor.items[n], self.inputs, self.pending, self.ready
        outputs = item.targets if item.mode & (MANY_OUTPUTS | CONTROL_FLOW) else (item.targets,)
        for targets, value in zip(outputs, values, strict=alive):
            for slot, consumer in targets:
                if value is DEAD:
                    self._deliver_dead(consumer, for_good)
                else:
                    inputs[slot] = value
                    pending[consumer] -= 1
                    if not pending[consumer]:
                        ready.append(consumer)
        for consumer in item.controls:
            if not alive and self.executor.control_flow[consumer] not in frames.IMMORTAL:
                self.dead.add(consumer)
            self._count(consumer)

    def _deliver_dead(self, consumer: int, for_good: bool) -> None:
        kind = self.executor.control_flow[consumer]
        if kind == "exit" and not self.step.careful:  # as in every turn but the last: it need not become ready first
            frames.note_dead_exit(self, consumer)
            return
        if kind == "merge" and not for_good:
            # A Merge is dead when all its inputs are, and only then counts as served.
            item = self.executor.items[consumer]
            self.dead_counts[consumer] = self.dead_counts.get(consumer, 0) + 1
            if self.dead_counts[consumer] < len(item.empty):
                return
        self.dead.add(consumer)
        self._count(consumer)

    def _count(self, consumer: int) -> None:
        self.pending[consumer] -= 1
        if not self.pending[consumer]:
            self.ready.append(consumer)

    def record(self, n: int, started: float, value: Any, parts: Sequence[Part] = ()) -> None:
        """Trace a node that ran from `started` until now, if the step is traced."""
        if self.step.trace is not None:
            node, device = self.executor.nodes[n], self.executor.device
            device.traced(self.step.trace, node, started, self.step.clock.now(), value, parts)


class MeteredIteration(Iteration):
    """An Iteration of a task whose meter is on."""

    __slots__ = ("thread",)  # that drives it
    process = driving(Iteration.process)
    _compute = on_a_pool(Iteration._compute)


def _the_one_that_came(first: Any, second: Any) -> Any:
    """The kernel of a Merge that nobody asks which it was."""
    return second if first is None else first
