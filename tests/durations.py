"""How long tests take: per folder with `--durations`, and which functions are too slow for the quick ring."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests import rings

SLOW_S = 0.25  # seconds for all cases of a function, computing or waiting, on a quiet machine


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--find-slow", action="store_true", help="with --quick: run slow tests too, and write slow.json")


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
    """Replace the entries of the functions that have run; the others, of a run of some files, stay."""
    seconds = Counter[str]()
    for report in reports:
        function = report.nodeid.partition("[")[0].removeprefix("tests/")
        seconds[function] += report.duration
    slow = {function: round(took, 1) for function, took in seconds.items() if took > SLOW_S}
    others = {function: took for function, took in rings.slow_functions().items() if function not in seconds}
    rings.SLOW.write_text(json.dumps(dict(sorted((others | slow).items())), indent=1) + "\n")
