"""Completion of a line with a magic of dtflab: its own options, values where they are known, and nothing else.

Also behind `name = %magic`. Where a line holds Python, the names of the notebook; behind `%config DtfLab.style = ` the
values of that setting.

Rule: all that is offered comes from the magic's parser, so no list of options is kept twice.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
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
    completions = [SimpleCompletion(text=each, type="magic") for each in fitting]
    return SimpleMatcherResult(completions=completions, matched_fragment=word, suppress=True, ordered=True)


def _offered(magic: Any, done: Sequence[str], word: str) -> Sequence[str]:
    """The options and values that may stand behind the words that are `done`, and that `word` may become."""
    known, magics = arguments.options(magic), magic.__self__
    before = known.get(done[-1]) if done else None
    rest = [name for name, action in known.items() if name not in done or isinstance(action, argparse._AppendAction)]
    if before is not None and before.nargs != 0:
        offered = list(before.values(magics)) if before.values else []
    elif word.startswith("-"):
        offered = [*rest, "--help"]
    else:
        place = _positional(magic, done)
        offered = list(place.values(magics)) if place is not None and place.values else []
        offered += [] if getattr(magic, MAGIC_NO_VAR_EXPAND_ATTR, False) else rest
    return [each for each in offered if each.startswith(word)] or near(word, offered, 3) or offered


def _positional(magic: Any, done: Sequence[str]) -> Any:
    """The argument without a dash that comes next; None if all are there."""
    known, places = arguments.options(magic), [one for one in magic.parser._actions if not one.option_strings]
    takes = {name for name, action in known.items() if action.nargs != 0}
    given = [word for before, word in zip(("", *done), done) if before not in takes and word not in known]
    return places[len(given)] if len(given) < len(places) else None


def _names(begin: str) -> list[str]:
    """The notebook's own names that begin so."""
    shell = get_ipython()
    own = [name for name in shell.user_ns if name not in shell.user_ns_hidden and not name.startswith("_")]
    return [name for name in own if name.startswith(begin)]
