"""Text as a browser measures it in the usual fonts: no text is wider than was reckoned, lies upon another or leaves its
box, in any picture of the gallery."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import matplotlib
import pytest

from dtflab import viz
from dtflab.viz.drawing.svg import join, tag, text_width
from tests.browser.test_browser import CHROMIUM, HERE, pytestmark  # noqa: F401
from tests.viz import gallery

DEJAVU = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
ARIMO = HERE / "node_modules" / "@fontsource" / "arimo" / "files"  # as wide as Liberation Sans, Arial and Helvetica
FONTS = {
    "DejaVu Sans": (DEJAVU / "DejaVuSans.ttf", DEJAVU / "DejaVuSans-Bold.ttf"),
    "Liberation Sans": (ARIMO / "arimo-latin-400-normal.woff2", ARIMO / "arimo-latin-600-normal.woff2"),
}
CHECKS = ("overlapping", "outside", "leaving")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Every picture of the gallery in both styles."""
    folder, files = tmp_path_factory.mktemp("gallery"), []
    with gallery.drawings("virtual") as found:
        for style in ("default", "projector"):
            viz.style(style)
            for name, draw in found.items():
                files.append(folder / f"{name} {style}.html")
                files[-1].write_text(gallery.page(draw(), dark=False), encoding="utf-8")
    viz.style("default")
    return files


def measured(font, files):
    """The browser's measures of each page, by the name of its file."""
    command = ["node", HERE / "measure_texts.mjs", *FONTS[font], *files]
    done = subprocess.run(command, env=os.environ | {"CHROMIUM": CHROMIUM}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {Path(path).stem: found for path, found in json.loads(done.stdout).items()}


@pytest.fixture(params=FONTS)
def font(request):
    if not all(file.exists() for file in FONTS[request.param]):
        pytest.skip("missing: @fontsource/arimo (npm install --prefix tests/browser)")
    return request.param


def test_texts_fit_in_every_usual_font(font, pages):
    found = measured(font, pages)
    wrong = {name: {check: page[check] for check in CHECKS if page[check]} for name, page in found.items()}
    assert {name: what for name, what in wrong.items() if what} == {}
    texts = [text for page in found.values() for text in page["texts"]]
    wider = [text for text in texts if text["width"] > text_width(text["text"], text["size"], text["bold"]) + 0.5]
    assert wider == [] and len(texts) > 1000


def test_the_check_sees_what_does_not_fit(font, tmp_path):
    def page(name, *parts):
        path = tmp_path / f"{name}.html"
        path.write_text(gallery.page(viz.Picture(join(parts), (100, 66), "", "", [], ""), dark=False), encoding="utf-8")
        return path

    box = tag("rect", x=0, y=20, width=50, height=20)
    files = [
        page("overlapping", tag("text", "wide words", x=0, y=20), tag("text", "words", x=10, y=22)),
        page("outside", tag("text", "wide words in a page that is not", x=0, y=20)),
        page("leaving", box, tag("text", "wide words", x=5, y=34)),
        page("fitting", box, tag("text", "word", x=5, y=34), tag("text", "below", x=5, y=54)),
    ]
    found = {name: [check for check in CHECKS if page[check]] for name, page in measured(font, files).items()}
    assert found == {"overlapping": ["overlapping"], "outside": ["outside"], "leaving": ["leaving"], "fitting": []}
