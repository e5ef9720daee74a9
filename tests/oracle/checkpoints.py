"""Programs that write checkpoints, on TensorFlow and on dtflab: what they answer and which files they leave."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle import answers


def at_home(run: Callable[[Any, str], Any], folder: Path) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The answers of `run(tf, home)` and the files that it leaves, in TensorFlow and in dtflab.

    One home after the other under one name, which is the working directory. In what is compared it is called HOME.
    """

    def answer(tf: Any) -> Any:
        home = folder / "home"
        home.mkdir()
        with contextlib.chdir(home), tf.Graph().as_default():
            found = plain(run(tf, str(home))), contents(home)
        home.rename(folder / tf.__name__)
        return _without(str(home), found)

    return answers.both(answer)


def _without(home: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(home, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without(home, item) for item in value)
    if isinstance(value, bytes):
        return value.replace(home.encode(), b"HOME")
    return value.replace(home, "HOME") if isinstance(value, str) else value


def assert_same_at_home(run: Callable[[Any, str], Any], folder: Path) -> None:
    """The same answer, and every file of a checkpoint the same to the byte."""
    (theirs, their_files), (ours, our_files) = at_home(run, folder)
    assert ours == theirs
    assert our_files.keys() == their_files.keys()
    for name, data in their_files.items():
        assert our_files[name] == data, name


def contents(home: Path) -> dict[str, bytes | None]:
    """The files under a directory; meta graphs have their own test."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and "tempstate" not in path.name)
    return {str(path.relative_to(home)): None if path.suffix == ".meta" else path.read_bytes() for path in files}


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.name, value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "DESCRIPTOR"):
        return str(value)
    return value


def tried(call: Callable[[], Any], *words: str) -> Any:
    """The result of a call, or the class of its error and which of the words its text has."""
    try:
        return call()
    except Exception as error:
        text = str(getattr(error, "message", error))
        return type(error).__name__, [word in text for word in words]


def session(tf: Any, init: bool = True, cpus: int = 1) -> Any:
    opened = tf.Session(config=tf.ConfigProto(device_count={"CPU": cpus}))
    if init:
        opened.run(tf.global_variables_initializer())
    return opened


# ---- saving and restoring ----

DTYPES = (
    "float16 float32 float64 bfloat16 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool string complex64 "
    "complex128"
).split()

NEW_DTYPES = ("bfloat16", "uint32", "uint64")  # which the old format does not know


def one_of_each(tf: Any) -> list[Any]:
    found = []
    for i, name in enumerate(DTYPES):
        value: Any = (
            [["a", "bc", ""], ["", "d" * 300, "\u00e4"]] if name == "string" else np.arange(6).reshape(2, 3) % 4
        )
        tensor = tf.constant(value) if name == "string" else tf.cast(value, name)
        found.append(tf.Variable(tensor, name=f"v_{name}", use_resource=i % 2 == 1))
    found.append(tf.Variable(2.5, name="scalar"))
    found.append(tf.Variable(np.zeros((0, 3)), name="empty"))
    return found
