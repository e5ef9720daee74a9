"""Functions of a program that a pipeline calls: of elements, as functions of their components; and generators.

Stands for `python/data/ops/structured_function.py` and `from_generator_op.py`. Left out: functions of TensorFlow 1's
older kind, AutoGraph.

Rules: an element that is a plain tuple is given as several arguments, any other as one. A list that is returned is a
tuple. A generator runs in the process that made the data set, on the thread that wants an element; each iteration has
a generator of its own, known to the graph by a number.
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
from dtflab.graph.function import Function
from dtflab.graph.node import line_text
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_proto import make_ndarray, make_tensor_proto
from dtflab.graph.tensor_shape import TensorShape
from dtflab.graph.tracing import trace
from dtflab.ops.functional.functions import py_func


class TracedFunction:
    """`function` for elements of the structure `given`; `structure` is that of what it returns."""

    def __init__(self, function: Callable[..., Any], given: Any, transformation: str) -> None:
        if not callable(function):
            raise ValueError(f"Argument `func` must be a callable. Received func={function} (of type {type(function)})")
        self.structure: Any = None

        def of_components(*tensors: Tensor) -> list[Tensor]:
            element = structures.from_components(given, tensors)
            result = function(*element) if type(element) is tuple else function(element)
            result = structures.normalized(tuple(result) if isinstance(result, list) else result)
            self.structure = structures.structure_of(result)
            return structures.to_components(self.structure, result)

        name = f"Dataset_{transformation}_{getattr(function, '__name__', 'function').strip('<>')}"
        traced = trace(of_components, structures.components(given), name)
        _check_variables(traced.function, f"{transformation}()")
        self.attr = traced.function.as_attr()
        self.captures = traced.captures


def _check_variables(function: Function, transformation: str) -> None:
    """ValueError if the function makes variables: no initializer could reach them."""
    for node in function.nodes:
        if node.op in _VARIABLES:
            made = f" in {line}" if (line := line_text(node.line)) else ""
            raise ValueError(
                f"The function of {transformation} makes the variable '{node.name}'{made}: no session could initialize "
                "it. Make it outside the function; the function may use it."
            )


_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


# -- generators -----------------------------------------------------------------------------------------


class _Generators:
    """The generators that run now, by number."""

    def __init__(self, make: Callable[..., Any], structure: Any) -> None:
        self._make, self._structure, self._leaves = make, structure, nest.flatten(structure)
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
    shapes = [shape for _, shape in flat]
    variant: Tensor = apply_op("GeneratorDataset", **arguments, output_types=types, output_shapes=shapes)
    return variant
