"""Sliders above a picture: what is drawn when, and what remains."""

from __future__ import annotations

import base64
import json
import re
import threading
import zlib
from types import SimpleNamespace

import pytest

from dtflab import viz
from dtflab.notebook import explorer
from dtflab.notebook.explorer import Slider, _so_far, explore

WAIT = 30  # seconds; none of it passes if all is well


@pytest.fixture
def shown(monkeypatch):
    """The displays of a notebook: bundles of data, in order, whether new or in place of the last."""
    given = []

    class Handle:
        def update(self, bundle, raw, metadata=None):
            given.append(bundle)

    def display(bundle, raw, display_id=False, metadata=None):
        given.append(bundle)
        return Handle() if display_id else None

    monkeypatch.setattr(explorer, "display", display)
    monkeypatch.setattr(explorer, "in_notebook", lambda: True)
    return given


def texts(shown):
    return [bundle["text/plain"] for bundle in shown[1:]]  # the first one is the sliders


def move_on_while_it_draws(draw, begun, goes_on):
    """The slider goes to 1, and to 2 while the picture of 1 is being made."""
    one = explore(draw, n=Slider([0, 1, 2], 0, "Look."))
    one._ipython_display_()
    one.set(n=1)
    assert begun.wait(WAIT)
    one.set(n=2)
    goes_on.set()
    assert one.still.wait(WAIT)


def test_a_picture_is_there_before_anything_moves(shown):
    explore(
        lambda n: viz.loads("Bytes", {"now": {"/job:ps/task:0": n}}), n=Slider([1, 2], 2, "Look.")
    )._ipython_display_()
    sliders, picture = shown
    assert "application/vnd.jupyter.widget-view+json" in sliders and sliders["text/plain"] == ""
    assert "<svg" in picture["text/html"] and "ps:0" in picture["text/plain"]


def test_a_moved_slider_draws_again(shown):
    one = explore(str, object=Slider([1, 2, 4], 2, "Look."))
    one._ipython_display_()
    one.widgets["object"].value = 4  # as a hand does
    assert one.still.wait(WAIT)
    assert one.values == {"object": 4} and texts(shown) == ["2", "4"]
    assert one.code == "str(object=4)" and "str(object=4)" in one._status.value


def test_set_moves_the_slider_too_and_draws_once(shown):
    one = explore(str, object=Slider([1, 2, 4], 2, "Look."))
    one._ipython_display_()
    one.set(object=1)
    assert one.still.wait(WAIT)
    assert one.widgets["object"].value == 1 and texts(shown) == ["2", "1"]


def test_several_sliders_are_all_moved_before_one_picture_is_asked_for(shown, monkeypatch):
    asked = []
    one = explore(lambda a, b: f"{a} {b}", a=Slider([1, 2], 1, "Look."), b=Slider([1, 2], 1, "Look."))
    one._ipython_display_()
    want = one._want
    monkeypatch.setattr(one, "_want", lambda: (asked.append(one.values), want()))
    one.set(a=2, b=2)
    assert one.still.wait(WAIT)
    assert asked == [{"a": 2, "b": 2}] and texts(shown) == ["1 1", "2 2"]
    assert (one.widgets["a"].value, one.widgets["b"].value) == (2, 2)
    one.widgets["b"].value = 1  # as a hand does
    assert one.still.wait(WAIT)
    assert asked[1:] == [{"a": 2, "b": 1}] and texts(shown)[-1] == "2 1"


def test_an_error_names_the_values_that_were_drawn_not_those_of_now(shown):
    begun, goes_on = threading.Event(), threading.Event()

    def draw(n):
        if n == 1:
            begun.set()
            assert goes_on.wait(WAIT)
            raise ValueError("one")
        return str(n)

    move_on_while_it_draws(draw, begun, goes_on)
    assert texts(shown)[1:] == ["draw(n=1): ValueError: one", "2"]


