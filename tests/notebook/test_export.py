"""Pages of notebooks: nothing from outside, the front end's module, and what remains of widgets."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest
from nbconvert import HTMLExporter
from nbformat import v4, write

from dtflab import viz
from dtflab.__main__ import main
from dtflab.notebook import export
from dtflab.viz.drawing.front_end import MODULE
from tests.house import ROOT

WIDGET, STATE = (f"application/vnd.jupyter.widget-{part}+json" for part in ("view", "state"))
LOADS = re.compile(r"<(?:script|img|link|iframe)[^>]*\s(?:src|href)=\"(?!data:)|url\([\"']?(?!data:|#)|@import")


def notebook(*outputs, **metadata):
    shown = [v4.new_output("display_data", data=data) for data in outputs]
    cells = [v4.new_markdown_cell("# A lesson\n$x^2$"), v4.new_code_cell("look()", outputs=shown, metadata=metadata)]
    return v4.new_notebook(cells=cells, metadata={"widgets": {STATE: {"state": {}}}})


def page_of(tmp_path, *outputs, **metadata):
    write(notebook(*outputs, **metadata), tmp_path / "lesson.ipynb")
    with pytest.raises(SystemExit) as end:
        main(["export", "--html", str(tmp_path / "lesson.ipynb")])
    assert end.value.code == 0
    return (tmp_path / "lesson.html").read_text(encoding="utf-8")


def bundle():
    return viz.loads("Bytes", {"now": {"/job:ps/task:0": 1}})._repr_mimebundle_()


def test_a_page_has_the_module_once_and_loads_nothing(tmp_path):
    page = page_of(tmp_path, bundle(), bundle())
    assert page.count(MODULE.read_text(encoding="utf-8")) == 1
    assert page.count('class="dtf-drawing"') == 2
    assert LOADS.findall(page) == []
    assert "prefers-color-scheme: dark" in page and "<title>lesson</title>" in page


def test_plain_nbconvert_shows_the_still_and_has_no_module():
    page, _ = HTMLExporter().from_notebook_node(notebook(bundle()))
    assert 'class="dtf-drawing"' in page and MODULE.read_text(encoding="utf-8") not in page
    assert LOADS.findall(page), "the template has nothing to do"


def test_of_widgets_their_text_remains_if_they_have_one(tmp_path):
    ours, other = (
        {WIDGET: {"model_id": "1"}, "text/plain": ""},
        {WIDGET: {"model_id": "2"}, "text/plain": "IntSlider(7)"},
    )
    page = page_of(tmp_path, ours, other)
    assert "IntSlider(7)" in page and "model_id" not in page and "vnd.jupyter.widget" not in page
    assert page.count('class="jp-OutputArea-child"') == 1


def test_a_folded_cell_stays_folded(tmp_path):
    assert '<details class="dtf-folded">' not in page_of(tmp_path, bundle())
    assert '<details class="dtf-folded">' in page_of(tmp_path, bundle(), jupyter={"source_hidden": True})


def test_a_notebook_that_was_not_run_is_reported(tmp_path, capsys):
    page_of(tmp_path)
    assert "lesson.ipynb has no outputs. Run its cells and save it, or add --run." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, "No such file"), ("[1", "is not a notebook"), ('{"cells": 1}', "is not a notebook")],
)
def test_what_is_not_a_notebook_is_refused(tmp_path, capsys, text, says):
    path = tmp_path / "lesson.ipynb"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit) as end:
        main(["export", "--html", str(path)])
    assert end.value.code == 1 and not (tmp_path / "lesson.html").exists()
    said = capsys.readouterr().err
    assert said.startswith("dtflab export: ") and str(path) in said and says in said


def test_pages_go_where_asked(tmp_path, capsys):
    write(notebook(bundle()), tmp_path / "lesson.ipynb")
    with pytest.raises(SystemExit):
        main(["export", "--html", str(tmp_path / "lesson.ipynb"), "--to", str(tmp_path / "pages")])
    assert (tmp_path / "pages" / "lesson.html").exists()
    assert f"{tmp_path / 'pages' / 'lesson.html'}: written, " in capsys.readouterr().out


def test_one_form_at_a_time(capsys):
    for arguments in ([], ["--otter", "tests", "--html", "lesson.ipynb"]):
        with pytest.raises(SystemExit) as end:
            main(["export", *arguments])
        assert end.value.code == 2
    said = capsys.readouterr().err
    assert "one of the arguments" in said and "not allowed with" in said


def test_without_jupyter_it_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbconvert", None)
    assert export.main(type("Options", (), {"html": [tmp_path / "a.ipynb"], "to": None, "run": False})) == 1
    assert "pages need nbconvert: pip install 'dtflab[lab]'" in capsys.readouterr().err


# It never ends at its third and its sixth call.
DRAWS = """
import os, threading
from dtflab.notebook import Slider, explore

