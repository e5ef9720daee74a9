"""Two rings of tests: `make quick` runs the inner one, which needs no TensorFlow, no processes and no browser.

A test is in the quick ring unless
- its folder is for browsers, notebooks, graders or processes of TensorFlow (`FOLDERS`),
- its module imports TensorFlow, or it takes the fixture `real_tf` or `eager`,
- its text, or what this text mentions in `tests`, uses `subprocess`, `multiprocessing`, engine="process" or "dask",
- it is marked: `processes` (what it calls starts some), `live` (TensorFlow's answer differs from run to run),
  `slow` (it takes more than its share of the ring; most of these are in `slow.json`).
A quick test that starts a process or imports TensorFlow all the same fails.

`--beyond-quick` leaves out what the quick ring has just run on this Python (.ci/run). Tests that compare with
TensorFlow stay: there they compared with its records.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import house
from tests.oracle import sources

HERE = Path(__file__).parent
FOLDERS = {"browser", "interop", "notebooks", "teacher"}
TENSORFLOW = {"tensorflow", "tf_keras", "tensorboard"}
STARTERS = {"subprocess", "multiprocessing"}
ENGINE = re.compile(r"^(process|dask)$|--engine (process|dask)")  # of a cluster whose tasks are processes
MARKS = {"live", "processes", "slow"}
MARKERS = {name: name for name in ("oracle", "interop", "browser", "teacher")} | {"notebooks": "notebook"}
IN_CI = os.environ.get("CI") == "true"  # set by .ci/run
SLOW = HERE / "slow.json"

_outside = pytest.StashKey[Counter[str]]()


def marker_of(path: Path) -> str | None:
    """The marker of a test, by its folder."""
    parts = path.relative_to(HERE).parts if path.is_relative_to(HERE) else ()
    return next((MARKERS[part] for part in parts if part in MARKERS), None)


def why_not_quick(item: pytest.Item) -> str | None:
    """The reason for which a test is in the full ring only."""
    if reason := module_needs(item.path):
        return reason
    if marked := MARKS & {mark.name for mark in item.iter_markers()}:
        return min(marked)
    if {"real_tf", "eager"} & {*item.fixturenames}:
        return "TensorFlow"
    names = (item.originalname, *item.fixturenames)
    files = (item.path, *_conftests(item.path.parent))
    return "processes" if any(_starts_processes(file, *names) for file in files) else None


@cache
def _conftests(folder: Path) -> list[Path]:
    """Where fixtures may come from, apart from the test's own module."""
    return [file for above in (folder, *folder.parents) if (file := above / "conftest.py").is_file()]


@cache
def module_needs(path: Path) -> str | None:
    if FOLDERS & {*path.relative_to(HERE).parts}:
        return path.relative_to(HERE).parts[0]
    return "TensorFlow" if TENSORFLOW & _loaded(path) else None


@cache
def _loaded(path: Path) -> frozenset[str | Path]:
    """The packages that a module imports when it is loaded, and the modules of the tests, with what these import."""
    found: set[str | Path] = {path}
    for name in house.imports_when_loaded(path):
        own = [file for dotted in (name, name.rpartition(".")[0]) if (file := sources.file_of(dotted))]
        found |= _loaded(own[0]) if own else {name.partition(".")[0]}
    return frozenset(found)


@cache
def _starts_processes(path: Path, *names: str) -> bool:
    if not any(_names_starters(file) for file in _loaded(path) if isinstance(file, Path)):
        return False  # no need to look closer
    own = {(path, name) for name in names}
    return any(_starts(*place) for place in own | sources.reached(path, names))


@cache
def _names_starters(path: Path) -> bool:
    here = sources.module(path)
    imported = any(name.partition(".")[0] in STARTERS for name in here.imported.values())
    return imported or any(map(ENGINE.search, here.texts))


@cache
def _starts(path: Path | None, name: str) -> bool:
    if path is None:
        return name.partition(".")[0] in STARTERS
    texts = (node.value for node in sources.module(path).nodes(name) if isinstance(node, ast.Constant))
    return any(isinstance(text, str) and ENGINE.search(text) for text in texts)


def beyond_quick(item: pytest.Item) -> bool:
    """True if the quick ring leaves a test out, or runs it in another way: it has TensorFlow's answers from records."""
    return why_not_quick(item) is not None or marker_of(item.path) == "oracle"


def slow_functions() -> dict[str, float]:
    """The test functions that the quick ring leaves out, with the seconds of a processor that they take."""
    slow: dict[str, float] = json.loads(SLOW.read_text())
    return slow


# ---- a run of pytest ----


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests without TensorFlow, processes and a browser")
    parser.addoption("--beyond-quick", action="store_true", help="only tests that --quick does not run alike")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_outside] = Counter()
    if config.getoption("quick"):
        for file in sorted({config.invocation_params.dir / argument.partition("::")[0] for argument in config.args}):
            if file.is_file() and (reason := module_needs(file)):
                raise pytest.UsageError(f"{file.name} is not in the quick ring ({reason}): run it without --quick")
        sys.meta_path.insert(0, NoTensorFlow())
        sys.addaudithook(_no_processes)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("quick") or not collection_path.is_relative_to(HERE):
        return None
    if collection_path.suffix == ".py" and collection_path.stem.startswith("test_"):
        reason = module_needs(collection_path)
        config.stash[_outside][f"files ({reason})"] += reason is not None
        return reason is not None or None
    return collection_path.name in FOLDERS or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if marker := marker_of(item.path):
            item.add_marker(marker)
    slow = {} if config.getoption("find_slow") else slow_functions()
    for item in items:
        if f"{item.path.relative_to(HERE)}::{item.originalname}" in slow:
            item.add_marker("slow")
    if config.getoption("quick"):
        reasons = {item: why_not_quick(item) for item in items}
        config.stash[_outside].update(f"tests ({reason})" for reason in reasons.values() if reason)
        keep_only(config, items, [item for item in items if not reasons[item]])
    elif config.getoption("beyond_quick"):
        keep_only(config, items, list(filter(beyond_quick, items)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["outside"] = dict(session.config.stash[_outside])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each process of xdist has looked at all tests, so the last one's counts are everybody's."""
    node.config.stash[_outside] = Counter(getattr(node, "workeroutput", {}).get("outside", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if counts := +config.stash[_outside]:
        left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
        terminalreporter.write_line(f"in `make test` only: {left_out}")


def keep_only(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[*{*items} - {*kept}])
    items[:] = kept


# ---- in CI nothing is missing ----


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    return _missing_is_failure(item.path, (yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    return _missing_is_failure(collector.path, (yield))


def _missing_is_failure(path: Path, report: Any) -> Any:
    """TensorFlow, Chromium and Node are there: a test that is skipped because they are missing would hide a fault."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail") and marker_of(path):
        report.outcome = "failed"
        report.longrepr = f"skipped, but nothing may be missing in CI: {report.longrepr[-1]}"
    return report


# ---- what a quick test may not do ----

_quick_test_runs = False


class NoTensorFlow:
    """Finds no TensorFlow: in the quick ring it is as if it were not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        if name.partition(".")[0] in TENSORFLOW:
            pytest.fail(f"a quick test imports {name}; take the fixture `real_tf` or mark the test `live`")


def _no_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if _quick_test_runs and event in ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"):
        pytest.fail("a quick test starts a process; mark it `processes`")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    global _quick_test_runs
    _quick_test_runs = item.config.getoption("quick")
    try:
        return (yield)
    finally:
        _quick_test_runs = False
