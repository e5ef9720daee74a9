"""Functions that data sets call, with what they captured; the base of the ops that have one.

Stands for `CapturedFunction` of `core/data/captured_function.cc`.

Rules: a function is a graph of its own; tensors that it captured are further arguments, read when the iterator is
initialized. An error in it is the error of that element; OutOfRangeError ends the data set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from dtflab.base import errors
from dtflab.graph import op_registry
from dtflab.graph.function_attr import functions_in
from dtflab.graph.node import Node, line_text
from dtflab.ops.datasets.dataset import Dataset, DatasetOp, Run
from dtflab.ops.datasets.elements import Element


class Captured:
    """A function with the tensors that it captured. `waits` says whether its ops may wait for something."""

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
        """The error with function and line of its node; the executor then adds the node that called the function."""

        def inside(match: re.Match[str]) -> str:
            line = next((line_text(n.line) for n in self._function.nodes if n.name == match[1]), "")
            made = f" made in {line}" if line else ""
            return f"[[{{{{function_node {self._function.name}}}}}{{{{node {match[1]}}}}}]]{made}"

        return type(error).of(_NODE.sub(inside, error.message))


_NODE = re.compile(r"\[\[\{\{node ([^}]+)\}\}\]\](?: on \S+)?")


_PROGRAMS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")


def _may_wait(nodes: Iterable[Node]) -> bool:
    """Whether an op waits, for a queue for example, or calls a Python function of the program."""
    for node in nodes:
        if op_registry.get(node.op).is_async or node.op in _PROGRAMS:
            return True
        for attr in node.attrs.values():
            if any(_may_wait(called.function.nodes) for called in functions_in(attr)):
                return True
    return False


class FunctionOp(DatasetOp):
    """Base of the ops whose data set calls a function, the attribute `attr`; inputs after the first are captured."""

    needs_ctx = True
    attr = "f"
    make_with: Callable[..., Dataset]

    @classmethod
    def bind(cls, node: Node, xp: Any) -> Callable[..., Dataset]:
        count = len(node["Targuments"])
        make_with, attr = cls.make_with, node[cls.attr]

        def make(node: Node, ctx: Any, source: Dataset, *inputs: Any) -> Dataset:
            return make_with(node, source, Captured(ctx, attr, inputs[:count]), *inputs[count:])

        return cls.binding(node, make)


def captured_functions(ctx: Any, node: Node, parts: Sequence[str], types: str, inputs: Iterable[Any]) -> list[Captured]:
    """The functions `part_func` of a node with several; `types` says which attribute has the types of its inputs."""
    given = iter(inputs)
    counts = [len(node[types.format(part)]) for part in parts]
    return [Captured(ctx, node[f"{part}_func"], [*islice(given, n)]) for part, n in zip(parts, counts, strict=True)]
