"""A user's function of elements as a function of their components, which a node of the graph can name.

Stands for `python/data/ops/structured_function.py`. Left out: functions of TensorFlow 1's older kind, AutoGraph.

Rule: an element that is a plain tuple is given as several arguments, any other as one. A list that is returned is a
tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.data import structure as structures
from dtflab.graph.function import Function
from dtflab.graph.node import line_text
from dtflab.graph.operation import Tensor
from dtflab.graph.tracing import trace


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
            line = line_text(node.line)
            made = f" in {line}" if line else ""
            raise ValueError(
                f"The function of {transformation} makes the variable '{node.name}'{made}: no session could initialize "
                "it. Make it outside of the function, which may then use it."
            )


_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
