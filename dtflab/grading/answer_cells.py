"""The cell in which a student wrote an answer, and whether it is still the exercise's stub. Nothing is run here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

_MOST = 20_000  # characters of a cell that are shown to people


def cell_of(code: Sequence[str], name: str) -> int:
    """The number of the last cell that defines `name`, even one that Python can't read; 0 if there is none."""
    defines = re.compile(rf"^\s*(?:(?:async\s+)?def|class)\s+{name}\b|^\s*{name}\s*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
    return max((number for number, cell in enumerate(code, 1) if defines.search(cell)), default=0)


def shown(code: Sequence[str], name: str) -> str:
    """The code of the cell that defines `name`, for people; empty if there is none."""
    number = cell_of(code, name)
    return _cut(code[number - 1].strip("\n"), _MOST) if number else ""


def others(code: Sequence[str], names: Iterable[str]) -> dict[int, str]:
    """The other cells than those that define `names`, for people, by number; the first of them if they are long."""
    found: dict[int, str] = {}
    left, answers = _MOST, {cell_of(code, name) for name in names}
    for number, cell in enumerate(code, 1):
        if number not in answers and (text := cell.strip()) and left > 0:
            found[number] = _cut(text, left)
            left -= len(text)
    return found


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n… and {len(text) - most:,} characters more"


def is_stub(cell: str, name: str) -> bool:
    """Whether the function `name` in a cell only raises NotImplementedError.

    One other statement may come before that, because some exercises begin with a line of their own.
    """
    try:
        functions = [node for node in ast.parse(cell).body if isinstance(node, ast.FunctionDef) and node.name == name]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # or a magic, which no stub has
        return False
    if not functions:
        return False
    body = [node for node in functions[-1].body if not _is_text(node)]
    return 0 < len(body) <= 2 and ast.unparse(body[-1]).removesuffix("()") == "raise NotImplementedError"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
