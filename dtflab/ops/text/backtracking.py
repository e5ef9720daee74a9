r"""Regular expressions without RE2: Python's `re`, where it gives RE2's answer and can't take long.

Stands for RE2 (`core/platform/regexp.h`) where the package google-re2 is not installed. Left out: syntax that the two
read differently (`\pN`, `\z`, `\Q…\E`, `[[:alpha:]]`, octal escapes, `\B`, flags within a pattern), which is refused.

Rule: `re` backtracks while it holds Python's lock, so it only matches what takes a bounded number of steps. `steps`
computes the bound from the parsed pattern and the length of the text. It may be too large, but never too small.
"""

from __future__ import annotations

import re
from re import _constants as code, _parser  # type: ignore[attr-defined]  # typeshed knows the old names only
from typing import Any, NamedTuple

_MOST_STEPS = 10**8  # about a second
_MOST_CHARACTERS = 10_000  # of a pattern
_MOST_REPEATS = 1000  # RE2's limit, of nested counts multiplied
_MOST_NESTED = 5  # repeats within repeats: each measures its body twice


class NeedsRE2(ValueError):
    """A pattern or a text that only RE2 accepts; the message is the reason."""


class InvalidPattern(ValueError):
    """A pattern that RE2 refuses, too; the message is the reason."""


# -- syntax ---------------------------------------------------------------------------------------------------------

