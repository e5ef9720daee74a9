"""Names of ops as people say them: what partitioning adds to a graph, in words, and how to say them shorter."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ADDED = (
    (re.compile(r"^_arg_(.+)_\d+_\d+$"), "feed "),
    (re.compile(r"^_retval_(.+)_\d+_\d+$"), "fetch "),
    (re.compile(r"^(.+)/_\d+_to/job:.*/send$"), "send "),
    (re.compile(r"^(.+)/_\d+_to/job:.*/recv$"), "receive "),
)


def readable(name: str) -> str:
    """`_arg_x_0_0` is `feed x`, `w/read/_0_to/job:worker/…/send` is `send w/read`; other names stay."""
    for pattern, word in _ADDED:
        match = pattern.match(name)
        if match:
            return word + readable(match[1]).removeprefix("feed ")
    return name


def shorter(name: str) -> Iterator[str]:
    """The readable name, then with ever fewer of its scopes, down to its last part."""
    word, _, path = readable(name).rpartition(" ")
    word = f"{word} " if word else ""
    parts = path.split("/")
    for start in range(len(parts)):
        yield word + "/".join(parts[start:])
    if word:
        yield word.strip()
