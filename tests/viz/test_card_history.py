"""The picture of one card over time: bands as high as what was held, refusals as high as what was wanted, in order."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import dtflab as tf
from dtflab.base.events import CardEvent
from dtflab.machine import hosts, registry
from dtflab.machine.smi import CardState, HostState, Process, Smi
from tests.viz.texts import clipped, overlapping

MIB = 1 << 20
PROGRAM = "python program.py"


def event(at, pid, what, before, held, asked=0, free=0, card=0, host="here"):
    return CardEvent(1e9 + at, host, card, pid, PROGRAM, what, before * MIB, held * MIB, asked * MIB, free * MIB)


def state(*events, memory=1000, driver=10, held=None, moment=2e9):
    """The answer of `smi` after these events; `held` is MiB by process, by default what the events say."""
    held = held if held is not None else {e.pid: e.held // MIB for e in events if e.card == 0 and e.host == "here"}
    processes = [Process(0, pid, PROGRAM, size * MIB, 0) for pid, size in held.items() if size]
    used = (driver + sum(held.values())) * MIB
    card = [CardState(i, "K40", "0000:00:03.0", 235, memory * MIB, used, 0.0) for i in range(2)]
    return Smi([HostState("here", card, processes)], moment, [], events)


THREE = (
    event(0.0, 11, "takes", 0, 400), event(0.5, 12, "takes", 0, 400), event(60.0, 13, "refused", 0, 0, 400, 190),
    event(61.0, 11, "ends", 400, 0),
)  # fmt: skip


def shapes(picture, class_, name="rect"):
    root = ElementTree.fromstring(picture.svg.split("\n", 1)[1])
    return [r for r in root.iter(f"{{http://www.w3.org/2000/svg}}{name}") if r.get("class") == class_]


def numbers(rect):
    return [float(rect.get(key)) for key in ("x", "y", "width", "height")]


def test_bands_are_as_high_as_what_is_held_and_lie_upon_each_other():
    picture = tf.viz.card_history(state(*THREE))
    first, second, lower = (numbers(rect) for rect in shapes(picture, "held"))
    assert first[3] == pytest.approx(second[3], abs=0.02) and second[3] == lower[3]
    assert second[1] + second[3] == pytest.approx(first[1], abs=0.02), "the second lies on the first"
    assert lower[1] + lower[3] == pytest.approx(first[1] + first[3], abs=0.02), "and comes down when that ends"
    assert first[0] < second[0] < lower[0] == pytest.approx(first[0] + first[2], abs=0.02)
    (limit,) = shapes(picture, "limit", "path")
    y = float(re.search(r"M\S+ ([\d.]+)H", limit.get("d"))[1])
    assert (first[1] + first[3] - y) / first[3] == pytest.approx(1000 / 400, abs=0.01)


def test_what_was_wanted_sticks_out_above_the_capacity():
    picture = tf.viz.card_history(state(*THREE))
    (frame,) = shapes(picture, "asked", "path")
    top, bottom = map(float, re.match(r"M\S+ ([\d.]+)V([\d.]+)H", frame.get("d")).groups())
    band = numbers(shapes(picture, "held")[1])
    assert bottom == pytest.approx(band[1], abs=0.02) and bottom - top == pytest.approx(band[3], abs=0.02)
    assert frame.get("d").endswith("Z") and frame[0].text == "C is refused: wants 400 MiB, 190 MiB are free"
    assert len(shapes(picture, "cross", "path")) == 1
    huge = tf.viz.card_history(state(event(0, 1, "refused", 0, 0, 9000, 990)))
    (frame,) = shapes(huge, "asked", "path")
    assert not frame.get("d").endswith("Z"), "open above: it is higher than the picture"


def test_the_list_the_table_the_text_and_the_sentence_say_the_same():
    picture = tf.viz.card_history(state(*THREE))
    events = ["A takes 400 MiB", "B takes 400 MiB", "C is refused: wants 400 MiB, 190 MiB are free",
            "A ends, gives back 400 MiB"]  # fmt: skip
    ((title, heads, rows),) = picture.tables
    assert title == "Memory of GPU 0 over time"
    assert heads == ("", "at, s", "event", f"A: {PROGRAM} (11)", f"B: {PROGRAM} (12)", f"C: {PROGRAM} (13)", "free")
    assert [row[2] for row in rows] == events and [row[1] for row in rows] == ["0.000", "0.500", "60.000", "61.000"]
    assert rows[2][3:] == ["400 MiB", "400 MiB", "0 MiB", "190 MiB"]
    assert rows[3][3:] == ["0 MiB", "400 MiB", "0 MiB", "590 MiB"]
    for words in events:
        assert f">{words}<" in picture.svg and words in picture.text and words in picture.sentence
    assert "on here: 3 programs, 4 events in 61.0 s" in picture.sentence
    assert ">+500 ms<" in picture.svg and ">+60.0 s<" in picture.svg


def test_a_program_that_asks_again_and_again_is_refused_once():
    asks = [event(1 + i / 100, 2, "refused", 100, 100, size, 50) for i, size in enumerate((500, 450, 400))]
    picture = tf.viz.card_history(state(event(0, 2, "takes", 0, 100), *asks, event(2, 2, "takes", 100, 130)))
    assert [row[2] for row in picture.tables[0][2]] == [
        "A takes 100 MiB",
        "A is refused: wants 500 MiB, 50 MiB are free; then 2 smaller pieces",
        "A takes 30 MiB more, holds 130 MiB",
    ]


def test_letters_come_in_the_order_of_arrival_though_process_numbers_begin_again():
    events = [
        event(1, 32_000, "takes", 0, 400),
        event(2, 500, "takes", 0, 300),
        event(3, 700, "refused", 0, 0, 400, 290),
    ]
    found = state(*events)
    assert "C is refused" in tf.viz.card_history(found).text
    text = tf.viz.cards(found).text
    assert 0 < text.index("(32000)") < text.index("(500)")


def test_who_was_there_before_the_first_event_is_drawn_from_the_left():
    before = state(event(0, 1, "takes", 0, 100), moment=1e9 + 1)
    events = *before.events, event(2, 2, "takes", 0, 50), event(3, 3, "ends", 200, 0)
    picture = tf.viz.card_history(state(*events, held={1: 100, 2: 50}), since=before)
    first, second, third, lifted = (numbers(rect) for rect in shapes(picture, "held"))
    assert first[0] == third[0] < second[0] == lifted[0]
    assert [row[2] for row in picture.tables[0][2]] == ["B takes 50 MiB", "C ends, gives back 200 MiB"]
    assert picture.tables[0][2][0][3:] == ["100 MiB", "50 MiB", "200 MiB", "640 MiB"]


def test_of_many_events_the_last_are_drawn():
    events = [event(i, 100 + i, "takes", 0, 10) for i in range(30)]
    picture = tf.viz.card_history(state(*events))
    assert len(picture.tables[0][2]) == 20 and picture.tables[0][2][0][2] == "K takes 10 MiB"
    assert numbers(shapes(picture, "held")[0])[3] == pytest.approx(numbers(shapes(picture, "held")[-1])[3], abs=0.02)


def test_a_long_line_of_the_list_goes_on_below():
    asks = [event(1 + i / 100, 2, "refused", 100, 100, size, 50) for i, size in enumerate((5000, 4500, 4000))]
    wide, narrow = (tf.viz.card_history(state(*asks), width=width) for width in (828, 400))
    words = "A is refused: wants 5,000 MiB, 50 MiB are free; then 2 smaller pieces"
    assert f">{words}<" in wide.svg and narrow._size[1] == wide._size[1] + 18
    lines = re.findall(r'<text[^>]*class="b">([^<]*)</text>', narrow.svg)[-2:]
    assert " ".join(lines) == words and clipped(narrow.svg) == []


@pytest.mark.parametrize("style", ["default", "projector"])
def test_nothing_is_clipped_whatever_happens(style):
    crowd = [event(i / 7, 10000 + i, "takes", 0, 60) for i in range(15)]
    asks = [event(9, 20000, "refused", 0, 0, 99000, 90)]
    long = [CardEvent(1e9, "here", 0, 1, "/job:a_long_name/task:0 of a_cluster_with_a_long_name", "takes", 0, MIB)]
    tf.viz.style(style)
    try:
        for events in (THREE, crowd + asks, asks, long, [event(0, 1, "takes", 0, 990)]):
            svg = tf.viz.card_history(state(*events)).svg
            assert clipped(svg) == overlapping(svg) == []
    finally:
        tf.viz.style("default")


def test_what_cannot_be_drawn_is_told():
    with pytest.raises(ValueError, match=r"here has no card 2, but 2 cards, counted from 0"):
        tf.viz.card_history(state(*THREE), 2)
    with pytest.raises(ValueError, match=r"Nothing happened to card 1 of here"):
        tf.viz.card_history(state(*THREE), 1)
    with pytest.raises(ValueError, match="Nothing happened to card 0"):
        tf.viz.card_history(state(*THREE), since=state(moment=3e9))
    with pytest.raises(ValueError, match="No host named 'there'"):
        tf.viz.card_history(state(*THREE), host="there")
    with pytest.raises(ValueError, match="No GPUs"):
        tf.viz.card_history(Smi([], 0.0, []))


def test_it_draws_what_programs_did(tmp_path, monkeypatch):
    monkeypatch.setenv("DTFLAB_REGISTRY", str(tmp_path / "registry"))
    try:
        hosts.simulate_gpus(1, memory="256MiB")
        claims = {name: hosts.visible_claims("localhost", name, None)[0] for name in "ab"}
        assert claims["a"].grab(100 * MIB) and not claims["b"].grab(200 * MIB)
        rows = tf.viz.card_history(tf.smi()).tables[0][2]
    finally:
        hosts.simulate_gpus(None)
        registry.registry().leave()
    # A context of 37.9 MiB comes with the first piece; 11 MiB are the driver's.
    assert [row[2] for row in rows] == ["A takes 138 MiB", "B is refused: wants 238 MiB, 107 MiB are free"]
