"""Names of nodes as people say them: what pruning and partitioning add to a graph, in words."""

from __future__ import annotations

import re

_ADDED = (
    (re.compile(r"^_arg_(.+)_\d+_\d+$"), "feed "),
    (re.compile(r"^_retval_(.+)_\d+_\d+$"), "fetch "),
    (re.compile(r"^(.+?)/to_job_\w+/.+/send$"), "send "),
    (re.compile(r"^(.+?)/to_job_\w+/.+/recv$"), "receive "),
    (re.compile(r"^(.+?)/to_job_\w+/done/signal$"), "end of "),
)


def readable(name: str) -> str:
    """`_arg_x_0_0` is `feed x`, `w/read/to_job_worker_…/0/send` is `send w/read`; other names stay."""
    for pattern, word in _ADDED:
        match = pattern.match(name)
        if match:
            return word + readable(match[1]).removeprefix("feed ") + name[match.end() :]
    return name
