"""Lines of magics that hold Python expressions: `train, loss --feed {x: batch[0], y: -1}`.

Rule: an option begins where `--name` stands outside of brackets and strings; all else is Python and stays as typed.
"""

from __future__ import annotations

import re

from IPython.core.error import UsageError

_TOKEN = re.compile(
    r"""(?P<string>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(?P<open>[([{])|(?P<close>[])}])"""
    r"""|(?P<option>(?<!\S)--(?P<name>[A-Za-z][\w-]*)(?=[\s=]|$)[ ]*=?)"""
)


def split(line: str, options: tuple[str, ...], example: str, flags: tuple[str, ...] = ()) -> dict[str, str]:
    """The text of each option that is there, and under '' the text before them; UsageError for unknown options.

    Those among `flags` have no text.
    """
    depth, name, start = 0, "", 0
    found: dict[str, str] = {}
    for token in _TOKEN.finditer(line):
        depth += bool(token["open"]) - bool(token["close"])
        if token["option"] and depth == 0:
            found[name] = line[start : token.start()].strip()
            name, start = token["name"], token.end()
            if name not in options + flags:
                known = ", ".join(f"--{option}" for option in options + flags)
                raise UsageError(f"Unknown option --{name}; there are {known}. For example: {example}")
    found[name] = line[start:].strip()
    wrong = [f"--{name} needs a value" for name, text in found.items() if name in options and not text]
    wrong += [f"--{name} stands alone, without {text}" for name, text in found.items() if name in flags and text]
    if wrong:
        raise UsageError(f"{wrong[0]}. For example: {example}")
    return found
