"""Tensors and variables at the end of a cell: what they are, and how to get the value that a newcomer looks for.

Their text stays TensorFlow's, which `print` shows and programs compare.
"""

from __future__ import annotations

from dtflab.graph.operation import Tensor
from dtflab.ops.variables.variable import Variable
from dtflab.viz.drawing.svg import Markup, tag


def symbol_html(symbol: Tensor | Variable) -> Markup:
    """HTML of a tensor or variable: TensorFlow's text, and a remark."""
    remark = "a node of the graph; its value: ", tag("code", "sess.run(…)")
    return tag("div", tag("code", repr(symbol)), tag("div", *remark, style="opacity:.75"))
