"""The line of a magic: its options, `--help`, and a suggestion after a slip of the pen.

`@magic` stands above the `@argument`s of a magic and makes its parser and its help of them. Its line is then read by
`words`, as a shell's, or by `split`, as Python with options in it: `train, loss --feed {x: batch[0], y: -1}`. What Tab
offers, completion.py takes from the same parser.

Rule: an option begins where `--name` stands outside of brackets and strings; all else is Python and stays as typed.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from IPython.core import magic_arguments
from IPython.core.error import UsageError
from IPython.utils.process import arg_split  # type: ignore[attr-defined]

from dtflab.base.suggestions import did_you_mean, near

# Of the object that holds the magics. A verb of a mapping has the options that go with it; None: all of them.
Values = Callable[[Any], Iterable[str] | Mapping[str, Collection[str] | None]]

_TOKEN = re.compile(
    r"""(?P<string>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(?P<open>[([{])|(?P<close>[])}])"""
    r"""|(?P<option>(?<!\S)--(?P<name>[A-Za-z][\w-]*)(?=[\s=]|$)[ ]*=?)"""
)
_EXAMPLE = re.compile(r"^ *(%%?dtf_\w+ \S.*?)(?:  |$)", re.M)  # up to the remark next to it


class argument(magic_arguments.argument):
    """`IPython.core.magic_arguments.argument`, with the values that Tab offers: a function of the magic's object."""

    def __init__(self, *args: Any, values: Values | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._values = values

    def add_to_parser(self, parser: Any, group: Any) -> None:
        """Add the argument."""
        action = (group or parser).add_argument(*self.args, **self.kwds)
        action.values = self._values


def magic(function: Any) -> Any:
    """Make the parser and the help of a magic from the arguments below; `--help` prints what `?` shows."""
    sign = "%%" if re.search(rf"^ *%%{function.__name__} ", function.__doc__, re.M) else "%"
    example = _EXAMPLE.search(function.__doc__)
    parsed: Any = magic_arguments.magic_arguments()(function)
    parsed.__doc__ = parsed.__doc__.replace(f"  %{function.__name__}", f"  {sign}{function.__name__}", 1)
    parsed.example = example[1] if example else f"%{function.__name__}"

    @functools.wraps(parsed)
    def run(self: Any, line: str, *cell: str) -> Any:
        if any(name == "help" for name, _, _ in _options(line)):
            print(parsed.__doc__)
            return None
        if sign == "%%" and not "".join(cell).strip():
            name = f"%%{function.__name__}"
            raise UsageError(
                f"{name} runs the lines below it in its cell, and there are none. For example: {parsed.example}"
            )
        return parsed(self, line, *cell)

    return run


def with_a_body(lines: list[str]) -> list[str]:
    """A cell that is only the line of a magic, with an empty line below: IPython asks no magic without one.

    One of IPython's transformers of input: the magic itself answers `%%dtf_run --help`, or says what is missing.
    """
    written = [line for line in lines if line.strip()]
    return [*written, "\n"] if len(written) == 1 and written[0].startswith("%%dtf_") else lines


def words(magic: Any, line: str) -> argparse.Namespace:
    """The arguments in a line that is read as a shell's; UsageError with an example for a wrong one."""
    for word in arg_split(line):
        name = word.partition("=")[0]
        if re.match(r"--[A-Za-z]", word) and name not in options(magic):
            _unknown_option(magic, name)
    try:
        found: argparse.Namespace = magic_arguments.parse_argstring(magic, line)
        return found
    except UsageError as error:
        text = _plain(str(error))
        raise UsageError(f"{text[:1].upper()}{text[1:]}. For example: {magic.example}") from None


def split(magic: Any, line: str) -> dict[str, str]:
    """The text of each option that is in a line of Python, and under '' the text before them.

    An option that takes no value has no text. UsageError for an unknown option, a missing value, one too many.
    """
    known = options(magic)
    found, name, start = dict[str, str](), "", 0
    for option, begin, end in _options(line):
        found[name] = line[start:begin].strip()
        name, start = option, end
        if f"--{name}" not in known:
            _unknown_option(magic, f"--{name}")
    found[name] = line[start:].strip()
    is_flag = {name: f"--{name}" in known and known[f"--{name}"].nargs == 0 for name in found}
    wrong = [f"--{name} needs a value" for name, text in found.items() if name and not (is_flag[name] or text)]
    wrong += [f"--{name} stands alone, without {text}" for name, text in found.items() if is_flag[name] and text]
    if wrong:
        raise UsageError(f"{wrong[0]}. For example: {magic.example}")
    return found


def options(magic: Any) -> dict[str, Any]:
    """The options of a magic, `--name` and what its parser knows of it."""
    return {name: action for action in magic.parser._actions for name in action.option_strings}


def check(what: str, given: str, known: Collection[str], example: str) -> None:
    """UsageError if a word is not one of those that are known: `what` it is of, the nearest one, all of them."""
    if given not in known:
        meant = did_you_mean(given, known)
        raise UsageError(f"{what} can't be {given!r}.{meant} Choose {', '.join(known)}. For example: {example}")


def _plain(text: str) -> str:
    """An error of argparse about a value, in the words of `split`."""
    text = re.sub(r"^argument (\S+): expected one argument$", r"\1 needs a value", text)
    text = re.sub(r"^argument (\S+): invalid int value: ", r"\1 must be a whole number, not ", text)
    return re.sub(r"^argument (\S+): invalid float value: ", r"\1 must be a number, not ", text)


def _unknown_option(magic: Any, name: str) -> NoReturn:
    known = [*options(magic), "--help"]
    begun = [one for one in known if one.startswith(name)]
    alike = begun or [f"--{one}" for one in near(name.strip("-"), [one.strip("-") for one in known])]
    cure = f"Did you mean {' or '.join(alike)}?" if alike else f"There are {', '.join(known)}."
    raise UsageError(f"Unknown option {name}. {cure} For example: {magic.example}")


def _options(line: str) -> Iterator[tuple[str, int, int]]:
    """The options in a line, outside of brackets and strings: name, where it begins and ends."""
    depth = 0
    for token in _TOKEN.finditer(line):
        depth += bool(token["open"]) - bool(token["close"])
        if token["option"] and depth == 0:
            yield token["name"], token.start(), token.end()