def draw(n):
    with open("drawn", "a+") as file:
        file.write(f"{n} ")
        file.seek(0)
        calls = len(file.read().split())
    if calls in (3, 6):
        with open("fifo", "w") as to:
            to.write(str(os.getpid()))
        threading.Event().wait()
    return f"picture {n}"

explore(draw, n=Slider([1, 2, 3], 1, "Look."))
"""


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="a terminal's Ctrl+C reaches a group of processes")
def test_a_run_that_did_not_end_says_why_in_a_sentence_and_the_next_one_goes_on(tmp_path):
    """As Ctrl+C does it, and a system that is out of memory, while a cell is running."""
    path, page, kept = (tmp_path / f"lesson.{suffix}" for suffix in ("ipynb", "html", "html.drawn"))
    write(v4.new_notebook(cells=[v4.new_code_cell("%load_ext dtflab"), v4.new_code_cell(DRAWS)]), path)
    os.mkfifo(tmp_path / "fifo")
    command = [sys.executable, "-m", "dtflab", "export", "--html", str(path), "--run"]

    def run(end=None):
        """An export: its exit status and output, after `end` has met it and its kernel while a cell was running."""
        started = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        kernel = end and int((tmp_path / "fifo").read_text())
        if end:
            end(started.pid, kernel)
        out, said = started.communicate(timeout=120)
        if end:
            assert not page.exists()
            with pytest.raises(ProcessLookupError):
                os.kill(kernel, 0)
        lines = [line for line in said.splitlines() if not line.startswith("[IPKernelApp]")]
        return started.returncode, "\n".join(lines).strip(), out

    killed = "its kernel was killed or crashed (Kernel died)"
    goes_on = f"Finished pictures are kept in {kept}; the same command goes on from there."
    interrupted = f"dtflab export: interrupted; {path} has no new page.\n{goes_on}"
    assert run(lambda pid, _: os.killpg(pid, signal.SIGINT))[:2] == (130, interrupted)
    status, said, out = run(lambda _, kernel: os.kill(kernel, signal.SIGKILL))
    assert "0 of 2 pictures drawn, one for each place of the sliders (1 kept from before)" in out
    assert (status, said) == (1, f"dtflab export: {path} has no new page, because {killed}.\n{goes_on}")
    assert run()[:2] == (0, "")
    assert (tmp_path / "drawn").read_text().split() == "1 1 2  1 2 3  1 3".split()  # the first of each is shown at once
    assert page.exists() and not kept.exists()


def test_a_folded_answer_stays_folded(tmp_path):
    (tmp_path / "x.png").write_bytes(b"an image")
    answer = "<details><summary>Show why</summary>\n\nNobody waits.\n\n</details>\n\n<img src='x.png'>"
    page = export.html(v4.new_notebook(cells=[v4.new_markdown_cell(answer)]), tmp_path / "a.ipynb")
    assert re.search(r"<summary>Show why</summary>\s*<p>Nobody waits.</p>\s*</details>", page)
    assert "x.png" not in page, "images are in the page"
