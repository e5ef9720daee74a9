r"""Patterns of file names: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` before a character that means itself.

Stands for `GetMatchingPaths` of `tsl/platform/file_system_helper.cc`. Results are sorted, whereas TensorFlow keeps
the order of the file system; names that begin with a dot are found, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from dtflab.files.paths import local

_SPECIAL = re.compile(r"[*?\[\\]")


def glob(pattern: str, may_look: Callable[[str], Any] = lambda path: None) -> list[str]:
    """The existing paths that match, sorted; below `./` if the first name of a relative pattern is not plain.

    `may_look(path)` raises an error for a file or folder at which nobody may look.
    """
    path = local(pattern)
    prefix = pattern[: len(pattern) - len(path)]
    if not _SPECIAL.search(path):
        may_look(path)
        return [pattern] if path and os.path.exists(path) else []
    plain = path[: _SPECIAL.search(path).start()]  # type: ignore[union-attr]
    folder, slash, _ = plain.rpartition("/")
    found = [folder + slash or "./"]
    names = path[len(folder + slash) :].split("/")
    for name in names:
        for start in found:
            may_look(start)
        matches = [match for start in found for match in _children(start, name)]
        found = [match + "/" for match in matches if os.path.isdir(match)]
    return [prefix + match for match in matches]


def _children(folder: str, pattern: str) -> list[str]:
    """The entries of `folder` whose names match."""
    if len(pattern) > _LONGEST:
        return []
    matches = re.compile(_regex(pattern), re.S).fullmatch
    try:
        return sorted(folder + name for name in os.listdir(folder) if matches(name))
    except OSError:  # deleted meanwhile, or not readable: nothing matches
        return []


_LONGEST = 4096  # of a path, on Linux
_SET = r"\[(?P<not>[\^!]?)(?P<set>(?:\\.|[^\\])(?:\\.|[^\]\\])*)\]"
_TERM = re.compile(rf"\\(?P<plain>.)|(?P<one>\?)|{_SET}|(?P<other>.)", re.S)


def _regex(pattern: str) -> str:
    """Match each part between two stars at its first position: without backtracking, so in linear time."""
    parts = [""]
    for term in _TERM.finditer(pattern):
        if term["other"] == "*":
            parts.append("")
        else:
            parts[-1] += _term(term)
    first, *others = parts
    middle = "".join(f"(?>[^/]*?{part})" for part in others[:-1])
    return f"{first}{middle}[^/]*{others[-1]}" if others else first


def _term(term: re.Match[str]) -> str:
    if term["one"]:
        return "[^/]"
    if term["set"] is not None:
        inside = re.sub(r"\\(.)|([\[^\]&~|])", lambda m: "\\" + (m[1] or m[2]), term["set"])
        return f"[{'^' if term['not'] else ''}{inside}]"
    return re.escape(term["plain"] or term["other"])
