"""Meeting: the workers of a group find each other before their first step.

Stands for CompleteGroup, by which TensorFlow's workers ask the leader of a group for its members
(`core/common_runtime/collective_param_resolver_local.cc`).

The first worker's task has two notes for each worker, string variables: `hello`, on which the worker writes its name
and what it will reduce, and `answer`. The first worker wipes them, waits until all have written, compares what they
reduce with its own, and answers. A worker writes its note until it has the answer to it; a new number for each meeting
distinguishes it from one to an earlier training.

Rule: after the meeting all queues between the workers are new and empty, and all will send the same tensors; or each
worker has an error that names the worker that is missing or differs, and where.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import device, name_scope
from dtflab.machine.clock import CURRENT, Clock
from dtflab.ops.arrays import functions as arrays
from dtflab.runtime.session import Session
from dtflab.train.sessions.session_manager import pauses

REST = 1.0  # seconds at most between two looks at the notes


class _Note(NamedTuple):
    """A note on the first worker's task, and the operations that write it."""

    text: Tensor
    write: Operation
    wipe: Operation


class Meeting:
    """The graph's side of a meeting; `hold` is what a session does there.

    `devices` are the workers' tasks, `index` is the worker's number, `tensors` what it reduces, a line for each.
    """

    def __init__(self, devices: list[str], index: int, tensors: list[str], name: str) -> None:
        self._devices = devices
        self._index = index
        self._tensors = tensors
        with name_scope(name) as scope, device(f"{devices[0]}/cpu:0"):
            self._written = arrays.placeholder(dtypes.string, [], name="written")
            workers = range(len(devices))
            self._hellos = [self._note(f"{scope}hello_{worker}") for worker in workers]
            self._answers = [self._note(f"{scope}answer_{worker}") for worker in workers]

    def _note(self, shared_name: str) -> _Note:
        name = shared_name.rpartition("/")[2]
        handle = apply_op("VarHandleOp", name, dtype=dtypes.string, shape=[], shared_name=shared_name)
        text = apply_op("ReadVariableOp", f"{name}/read", resource=handle, dtype=dtypes.string)
        write, wipe = (
            apply_op("AssignVariableOp", f"{name}/write", resource=handle, value=value) for value in (self._written, "")
        )
        return _Note(text, write, wipe)

    def hold(self, session: Session, timeout: float, clock: Clock = CURRENT) -> None:
        """Wait until all workers have come. DeadlineExceededError names a worker that has not come after `timeout`
        seconds, InvalidArgumentError one whose tensors differ.
        """
        if len(self._devices) > 1:
            meet = self._answer if self._index == 0 else self._ask
            try:
                meet(session, _rests(clock, timeout))
            except errors.OpError:
                if self._index == 0:
                    clock.sleep(2 * REST)  # the others read why, before this task ends of it
                raise

    def _answer(self, session: Session, rests: Iterator[bool]) -> None:
        """The first worker's part."""
        session.run([note.wipe for note in self._hellos + self._answers])
        for goes_on in rests:
            hellos = [json.loads(text or "{}") for text in session.run([note.text for note in self._hellos[1:]])]
            missing = [self._devices[worker] for worker, hello in enumerate(hellos, 1) if not hello]
            if not missing or not goes_on:
                break
        error = _missing(missing) if missing else self._difference(hellos)
        for worker, hello in enumerate(hellos, 1):
            answer = json.dumps({"to": hello.get("number"), "error": error, "late": bool(missing)})
            session.run(self._answers[worker].write, {self._written: answer})
        _raise(error, late=bool(missing))

    def _ask(self, session: Session, rests: Iterator[bool]) -> None:
        """Another worker's part."""
        number = secrets.token_hex(8)
        hello = json.dumps({"number": number, "tensors": self._tensors})
        for goes_on in rests:
            session.run(self._hellos[self._index].write, {self._written: hello})
            answer = self._heard(session)
            if answer.get("to") == number:
                return _raise(answer["error"], answer["late"])
            if not goes_on:
                break
        _raise(_missing(self._devices[:1]), late=True)

    def _heard(self, session: Session) -> Any:
        try:
            return json.loads(session.run(self._answers[self._index].text) or "{}")
        except (
            errors.FailedPreconditionError,
            errors.NotFoundError,
        ):  # the first worker has not come yet, not even to wipe the notes
            return {}

    def _difference(self, hellos: list[Any]) -> str:
        """The first difference between what a worker reduces and what the first one does; "" without any."""
        for worker, hello in enumerate(hellos, 1):
            theirs = hello["tensors"] + ["nothing more"] * len(self._tensors)
            own = self._tensors + ["nothing more"] * len(theirs)
            for mine, other in zip(own, theirs, strict=False):
                if mine != other:
                    return (
                        f"The workers of an all-reduce must give equal tensors in equal order, but {self._devices[0]} "
                        f"has {mine}, and {self._devices[worker]} has {other}. Build the same model on each."
                    )
        return ""


def _rests(clock: Clock, timeout: float) -> Iterator[bool]:
    """True at once and after each rest, False when the time is up."""
    deadline = clock.now() + timeout
    for pause in pauses(REST):
        yield clock.now() < deadline
        clock.sleep(pause)


def _missing(devices: list[str]) -> str:
    return (
        f"An all-reduce needs all workers, but {', '.join(devices)} did not come in time: start the clients that are "
        "missing, or give the optimizer a cluster without them."
    )


def _raise(error: str, late: bool) -> None:
    if error:
        raise (errors.DeadlineExceededError if late else errors.InvalidArgumentError).of(error)
