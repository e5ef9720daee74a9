"""Data sets as values: what a tensor of dtype `variant` holds, and what the ops that make one have in common.

Stands for `core/framework/dataset.h` (DatasetBase, IteratorBase) and `core/data/dataset_utils.cc`. Left out: saving the
place of an iterator in a checkpoint, cardinalities, the rewriting and tuning of pipelines.

Rule: a Dataset describes its elements and never changes; `iterate` begins with the first of them (`elements.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import FreeOp
from dtflab.ops.datasets.elements import Element, Elements
from dtflab.ops.messages import check_rank, dtype_text, invalid, shape_text

Rows = tuple[Element, Iterator[int]]


class Closable(Protocol):
    """Something that has threads, or waits for one."""

    def close(self) -> None: ...


class Run:
    """One iteration of a pipeline from its beginning: knows which of its parts have threads, to end them.

    `ctx` is the context for the functions that are called: of a step that is over when the run is. It holds nothing
    else of the context that began the run, which would keep the state of a session alive.
    """

    def __init__(self, ctx: Any) -> None:
        self.clock = ctx.step.clock
        self.ctx = SimpleNamespace(step=type(ctx.step)(ctx.step.step_id, self.clock), env=ctx.env)
        self.closed = False
        self._closables: weakref.WeakSet[Any] = weakref.WeakSet()

    def closes(self, closable: Closable) -> None:
        """Close `closable` together with this run: at once, if the run is over."""
        self._closables.add(closable)
        if self.closed:
            closable.close()

    def close(self) -> None:
        """End all threads and cancel all waits: no more elements are wanted."""
        self.closed = True
        self.ctx.step.cancel(closed())
        for closable in list(self._closables):
            closable.close()


class Dataset:
    """A sequence of elements, described: `iterate(run)` gives an iterator over them, from the first one on.

    `inputs` are the data sets and functions that the elements come from. `waits` says that the next element may have to
    be waited for: for another thread, or for a program. If the elements are rows of arrays that exist already, `rows()`
    gives these arrays and the numbers of the rows, in order; else None.
    """

    types: list[DType]
    shapes: list[TensorShape]

    def __init__(
        self,
        iterate: Callable[[Run], Elements],
        *inputs: Any,
        waits: bool = False,
        rows: Callable[[], Rows | None] = lambda: None,
    ) -> None:
        self.iterate = iterate
        self.waits = waits or any(source.waits for source in inputs)
        self.rows = rows

    def __repr__(self) -> str:
        return f"<dataset of {', '.join(map(dtype_text, self.types))}>"


def several(elements: Iterable[Element], types: list[DType], shapes: list[TensorShape]) -> Dataset:
    """A data set of elements that exist already."""
    dataset = Dataset(lambda run: iter(elements))
    dataset.types, dataset.shapes = types, shapes
    return dataset


# -- the ops ----------------------------------------------------------------------------------------------------

OUTPUTS = """
       output_types: list(type) >= 1, output_shapes: list(shape) >= 1"""
METADATA = """
       metadata: string = ''"""
GIVES = f"(handle: variant){OUTPUTS}"


class DatasetOp(FreeOp):
    """Base of the ops that make a data set; `make(node, *inputs)` gives it."""

    infer = shapes.scalar
    make: Callable[..., Dataset]

    @classmethod
    def bind(cls, node: Node, xp: Any) -> Callable[..., Dataset]:
        return cls.binding(node, cls.make)

    def binding(node: Node, make: Callable[..., Dataset]) -> Callable[..., Dataset]:
        """`make` for this node, as a kernel. Data sets of files don't declare that their elements are strings."""
        types = list(node.attrs.get("output_types", node.attrs.get("Toutput_types", [dtypes.string])))
        output_shapes = list(node.attrs.get("output_shapes", [TensorShape([])]))

        def make_it(*inputs: Any) -> Dataset:
            dataset = make(node, *inputs)
            dataset.types, dataset.shapes = types, output_shapes
            return dataset

        return make_it


def check_signature(dataset: Any, types: Sequence[DType], expected: Sequence[TensorShape]) -> None:
    """Raise InvalidArgumentError unless the elements of a data set or iterator have these types and shapes."""
    if len(types) != len(dataset.types):
        raise invalid(f"Number of components does not match: expected {len(types)} types but got {len(dataset.types)}.")
    for i, (wanted, found) in enumerate(zip(types, dataset.types, strict=True)):
        if wanted != found:
            raise invalid(
                f"Data type mismatch at component {i}: expected {dtype_text(wanted)} but got {dtype_text(found)}."
            )
    for i, (mine, theirs) in enumerate(zip(expected, dataset.shapes, strict=True)):
        if not mine.is_compatible_with(theirs):
            raise invalid(
                f"Incompatible shapes at component {i}: expected {shape_text(mine)} but got {shape_text(theirs)}."
            )


def number(value: Any, name: str) -> int:
    """A scalar input as a Python number. Raises InvalidArgumentError for anything else."""
    check_rank(value, 0, f"{name} must be a scalar, but has shape {{}}.")
    return int(value)


def closed() -> errors.CancelledError:
    """The error for requests to an iterator that was closed."""
    return errors.CancelledError.of("The iterator was closed, recreated, or its session ended.")