def test_values_in_between_are_left_out_and_the_last_is_drawn(shown):
    begun, goes_on, seen = threading.Event(), threading.Event(), []

    def draw(n):
        seen.append(n)
        if n == 1:
            begun.set()
            assert goes_on.wait(WAIT)
        return str(n)

    one = explore(draw, n=Slider(range(6), 0, "Look."))
    one._ipython_display_()
    one.set(n=1)
    assert begun.wait(WAIT)
    for n in (2, 3, 4):
        one.set(n=n)
    goes_on.set()
    assert one.still.wait(WAIT)
    assert seen == [0, 1, 4] and texts(shown)[-1] == "4"


def test_a_picture_that_comes_bit_by_bit_is_given_up_for_a_newer_one(shown):
    begun, goes_on = threading.Event(), threading.Event()

    def draw(n):
        yield f"{n} a"
        if n == 1:
            begun.set()
            assert goes_on.wait(WAIT)
        yield f"{n} b"
        yield f"{n} c"

    move_on_while_it_draws(draw, begun, goes_on)
    assert texts(shown) == ["0 a", "0 b", "0 c", "1 a", "1 b", "2 a", "2 b", "2 c"]


def test_an_error_of_draw_is_shown_in_the_pictures_place_and_the_next_one_is_drawn(shown):
    one = explore(lambda n: str(1 // n), n=Slider([0, 1], 1, "Look."))
    one._ipython_display_()
    one.set(n=0)
    assert one.still.wait(WAIT)
    assert "n=0" in texts(shown)[-1] and "ZeroDivisionError" in texts(shown)[-1]
    one.set(n=1)
    assert one.still.wait(WAIT)
    assert texts(shown)[-1] == "1"


def test_without_a_notebook_the_picture_is_printed(capsys):
    explore(str, object=Slider([7], 7, "Look."))._ipython_display_()
    assert capsys.readouterr().out == "7\n"


def test_what_can_not_be_set_is_told():
    one = explore(str, object=Slider([1, 2], 1, "Look."))
    with pytest.raises(ValueError, match=r"object can be \[1, 2\], not 3"):
        one.set(object=3)
    with pytest.raises(KeyError, match="workers"):
        one.set(workers=1)
    with pytest.raises(ValueError, match="n begins at 3, which is not one of its values"):
        explore(str, n=Slider([1, 2], 3, "Look."))


def test_words_beside_the_sliders_are_large_on_a_projector(shown):
    one = explore(str, object=Slider([1, 2], 1, "Look."))
    one._ipython_display_()
    assert "font-size" not in one._status.value
    viz.style("projector")
    try:
        one.set(object=2)
        assert one.still.wait(WAIT) and ".widget-readout" in one._status.value and "16pt" in one._status.value
    finally:
        viz.style("default")


# ---- the pictures of all places, for a page without a kernel ----


def everywhere(bundle):
    """The data of the page's sliders, read as the front end does."""
    (written,) = re.findall(r'<script type="application/json" class="dtf-data">(.*)</script>', bundle["text/html"])
    data = json.loads(written)
    return json.loads(zlib.decompress(base64.b64decode(data))) if isinstance(data, str) else data


def load(n, task):
    if (n, task) == (3, "ps"):
        raise ValueError("no <ps>")
    yield "so far nothing"
    yield viz.loads("Bytes", {"now": {f"/job:{task}/task:0": n}})


SLIDERS = {"n": Slider([1, 2, 3], 2, "Look.", "bytes"), "task": Slider(["ps", "worker"], "ps", "Whose?")}


def test_all_pictures_are_those_that_would_be_drawn(shown):
    explore(load, **SLIDERS).everywhere()._ipython_display_()
    data = everywhere(shown[-1])
    assert shown[-1]["text/plain"] == ""
    assert data["view"] == "sliders" and data["kernel"]
    assert data["sliders"] == [
        {"name": "n", "says": "Look.", "at": 1, "texts": ["1 bytes", "2 bytes", "3 bytes"]},
        {"name": "task", "says": "Whose?", "at": 0, "texts": ["ps", "worker"]},
    ]
    places = [(n, task) for n in (1, 2, 3) for task in ("ps", "worker")]
    assert data["codes"] == [f"[*load(n={n}, task={task!r})][-1]" for n, task in places]
    for place, html in zip(places, data["pictures"], strict=True):
        if place == (3, "ps"):
            assert html == "<pre>[*load(n=3, task=&#x27;ps&#x27;)][-1]: ValueError: no &lt;ps&gt;</pre>"
        else:
            whole = [*load(*place)][-1].html
            assert whole.replace(re.search(r'<img [^>]*"dtf-still"[^>]*>', whole)[0], "") == html


def test_it_says_how_far_the_pictures_of_all_places_are(shown):
    drawn = []
    explore(
        lambda n, m: drawn.append(n) or "", n=Slider([*range(30)], 0, "Look."), m=Slider([0, 1], 0, "Look.")
    ).everywhere()._ipython_display_()
    assert drawn[1:7:2] == drawn[2:8:2], "neighbours of the last slider may share work"
    assert max(drawn[1:7]) - min(drawn[1:7]) > 15  # places from all over, whose time stands for the rest
    _sliders, _picture, *said, last = [bundle["text/plain"] for bundle in shown]
    assert [text.partition(",")[0] for text in said] == [f"{3 * i} of 60 pictures drawn" for i in range(21)]
    assert last == "" and "dtf-everywhere" in shown[-1]["text/html"]
    ends = [_so_far(done, 60, 10.0, 0)["text/plain"].partition(": ")[2] for done in (0, 15, 60)]
    assert ends == ["10 s", "10 s, about 30 s left", "10 s"]


def test_what_is_kept_is_not_drawn_again(shown, monkeypatch, tmp_path):
    kept, drawn = tmp_path / "kept", []
    monkeypatch.setenv("DTFLAB_DRAWN", str(kept))

    def load(n):
        drawn.append(n)
        return f"{drawn.count(n)}. of {n}"

    for _ in range(2):
        drawn.append("again")
        explore(load, n=Slider([1, 2, 3], 1, "Look.")).everywhere()._ipython_display_()
        *before, torn = kept.read_text().split("\n")
        kept.write_text("\n".join([*before, torn[:-1]]))  # its writer was killed
    assert drawn == ["again", 1, 1, 2, 3, "again", 1, 3]
    assert everywhere(shown[-1])["pictures"] == [f"<pre>{text}</pre>" for text in ("2. of 1", "1. of 2", "2. of 3")]
    said = [bundle["text/plain"] for bundle in shown][-3:]
    assert said[0] == "0 of 1 pictures drawn, one for each place of the sliders (2 kept from before): 0 s"
    monkeypatch.setattr(explorer, "_key", lambda code: f"another cell, {code}")
    explore(load, n=Slider([1, 2, 3], 1, "Look.")).everywhere()._ipython_display_()
    assert drawn[-4:] == [1, 1, 2, 3]


def test_the_cells_so_far_and_the_place_name_a_picture(monkeypatch):
    cells = ["", "a = 1"]
    monkeypatch.setattr(
        explorer, "get_ipython", lambda: SimpleNamespace(history_manager=SimpleNamespace(input_hist_raw=cells))
    )
    names = [explorer._key("draw(1)"), explorer._key("draw(1)"), explorer._key("draw(2)")]
    cells[1] = "a = 2"
    names.append(explorer._key("draw(1)"))
    assert names[0] == names[1] and len({*names}) == 3


def test_only_who_asks_gets_all_pictures(shown, monkeypatch):
    explore(load, **SLIDERS)._ipython_display_()
    assert "dtf-everywhere" not in shown[-1]["text/html"]
    monkeypatch.setenv("DTFLAB_EVERYWHERE", "1")
    explore(load, **SLIDERS)._ipython_display_()
    assert "dtf-everywhere" in shown[-1]["text/html"]


def test_the_sliders_of_a_page_find_the_picture(shown):
    one = explore(load, **SLIDERS)
    one._ipython_display_()
    one.set(n=1)
    assert one.still.wait(WAIT)
    assert all(bundle["text/html"].startswith('<div class="dtf-explored">') for bundle in shown[1:])
