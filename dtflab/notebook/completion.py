"""Completion of a line with a magic of dtflab: its own options, values where they are known, and nothing else.

Also behind `name = %magic`. Where a line holds Python, the names of the notebook; behind `%config DtfLab.style = ` the
values of that setting.

Rule: all that is offered comes from the magic's parser, so no list of options is kept twice.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from IPython import get_ipython
from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.magic import MAGIC_NO_VAR_EXPAND_ATTR

from dtflab.base.suggestions import near
from dtflab.notebook import arguments, settings

_LINE = re.compile(r"\s*(?:[^%=]+=\s*)?(?P<sign>%%?)(?P<magic>dtf_\w+)\s(?P<line>.*)")
_SETTING = re.compile(r"\s*%config\s+DtfLab\.(?P<name>\w+)\s*=\s*(?P<begin>\S*)")
_NAME = re.compile(r"(?<![\w.\"'])(?!\d)\w*$")  # what is typed of a name, not of an attribute


@context_matcher()
def complete(context: CompletionContext) -> SimpleMatcherResult:
    """IPython's matcher of these lines; what it offers stands alone."""
    if setting := _SETTING.fullmatch(context.text_until_cursor):
        begin, values = setting["begin"], settings.values(setting["name"])
        return _alone([each for each in values if each.strip("'").startswith(begin.strip("\"'"))] or values, begin)
    found = _LINE.fullmatch(context.text_until_cursor)
    magic = found and get_ipython().find_magic(found["magic"], "cell" if found["sign"] == "%%" else "line")
    if found is None or not hasattr(magic, "parser"):
        return SimpleMatcherResult(completions=[])
    *done, word = re.split(r"[\s=]+", f" {found['line']}")
    fitting = _offered(magic, [one for one in done if one], word)
    if not fitting and getattr(magic, MAGIC_NO_VAR_EXPAND_ATTR, False) and (name := _NAME.search(word)):
        word, fitting = name[0], _names(name[0])
    return _alone(fitting, word)


def _alone(fitting: Sequence[str], word: str) -> SimpleMatcherResult:
    """These completions of `word`, and nobody else's."""
    completions: Any = [SimpleCompletion(text=each, type="magic") for each in fitting] or _Nothing()
    return SimpleMatcherResult(completions=completions, matched_fragment=word, suppress=True, ordered=True)


class _Nothing:
    """No completion, but not empty: after an empty answer IPython would offer Python's keywords and files."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[SimpleCompletion]:
        return iter(())


def _offered(magic: Any, done: Sequence[str], word: str) -> Sequence[str]:
    """The options and values that may stand behind the words that are `done`, and that `word` may become."""
    known, magics = arguments.options(magic), magic.__self__
    before = known.get(done[-1]) if done else None
    places, given = _positional(magic, done)
    taken = _taken(magic, zip(places, given))
    rest = [name for name in taken if name not in done or isinstance(known[name], argparse._AppendAction)]
    if before is not None and before.nargs != 0:
        offered = list(before.values(magics)) if before.values else []
    elif word.startswith("-"):
        offered = [*rest, "--help"]
    else:
        place = next(iter(places[len(given) :]), None)
        offered = list(place.values(magics)) if place is not None and place.values else []
        offered += [] if getattr(magic, MAGIC_NO_VAR_EXPAND_ATTR, False) else rest
    begin = word.strip("\"'")
    return [each for each in offered if each.strip('"').startswith(begin)] or near(begin, offered, 3) or offered


def _taken(magic: Any, given: Iterable[tuple[Any, str]]) -> Iterable[str]:
    """The options that go with the arguments that are `given`: a verb may have some of its own."""
    for place, word in given:
        verbs: Any = place.values(magic.__self__) if place.values else ()
        options: Sequence[str] | None = verbs.get(word) if isinstance(verbs, Mapping) else None
        if options is not None:
            return options
    return arguments.options(magic)


def _positional(magic: Any, done: Sequence[str]) -> tuple[list[Any], list[str]]:
    """The arguments without a dash, and the words for the first of them."""
    known, places = arguments.options(magic), [one for one in magic.parser._actions if not one.option_strings]
    takes = {name for name, action in known.items() if action.nargs != 0}
    return places, [word for before, word in zip(("", *done), done) if before not in takes and word not in known]


def _names(begin: str) -> list[str]:
    """The notebook's own names that begin so."""
    shell = get_ipython()
    own = [name for name in shell.user_ns if name not in shell.user_ns_hidden and not name.startswith("_")]
    return [name for name in own if name.startswith(begin)]
