"""Elements out of functions: map, filter, flat_map, interleave, take_while, generators.

Stands for `map_dataset_op.cc`, `filter_dataset_op.cc`, `flat_map_dataset_op.cc`, `interleave_dataset_op.cc`,
`generator_dataset_op.cc` and similar files in `core/kernels/data`. Left out: results that are not in the order of
the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.op_registry import op
from dtflab.ops.datasets.captured import Captured, FunctionOp, captured_functions
from dtflab.ops.datasets.dataset import METADATA, OUTPUTS, Dataset, DatasetOp, Run, number
from dtflab.ops.datasets.elements import Element, Elements, Iterating, Serial
from dtflab.ops.datasets.threads import Calls, Prefetched, ShortCalls, parallel_calls
from dtflab.ops.messages import invalid

_INPUTS = "input_dataset: variant, other_arguments: Targuments"
_GIVES = f"(handle: variant) where f: func, Targuments: list(type) >= 0{OUTPUTS}"
_IF_GIVES = _GIVES.replace("f:", "predicate:")

# -- map ----------------------------------------------------------------------------------------------------------


@op(f"""MapDataset({_INPUTS}) -> {_GIVES}
       use_inter_op_parallelism: bool = true, preserve_cardinality: bool = false
       force_synchronous: bool = false{METADATA}""")
class MapDataset(FunctionOp):
    """The function of each element."""

    def make_with(node, source, function):
        return Dataset(lambda run: map(function.on(run), source.iterate(run)), source, function)


@op(
    f"""ParallelMapDataset({_INPUTS}, num_parallel_calls: int32) -> {_GIVES}
       use_inter_op_parallelism: bool = true, sloppy: bool = false, preserve_cardinality: bool = false{METADATA}""",
    f"""ParallelMapDatasetV2({_INPUTS}, num_parallel_calls: int64) -> {_GIVES}
       use_inter_op_parallelism: bool = true, deterministic: string = 'default', preserve_cardinality: bool = false
       use_unbounded_threadpool: bool = false{METADATA}""",
)
class ParallelMapDataset(FunctionOp):
    """The function of each element, several calls at a time where that pays."""

    def make_with(node, source, function, num_parallel_calls):
        kind, parallel = Calls if function.waits else ShortCalls, parallel_calls(num_parallel_calls)
        return Dataset(lambda run: kind(source.iterate(run), function.on(run), parallel, run), waits=True)


# -- some of the elements -------------------------------------------------------------------------------------------


@op(f"FilterDataset({_INPUTS}) -> {_IF_GIVES}{METADATA}")
class FilterDataset(FunctionOp):
    """The elements for which the function is true."""

    attr = "predicate"

    def make_with(node, source, predicate):
        def iterate(run):
            keeps = predicate.on(run)
            return filter(lambda element: bool(keeps(element)[0]), source.iterate(run))

        return Dataset(iterate, source, predicate)


class _While(Serial):
    def __init__(self, source: Elements, keeps: Callable[[Element], list[Any]]) -> None:
        super().__init__(source)
        self._keeps = keeps

    def __next__(self) -> Element:
        element = next(self.source)
        if not self._keeps(element)[0]:
            self.source = iter(())
            raise StopIteration
        return element


@op(f"TakeWhileDataset({_INPUTS}) -> {_IF_GIVES}{METADATA}")
class TakeWhileDataset(FunctionOp):
    """The elements before the first for which the function is false."""

    attr = "predicate"

    def make_with(node, source, predicate):
        return Dataset(lambda run: _While(source.iterate(run), predicate.on(run)), source, predicate)


# -- a data set out of each element ---------------------------------------------------------------------------------


def _interleave(source: Dataset, function: Captured, cycle: int, block: int, ahead: int = 0) -> Dataset:
    """The elements of the data sets that the function makes: `block` of one, then of the next, of `cycle` at a time.

    Other threads make up to `ahead` elements of each data set ahead.
    """
    for name, value in (("cycle_length", cycle), ("block_length", block)):
        if value <= 0:
            raise invalid(f"{name} must be greater than zero.")
    waits = True  # the data sets may wait; they are known only when the function has made them
    return Dataset(lambda run: _Interleaved(source, function, cycle, block, ahead, run), waits=waits)


class _Interleaved(Serial):
    def __init__(self, source: Dataset, function: Captured, cycle: int, block: int, ahead: int, run: Run) -> None:
        super().__init__(source.iterate(run))
        self._function, self._run = function.on(run), run
        self._block, self._ahead = block, ahead
        self._open: list[Elements | None] = [None] * cycle
        self._at = self._given = 0  # the data set whose turn it is, and how many elements it has given in this turn
        self._ended = False

    def __next__(self) -> Element:
        while not self._ended or any(self._open):
            elements = self._open[self._at]
            if elements is not None:
                try:
                    element = next(elements)
                except StopIteration:
                    self._open[self._at] = None
                    self._turn()
                    continue
                self._given += 1
                if self._given == self._block:
                    self._turn()
                return element
            if self._ended:
                self._turn()
            else:
                self._begin()
        raise StopIteration

    def _begin(self) -> None:
        try:
            element = next(self.source)
        except StopIteration:
            self._ended = True
            return
        inner: Dataset = self._function(element)[0]
        elements, ahead = inner.iterate(self._run), self._ahead
        self._open[self._at] = Prefetched(elements, ahead, self._run) if ahead else elements

    def _turn(self) -> None:
        self._at, self._given = (self._at + 1) % len(self._open), 0


@op(f"FlatMapDataset({_INPUTS}) -> {_GIVES}{METADATA}")
class FlatMapDataset(FunctionOp):
    def make_with(node, source, function):
        return _interleave(source, function, 1, 1)


_INTERLEAVED = f"{_INPUTS}, cycle_length: int64, block_length: int64"


@op(f"InterleaveDataset({_INTERLEAVED}) -> {_GIVES}{METADATA}")
class InterleaveDataset(FunctionOp):
    def make_with(node, source, function, cycle_length, block_length):
        return _interleave(source, function, number(cycle_length, "cycle_length"), number(block_length, "block_length"))


@op(
    f"""ParallelInterleaveDatasetV2({_INTERLEAVED}, num_parallel_calls: int64) -> {_GIVES}
       sloppy: bool = false{METADATA}""",
    f"""ParallelInterleaveDatasetV4({_INTERLEAVED}, buffer_output_elements: int64, prefetch_input_elements: int64,
                                    num_parallel_calls: int64) -> {_GIVES}
       deterministic: string = 'default'{METADATA}""",
)
class ParallelInterleaveDataset(FunctionOp):
    """Interleaved; each data set makes elements ahead, on a thread of its own."""

    def make_with(node, source, function, cycle_length, block_length, *others):
        block, calls = number(block_length, "block_length"), parallel_calls(others[-1])
        cycle = number(cycle_length, "cycle_length")
        return _interleave(source, function, calls if cycle == -1 else cycle, block, block)


# -- generators -----------------------------------------------------------------------------------------------------


class _Generated(Iterating):
    """The results of `step` for the state that `begin` makes, until it ends; `end` runs when no more are wanted."""

    def __init__(self, begin: Captured, step: Captured, end: Captured, run: Run) -> None:
        self._begin, self._step = begin.on(run), step.on(run)
        self._end = end.on(Run(run.ctx))  # runs when `run` is over
        self._state: Element | None = None
        self._ended = False
        run.closes(self)

    def __next__(self) -> Element:
        if self._ended:
            raise StopIteration
        if self._state is None:
            self._state = self._begin(())
        try:
            return self._step(self._state)
        except StopIteration:
            self.close()
            raise

    def close(self) -> None:
        """Let the program behind it release its part."""
        if self._state is not None and not self._ended:
            self._ended = True
            self._end(self._state)

    __del__ = close


@op(f"""GeneratorDataset(init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args,
                         finalize_func_other_args: Tfinalize_func_args) -> (handle: variant)
       init_func: func, next_func: func, finalize_func: func, Tinit_func_args: list(type) >= 0
       Tnext_func_args: list(type) >= 0, Tfinalize_func_args: list(type) >= 0{OUTPUTS}{METADATA}""")
class GeneratorDataset(DatasetOp):
    stateful = needs_ctx = True

    def make(node, ctx, *inputs):
        functions = captured_functions(ctx, node, ("init", "next", "finalize"), "T{}_func_args", inputs)
        return Dataset(lambda run: _Generated(*functions, run), waits=True)
