"""The participants that a watch saw: tasks in their own colours, clients in grey, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dtflab.graph.device_spec import task_name
from dtflab.machine.watch import Watch
from dtflab.viz.drawing.palette import GREY, Look, look, natural

_CLIENT_OF = re.compile(r"^client /job:(\w+)/task:(\d+)$")  # as `cluster.run` calls its threads
_QUEUE_RUNNER = re.compile(r"^QueueRunnerThread-(?P<queue>.*)-(?P<op>[^-]*)$")


def watched(seen: Any) -> Watch:
    """The watch that is given; for anything else TypeError, which says how to get one."""
    if not isinstance(seen, Watch):
        kind = type(seen).__name__
        raise TypeError(
            f"What a watch saw is needed, not {kind}: run something in the block `with tf.watch() as seen:`."
        )
    return seen


def is_task(name: str) -> bool:
    """True for a task, False for a client."""
    return name.startswith("/job:")


def party(name: str) -> Look:
    """The look of a task or device, whose task it is then, or of a client, which goes by the name of its thread."""
    if not is_task(name):
        return Look(name, GREY, own_letters(name) or "C", client_label(name), False)
    task = task_name(name)
    return Look(name, look(task).colour, "L", "localhost", False) if "/job:localhost" in name else look(task)


def own_letters(client: str) -> str:
    """The name of a client that is short enough to stand in a badge; of all others nothing."""
    return client if len(client) <= 2 and client.isalnum() else ""


def client_label(name: str) -> str:
    """`client of worker:0`, `queue runner q_enqueue`; the name of any other thread as it is."""
    if found := _CLIENT_OF.match(name):
        return f"client of {found[1]}:{found[2]}"
    if found := _QUEUE_RUNNER.match(name):
        closes = found["op"] == "close_on_stop"
        return f"closer of {found['queue']}" if closes else f"queue runner {found['op']}"
    return name or "another client"


def in_line(names: Iterable[str]) -> list[str]:
    """Clients first, then tasks: workers, and parameter servers last, so that calls go from left to right."""
    return sorted(set(names), key=lambda name: (is_task(name), "/job:ps/" in name, natural(name)))
