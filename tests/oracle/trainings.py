"""Programs that train, run on TensorFlow and on dtflab: what they answer and what they log must be the same.

A program is a function of `tf` and of a folder of its own.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle import answers

Program = Callable[[Any, str], Any]


def both(run: Program, folder: Path, in_order: bool = True) -> tuple[Any, Any]:
    """The program's answers and its log (in that order) on TensorFlow, and on dtflab."""

    def answer(tf: Any) -> Any:
        home = folder / tf.__name__
        home.mkdir()
        with tf.Graph().as_default(), lines() as said:
            found = run(tf, str(home))
        tf.summary.FileWriterCache.clear()
        return comparable([found, said if in_order else set(said)], str(home))

    return answers.both(answer)


@contextlib.contextmanager
def lines() -> Iterator[list[str]]:
    """The lines logged meanwhile, from level INFO on; a line that repeats itself counts once."""
    said: list[str] = []

    def listen(message: str) -> None:
        if said[-1:] != [message]:
            said.append(message)

    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        with heard("", listen):
            yield said
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def heard(beginning: str, then: Callable[[str], Any]) -> Iterator[None]:
    """Call `then(line)` for each line that is logged meanwhile and begins so.

    TensorFlow's words on what is deprecated there are not heard, nor what is said only the first few times, nor when
    the garbage collector finds what an earlier test never used.
    """
    unheard = ("From ", "It seems that global step", "==========")

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message.startswith(beginning) and not message.startswith(unheard):
                then(message)

    handler = Handler()
    logging.getLogger("tensorflow").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("tensorflow").removeHandler(handler)


def comparable(value: Any, home: str) -> Any:
    """The value without what differs from run to run: folders, addresses in memory, speeds."""
    if isinstance(value, dict):
        return {comparable(key, home): comparable(item, home) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item, home) for item in value]
    if isinstance(value, set):
        return sorted(comparable(list(value), home))
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, str):
        value = re.sub(r"(global_step/sec:) \S+", r"\1", value.replace(home, "HOME"))
        value = re.sub(r"<class '[^']*'>, ", "", value)  # of an error reported to a Coordinator
        return re.sub(r" at 0x[0-9a-f]+>", ">", value.replace("SymbolicTensor", "Tensor"))
    return value


@contextlib.contextmanager
def local_server(tf: Any) -> Iterator[str]:
    """The target of a server; dtflab's is stopped, TensorFlow has no such thing."""
    server = tf.train.Server.create_local_server()
    try:
        yield server.target
    finally:
        if hasattr(server, "stop"):
            server.stop()


def failure(call: Callable[[], Any]) -> tuple[str, str]:
    """The class and the first line of what a call raises."""
    try:
        value = call()
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    raise AssertionError(f"nothing was raised, but {value!r} returned")
