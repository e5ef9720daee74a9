"""The programs of the README and the tour run as printed; the first fits on a slide, and draws the picture above it."""

from __future__ import annotations

import ast
import operator
import re
import subprocess
import sys

import pytest

import dtflab
from dtflab import course
from tests import house
from tests.house import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", README, re.S)
ON_GPUS, IN_VIRTUAL_TIME, NETWORK = re.findall(r"```python\n(.*?)```", TOUR, re.S)


def labels(svg: str) -> set[str]:
    """A picture's sentence, tooltips and texts, times and shares masked; labels go with the width of their bar."""
    texts = re.findall(r'<text[^>]* class="(?![^"]*halo)[^"]*\b(?:b|soft)\b[^>]*>([^<]+)<', svg)
    texts += re.findall(r"<title>([^<]+)<", svg) + re.findall(r'aria-label="([^"]+)"', svg)
    return {re.sub(r"[\d.]+ (?:µs|ms|s)\b", "TIME", re.sub(r"\b\d+(?=\s?%)", "N", text)) for text in texts}


def test_make_lab_lists_the_lessons_and_not_what_builds_them():
    from jupyter_server.services.contents.largefilemanager import LargeFileManager

    hidden = re.search(r"^HIDDEN := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)[1]
    manager = LargeFileManager(root_dir=str(ROOT), hide_globs=ast.literal_eval(hidden))
    listed = {item["name"] for item in manager.get("notebooks")["content"]}
    assert listed == {path.parts[1] for path in course.files(ROOT) if path.parts[0] == "notebooks"}
    assert {*LargeFileManager.hide_globs.default()} <= {*manager.hide_globs}


def test_program_fits_on_a_slide():
    assert len([line for line in PROGRAM.splitlines() if line.strip()]) <= 15


def test_program_draws_the_picture(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    drawn = labels((tmp_path / "timeline.svg").read_text(encoding="utf-8"))
    assert drawn == labels((ROOT / "docs" / "timeline.svg").read_text(encoding="utf-8"))
    assert len(drawn) > 60 and "N% idle" in drawn


def test_program_on_gpus_shows_the_table(tmp_path):
    (tmp_path / "train.py").write_text(ON_GPUS, encoding="utf-8")
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    card = "|   1  GRID K520           Off  | 0000:00:04.0     Off |                  N/A |"
    for part in (card, "|   1688MiB /  4095MiB |", " train.py  ", "  1677MiB |"):
        assert part in done.stdout and part in TOUR


def test_program_in_virtual_time_takes_the_seconds_that_are_printed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", IN_VIRTUAL_TIME], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    took = {name: float(seconds) for name, seconds in re.findall(r"^(\S+b/s): (\S+) s$", done.stdout, re.M)}
    printed = {name: float(seconds) for name, seconds in re.findall(r"^(\S+b/s): (\S+) s$", TOUR, re.M)}
    assert took == pytest.approx(printed, rel=0.1) and len(took) == 3


def test_bfloat16_between_tasks_is_switched_on_as_printed():
    (config,) = re.findall(r"`(tf\.ConfigProto\(graph_options.*?)`", TOUR)
    assert eval(config, {"tf": dtflab}).graph_options.enable_bfloat16_sendrecv  # noqa: S307, our own page


def test_network_learns_the_digits(tmp_path):
    done = subprocess.run([sys.executable, "-c", NETWORK], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) > 0.9


def test_names_of_split_nets_are_there():
    names = re.findall(r"`tf\.(model_parallel\.\w+)\(", TOUR)
    assert len(names) == 4 and all(map(operator.attrgetter(*names), [dtflab]))


def test_the_chapter_is_named_in_its_order():
    engineer = (ROOT / "docs" / "engineer.md").read_text(encoding="utf-8")
    assert re.findall(r"^\d\. \[`(\w+)`\]", engineer, re.M) == house.order().chapter


TRAINING, OP, LISTENER = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "engineer.md").read_text(encoding="utf-8"), re.S
)


def run_engineers(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_engineers_training_learns():
    losses = re.findall(r"'(\d\.\d\d)'", run_engineers(TRAINING))
    assert len(losses) == 2 and all(float(loss) < 0.6 for loss in losses)


def test_the_engineers_op_runs():
    printed = run_engineers(OP)
    assert re.sub(r"\s", "", printed).startswith("[array([1.,8.],dtype=float32),[array([3.,12.]")


def test_the_engineers_listener_hears_calls_and_nodes():
    lines = run_engineers(LISTENER).splitlines()
    assert "client → /job:worker/replica:0/task:0: RunStep, 4 bytes" in lines
    assert any(line.startswith("add ran on /job:ps/replica:0/task:0/device:CPU:0 for ") for line in lines)
