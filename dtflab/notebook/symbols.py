"""Tensors and variables that a newcomer looks at, and a remark on how to get the value that they look for.

At the end of a cell it is part of what the object shows; where a cell prints one, it stands below the output. Their
text stays TensorFlow's, which `print` writes and programs compare.
"""

from __future__ import annotations

import ast
from typing import Any

from IPython.display import display

from dtflab.graph.operation import Tensor
from dtflab.ops.variables.variable import Variable
from dtflab.runtime.session import last_session
from dtflab.viz.drawing.svg import Markup, tag

_SOFT = "opacity:.75"


def symbol_html(symbol: Tensor | Variable) -> Markup:
    """HTML of a tensor or variable: TensorFlow's text, and a remark."""
    remark = "a node of the graph; its value: ", tag("code", "sess.run(…)")
    return tag("div", tag("code", repr(symbol)), tag("div", *remark, style=_SOFT))


class PrintedSymbols(ast.NodeVisitor):
    """One of IPython's transformers of code, which changes nothing: it notes the names that a cell prints.

    It looks at calls of `print` outside of functions, whose names are not the notebook's: print(y), print("y is", y),
    print(f"y is {y}").
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._names: list[str] = []

    def begin(self, _: Any = None) -> None:
        """A cell begins."""
        self._names.clear()

    def visit(self, node: ast.AST) -> ast.AST:
        """Note what is printed in a cell or a part of it; returns that as it is."""
        super().visit(node)
        return node

    def visit_Call(self, call: ast.Call) -> None:
        """Note the names among what `print` is given."""
        if (
            isinstance(call.func, ast.Name)
            and call.func.id == "print"
            and not any(k.arg == "file" for k in call.keywords)
        ):
            parts = [
                part for given in call.args for part in (given.values if isinstance(given, ast.JoinedStr) else [given])
            ]
            shown = [part.value if isinstance(part, ast.FormattedValue) else part for part in parts]
            self._names += [each.id for each in shown if isinstance(each, ast.Name)]
        self.generic_visit(call)

    def _leave_out(self, node: Any) -> None:
        """The names of a function are its own."""

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _leave_out

    def show(self, result: Any) -> None:
        """Below a cell that has printed a tensor or variable: the remark, for the first of them."""
        names = self._shell.user_ns
        found = next((name for name in self._names if isinstance(names.get(name), Tensor | Variable)), None)
        if found is None or not result.success:
            return
        newest = last_session()
        session = next((name for name, it in names.items() if newest is not None and it is newest), "sess")
        remark, run = f"{found} is a node of the graph; its value: ", f"{session}.run({found})"
        html = tag("div", remark, tag("code", run), style=_SOFT)
        display({"text/plain": remark + run, "text/html": html}, raw=True)


def load(shell: Any) -> None:
    """Look at the code of cells from now on."""
    printed = PrintedSymbols(shell)
    shell.ast_transformers.append(printed)
    shell.events.register("pre_run_cell", printed.begin)
    shell.events.register("post_run_cell", printed.show)


def unload(shell: Any) -> None:
    """Stop that."""
    for printed in [each for each in shell.ast_transformers if isinstance(each, PrintedSymbols)]:
        shell.ast_transformers.remove(printed)
        shell.events.unregister("pre_run_cell", printed.begin)
        shell.events.unregister("post_run_cell", printed.show)
