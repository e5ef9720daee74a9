"""The load test of the grader, with a class of eight: it ends well, and it finds a wrong mark and memory that grows."""

from __future__ import annotations

import pytest

from tests.grading import soak
from tests.soak.accounts import Sample

pytestmark = [pytest.mark.processes, pytest.mark.timeout(900)]


def test_each_kind_of_submission_has_its_mark(capsys):
    assert soak.main(["--files", str(len(soak.KINDS))]) == 0, capsys.readouterr().out
    assert "Every mark is right, and nothing grew.\n" in capsys.readouterr().out


def test_what_is_wrong_is_found(tmp_path):
    (tmp_path / "m.csv").write_text("student_id,score\nada,3.0\n")
    small, large = [Sample(100.0, 9, 3)] * 20, [Sample(100.0, 9, 3)] * 10 + [Sample(200.0, 9, 3)] * 10
    assert list(soak.wrong(tmp_path, {"ada": 3.0}, 0, small)) == []
    assert list(soak.wrong(tmp_path, {"ada": 4.0}, 0, small)) == ["ada has 3.0 points, not 4.0"]
    assert list(soak.wrong(tmp_path, {"ada": 3.0}, 0, large)) == ["the grader: MB grew from 100 to 200"]
    assert list(soak.wrong(tmp_path, {}, 130, small)) == ["dtflab grade ended with status 130"]
