"""Exercises that grade themselves: checks, hints, scores. `dtflab.grade("placement/q1")`.

In reading order: `questions` (what a question is), `checks` (the questions, a file per topic), `catalogue` (all
of them, and a teacher's own checks), `judge` (an answer's report), `watchdog` (calls for a limited time), `meter`
(which seconds count), `capture` (what an answer prints); `score` (a mark), `report_pages` (a report as text and HTML),
`grade` (what is called); `choices` (a choice before a run, and the reply to it); `sources` (an exercise from its
solution).
Then many answers at once: `submissions` (files and their cells), `isolation` (a process with limits), `supervisor`
(between grader and program), `seclusion` (its namespaces), `unseen` (what it must not see), `attempt` (what runs in
it), `tampering` (what it changed of the grader), `batch` (attempts until there is a mark), `workplace` (where they
run), `journal` (marks as they come), `students` (the class), `answer_cells` (an answer's code), `class_figures` (what
a class lost), `mark_sheets` (the marks of all), `marks_page` (the same, as a page), `cli` (dtflab grade), `otter` (for
another grader).
A teacher's hidden checks: `hidden` (they run in the grader), `remote` (an answer in another process, as a check sees
it), `answering` (the answer's side), `plain` (values as JSON), `hidden_marks` (their points, for nbgrader and otter).
Helpers for checks: `device_functions` (asks where ops go), `programs` (an answer as a program of its own), `simulated`
(a cluster in virtual time), `unaided` (an answer that may not open a session).

The names in __all__ are what a teacher's own checks use (docs/teacher_grading.md).

Design: docs/design/grading.md
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dtflab.base.missing_names import missing as _missing

if TYPE_CHECKING:  # what `_LAZY` loads on first use
    from dtflab.grading.catalogue import find
    from dtflab.grading.checks.placement import demand_rule
    from dtflab.grading.device_functions import dense_net, mixed_types, shown
    from dtflab.grading.programs import program_of, run_side_by_side
    from dtflab.grading.questions import Wrong, register

# Names whose module is loaded on first use: name → module.
_LAZY = {
    **dict.fromkeys(("Wrong", "register"), "dtflab.grading.questions"),
    "find": "dtflab.grading.catalogue",
    **dict.fromkeys(("dense_net", "mixed_types", "shown"), "dtflab.grading.device_functions"),
    **dict.fromkeys(("program_of", "run_side_by_side"), "dtflab.grading.programs"),
    "demand_rule": "dtflab.grading.checks.placement",
}

__all__ = sorted(_LAZY)


def __getattr__(name: str) -> Any:
    """Names that are loaded when first used."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise _missing("tf.grading", name, __all__)


def __dir__() -> list[str]:
    return __all__
