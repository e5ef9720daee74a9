"""Names of nodes as people say them: what pruning and partitioning add to a graph, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from dtflab.graph.device_spec import label

_ADDED = (
    (re.compile(r"^_arg_(.+)_\d+_\d+$"), "feed "),
    (re.compile(r"^_retval_(.+)_\d+_\d+$"), "fetch "),
    (re.compile(r"^(.+?)/to_job_\w+/.+/send$"), "send "),
    (re.compile(r"^(.+?)/to_job_\w+/.+/recv$"), "receive "),
    (re.compile(r"^(.+?)/to_job_\w+/done/signal$"), "end of "),
)
_TRANSFER = re.compile(r"/to_job_(\w+)_replica_(\d+)_task_(\d+)_device_(\w+)_(\d+)/.+/(send|recv)$")


def readable(name: str) -> str:
    """`_arg_x_0_0` is `feed x`, `w/read/to_job_worker_…/0/send` is `send w/read`; other names stay."""
    for pattern, word in _ADDED:
        match = pattern.match(name)
        if match:
            return word + readable(match[1]).removeprefix("feed ") + name[match.end() :]
    return name


def told_apart(names: Iterable[str]) -> Callable[[str], str]:
    """The words for nodes that are shown together: a name that repeats gets its place, `send w/read to worker:0`."""
    repeats = Counter(map(readable, set(names)))

    def called(name: str) -> str:
        short = readable(name)
        return short + _place(name) if repeats[short] > 1 else short

    return called


def _place(name: str) -> str:
    """Where a send's tensor goes, or where a receive is: all receives of a tensor have the same sender."""
    if (found := _TRANSFER.search(name)) is None:
        return ""
    job, replica, task, kind, index, end = found.groups()
    device = f"/job:{job}/replica:{replica}/task:{task}/device:{kind}:{index}"
    return f" {'to' if end == 'send' else 'on'} {label(device)}"
