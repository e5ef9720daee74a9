"""Files that a submission in namespaces can't read: those of other students, and marks of any grading."""

from __future__ import annotations

import argparse
import json
import sys

import pytest

from dtflab.grading import batch, cli, isolation, unseen
from dtflab.grading.submissions import found
from tests.grading.classroom import need_namespaces

FILES = (
    "handed_in/ada/ex1.py",
    "handed_in/bob/ex1.py",
    "marks/marks.csv",
    "marks/marks.journal",
    "marks/old/last.html",
)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A folder of a course that is not covered as home and /tmp are; gives what a submission finds in it."""
    need_namespaces()
    monkeypatch.setattr(isolation, "_own_places", lambda: ["/dev/shm"])
    work = tmp_path / "work"
    for name in (*FILES, "work/place/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# %%\n1")

    def seen(*arguments):
        parser = argparse.ArgumentParser()
        cli.add_grade_arguments(parser)
        options = parser.parse_args([str(one) for one in arguments])
        hidden = cli._hidden(found(options.paths, ["ex1"])[0], batch.Options(folder=work), options)
        assert hidden is not None
        code = f"import pathlib; print(*sorted(p for p in pathlib.Path({str(tmp_path)!r}).rglob('*.*') if p.is_file()))"
        place = work / "place"
        ended = isolation.run([sys.executable, "-c", code], isolation.Limits(20), place, hidden=hidden)
        assert not ended.error, ended
        return [path.removeprefix(f"{tmp_path}/") for path in ended.output.split()]

    return seen


@pytest.mark.parametrize("named", ["handed_in", "handed_in/ada", "handed_in/ada/ex1.py"])
def test_the_class_and_what_earlier_gradings_wrote_are_hidden_however_it_is_called(course, tmp_path, named):
    assert course(tmp_path / named, "--csv", tmp_path / "marks/new.csv") == []


@pytest.mark.parametrize("target", ["ex1.py", "../../gone.py", sys.executable, isolation.__file__, json.__file__])
def test_a_link_that_is_handed_in_takes_nothing_away_that_programs_need(course, tmp_path, target):
    (tmp_path / "handed_in/cyd").mkdir()
    (tmp_path / "handed_in/cyd/ex1.py").symlink_to(target)
    assert course(tmp_path / "handed_in", "--csv", tmp_path / "marks/new.csv") == []
    if (tmp_path / "handed_in/cyd/ex1.py").exists():  # else it can't be named
        assert course(tmp_path / "handed_in/cyd/ex1.py", "--csv", tmp_path / "marks/new.csv") == []


def test_what_a_link_leads_to_is_hidden_if_it_may_be_an_answer(course, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/cyd.py").write_text("# %%\n1")
    (tmp_path / "handed_in/cyd").mkdir()
    (tmp_path / "handed_in/cyd/ex1.py").symlink_to(tmp_path / "kept/cyd.py")
    assert course(tmp_path / "handed_in", "--csv", tmp_path / "marks/new.csv") == []


def test_the_solutions_of_a_clone_are_hidden(course, tmp_path, monkeypatch):
    for name in ("pyproject.toml", "solutions/ex1.py", "tests/answers.py", ".git/a.pack", "dtflab/ops.py"):
        (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clone" / name).write_text("")
    monkeypatch.setattr(unseen, "_CLONE", tmp_path / "clone")
    seen = ["clone/dtflab/ops.py", "clone/pyproject.toml"]
    assert course(tmp_path / "handed_in", "--csv", tmp_path / "marks/new.csv") == seen


def test_of_a_folder_that_python_needs_the_marks_are_hidden(course, tmp_path, monkeypatch):
    """Such a folder is the current one with `python -m dtflab`."""
    monkeypatch.syspath_prepend(str(tmp_path / "marks"))
    (tmp_path / "marks/needed.py").write_text("")
    assert course(tmp_path / "handed_in", "--csv", tmp_path / "marks/new.csv") == [
        "marks/needed.py",
        "marks/old/last.html",
    ]


def test_the_root_cannot_be_hidden(tmp_path):
    assert not isolation.can_hide(tmp_path.parents[-1]) and isolation.can_hide(tmp_path)
