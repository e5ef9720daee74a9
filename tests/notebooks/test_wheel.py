"""The wheel holds the course, and `dtflab notebooks DIR` takes it out, without harm to what is there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pytest
from nbformat import v4, write

from dtflab import course
from dtflab.__main__ import main
from dtflab.viz.drawing import front_end
from tests import pages
from tests.house import ROOT

LESSONS = {path.relative_to(ROOT) for path in (ROOT / "notebooks").rglob("*.ipynb")}
EXERCISES = {path.relative_to(ROOT) for path in (ROOT / "exercises").glob("*.ipynb")}


def test_the_course_is_copied_whole(tmp_path, capsys):
    main(["notebooks", str(tmp_path / "mine")])
    there = {path.relative_to(tmp_path / "mine") for path in (tmp_path / "mine").rglob("*.ipynb")}
    assert there == LESSONS | EXERCISES
    out = capsys.readouterr().out
    pages = list((tmp_path / "mine").rglob("*.md"))
    pictures = {path.name for path in (tmp_path / "mine").rglob("*.svg")}
    assert pictures == {path.name for path in (ROOT / "docs" / "measured").glob("*.svg")}
    assert f"{len(there) + len(pages) + len(pictures)} files written" in out
    assert tmp_path / "mine" / "docs" / "student.md" in pages  # lessons name pages of the docs
    assert f"jupyter lab {tmp_path / 'mine'}," in out  # from one of its folders the others can't be reached


def test_links_between_its_files_lead_somewhere(tmp_path):
    main(["notebooks", str(tmp_path)])
    copied = [*tmp_path.rglob("*.md"), *tmp_path.rglob("*.ipynb")]
    assert [link for page in copied for link in pages.dead_links(page)] == []


def test_what_is_there_stays(tmp_path, capsys):
    main(["notebooks", str(tmp_path)])
    mine = tmp_path / "exercises" / "ex01_placement.ipynb"
    mine.write_text("my answer")
    capsys.readouterr()
    main(["notebooks", str(tmp_path)])
    assert mine.read_text() == "my answer"
    out = capsys.readouterr().out
    assert "0 files written" in out and f"kept as it is: {mine}" in out


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(SystemExit, match="taken"):
        main(["notebooks", str(tmp_path / "taken")])


@pytest.mark.timeout(900)
def test_a_wheel_brings_the_course_along(tmp_path):
    """Built and unpacked as pip does, and run from there."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT]
    subprocess.run(build, check=True, timeout=600)
    (wheel,) = tmp_path.glob("dtflab-*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path / "installed")
    program = [sys.executable, "-m", "dtflab", "notebooks", tmp_path / "mine"]
    here = os.environ | {"PYTHONPATH": str(tmp_path / "installed")}
    subprocess.run(program, check=True, cwd=tmp_path, env=here, timeout=200, stdout=subprocess.DEVNULL)
    there = {path.relative_to(tmp_path / "mine") for path in (tmp_path / "mine").rglob("*.ipynb")}
    assert (tmp_path / "installed" / "dtflab" / course.FOLDER).is_dir()
    assert there == LESSONS | EXERCISES
    (data,) = (tmp_path / "installed").glob("dtflab-*.data/data")
    assert_nbconvert_finds_the_template(data / "share" / "jupyter", tmp_path, here)


@pytest.mark.timeout(900)
def test_an_editable_install_brings_the_template_along(tmp_path):
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--ignore-installed", "--prefix", tmp_path / "prefix"]
    subprocess.run([sys.executable, *install, "--editable", ROOT], check=True, timeout=600)
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    assert_nbconvert_finds_the_template(tmp_path / "prefix" / "share" / "jupyter", tmp_path, here)


def assert_nbconvert_finds_the_template(jupyter, folder, environment):
    cells = [v4.new_code_cell("1", outputs=[v4.new_output("display_data", data={"text/html": "<b>here</b>"})])]
    write(v4.new_notebook(cells=cells), folder / "lesson.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--log-level=ERROR", "--to=html", "--template=dtflab", "lesson.ipynb"]
    environment |= {"JUPYTER_PATH": str(jupyter), "JUPYTER_PREFER_ENV_PATH": "0"}
    subprocess.run(command, check=True, cwd=folder, env=environment, timeout=200)
    page = (folder / "lesson.html").read_text(encoding="utf-8")
    assert "<b>here</b>" in page and front_end.MODULE.read_text(encoding="utf-8") in page
