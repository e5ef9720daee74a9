"""The picture of who holds which card: bytes as lengths, programs told apart, every number as `smi` has it."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import pytest

import dtflab as tf
from dtflab.machine.smi import CardState, HostState, Process, Smi
from tests.viz.texts import clipped, overlapping

MIB = 1 << 20


def card(index, used, memory=1000):
    return CardState(index, "K40", "0000:00:03.0", 235, memory * MIB, used * MIB, 0.0)


def state(processes=(), *hosts):
    used = [sum(p.held for p in processes if p.gpu == index) // MIB for index in range(2)]
    return Smi([HostState("here", [card(0, used[0]), card(1, used[1])], list(processes)), *hosts], 0.0, [])


BOTH = [
    Process(0, 11, "python a.py", 400 * MIB, 100 * MIB),
    Process(0, 12, "python b.py", 250 * MIB, 250 * MIB),
    Process(1, 12, "python b.py", 500 * MIB, 0),
]


def bars(picture, class_):
    """Widths and x of the rectangles of that class."""
    root = ElementTree.fromstring(picture.svg.split("\n", 1)[1])
    found = root.iter("{http://www.w3.org/2000/svg}rect")
    return [(float(r.get("x")), float(r.get("width"))) for r in found if r.get("class") == class_]


def test_pieces_are_as_long_as_what_is_held_and_fill_the_card():
    picture = tf.viz.cards(state(BOTH))
    held, free = bars(picture, "held"), bars(picture, "free")
    whole = held[0][1] / 0.4
    assert [width / whole for _, width in held] == pytest.approx([0.4, 0.25, 0.5], abs=2e-3)
    assert [width / whole for _, width in free] == pytest.approx([0.35, 0.5], abs=2e-3)
    assert held[1][0] == pytest.approx(held[0][0] + held[0][1], abs=0.2)
    assert free[0][0] + free[0][1] <= picture._size[0] + 0.2


@pytest.mark.parametrize("style", ["default", "projector"])
def test_a_long_name_of_a_host_has_a_line_of_its_own(style):
    long = dataclasses.replace(
        state(BOTH).hosts[0], name="worker-0.cluster1 of process 30616, on the machine of a class"
    )
    tf.viz.style(style)
    try:
        svg = tf.viz.cards(Smi([long], 0.0, [])).svg
    finally:
        tf.viz.style("default")
    assert overlapping(svg) == clipped(svg) == []


def test_the_table_the_text_and_the_sentence_say_the_same():
    picture = tf.viz.cards(state(BOTH))
    ((_, _, rows),) = picture.tables
    assert rows[0] == [0, "python a.py (11)", "400 MiB", "100 MiB"]
    assert rows[2] == [0, "free", "350 MiB", ""]
    assert "card 1: python b.py (12) 500 MiB, free 500 MiB" in picture.sentence
    assert re.search(r"1 +python b.py \(12\) +500 MiB +0 B", picture.text)


def test_one_program_looks_the_same_on_every_card_and_two_tasks_of_a_process_do_not():
    svg = tf.viz.cards(state(BOTH)).svg
    assert svg.count("B  250 MiB") == svg.count("B  500 MiB") == svg.count("A  400 MiB") == 1
    tasks = [Process(0, 7, f"/job:worker/task:{task}", 100 * MIB, 0) for task in range(2)]
    svg = tf.viz.cards(state(tasks)).svg
    assert "A  100 MiB" in svg and "B  100 MiB" in svg


def test_what_is_held_is_rounded_up_and_what_is_free_down():
    picture = tf.viz.cards(state([Process(0, 1, "python", 10 * MIB + 1, 0)]))
    assert picture.tables[0][2][0][2] == "11 MiB"


def test_a_narrow_piece_keeps_the_part_of_its_words_that_has_room():
    svg = tf.viz.cards(state([Process(0, 1, "python", 40 * MIB, 0), Process(0, 2, "python", 880 * MIB, 0)])).svg
    texts = re.findall(r"<text[^>]*mid halo[^>]*>([^<]*)</text>", svg)
    assert texts[:2] == ["A", "B  880 MiB"] and overlapping(svg) == clipped(svg) == []
    assert svg.count(">free 80 MiB</text>") == 1  # behind the bar: the word is not lost


def test_hosts():
    there = HostState("there", [card(0, 0)], [])
    assert tf.viz.cards(state((), there)).sentence.startswith("Memory of the GPUs of here.")
    assert tf.viz.cards(state((), there), "there").sentence.startswith("Memory of the GPUs of there.")
    with pytest.raises(ValueError, match=r"No host named .nowhere. has GPUs\. Hosts: here, there\."):
        tf.viz.cards(state((), there), "nowhere")
    for state_of_others in (Smi([], 0.0, []), Smi([HostState("there", [card(0, 0)], ours=False)], 0.0, [])):
        with pytest.raises(ValueError, match="No GPUs"):
            tf.viz.cards(state_of_others)


def test_it_draws_what_smi_sees():
    tf.simulate_gpus(1, memory="256MiB")
    with tf.Graph().as_default(), tf.device("/gpu:0"), tf.Session() as sess:
        sess.run(tf.ones([1024, 1024]) * 2.0)
        seen = tf.smi()
        ((_, _, rows),) = tf.viz.cards(seen, seen.hosts[0].name).tables
    ours = seen.hosts[0].processes[0]
    assert rows[0][2] == f"{-(-ours.held // MIB)} MiB"
