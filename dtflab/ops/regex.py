"""Regular expressions: does all of a string match one, and what is put in the place of what matches.

Stands for `core/kernels/{regex_full_match,regex_replace}_op.cc`. Left out: RE2; Python's `re` reads the expressions,
which knows more. What RE2 does otherwise is done here: texts are UTF-8, character classes are ASCII, nothing empty
matches where a match has just ended.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.messages import invalid
from dtflab.ops.substrings import each


def _text(data: bytes) -> str:
    """As characters; bytes that are no UTF-8 stay what they are."""
    return data.decode(errors="surrogateescape")


def _expression(pattern: bytes) -> re.Pattern[str]:
    try:
        return re.compile(_text(pattern), re.ASCII)
    except re.error as error:
        raise invalid(f"Invalid pattern: {pattern.decode(errors='replace')}, error: {error}") from None


def _match(pattern: bytes, values: Any) -> Any:
    expression = _expression(pattern)
    return each(values, lambda item: expression.fullmatch(_text(item)) is not None, np.bool_)


def _scalar_second(operation: Any) -> list[TensorShape]:
    for tensor in operation.inputs[1:]:
        tensor.shape.with_rank(0)
    return [operation.inputs[0].shape]


@op("""StaticRegexFullMatch(input: string) -> (output: bool)
       pattern: string""")
class StaticRegexFullMatch(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda values: _match(node["pattern"], values)


@op("RegexFullMatch(input: string, pattern: string) -> (output: bool)")
class RegexFullMatch(Op):
    infer = _scalar_second

    def bind(node, xp):
        return lambda values, pattern: _match(pattern.item(), values)


_REFERENCE = re.compile(r"\\(.?)", re.DOTALL)


def _replace(pattern: bytes, rewrite: bytes, everywhere: bool, values: Any) -> Any:
    expression, new = _expression(pattern), _text(rewrite)
    for reference in _REFERENCE.findall(new):
        if reference != "\\" and not (reference.isdigit() and int(reference) <= expression.groups):
            raise invalid(f"Invalid rewrite: {new!r} refers to '\\{reference}'; it may refer to \\0 (the match), "
                          f"the {expression.groups} groups of the pattern, and \\\\ (a backslash).")  # fmt: skip

    def written(match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda m: "\\" if m[1] == "\\" else match[int(m[1])] or "", new)

    def replaced(item: bytes) -> bytes:
        text, end = _text(item), 0
        pieces: list[str] = []
        for match in expression.finditer(text):
            if match.end() == match.start() == end and pieces:
                continue
            pieces += [text[end : match.start()], written(match)]
            end = match.end()
            if not everywhere:
                break
        return "".join([*pieces, text[end:]]).encode(errors="surrogateescape")

    return each(values, replaced)


@op("""StaticRegexReplace(input: string) -> (output: string)
       pattern: string
       rewrite: string
       replace_global: bool = true""")
class StaticRegexReplace(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        pattern, rewrite, everywhere = node["pattern"], node["rewrite"], node["replace_global"]
        return lambda values: _replace(pattern, rewrite, everywhere, values)


@op("""RegexReplace(input: string, pattern: string, rewrite: string) -> (output: string)
       replace_global: bool = true""")
class RegexReplace(Op):
    grad = no_gradient
    infer = _scalar_second

    def bind(node, xp):
        everywhere = node["replace_global"]
        return lambda values, pattern, rewrite: _replace(pattern.item(), rewrite.item(), everywhere, values)


# -- what programs call -----------------------------------------------------------------------------------------------


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """True where all of a string matches `pattern`."""
    if isinstance(pattern, str | bytes):
        return apply_op("StaticRegexFullMatch", name, input=input, pattern=pattern)
    return apply_op("RegexFullMatch", name, input=input, pattern=pattern)


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    """Each string with `rewrite` for all that matches `pattern`, or for the first match only.

    In `rewrite`, `\\1` to `\\9` are the groups of the pattern and `\\0` is the match. InvalidArgumentError in the step
    for a pattern that is none, and for a rewrite that refers to what is not there (which TensorFlow leaves unsaid).
    """
    if isinstance(pattern, str | bytes) and isinstance(rewrite, str | bytes):
        return apply_op("StaticRegexReplace", name, input=input, pattern=pattern, rewrite=rewrite,
                        replace_global=replace_global)  # fmt: skip
    return apply_op("RegexReplace", name, input=input, pattern=pattern, rewrite=rewrite, replace_global=replace_global)
