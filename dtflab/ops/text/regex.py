"""Regular expressions: does all of a string match one, and what is put in the place of what matches.

Stands for `core/kernels/{regex_full_match,regex_replace}_op.cc`. RE2 matches, as in TensorFlow, where the package
google-re2 is installed: in linear time, whatever the pattern. Elsewhere `backtracking.py` has Python's `re` match what
it can match like RE2 and in bounded time, and refuses the rest. Rewriting is the same for both.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.messages import invalid
from dtflab.ops.text import backtracking
from dtflab.ops.text.substrings import each


@functools.cache
def _re2() -> Any:
    """The package google-re2, or None."""
    try:
        import re2
    except ImportError:
        return None
    return re2


class _RE2:
    """A pattern compiled by RE2, over bytes."""

    def __init__(self, pattern: bytes) -> None:
        options = _re2().Options()
        options.log_errors = False  # they are raised
        try:
            compiled = _re2().compile(pattern, options)
        except _re2().error as error:
            raise backtracking.InvalidPattern(error.args[0].decode(errors="replace")) from None
        self.groups = compiled.groups
        self.search = compiled.search
        self.fullmatch = compiled.fullmatch

    def text(self, item: bytes, whole: bool) -> bytes:
        return item


@functools.lru_cache(maxsize=256)
def _expression(pattern: bytes) -> Any:
    return (_RE2 if _re2() else backtracking.Expression)(pattern)


def _with(op_name: str, pattern: bytes, work: Callable[[Any], Any]) -> Any:
    """`work(expression)`; InvalidArgumentError for a pattern that is wrong, or that only RE2 can match safely."""
    shown = pattern.decode(errors="replace")
    try:
        return work(_expression(pattern))
    except backtracking.InvalidPattern as error:
        raise invalid(f"Invalid pattern: {shown}, error: {error}") from None
    except backtracking.NeedsRE2 as error:
        raise invalid(
            f"{op_name} can't match the pattern {shown} with Python's re: {error}. Install RE2, which TensorFlow uses "
            "(pip install google-re2), or write the pattern in another way."
        ) from None


def _match(op_name: str, pattern: bytes, values: Any) -> Any:
    def match(expression: Any) -> Any:
        return each(values, lambda item: expression.fullmatch(expression.text(item, whole=True)) is not None, np.bool_)

    return _with(op_name, pattern, match)


def _scalar_second(operation: Any) -> list[TensorShape]:
    for tensor in operation.inputs[1:]:
        tensor.shape.with_rank(0)
    return [operation.inputs[0].shape]


@op("""StaticRegexFullMatch(input: string) -> (output: bool)
       pattern: string""")
class StaticRegexFullMatch(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda values: _match(node.op, node["pattern"], values)


@op("RegexFullMatch(input: string, pattern: string) -> (output: bool)")
class RegexFullMatch(Op):
    infer = _scalar_second

    def bind(node, xp):
        return lambda values, pattern: _match(node.op, pattern.item(), values)


_REFERENCE = re.compile(rb"\\(.?)", re.DOTALL)


def _pieces(rewrite: bytes, groups: int) -> list[bytes | int]:
    """What stands in a rewrite: texts, and numbers of groups."""
    pieces: list[bytes | int] = list(_REFERENCE.split(rewrite))
    for i, reference in enumerate(_REFERENCE.findall(rewrite)):
        if reference.isdigit() and int(reference) <= groups:
            pieces[2 * i + 1] = int(reference)
        elif reference != b"\\":
            raise invalid(
                f"Invalid rewrite: {rewrite.decode(errors='replace')!r} refers to "
                f"'\\{reference.decode(errors='replace')}'; it may refer to \\0 (the match), the {groups} groups of "
                "the pattern, and \\\\ (a backslash)."
            )
    return pieces


def _rewritten(expression: Any, item: bytes, pieces: list[bytes | int], everywhere: bool) -> bytes:
    """`RE2::GlobalReplace`, or `RE2::Replace` of the first match."""
    text = expression.text(item, whole=False)
    found: list[Any] = []
    at, end = 0, -1  # where to search, where the last match ended
    while at <= len(text) and (match := expression.search(text, at)):
        found.append(text[at : match.start()])
        if match.start() == match.end() == end:  # nothing empty matches where a match has just ended
            found.append(_character(text, end))
            at += max(1, len(found[-1]))
            continue
        found += [match[piece] or b"" if isinstance(piece, int) else piece for piece in pieces]
        at = end = match.end()
        if not everywhere:
            break
    found.append(text[at:])
    return b"".join(part if isinstance(part, bytes) else part.encode() for part in found)


def _character(text: Any, at: int) -> Any:
    """What is not searched again: a character, of bytes its UTF-8, or else one byte."""
    for size in range(2, 5) if isinstance(text, bytes) else ():
        with contextlib.suppress(UnicodeDecodeError):
            if len(text[at : at + size].decode()) == 1:
                return text[at : at + size]
    return text[at : at + 1]


def _replace(op_name: str, pattern: bytes, rewrite: bytes, everywhere: bool, values: Any) -> Any:
    def replace(expression: Any) -> Any:
        pieces = _pieces(rewrite, expression.groups)
        return each(values, lambda item: _rewritten(expression, item, pieces, everywhere))

    return _with(op_name, pattern, replace)


@op("""StaticRegexReplace(input: string) -> (output: string)
       pattern: string
       rewrite: string
       replace_global: bool = true""")
class StaticRegexReplace(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        pattern, rewrite, everywhere = node["pattern"], node["rewrite"], node["replace_global"]
        return lambda values: _replace(node.op, pattern, rewrite, everywhere, values)


@op("""RegexReplace(input: string, pattern: string, rewrite: string) -> (output: string)
       replace_global: bool = true""")
class RegexReplace(Op):
    grad = no_gradient
    infer = _scalar_second

    def bind(node, xp):
        everywhere = node["replace_global"]
        return lambda values, pattern, rewrite: _replace(node.op, pattern.item(), rewrite.item(), everywhere, values)


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
