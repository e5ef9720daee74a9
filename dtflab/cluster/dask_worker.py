"""The part of the engine `dask` that runs on a Dask worker: it holds a task of the cluster, a child process.

Rules: a Dask task (`hold`) lives as long as its child, and holds its resources. The child ends when the Dask task is
cancelled, which it also is when its client is gone, or with the worker. Orders and reports are JSON
or plain values, and reports are events of Dask (`log_event`), which need no connection of their own.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import secrets
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtflab.base.credentials import Credentials
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.process import ProcessTask
from dtflab.machine.clock import REAL
from dtflab.machine.registry import registry
from dtflab.protos.config_pb2 import ConfigProto

if TYPE_CHECKING:
    from distributed import Worker

_LOOK_S = 0.1  # between two looks at whether a task is still wanted
_LINES = 15  # of a child's last words

_held: dict[str, Held] = {}  # by life
_unwanted: set[str] = set()  # lives that were ended before they began here
_lock = threading.Lock()


class Held:
    """A task while this worker holds it. A `life` is one start of a task; the next has another name."""

    def __init__(self, order: dict[str, Any], host: str, card: str | None) -> None:
        self.card = card
        self.released = REAL.event()
        environment = dict(order["environment"])
        if card is not None:
            environment["CUDA_VISIBLE_DEVICES"] = card
        job, index = order["job"], order["index"]
        config = ConfigProto.FromString(base64.b64decode(order["config"]))
        self.child = ProcessTask(
            ClusterSpec({job: {index: f"{host}:0"}}), job, index, config, environment,
            credentials=Credentials(**order["credentials"]), options=order["options"],
        )  # fmt: skip


def hold(order: str) -> None:
    """Be a task of a cluster on this worker, until it is cancelled or its process ends: the Dask task."""
    from distributed import get_worker, secede

    worker = get_worker()
    key, told = worker.get_current_task(), json.loads(order)
    secede()  # it keeps its resources, and others have its thread
    worker.log_event(told["topic"], {"life": told["life"], "what": "begun"})
    report: dict[str, Any] = {"life": told["life"], "what": "ended", "served": False}
    try:
        report |= _live(worker, key, told)
    except Exception as error:  # Dask would write the arguments, with the token, into its log
        report["words"] = f"{type(error).__name__}: {error}"
    worker.log_event(told["topic"], report)


def _live(worker: Worker, key: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Start the child, report its address, and wait for its end; returns how it ended."""
    life = told["life"]
    with contextlib.ExitStack() as claim:
        with _lock:
            if life in _unwanted:
                _unwanted.discard(life)
                return {}
            card = claim.enter_context(_card()) if told["gpu"] else None
            held = _held[life] = Held(told, host_of(worker.address), card)
        try:
            return _until_end(held, worker, key, told)
        finally:
            held.child.stop()
            with _lock:
                del _held[life]


def _until_end(held: Held, worker: Worker, key: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Report the child's address once it serves, and wait until it ends or is not wanted any more."""
    child, told_address = held.child, False
    while child.state == "running" and _is_wanted(worker, key) and not held.released.wait(_LOOK_S):
        if child.serves and not told_address:
            told_address = True
            ready = {"life": told["life"], "what": "ready", "address": child.address, "pid": child.pid}
            worker.log_event(told["topic"], ready)
    state = child.state
    child.ask_to_end()
    return {"served": told_address, "words": "\n".join([*list(child.log)[-_LINES:], state])}


def _is_wanted(worker: Worker, key: Any) -> bool:
    """Whether the Dask task is neither cancelled nor on a worker that closes."""
    task = worker.state.tasks.get(key)
    lives = worker.status.name in ("running", "paused")
    return lives and task is not None and task.state in ("executing", "long-running")


@contextlib.contextmanager
def _card() -> Iterator[str]:
    """A GPU for as long as the block lasts, as CUDA_VISIBLE_DEVICES names it: one that no Dask worker here has claimed.

    If this worker has a CUDA_VISIBLE_DEVICES, it is one of those; when all of them are claimed, tasks share them.
    """
    seen = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
    here = Counter(held.card for held in _held.values())
    shared = min(seen, key=here.__getitem__, default="")
    claims = ((name, registry().claim_card(name)) for name in seen or map(str, itertools.count()))
    card, lock = next(((name, lock) for name, lock in claims if lock is not None), (shared, None))
    try:
        yield card
    finally:
        if lock is not None:
            lock.close()


def host_of(address: str) -> str:
    """The host of a Dask worker, from its address."""
    from distributed.comm import get_address_host

    if address.startswith("inproc://"):  # a worker in its client's process
        return "127.0.0.1"
    host: str = get_address_host(address)
    return f"[{host}]" if ":" in host else host


# ---- what the client has workers run, by `Client.run`


async def end(life: str) -> None:
    """End a task that this worker holds, or will hold, and return once it is gone."""
    with _lock:
        held = _held.get(life)
        if held is None:
            _unwanted.add(life)
            return
    held.released.set()
    while life in _held:
        await asyncio.sleep(0.02)


def send(life: str, signal_name: str) -> None:
    """Send a signal to the process of a task that this worker holds: SIGKILL, SIGSTOP or SIGCONT."""
    held = _held.get(life)
    if held is not None and held.child.state == "running":
        os.kill(held.child.pid, signal.Signals[signal_name])


def sees(file: str, content: str) -> str:
    """ "" if this worker can read a file of that content and write next to it; else the reason."""
    try:
        if Path(file).read_text("ascii") != content:
            return "another file is there"
        own = Path(f"{file}-{secrets.token_hex(4)}")
        own.write_text(content, "ascii")
        own.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""
