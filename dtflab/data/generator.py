"""A program's generator as a data set.

Stands for `python/data/ops/from_generator_op.py`.

Rules: the generator runs in the process that made the data set, on the thread that asks for an element. Each
iteration has a generator of its own, known to the graph by a number.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtflab.base import nest
from dtflab.data import structure as structures
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_proto import make_ndarray, make_tensor_proto
from dtflab.graph.tensor_shape import TensorShape
from dtflab.graph.tracing import trace
from dtflab.ops.functional.functions import py_func


class _Generators:
    """The generators that run now, by number."""

    def __init__(self, make: Callable[..., Any], structure: Any) -> None:
        self._make = make
        self._structure = structure
        self._leaves = nest.flatten(structure)
        self._running: dict[int, Iterator[Any]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def begin(self, *args: Any) -> Any:
        with self._lock:
            number = next(self._numbers)
        self._running[number] = iter(self._make(*args))
        return np.int64(number)

    def next(self, number: Any) -> list[Any]:
        """The components of the next element; StopIteration at the end, TypeError for a value that does not fit."""
        yielded = next(self._running[int(number)])
        try:
            values = list(structures.leaves_up_to(self._structure, yielded))
        except ValueError as error:
            raise TypeError(
                "`generator` yielded an element that did not match the expected structure. The expected structure was "
                f"{structures.types_of(self._structure)}, but the yielded element was {yielded}."
            ) from error
        return [self._component(value, leaf, yielded) for value, leaf in zip(values, self._leaves, strict=True)]

    def _component(self, value: Any, leaf: Any, yielded: Any) -> Any:
        try:
            array = make_ndarray(make_tensor_proto(value, leaf.dtype))
        except (TypeError, ValueError) as error:
            raise TypeError(
                "`generator` yielded an element that could not be converted to the expected type. The expected type "
                f"was {leaf.dtype.name}, but the yielded element was {yielded}."
            ) from error
        if not leaf.shape.is_compatible_with(array.shape):
            raise TypeError(
                f"`generator` yielded an element of shape {array.shape} where an element of shape {leaf.shape} "
                "was expected."
            )
        return array

    def end(self, number: Any) -> Any:
        self._running.pop(int(number), None)
        return np.int64(0)


def generator_dataset(make: Callable[..., Any], structure: Any, args: Sequence[Tensor]) -> Tensor:
    """The variant of a data set of what `make(*args)` yields, elements of this structure."""
    generators, flat = _Generators(make, structure), structures.components(structure)
    types, number = [dtype for dtype, _ in flat], [(dtypes.int64, TensorShape([]))]
    parts = {
        "init": trace(lambda: py_func(generators.begin, list(args), dtypes.int64), [], "generator_init"),
        "next": trace(lambda n: py_func(generators.next, [n], types), number, "generator_next"),
        "finalize": trace(lambda n: py_func(generators.end, [n], dtypes.int64), number, "generator_finalize"),
    }
    arguments: dict[str, Any] = {}
    for part, traced in parts.items():
        arguments[f"{part}_func"] = traced.function.as_attr()
        arguments[f"{part}_func_other_args"] = traced.captures
    variant: Tensor = apply_op(
        "GeneratorDataset", **arguments, output_types=types, output_shapes=[shape for _, shape in flat]
    )
    return variant
