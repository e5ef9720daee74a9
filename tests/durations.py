"""How long tests take: per folder with `--durations`, and which functions are too slow for the quick ring."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import rings

SLOW_S = 0.4  # seconds of one processor for all cases of a function
_began = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--find-slow", action="store_true", help="with --quick: run slow tests too, and write slow.json")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    item.stash[_began] = time.process_time()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.processor_s = time.process_time() - item.stash[_began]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    found = [report for reports in terminalreporter.stats.values() for report in reports]
    reports = [report for report in found if isinstance(report, pytest.TestReport)]
    if config.option.durations is not None:
        _show_folders(terminalreporter, reports)
    if config.getoption("find_slow"):
        _write_slow(reports)


def _show_folders(terminalreporter: pytest.TerminalReporter, reports: list[pytest.TestReport]) -> None:
    seconds, tests = Counter[str](), Counter[str]()
    for report in reports:
        folder = str(Path(report.location[0]).parent)
        seconds[folder] += report.duration
        tests[folder] += report.when == "call"
    terminalreporter.section("time per folder")
    for folder, took in seconds.most_common():
        terminalreporter.write_line(f"{took:8.1f} s {tests[folder]:6} tests  {folder}")


def _write_slow(reports: list[pytest.TestReport]) -> None:
    seconds = Counter[str]()
    for report in reports:
        function = report.nodeid.partition("[")[0].removeprefix("tests/")
        seconds[function] += getattr(report, "processor_s", 0.0)
    slow = {function: round(took, 1) for function, took in sorted(seconds.items()) if took > SLOW_S}
    rings.SLOW.write_text(json.dumps(slow, indent=1) + "\n")
