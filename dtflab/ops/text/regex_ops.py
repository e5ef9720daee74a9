"""Regular expressions: whether a whole string matches, and replacing the parts that match.

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

from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.ops.messages import invalid
from dtflab.ops.text import backtracking
from dtflab.ops.text.elementwise_ops import each


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
        options.log_errors = False  # as they are raised
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


class _Regex(Op):
    """Base of the ops of a pattern, which is an attribute or, like a rewrite, an input."""

    parts: tuple[str, ...] = ("pattern",)
    work: Callable[..., Any]  # of (expression, strings, node, the other parts)

    def infer(operation):
        for part in operation.inputs[1:]:
            part.shape.with_rank(0)
        return [operation.inputs[0].shape]

    @classmethod
    def bind(cls, node, xp):
        given = [node[part] for part in cls.parts if part in node.attrs]

        def kernel(strings, *inputs):
            pattern, *others = given or [value.item() for value in inputs]
            return _with(node.op, pattern, lambda expression: cls.work(expression, strings, node, *others))

        return kernel


@op(
    "StaticRegexFullMatch(input: string) -> (output: bool) where pattern: string",
    "RegexFullMatch(input: string, pattern: string) -> (output: bool)",
)
class RegexFullMatch(_Regex):
    def work(expression, strings, node):
        return each(strings, lambda item: expression.fullmatch(expression.text(item, whole=True)) is not None, np.bool_)


# -- replace ------------------------------------------------------------------------------------------

_REFERENCE = re.compile(rb"\\(.?)", re.DOTALL)


def _pieces(rewrite: bytes, groups: int) -> list[bytes | int]:
    """The pieces of a rewrite: texts, and numbers of groups."""
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
        if match.start() == match.end() == end:  # no empty match where the last match has ended
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
    """The character at `at`, which is not searched again: of bytes its UTF-8, or else one byte."""
    for size in range(2, 5) if isinstance(text, bytes) else ():
        with contextlib.suppress(UnicodeDecodeError):
            if len(text[at : at + size].decode()) == 1:
                return text[at : at + size]
    return text[at : at + 1]


@op("""StaticRegexReplace(input: string) -> (output: string)
       pattern: string, rewrite: string, replace_global: bool = true""")
class StaticRegexReplace(_Regex):
    parts = ("pattern", "rewrite")

    def work(expression, strings, node, rewrite):
        pieces = _pieces(rewrite, expression.groups)
        return each(strings, lambda item: _rewritten(expression, item, pieces, node["replace_global"]))


@op("""RegexReplace(input: string, pattern: string, rewrite: string) -> (output: string)
       replace_global: bool = true""")
class RegexReplace(StaticRegexReplace):
    grad = no_gradient
