"""The module that brings pictures to life: it is fresh, small, and asks for nothing from outside."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess

import pytest

from dtflab import viz
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.svg import Markup
from tests.viz.strokes import BACKGROUNDS, contrast, rgb

PAGE = front_end.MODULE.parent


def text_of_module():
    return front_end.MODULE.read_text(encoding="utf-8")


def test_the_module_is_built_from_these_sources():
    names = sorted(
        path.relative_to(PAGE).as_posix() for path in PAGE.glob("src/**/*") if path.suffix in (".ts", ".css")
    )
    parts = (((PAGE / name).read_bytes()) for name in (*names, "package-lock.json"))
    (named,) = re.findall(r"from sources (\w+);", text_of_module())
    assert named == hashlib.sha256(b"".join(parts)).hexdigest()[:16], "npm run build in dtflab/viz/page"


def test_the_module_is_small_and_asks_for_nothing():
    module = text_of_module()
    assert len(module.encode()) < 300_000
    assert re.findall(r"\bfetch\(|XMLHttpRequest|WebSocket|\bimport\(|\bfrom ?[\"']|importScripts|eval\(", module) == []
    assert {url.partition("/")[0] for url in re.findall(r"https?://([^\"'` ]+)", module)} <= {"www.w3.org"}


def test_frames_of_controls_stand_out_from_every_page():
    css = (PAGE / "src" / "live.css").read_text(encoding="utf-8")
    frames = re.findall(r"\b(?:border|outline)(?:-color|-bottom)?: ([^;]*[^; ])[;}]", css)
    colours = {colour for frame in frames for colour in re.findall(r"#\w+", frame)}
    assert len(frames) > 8 and not any("var(" in frame for frame in frames), "a theme's may be too pale"
    assert {(c, page) for c in colours for page in BACKGROUNDS if contrast(rgb(c), rgb(page)) < 3} == set()


def test_no_address_is_in_the_lock_file():
    assert "http" not in (PAGE / "package-lock.json").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not (PAGE / "node_modules").exists(), reason="missing: npm ci --prefix dtflab/viz/page")
def test_a_build_gives_the_module_and_its_types_are_right(tmp_path):
    subprocess.run([shutil.which("node"), PAGE / "build.mjs", tmp_path / "built.js"], check=True)
    assert (tmp_path / "built.js").read_text(encoding="utf-8") == text_of_module()
    done = subprocess.run(["npm", "run", "--silent", "types"], cwd=PAGE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_long_data_is_deflated_and_no_data_ends_its_script():
    assert front_end.written({"text": "</script>&"}) == r'{"text":"\u003c/script>\u0026"}'
    long = front_end.written({"numbers": [*range(10_000)]})
    assert len(long) < 30_000 and isinstance(json.loads(long), str)


def test_a_picture_without_a_view_takes_the_width_of_the_output():
    assert viz.Picture(Markup(), (9, 9), "", "Nothing.", [], "").living_data == {"view": "still"}
