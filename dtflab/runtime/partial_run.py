"""PartialRun: a step that its client feeds and fetches in several calls.

Stands for `DirectSession::PRun` and `MasterSession::PartialRun`. Values come and go through the rendezvous of the step,
one key per tensor (`prune.client_key`); between two calls the step stands still.

Rule: each tensor is fed at most once and fetched at most once. The step ends with the last of them, or with its first
error.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.runtime.prune import client_key
from dtflab.runtime.rendezvous import Rendezvous, fetched, full_key

if TYPE_CHECKING:
    from dtflab.graph.node import Node
    from dtflab.runtime.runner import Step
    from dtflab.runtime.transport import Feeds


class PartialRun:
    """One step between its setup and its end. `finish()` is called when it is over, or given up."""

    def __init__(
        self, step: Step, nodes: Sequence[Node], rendezvous: Rendezvous, device: str, feeds: Sequence[str],
        fetches: Sequence[str], finish: Callable[[], object],
    ) -> None:  # fmt: skip
        self._step = step
        self._sources = {node.name: node.sources() for node in nodes}
        self._rendezvous = rendezvous
        self._device = device
        self._unfed = dict.fromkeys(feeds, True)  # tensor → still to be fed
        self._unfetched = dict.fromkeys(fetches, True)
        self._finish = finish
        self._lock = threading.Lock()

    def run(self, feeds: Feeds, fetches: Sequence[str], timeout: float | None) -> list[object]:
        """Feed some tensors and fetch others; InvalidArgumentError for what was not set up, or is not there yet."""
        with self._lock:
            try:
                self._step.allow(timeout)
                values = self._exchange(feeds, fetches)
                if not any(self._unfed.values()) and not any(self._unfetched.values()):
                    self._step.drive()
                    self._finish()
                return values
            except BaseException:
                if self._step.error is not None:
                    self._finish()
                raise

    def abandon(self) -> None:
        """End a step that was cancelled between two calls."""
        with self._lock, contextlib.suppress(errors.OpError):
            self._step.drive()
        self._finish()

    def _exchange(self, feeds: Feeds, fetches: Sequence[str]) -> list[object]:
        for name, _ in feeds:
            _take(self._unfed, name, "feed", "fed")
        self._check_computable(fetches)
        for name in fetches:
            _take(self._unfetched, name, "fetch", "fetched")
        for name, value in feeds:
            self._rendezvous.send(self._key(name), value)
        values: dict[str, object] = {}
        for name in fetches:
            self._step.expect()
            self._rendezvous.recv_async(self._key(name), partial(self._step.post, self._came, values, name))
        self._step.drive(until=lambda: len(values) == len(fetches))
        return [fetched(i, name, values[name]) for i, name in enumerate(fetches)]

    def _came(self, values: dict[str, object], name: str, value: object, error: Exception | None) -> None:
        if error is not None:
            self._step.fail(error)
        values[name] = value

    def _key(self, name: str) -> str:
        return full_key(client_key(name, self._device), "0:0")

    def _check_computable(self, fetches: Sequence[str]) -> None:
        """InvalidArgumentError if a fetch depends on a tensor that is still to be fed."""
        unfed = {f"_recv_{name.replace(':', '_')}": name for name, missing in self._unfed.items() if missing}
        stack = [f"_send_{name.replace(':', '_')}" for name in fetches]
        seen = set(stack)
        while stack:
            name = stack.pop()
            if name in unfed:
                raise errors.InvalidArgumentError.of(
                    f"Fetch {unfed[name]} can't be computed from the feeds that have been fed so far."
                )
            new = [source for source in self._sources.get(name, ()) if source not in seen]
            seen.update(new)
            stack += new


def _take(left: dict[str, bool], name: str, what: str, done: str) -> None:
    if name not in left:
        raise errors.InvalidArgumentError.of(f"The {what} {name} was not specified in partial_run_setup.")
    if not left[name]:
        raise errors.InvalidArgumentError.of(f"The {what} {name} has already been {done}.")
    left[name] = False
