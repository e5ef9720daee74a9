"""TensorFlow's answers: asked of TensorFlow and kept, so that the quick ring compares with them without it.

A test calls `theirs(answer)`, or `both(answer)`. With TensorFlow, `answer(tf)` is run. Without it, the answer is read
in `answers.json.xz` in the folder of the test, which `python -m tests.oracle.record` writes. A record belongs to a
version of TensorFlow and to the text of a test, of its programs and of all in `tests` that these mention
(`sources.py`). When one of them changes, the record is stale: with TensorFlow the test fails, without it is skipped.
With TensorFlow a test also fails if its record holds something else than TensorFlow's answer (`likeness.py`).
"""

from __future__ import annotations

import importlib
import inspect
import json
import lzma
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dtflab
from tests import rings
from tests.oracle import likeness, sources, tensorflow1
from tests.oracle.notation import decode, encode

FILE = "answers.json.xz"
RECORD = "python -m tests.oracle.record"
STALE = f"no fresh record of TensorFlow's answers; with TensorFlow, run: {RECORD}"
_NEW = pytest.StashKey[dict[str, dict[str, Any]]]()  # room → test → record

_running: list[Tape] = []


def theirs(answer: Callable[[Any], Any]) -> Any:
    """The result of `answer(tf)` with TensorFlow: now, or when it was recorded."""
    if not _running:
        return answer(tensorflow1.load())
    return _running[-1].next(answer)


def both(answer: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The results of `answer(tf)` with TensorFlow, and with dtflab."""
    return theirs(answer), answer(dtflab)


def module_of(tf: Any, theirs: str, ours: Any) -> Any:
    """The module of TensorFlow that corresponds to one of dtflab, or that one."""
    return ours if tf is dtflab else importlib.import_module(f"tensorflow.{theirs}")


# ---- the answers of one test ----


class Tape:
    """The answers of a test, in the order in which it asks."""

    def __init__(self, item: pytest.Function, live: bool) -> None:
        self.live = live
        self.new: list[str] = []
        self.differences = likeness.unordered if any(item.iter_markers("unordered")) else likeness.differences
        self.of = fingerprint_of(item)
        kept = kept_in(item.path.parent).get(record_name(item), {})
        by_this = kept.get("tensorflow") == (tensorflow1.version() or kept.get("tensorflow"))
        self.old: list[str] | None = kept["answers"] if kept.get("of") == self.of and by_this else None

    def next(self, answer: Callable[[Any], Any]) -> Any:
        if not self.live:
            if self.old is None:
                pytest.skip(STALE)
            self.new.append(self.old[len(self.new)])
            return decode(self.new[-1])
        found = answer(tensorflow1.load())
        self.new.append(encode(found))
        return found

    def wrong(self) -> str:
        """Why the record can't stand for what was run; empty if it can. The test itself judged the answers of today."""
        if len(self.new) != len(self.old or []):
            return STALE
        pairs = [(old, new) for old, new in zip(self.old or [], self.new) if old != new]
        found = [line for old, new in pairs for line in self.differences(decode(old), decode(new))]
        return "\n".join([f"the record differs from TensorFlow's answer; run: {RECORD}", *found]) if found else ""


def record_name(item: pytest.Function) -> str:
    return f"{item.path.name}::{item.name}"


def fingerprint_of(item: pytest.Function) -> str:
    """The fingerprint of the test, its fixtures, and the programs that it is given."""
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    programs = [inspect.unwrap(value) for value in params if inspect.isfunction(value)]
    names = {item.originalname, *item.fixturenames, *(one.__qualname__.partition(".")[0] for one in programs)}
    return sources.fingerprint(item.path, frozenset(names))


# ---- the records of a folder ----


@cache
def kept_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Test → the fingerprint of what was run (`of`), and TensorFlow's answers (`answers`), each in JSON."""
    path = folder / FILE
    return json.loads(lzma.decompress(path.read_bytes())) if path.is_file() else {}


def keep(folder: Path, records: dict[str, dict[str, Any]]) -> None:
    text = json.dumps(records, sort_keys=True, indent=0)
    (folder / FILE).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


# ---- a run of pytest ----


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="keep the answers of TensorFlow for the quick ring")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_NEW] = {}


def is_recorded(item: pytest.Item) -> bool:
    """Whether a test may ask for answers that are kept: those of the quick ring may, and those too slow for it."""
    return rings.marker_of(item.path) == "oracle" and rings.why_not_quick(item) in (None, "slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("record"):
        rings.keep_only(config, items, [item for item in items if is_recorded(item)])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    config = item.config
    if not is_recorded(item):
        return (yield)
    recording = config.getoption("record")
    _running.append(Tape(item, live=not config.getoption("quick") and tensorflow1.is_there()))
    try:
        result = yield
    finally:
        tape = _running.pop()
    if recording and tape.new:
        folder = config.stash[_NEW].setdefault(str(item.path.parent), {})
        folder[record_name(item)] = {"of": tape.of, "tensorflow": tensorflow1.version(), "answers": tape.new}
    elif wrong := tape.wrong():
        pytest.fail(wrong, pytrace=False)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of xdist hands its answers to the one that started it, which keeps them."""
    config, found = session.config, session.config.stash[_NEW]
    if hasattr(config, "workeroutput"):
        config.workeroutput["answers"] = found
    elif config.getoption("record"):
        for folder, records in found.items():
            keep(Path(folder), kept_in(Path(folder)) | records)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for folder, records in getattr(node, "workeroutput", {}).get("answers", {}).items():
        node.config.stash[_NEW].setdefault(folder, {}).update(records)
