"""How long tests take: per folder with `--durations`, and which functions are too slow for the quick ring.

Files that take half a minute or more begin first, and those of folders in which a test takes seconds: with
`--no-loadscope-reorder`, pytest-xdist hands out files in this order, and while the last file runs the other processes
have nothing to do.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests import rings

# Longest first. By itself pytest-xdist begins with those of most tests, so a browser's would come last.
LONG = (
    "grading/test_laws.py",
    "grading/test_answers_of_others.py",
    "browser/test_live.py",
    "notebooks/test_lessons_on_networks.py",
    "browser/test_browser.py",
    "notebooks/test_claims.py",
    "browser/test_pages.py",
    "notebooks/test_engines.py",
    "teacher/test_nbgrader.py",
    "browser/test_fonts.py",
    "test_one_equals_many.py",
    "nets/test_digits.py",
    "notebooks/test_lessons_on_devices.py",
    "grading/test_resume.py",
    "soak/test_soak.py",
    "grading/test_grade_folder.py",
    "notebooks/test_lessons_on_clusters.py",
    "browser/test_accessible.py",
    "notebooks/test_demos.py",
    "notebooks/test_wheel.py",
)
SLOW_S = 0.25  # seconds for all cases of a function, computing or waiting, on a quiet machine


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--find-slow", action="store_true", help="with --quick: run slow tests too, and write slow.json")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files come first; then those of slow folders, and the others, those of most tests before those of few."""
    place = {rings.HERE / file: number for number, file in enumerate(LONG)}
    tests = Counter(item.path for item in items)

    def order(item: pytest.Item) -> tuple[int, bool, int, Path]:
        is_slow = item.path.parent.name in rings.FOLDERS
        return place.get(item.path, len(LONG)), not is_slow, -tests[item.path], item.path

    items.sort(key=order)


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
