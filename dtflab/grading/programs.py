"""An answer as a program of its own: the source of a function, run in processes that this one waits for.

The source is what the notebook knows of the function, with the functions, modules and plain values of the notebook that
it names. Rule: what does not end in time is ended; nothing is left running.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from dtflab.grading.meter import Meter, used
from dtflab.grading.plain import record
from dtflab.grading.questions import Wrong
from dtflab.grading.remote import run_there
from dtflab.machine.clock import REAL


@record
class Ended(NamedTuple):
    """How a process ended: its status, what it printed, and what it wrote to stderr."""

    status: int
    output: str
    errors: str


@run_there
def program_of(function: Any) -> str:
    """A program that calls the function with its command line, and prints what that returns.

    Wrong if the source of the function can't be read.
    """
    if not isinstance(function, FunctionType):
        raise Wrong(f"A function that is defined with `def` is expected, not {function!r}.")
    parts = dict(_parts(function, set()))
    return "\n\n".join([*parts.values(), f"import sys\n\nprint({function.__name__}(sys.argv[1:]))\n"])


def _parts(function: FunctionType, known: set[str]) -> Iterator[tuple[str, str]]:
    """Name and source of what a function needs, itself last."""
    known.add(function.__name__)
    for name in _names(function.__code__):
        if name in known or name not in function.__globals__:
            continue
        known.add(name)
        value = function.__globals__[name]
        if isinstance(value, ModuleType):
            yield name, f"import {value.__name__} as {name}"
        elif isinstance(value, FunctionType) and value.__globals__ is function.__globals__:
            yield from _parts(value, known)
        else:
            yield name, f"{name} = {_expression(value)}"
    try:
        yield function.__name__, textwrap.dedent(inspect.getsource(function))
    except OSError:
        raise Wrong(f"The source of {function.__name__} can't be read: run its cell again.") from None


def _expression(value: Any) -> str:
    """A plain value as a program has it. A type or a function, perhaps in a list, is found in its module."""
    if isinstance(value, dict | list | tuple):
        parts = value.items() if isinstance(value, dict) else value
        return f"{type(value).__name__}([{', '.join(map(_expression, parts))}])"
    name = getattr(value, "__qualname__", "")
    return f"__import__({value.__module__!r}, fromlist=['_']).{name}" if name else repr(value)


def _names(code: CodeType) -> Iterator[str]:
    """All names of globals that a function and those inside of it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@run_there
def run_side_by_side(program: str, command_lines: Sequence[Sequence[str]], seconds: float) -> list[Ended]:
    """Run a program once for each command line, all at the same time. Wrong for what does not end in time."""
    path = os.pathsep.join(filter(None, sys.path))
    with contextlib.ExitStack() as stack:
        commands = [[sys.executable, "-c", program, *line] for line in command_lines]
        running = [stack.enter_context(_process(command, path)) for command in commands]
        meter = Meter(seconds, REAL.now(), used())
        return [_ended(process, meter) for process in running]


def _ended(process: subprocess.Popen[str], meter: Meter) -> Ended:
    while True:
        try:
            output, errors = process.communicate(timeout=meter.pause(REAL.now()))
            return Ended(process.returncode, output, errors)
        except subprocess.TimeoutExpired:
            if meter.look(REAL.now(), used()):
                raise Wrong(f"A process of the program has not ended after {meter.limit:g} s.") from None


@contextlib.contextmanager
def _process(command: Sequence[str], path: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C is the parent's: it reaches all processes of a session
        env={**os.environ, "PYTHONPATH": path},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
