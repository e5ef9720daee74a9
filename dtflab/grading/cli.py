"""`dtflab grade FOLDER`: the marks of many submissions. `dtflab export --otter DIR`: the questions for otter-grader.

Exit status of `grade`: 0 every file was graded, whatever its mark; 1 some file could not be (no notebook, no question,
no attempt came to an end): it has no points and a sentence,
or a file of marks could not be written; 2 nothing was graded, because of how it was called;
130 Ctrl-C: what was graded until then is written. Marks are kept as they come, in a journal next to the first file
of marks; `--resume` goes on from there.

Rule: here is only what reads arguments, prints and writes files.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural
from dtflab.grading import batch, hidden_marks, mark_sheets as sheets, marks_page
from dtflab.grading.catalogue import ChecksError, all_questions, find, load_folder, teachers_files
from dtflab.grading.isolation import Limits, can_seclude, keep_to_itself
from dtflab.grading.journal import GradingJournal, Work
from dtflab.grading.judge import PUBLIC_SEED
from dtflab.grading.otter import export
from dtflab.grading.questions import Question
from dtflab.grading.students import choose, read_list, with_class
from dtflab.grading.submissions import Submission, Unreadable, asked, cells, found, in_parts, questions_of, same
from dtflab.grading.unseen import unseen
from dtflab.grading.workplace import clear_dead, workplace
from dtflab.machine.console import show

_OPEN = (
    "This system has no user and pid namespaces: a submission can read files here and end programs, including this one "
    "(docs/teacher_grading.md, What this can't prevent)."
)
Exercises = Mapping[str, Path]  # the course's, by their names
Chosen = dict[str, list[Question]]  # by the name of a file, "" for all


def add_grade_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtflab grade`."""
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="FOLDER|FILE", help="notebooks, percent files, or folders of them")
    add("--json", type=Path, metavar="FILE", help="everything: checks, messages, hints, notes, output")
    add("--csv", type=Path, metavar="FILE", help="a row per student, with the columns of `nbgrader export`")
    add("--html", type=Path, metavar="FILE", help="a page with every report")
    add("--resume", action="store_true", help="go on after a grading that ended: files with a mark are not run again")
    add("--questions", nargs="+", metavar="ID|NAME=ID,ID", help="what is judged, in all files or in those of that name")
    add("--checks", type=Path, metavar="FOLDER", help="your own checks (default: DTFLAB_CHECKS of the environment)")
    add("--student", help="whose a single file is (default: from its folder or its name)")
    add(
        "--gradebook", metavar="FILE|URL", help="nbgrader's gradebook.db: hidden points are added, public ones compared"
    )
    add("--otter-results", type=Path, metavar="FILE", help="results.json of otter run: the same, for a single file")
    add("--students", type=Path, metavar="FILE", help="the class: a name or id per line, or a CSV with a column id")
    add("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="files at a time (default: %(default)s)")
    add("--timeout", type=float, default=120.0, help="seconds for a file, all attempts together (default: 120)")
    add("--cell-timeout", type=float, default=30.0, help="seconds for a cell (default: 30)")
    add("--memory", type=float, default=4.0, metavar="GIB", help="for all of a file's processes (default: 4 GiB)")


def add_export_arguments(parser: argparse.ArgumentParser, form: argparse._MutuallyExclusiveGroup) -> None:
    """The arguments of `dtflab export --otter`; `form` has one option for each form of export."""
    form.add_argument("--otter", type=Path, metavar="DIR", help="where to write the tests for otter-grader")
    parser.add_argument("--questions", nargs="+", metavar="ID", help="which questions for otter (default: all)")


class Misuse(Exception):
    """How the command was called can't be right: exit status 2."""


def grade(options: argparse.Namespace, exercises: Exercises) -> int:
    """Grade, print, write; the exit status."""
    with contextlib.ExitStack() as stack:
        try:
            how, chosen = _options(options), _chosen(options.questions or ())
            submissions, others = _submissions(options, exercises, chosen)
            students = _students(options)
            _check_outputs(options, submissions)
            clear_dead()
            how = how._replace(folder=stack.enter_context(workplace()))
            how = how._replace(hidden=_hidden(submissions, how, options))
            journal = GradingJournal(_journal(options), options.resume)
            tasks = _tasks(submissions, exercises, chosen, how, journal)
        except (FileNotFoundError, LookupError, Misuse, ChecksError) as error:
            print(f"dtflab grade: {error.args[0] if error.args else error}", file=sys.stderr)
            return 2
        if how.hidden is None:
            show(_OPEN)
        if others:
            show(f"Left out, neither notebooks nor percent files: {_few(others)}")
        if options.resume:
            show(_resumed(journal, len(tasks)))
        return _carry_out(tasks, students, options)


def _hidden(
    submissions: Sequence[Submission], how: batch.Options, options: argparse.Namespace
) -> tuple[Path, ...] | None:
    """The files that a submission must not see. None without namespaces."""
    hidden = unseen(teachers_files(how.checks), options.paths, submissions, list(_marks(options)))
    assert how.folder is not None
    with tempfile.TemporaryDirectory(dir=how.folder) as trial:
        if can_seclude(Path(trial), hidden):
            return hidden
    keep_to_itself()
    return None


def _marks(options: argparse.Namespace) -> Iterator[Path]:
    """The files of marks, and the list of students."""
    yield from filter(None, (options.json, options.csv, options.html, options.students, _journal(options)))
    if options.otter_results is not None:
        yield options.otter_results
    if options.gradebook is not None and "://" not in options.gradebook:
        yield Path(options.gradebook)


def _resumed(journal: GradingJournal, files: int) -> str:
    """A line about the grading that is resumed."""
    text = f"Resumed: {journal.resumed} of {plural(files, 'file')} have a mark already."
    if journal.suspects:
        text += f" Running when the grading ended, and graded last, one at a time: {', '.join(journal.suspects)}."
    return text


def _few(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(same(str(path)) for path in paths[:5]) + more


def _carry_out(tasks: Sequence[batch.Task], students: Sequence[str], options: argparse.Namespace) -> int:
    progress, status = _Progress(len(tasks)), 130
    try:
        graded = batch.grade_all(tasks, options.jobs, progress.done)
        status = int(any(one.failed for one in graded))
        choose(graded)
        graded = with_class(graded, students, options.students.name) if students else graded
    except KeyboardInterrupt:
        graded = progress.graded
    progress.end()
    try:
        show(sheets.text(graded), flush=True)
        if status == 130:
            show(f"Interrupted: {plural(len(tasks) - len(graded), 'file')} not graded", flush=True)
    finally:  # also where there is nobody to read it
        written = _write(graded, options)
    is_added = _add_hidden(graded, options)
    return status or int(not (written and is_added))


def _add_hidden(graded: Sequence[batch.Graded], options: argparse.Namespace) -> bool:
    """Add the points of hidden checks to another grader's book; whether all of them are in it, and the others agree.

    That a file could not be graded, or the grading was interrupted, costs the others no point.
    """
    said = [] if options.otter_results is None else hidden_marks.to_otter(graded, options.otter_results)
    if options.gradebook is not None:
        said += hidden_marks.to_gradebook(graded, options.gradebook)
    for sentence in said:
        print(f"dtflab grade: {sentence}", file=sys.stderr)
    return not said


def _submissions(
    options: argparse.Namespace, exercises: Container[str], chosen: Chosen
) -> tuple[list[Submission], list[Path]]:
    """The files to grade, and those of the folders that are left out."""
    submissions, others = found(options.paths, exercises)
    if not submissions:
        raise Misuse(f"there is no notebook in {', '.join(map(str, options.paths))}")
    if options.student is not None:
        if len(submissions) > 1:
            raise Misuse(f"--student names the owner of one file, but {len(submissions)} files were given")
        submissions = [submissions[0]._replace(student=options.student)]
    names = {one.name for one in submissions}
    if nobodys := sorted(chosen.keys() - names - {""}):
        raise Misuse(f"--questions: no file is called {nobodys[0]}. There are: {', '.join(sorted(names)[:9])}")
    return in_parts(submissions, exercises, chosen), others


def _students(options: argparse.Namespace) -> list[str]:
    """The students of the class list; none without a list."""
    try:
        return read_list(options.students) if options.students is not None else []
    except OSError as error:
        raise Misuse(f"{options.students} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise Misuse(str(error)) from None


def _options(options: argparse.Namespace) -> batch.Options:
    if os.name != "posix":
        raise Misuse("it needs Linux or macOS (on Windows: WSL). dtflab.grade in a notebook works everywhere")
    if importlib.util.find_spec("IPython") is None:
        raise Misuse("it runs notebooks with IPython, which is not installed: pip install 'dtflab[lab]'")
    if min(options.jobs, options.timeout, options.cell_timeout, options.memory) <= 0:
        raise Misuse("--jobs, --timeout, --cell-timeout and --memory must be greater than 0")
    checks = options.checks or (Path(named) if (named := os.environ.get("DTFLAB_CHECKS")) else None)
    if checks is not None:
        all_questions()  # it may add to those of installed checks
        load_folder(checks)
    limits = Limits(seconds=options.timeout, memory=int(options.memory * 2**30))
    folder = str(checks.resolve()) if checks is not None else ""
    return batch.Options(limits, options.cell_timeout, folder, os.environ.get("DTFLAB_GRADE_SEED", PUBLIC_SEED))


def _chosen(texts: Sequence[str]) -> Chosen:
    """The choice of `--questions`: `placement/q1` for all files, `part1=placement/q1,queues/q1` for those of a name."""
    named = (text.rpartition("=") for text in texts)
    return grouped((name, find(id)) for name, _, ids in named for id in ids.split(","))


def _tasks(
    submissions: Sequence[Submission], exercises: Exercises, chosen: Chosen, how: batch.Options, journal: GradingJournal
) -> list[batch.Task]:
    """The work on each file, and on which questions: the chosen ones, those of its assignment, or of its exercise."""
    known = {question.id: question for question in all_questions()}
    code, ids, why = _read(submissions, known)
    together = grouped((submission.assignment, ids[submission]) for submission in code)
    of_all = {assignment: questions_of(all_ids) for assignment, all_ids in together.items()}
    tasks: list[batch.Task] = []
    for submission in submissions:
        shipped = exercises.get(submission.assignment.rpartition("/")[2])
        wanted = of_all.get(submission.assignment) or ids.get(submission) or (asked(cells(shipped)) if shipped else [])
        questions = chosen.get(submission.name) or chosen.get("") or [known[id] for id in wanted]
        if not questions:
            why.setdefault(submission, "It asks no question that is known here; --questions names some.")
        if submission in why:
            tasks.append(_refused(submission, questions, why[submission]))
        else:
            known_of = _other_exercise(ids[submission], [question.id for question in questions])
            tasks.append(journal.task(Work(submission, code[submission], questions, how, known_of)))
    return tasks


def _other_exercise(asks: list[str], judged: list[str]) -> list[str]:
    """A note on a file that asks none of the questions that it is judged on, but others."""
    if not asks or set(asks) & set(judged):
        return []
    return [f"It asks {', '.join(asks)}, and was judged on {', '.join(judged)}: is it another exercise by this name?"]


def _read(
    submissions: Sequence[Submission], known: dict[str, Question]
) -> tuple[dict[Submission, list[str]], dict[Submission, list[str]], dict[Submission, str]]:
    """The code of each readable file, the questions that it asks, and why others can't be read."""
    code, ids, why = {}, {}, {}
    for submission in submissions:
        try:
            code[submission] = cells(submission.path)
            ids[submission] = [id for id in asked(code[submission]) if id in known]
        except (Unreadable, OSError) as error:
            why[submission] = str(error)
    return code, ids, why


def _refused(submission: Submission, questions: list[Question], why: str) -> batch.Task:
    return batch.Task(lambda stopped: batch.none(submission, questions, why), known=True)


class _Progress:
    """A line that changes in place; a pipe or a file does not see it."""

    def __init__(self, total: int) -> None:
        self.graded: list[batch.Graded] = []
        self._total = total
        self._shown = sys.stdout.isatty()

    def done(self, one: batch.Graded) -> None:
        self.graded.append(one)
        if self._shown:
            show(f"\r\033[K{len(self.graded)} of {self._total} graded: {one.submission.student}", end="", flush=True)

    def end(self) -> None:
        if self._shown:
            show("\r\033[K", end="", flush=True)


def _check_outputs(options: argparse.Namespace, submissions: Sequence[Submission]) -> None:
    """Before the grading, which may take an hour: Misuse if a file can't be written. Only its folder is made."""
    if options.resume and _journal(options) is None:
        raise Misuse("--resume needs the files of marks, next to which the journal is: name --csv, --json or --html")
    if options.gradebook is not None and importlib.util.find_spec("nbgrader") is None:
        raise Misuse("--gradebook needs nbgrader in the same environment: pip install nbgrader")
    if options.otter_results is not None and (len(submissions) > 1 or not options.otter_results.is_file()):
        raise Misuse("--otter-results is for one notebook, and names the results.json that `otter run` has written")
    for path in filter(None, (options.json, options.csv, options.html, _journal(options))):
        folder = path.absolute().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Misuse(f"{path} can't be written: no folder {folder} can be made: {error.strerror}") from None
        if path.is_dir():
            raise Misuse(f"{path} can't be written: it is a folder. Name a file in it")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise Misuse(f"{path} can't be written: permission denied. Choose another path")


def _journal(options: argparse.Namespace) -> Path | None:
    """Where marks are kept as they come: `marks.journal` for `--csv marks.csv`; nowhere without a file of marks."""
    first: Path | None = options.csv or options.json or options.html
    return first and first.with_suffix(".journal")


def _write(graded: Sequence[batch.Graded], options: argparse.Namespace) -> bool:
    """Whether every file could be written; of one that could not, a sentence says so, and the others are."""
    done = True
    for path, content in ((options.json, _json), (options.csv, sheets.csv_text), (options.html, marks_page.html)):
        try:
            if path is not None:
                path.write_text(content(graded), encoding="utf-8", errors="replace")
        except OSError as error:
            print(f"dtflab grade: {path} could not be written: {error.strerror}", file=sys.stderr)
            done = False
    return done


def _json(graded: Sequence[batch.Graded]) -> str:
    return json.dumps(sheets.data(graded), indent=1, ensure_ascii=False) + "\n"


def export_tests(options: argparse.Namespace) -> int:
    """Write the tests for otter-grader; the exit status."""
    try:
        questions = [find(id) for id in options.questions or ()] or all_questions()
    except (LookupError, ChecksError) as error:
        print(f"dtflab export: {error.args[0]}", file=sys.stderr)
        return 2
    for path in export(questions, options.otter):
        show(f"{path}: written")
    return 0
