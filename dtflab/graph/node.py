"""Node: one line of a graph, the only intermediate representation between client and kernel.

Stands for TensorFlow's NodeDef with its types resolved. A client's Operation gives one of these to the master,
a GraphDef from the wire becomes a list of them, and place, prune and partition map lists of them to lists.

Rule: a Node is not changed after it was made; a stage that needs another one makes it with `replace`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

from dtflab.graph import op_registry
from dtflab.graph.dtypes import DType

Edge = tuple[str, int]  # (name of the producing node, index of its output)
_INDEXED = re.compile(r"(.*):([0-9]{1,9})", re.DOTALL)


def parse_edge(text: str) -> Edge:
    """`x:1` as an edge; what does not end in a colon and a number is the name of a node, whose first output is meant.

    Stands for ParseTensorName of `core/graph/tensor_id.cc`.
    """
    found = _INDEXED.fullmatch(text) if ":" in text else None
    return (found[1], int(found[2])) if found else (text, 0)


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """An operation as data: name, op type, input edges, control inputs, device, attrs with defaults filled.

    `line` is where the user's program made it: the code object and the line in it, when known.
    """

    name: str
    op: str
    inputs: list[Edge] = dataclasses.field(default_factory=list)
    controls: list[str] = dataclasses.field(default_factory=list)
    device: str = ""
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    output_types: list[DType] = dataclasses.field(default_factory=list)
    line: tuple[CodeType, int] | None = None

    def __getitem__(self, attr: str) -> Any:
        """The value of an attribute: `node["T"]`."""
        return self.attrs[attr]

    def replace(self, **changes: Any) -> Node:
        """A copy with other fields."""
        return dataclasses.replace(self, **changes)

    def sources(self) -> list[str]:
        """Names of the nodes that this one waits for, each once."""
        return list(dict.fromkeys([name for name, _ in self.inputs] + self.controls))

    def is_source(self) -> bool:
        """True for a node that makes one value, no reference, out of nothing: a constant, a placeholder, a handle."""
        return not self.inputs and [dtype._is_ref_dtype for dtype in self.output_types] == [False]

    def colocated_with(self) -> list[str]:
        """Names of the nodes whose device this one must share (`_class` attr, entries `loc:@name`)."""
        return [c[5:].decode() for c in self.attrs.get("_class", ()) if c.startswith(b"loc:@")]

    def __repr__(self) -> str:
        ins = [n if i == 0 else f"{n}:{i}" for n, i in self.inputs] + [f"^{c}" for c in self.controls]
        return f"{self.name} = {self.op}({', '.join(ins)})" + (f" @ {self.device}" if self.device else "")


def line_text(line: tuple[CodeType, int] | None) -> str:
    """`file.py:12, in main` or `Cell In[3], line 12` for the line recorded in a Node, or an empty string."""
    if line is None:
        return ""
    from dtflab.base import error_report  # only when a line is shown

    code, number = line
    cell = error_report.cell(code.co_filename)
    where = f"{cell}, line {number}" if cell else f"{code.co_filename}:{number}"
    return where if cell and code.co_name == "<module>" else f"{where}, in {code.co_name}"


def by_name(nodes: Iterable[Node]) -> dict[str, Node]:
    return {node.name: node for node in nodes}


def make_node(
    name: str, op: str, inputs: Sequence[Edge] = (), controls: Sequence[str] = (), device: str = "", **attrs: Any
) -> Node:
    """A node that no program wrote: defaults and output types come from the op's interface."""
    op_def = op_registry.get(op).op_def
    full = op_def.with_defaults(attrs)
    return Node(name, op, list(inputs), list(controls), device, full, op_def.output_types(full))
