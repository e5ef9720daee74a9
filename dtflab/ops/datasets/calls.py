"""Elements out of functions: map, filter, flat_map, interleave, take_while, scan, generators.

Stands for `map_dataset_op.cc`, `filter_dataset_op.cc`, `flat_map_dataset_op.cc`, `interleave_dataset_op.cc`,
`generator_dataset_op.cc` and their kin in `core/kernels/data`. Left out: results in another order than the elements.

Rules: a function is a graph of its own; what it uses from around it comes as further arguments, read when the iterator
is initialized. An error in it is the error of that element; OutOfRangeError says that there are no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.graph import op_registry
from dtflab.graph.function_attr import functions_in
from dtflab.graph.node import Node, line_text
from dtflab.graph.op_registry import op
from dtflab.ops.datasets.dataset import METADATA, OUTPUTS, Dataset, DatasetOp, Element, Elements, Run, Serial, number
from dtflab.ops.datasets.threads import Calls, Prefetched, ShortCalls, parallel_calls
from dtflab.ops.messages import invalid


class Captured:
    """A function with the tensors that it captured; `waits` if its ops may wait for something."""

    def __init__(self, ctx: Any, attr: Any, captures: Sequence[Any]) -> None:
        self._call = ctx.instantiate(attr)
        self._captures = captures
        self._function = attr.function
        self.waits = _may_wait(self._function.nodes)

    def on(self, run: Run) -> Callable[[Element], list[Any]]:
        """The function of an element; its calls end with `run`."""
        call, captures, ctx = self._call, self._captures, run.ctx

        def function(element: Element) -> list[Any]:
            try:
                results: list[Any] = call([*element, *captures], ctx)
            except errors.OutOfRangeError:
                raise StopIteration from None
            except errors.OpError as error:
                raise self._explained(error) from None
            return results

        return function

    def _explained(self, error: errors.OpError) -> errors.OpError:
        """The error with the function and the line in it; the node that its message ends with is to be the caller."""

        def inside(match: re.Match[str]) -> str:
            line = next((line_text(n.line) for n in self._function.nodes if n.name == match[1]), "")
            made = f" made in {line}" if line else ""
            return f"[[{{{{function_node {self._function.name}}}}}{{{{node {match[1]}}}}}]]{made}"

        return type(error).of(_NODE.sub(inside, error.message))


_NODE = re.compile(r"\[\[\{\{node ([^}]+)\}\}\]\](?: on \S+)?")


_PROGRAMS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")


def _may_wait(nodes: Iterable[Node]) -> bool:
    """True if there is an op that waits, for a queue say, or that calls a program."""
    for node in nodes:
        if op_registry.get(node.op).is_async or node.op in _PROGRAMS:
            return True
        for attr in node.attrs.values():
            if any(_may_wait(called.function.nodes) for called in functions_in(attr)):
                return True
    return False


class FunctionOp(DatasetOp):
    """Base of the ops whose data set calls a function: the attribute `function` with inputs from number 1 on."""

    needs_ctx = True
    attr = "f"
    make_with: Callable[..., Dataset]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Dataset]:
        count = len(node["Targuments"])
        make_with, attr = cls.make_with, node[cls.attr]

        def make(node: Any, ctx: Any, source: Dataset, *inputs: Any) -> Dataset:
            return make_with(node, source, Captured(ctx, attr, inputs[:count]), *inputs[count:])

        return cls.binding(node, make)


class Applied(Dataset):
    """A data set and a function that makes other elements out of its own."""

    def __init__(self, source: Dataset, function: Captured) -> None:
        super().__init__(source)
        self.function = function
        self.waits = self.waits or function.waits


# -- map ----------------------------------------------------------------------------------------------------------


class Map(Applied):
    """The function of each element."""

    def iterate(self, run: Run) -> Elements:
        return map(self.function.on(run), self.inputs[0].iterate(run))


class ParallelMap(Applied):
    """The same, several calls at a time where that pays."""

    waits = True

    def __init__(self, source: Dataset, function: Captured, parallel: int) -> None:
        super().__init__(source, function)
        self.parallel = parallel

    def iterate(self, run: Run) -> Elements:
        kind = Calls if self.function.waits else ShortCalls
        return kind(self.inputs[0].iterate(run), self.function.on(run), self.parallel, run)


_INPUTS = "input_dataset: variant, other_arguments: Targuments"
_F = """
       f: func
       Targuments: list(type) >= 0"""
_PREDICATE = _F.replace("f:", "predicate:")


@op(f"""MapDataset({_INPUTS}) -> (handle: variant){_F}{OUTPUTS}
       use_inter_op_parallelism: bool = true
       preserve_cardinality: bool = false
       force_synchronous: bool = false{METADATA}""")
class MapDataset(FunctionOp):
    def make_with(node, source, function):
        return Map(source, function)


@op(f"""ParallelMapDataset({_INPUTS}, num_parallel_calls: int32) -> (handle: variant){_F}{OUTPUTS}
       use_inter_op_parallelism: bool = true
       sloppy: bool = false
       preserve_cardinality: bool = false{METADATA}""")
class ParallelMapDataset(FunctionOp):
    def make_with(node, source, function, num_parallel_calls):
        return ParallelMap(source, function, parallel_calls(num_parallel_calls))


@op(f"""ParallelMapDatasetV2({_INPUTS}, num_parallel_calls: int64) -> (handle: variant){_F}{OUTPUTS}
       use_inter_op_parallelism: bool = true
       deterministic: string = 'default'
       preserve_cardinality: bool = false
       use_unbounded_threadpool: bool = false{METADATA}""")
class ParallelMapDatasetV2(FunctionOp):
    def make_with(node, source, function, num_parallel_calls):
        return ParallelMap(source, function, parallel_calls(num_parallel_calls))


# -- some of the elements -------------------------------------------------------------------------------------------


class Filter(Applied):
    """The elements of which the function is true."""

    def iterate(self, run: Run) -> Elements:
        keeps = self.function.on(run)
        return filter(lambda element: bool(keeps(element)[0]), self.inputs[0].iterate(run))


@op(f"FilterDataset({_INPUTS}) -> (handle: variant){_PREDICATE}{OUTPUTS}{METADATA}")
class FilterDataset(FunctionOp):
    attr = "predicate"

    def make_with(node, source, predicate):
        return Filter(source, predicate)


class TakeWhile(Applied):
    """The elements before the first of which the function is false."""

    def iterate(self, run: Run) -> Elements:
        return _While(self.inputs[0].iterate(run), self.function.on(run))


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


@op(f"TakeWhileDataset({_INPUTS}) -> (handle: variant){_PREDICATE}{OUTPUTS}{METADATA}")
class TakeWhileDataset(FunctionOp):
    attr = "predicate"

    def make_with(node, source, predicate):
        return TakeWhile(source, predicate)


# -- a data set out of each element ---------------------------------------------------------------------------------


class Interleave(Applied):
    """The elements of the data sets that the function makes: `block` of one, then of the next, of `cycle` at a time.

    If `ahead`, another thread makes up to so many of each ahead.
    """

    def __init__(self, source: Dataset, function: Captured, cycle: int, block: int, ahead: int = 0) -> None:
        super().__init__(source, function)
        for name, value in (("cycle_length", cycle), ("block_length", block)):
            if value <= 0:
                raise invalid(f"{name} must be greater than zero.")
        self.cycle, self.block, self.ahead = cycle, block, ahead
        self.waits = True  # nobody knows yet what the data sets are

    def iterate(self, run: Run) -> Elements:
        return _Interleaved(self, run)


class _Interleaved(Serial):
    def __init__(self, dataset: Interleave, run: Run) -> None:
        super().__init__(dataset.inputs[0].iterate(run))
        self._dataset, self._run, self._function = dataset, run, dataset.function.on(run)
        self._open: list[Elements | None] = [None] * dataset.cycle
        self._at = self._given = 0  # whose turn it is, and how many elements it has given in this turn
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
                if self._given == self._dataset.block:
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
        elements, ahead = inner.iterate(self._run), self._dataset.ahead
        self._open[self._at] = Prefetched(elements, ahead, self._run) if ahead else elements

    def _turn(self) -> None:
        self._at, self._given = (self._at + 1) % self._dataset.cycle, 0


@op(f"FlatMapDataset({_INPUTS}) -> (handle: variant){_F}{OUTPUTS}{METADATA}")
class FlatMapDataset(FunctionOp):
    def make_with(node, source, function):
        return Interleave(source, function, 1, 1)


@op(f"InterleaveDataset({_INPUTS}, cycle_length: int64, block_length: int64) -> "
    f"(handle: variant){_F}{OUTPUTS}{METADATA}")  # fmt: skip
class InterleaveDataset(FunctionOp):
    def make_with(node, source, function, cycle_length, block_length):
        return Interleave(source, function, number(cycle_length, "cycle_length"), number(block_length, "block_length"))


def _parallel_interleave(source: Any, function: Captured, cycle: Any, block: Any, parallel: Any) -> Interleave:
    block_length, calls = number(block, "block_length"), parallel_calls(parallel)
    cycle_length = number(cycle, "cycle_length")
    return Interleave(source, function, calls if cycle_length == -1 else cycle_length, block_length, block_length)


_PARALLEL = f"{_INPUTS}, cycle_length: int64, block_length: int64, "


@op(f"""ParallelInterleaveDatasetV2({_PARALLEL}num_parallel_calls: int64) -> (handle: variant){_F}{OUTPUTS}
       sloppy: bool = false{METADATA}""")
class ParallelInterleaveDatasetV2(FunctionOp):
    def make_with(node, source, function, cycle_length, block_length, num_parallel_calls):
        return _parallel_interleave(source, function, cycle_length, block_length, num_parallel_calls)


@op(f"ParallelInterleaveDatasetV4({_PARALLEL}buffer_output_elements: int64, prefetch_input_elements: int64, "
    f"num_parallel_calls: int64) -> (handle: variant){_F}{OUTPUTS}\n"
    f"       deterministic: string = 'default'{METADATA}")  # fmt: skip
class ParallelInterleaveDatasetV4(FunctionOp):
    def make_with(node, source, function, cycle, block, buffer_output, prefetch_input, num_parallel_calls):
        return _parallel_interleave(source, function, cycle, block, num_parallel_calls)


# -- generators -----------------------------------------------------------------------------------------------------


class Generator(Dataset):
    """What `step` gives, again and again, for the state that `begin` makes; `end` is told when nobody wants more."""

    waits = True

    def __init__(self, begin: Captured, step: Captured, end: Captured) -> None:
        super().__init__()
        self.begin, self.step, self.end = begin, step, end

    def iterate(self, run: Run) -> Elements:
        return _Generated(self, run)


class _Generated:
    def __init__(self, dataset: Generator, run: Run) -> None:
        self._begin, self._step = dataset.begin.on(run), dataset.step.on(run)
        self._end = dataset.end.on(Run(run.ctx))  # goes on when `run` is over
        self._state: Element | None = None
        self._ended = False
        run.closes(self)

    def __iter__(self) -> Any:
        return self

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
        """The program behind it may forget its part."""
        if self._state is not None and not self._ended:
            self._ended = True
            self._end(self._state)

    __del__ = close


@op(f"""GeneratorDataset(init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args,
                         finalize_func_other_args: Tfinalize_func_args) -> (handle: variant)
       init_func: func
       next_func: func
       finalize_func: func
       Tinit_func_args: list(type) >= 0
       Tnext_func_args: list(type) >= 0
       Tfinalize_func_args: list(type) >= 0{OUTPUTS}{METADATA}""")
class GeneratorDataset(DatasetOp):
    stateful = True
    needs_ctx = True

    def make(node, ctx, *inputs):
        functions, taken = [], 0
        for part in ("init", "next", "finalize"):
            count = len(node[f"T{part}_func_args"])
            functions.append(Captured(ctx, node[f"{part}_func"], inputs[taken : taken + count]))
            taken += count
        return Generator(*functions)