_ESCAPE = r"\\[dDwWsSafnrtv!-/:-@\[-^`{-~ ]|\\x[0-9a-fA-F]{2}"
_TOKEN = re.compile(
    rf"""(?:(?P<end>\$) | \^ | \\[bA])(?![*+?{{]) | [^\\\[(){{*+?$^] | [)*+?] | {_ESCAPE}
    | \[\^?\]?(?:(?!\\S)(?:{_ESCAPE}) | -(?!-) | [^\[\]\\&~|-])*\]
    | \((?!\?) | \(\?: | \(\?P<[A-Za-z_]\w*>
    | \{{\d{{1,4}}(?:,\d{{0,4}})?\}} | \{{(?![\d,])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_FLAGS = re.compile(r"\(\?([ims]+)\)")


def _translated(pattern: str) -> str:
    """The pattern as `re` has to read it. Raises NeedsRE2 at the first thing that `re` reads differently."""
    found, at = [], 0
    flags = _FLAGS.match(pattern)
    if flags:
        found, at = [flags[0]], flags.end()
    by_lines = flags is not None and "m" in flags[1]
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            raise NeedsRE2(f"Python's re and RE2 do not read {pattern[at : at + 10]!r} at position {at} alike")
        found.append(r"\Z" if token["end"] and not by_lines else token[0])
        at = token.end()
    return "".join(found)


class Expression:
    """A compiled pattern over str. Raises InvalidPattern, or NeedsRE2."""

    def __init__(self, pattern: bytes) -> None:
        try:
            text = pattern.decode()
        except UnicodeDecodeError:
            raise InvalidPattern("invalid UTF-8") from None
        if len(text) > _MOST_CHARACTERS:
            raise NeedsRE2(f"it has {len(text)} characters, of at most {_MOST_CHARACTERS}")
        translated = _translated(text)
        try:
            self._tree = _parser.parse(translated, re.ASCII)
            self._compiled = re.compile(translated, re.ASCII)
            self.steps(0, whole=True)
        except re.error as error:
            raise InvalidPattern(f"{error}") from None
        except RecursionError:
            raise NeedsRE2("its groups are nested too deeply") from None
        self.groups = self._compiled.groups
        self.search = self._compiled.search
        self.fullmatch = self._compiled.fullmatch
        self._by_case = not self._compiled.flags & re.IGNORECASE
        self._spaces = r"\s" in text.lower()
        self._safe = {True: 0, False: 0}  # lengths of texts
        if not self._by_case and not text.isascii():
            raise NeedsRE2("it ignores case and is not ASCII")

    def text(self, item: bytes, whole: bool) -> str:
        """The characters of `item`, if matching all of it or searching in it is safe; else NeedsRE2."""
        try:
            text = item.decode()
        except UnicodeDecodeError:
            raise NeedsRE2("a text is not UTF-8") from None
        if not (self._by_case or text.isascii()):
            raise NeedsRE2("it ignores case and a text is not ASCII")
        if self._spaces and "\v" in text:
            raise NeedsRE2(r"a text has a vertical tab, which only one of the two counts as \s")
        if len(text) > self._safe[whole]:
            if self.steps(len(text), whole) > _MOST_STEPS:
                raise NeedsRE2(f"it might take more than {_MOST_STEPS:,} steps on a text of {len(text):,} characters")
            self._safe[whole] = len(text)
        return text

    def steps(self, length: int, whole: bool) -> int:
        """A bound on the steps to match a whole text of that length, or to search in it."""
        measure = _Measure(length, bool(self._tree.state.flags & re.IGNORECASE))
        if whole:
            return measure.sequence(self._tree, _Next(_END, 1)).steps
        kept = measure.sequence(_cut(self._tree), _Next(_ANYTHING, 1)).steps
        return 2 * (length + 1) * kept + length  # each place is tried, twice where nothing matched


# -- steps ----------------------------------------------------------------------------------------------------------
# A set of what may come next is a number: one bit for each ASCII character, one for all others, one for the end.

_OTHERS = 1 << 128
_END = 1 << 129
_ANYTHING = (1 << 130) - 1
_CHARACTERS = _ANYTHING & ~_END
_LETTERS = (1 << 26) - 1
_ENDS = {code.AT_END: _END | 1 << ord("\n"), code.AT_END_STRING: _END}
_ONE_CHARACTER = (code.LITERAL, code.NOT_LITERAL, code.ANY, code.ANY_ALL, code.IN)
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)


def _range(low: int, high: int) -> int:
    return ((1 << min(high, 127) + 1) - 1) & ~((1 << min(low, 128)) - 1) | (_OTHERS if high > 127 else 0)


_DIGITS = _range(48, 57)
_WORD = _DIGITS | _range(65, 90) | _range(97, 122) | 1 << ord("_")
_CATEGORIES = {"DIGIT": _DIGITS, "WORD": _WORD, "SPACE": _range(9, 13) | 1 << 32}
_CATEGORIES |= {"NOT_" + name: _CHARACTERS & ~found for name, found in _CATEGORIES.items()}


def _characters(kind: Any, what: Any) -> int:
    """The characters that one item of a parsed pattern matches; too many rather than too few."""
    if kind is code.LITERAL:
        return _range(what, what)
    if kind is code.RANGE:
        return _range(*what)
    if kind is code.CATEGORY:
        return _CATEGORIES[str(what).removeprefix("CATEGORY_")]
    if kind is code.NOT_LITERAL:
        return _CHARACTERS & ~(_range(what, what) & ~_OTHERS)
    if kind is code.IN:
        negated = what[0][0] is code.NEGATE
        found = 0
        for item in what[negated:]:
            found |= _characters(*item)
        return _CHARACTERS & ~(found & ~_OTHERS) if negated else found
    return _CHARACTERS  # a dot


class _Next(NamedTuple):
    """The continuation after a part: the characters it may begin with, and the steps to find that it does not match."""

    first: int
    miss: int


class _Cost(NamedTuple):
    """The cost of a part tried at one place in all ways: its steps, the ways that lead on, and how it begins."""

    steps: int
    ways: int
    first: int
    miss: int
    empty: bool  # it may match nothing


class _Measure:
    """Costs of the parts of a pattern on a text of `length`."""

    def __init__(self, length: int, ignores_case: bool) -> None:
        self.length = length
        self.ignores_case = ignores_case

    def sequence(self, items: Any, after: _Next, room: int = _MOST_REPEATS, nested: int = 0) -> _Cost:
        """The cost of parts in a row: each is tried for each way through the parts before it."""
        steps, ways, empty = 0, 1, True
        for kind, what in reversed(list(items)):
            cost = self._part(kind, what, after, room, nested)
            steps = _at_most(cost.steps + cost.ways * steps)
            ways = _at_most(ways * cost.ways)
            empty = empty and cost.empty
            after = (
                _Next(cost.first | after.first, cost.miss + after.miss) if cost.empty else _Next(cost.first, cost.miss)
            )
        return _Cost(steps, ways, after.first, after.miss, empty)

    def _part(self, kind: Any, what: Any, after: _Next, room: int, nested: int) -> _Cost:
        if kind in _ONE_CHARACTER:
            first = _characters(kind, what)
            if self.ignores_case:
                letters = (first >> 65 | first >> 97) & _LETTERS
                first |= letters << 65 | letters << 97
            return _Cost(1, 1, first, 1, False)
        if kind is code.AT:
            return _Cost(1, 1, _ENDS.get(what, 0), 1, what not in _ENDS)
        if kind is code.SUBPATTERN:
            return self.sequence(what[3], after, room, nested)
        if kind is code.BRANCH:
            return self._branch([self.sequence(branch, after, room, nested) for branch in what[1]])
        if kind in _REPEATS:
            least, most, body = what
            return self._repeat(least, most, body, after, room, nested)
        raise InvalidPattern(f"bad operator: {str(kind).lower()}")

    def _branch(self, branches: list[_Cost]) -> _Cost:
        """The next character chooses one, or else all are tried."""
        first = 0
        chosen = True
        for branch in branches:
            chosen = chosen and not first & branch.first
            first |= branch.first
        ways = [branch.ways for branch in branches]
        steps, miss = (
            sum(costs) + len(branches) for costs in ([b.steps for b in branches], [b.miss for b in branches])
        )
        return _Cost(steps, max(ways) if chosen else sum(ways), first, miss, any(branch.empty for branch in branches))

    def _repeat(self, least: int, most: Any, body: Any, after: _Next, room: int, nested: int) -> _Cost:
        bounded = most is not code.MAXREPEAT
        room //= max(most if bounded else least, 1)
        if not room:
            raise InvalidPattern(f"invalid repetition size: more than {_MOST_REPEATS} in all")
        if nested == _MOST_NESTED:
            raise NeedsRE2(f"more than {_MOST_NESTED} repeats are nested")
        _, _, first, miss, empty = self.sequence(body, _Next(0, 0), room, nested + 1)
        if empty:
            raise NeedsRE2("what is repeated may be empty")
        each = self.sequence(body, _Next(first | after.first, miss + after.miss), room, nested + 1)
        times = min(most, self.length) if bounded else self.length  # each consumes a character
        if each.ways == 1:
            ways, rounds = times - min(least, times) + 1 if first & after.first else 1, times + 1
        else:
            ways = rounds = _powers(each.ways, times)
        return _Cost(_at_most(rounds * (each.steps + after.miss + 1)), _at_most(ways), first, miss + 1, least == 0)


def _at_most(number: int) -> int:
    """`number`, but never far beyond the bound, where all numbers mean the same."""
    return min(number, _MOST_STEPS + 1)


def _powers(base: int, most: int) -> int:
    """1 + base + base² + … + base^most."""
    total = 1
    for _ in range(most):
        total = total * base + 1
        if total > _MOST_STEPS:
            break
    return total


def _cut(items: Any) -> list[Any]:
    """The parts that decide where a match ends: the others only make it longer, and cost what they consume."""
    kept = list(items)
    for i in reversed(range(len(kept))):
        kind, what = kept[i]
        least = 1
        if kind is code.SUBPATTERN:
            kept[i] = kind, (*what[:3], _cut(what[3]))
        elif kind is code.BRANCH:
            kept[i] = kind, (what[0], list(map(_cut, what[1])))
        elif kind in _REPEATS:
            least, most, body = what
            if len(body) == 1 and body[0][0] in _ONE_CHARACTER:
                kept[i] = kind, (least, least, body)
            elif most == 1:
                kept[i] = kind, (least, most, _cut(body))
        if least:  # it may fail, and then the parts before it are matched in another way
            break
    return kept
