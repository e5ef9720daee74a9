"""The calls of steps as a sequence chart: order, columns, long names, what is left out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import dtflab as tf
from dtflab.viz.drawing.svg import text_width
from tests.viz.watched import PS, SVG, W0, W1, a_step, call, fits, live, seen_of, texts


def test_a_step_is_drawn_from_its_request_to_its_answer():
    picture = tf.viz.wire(seen_of(a_step(7, 0.0)))
    words = texts(picture)
    assert "a call; × 2: two in a row" in words, "why the calls of some are one arrow, and those of others not"
    order = [word for word in words if word.split("  ")[0] in ("RunStep", "RunGraph", "RecvTensor", "RunStep ended")]
    assert order[0].startswith("RunStep  loss:0") and order[-1].startswith("RunStep ended")
    assert "RecvTensor  loss" in words and "tensor loss: worker:1 → worker:0  400 B" in words
    assert "3 calls between 1 client and 2 tasks, 404 B of tensors" in picture.sentence
    assert fits(picture)


def test_bytes_are_counted_once_in_tables_text_arrows_and_summary():
    picture = tf.viz.wire(seen_of([*a_step(7, 0.0, (W1, PS)), *a_step(8, 10.0)]))
    kinds, each = (table[2] for table in picture.tables)
    assert kinds == [
        ["RunStep", "client", "worker:0", 2, "8"],
        ["RunGraph", "worker:0", "worker:1", 2, "0"],
        ["RunGraph", "worker:0", "ps:0", 1, "0"],
        ["RecvTensor", "worker:0", "worker:1", 2, "800"],
        ["RecvTensor", "worker:0", "ps:0", 1, "400"],
    ]
    assert [(row[2], row[4], row[5]) for row in each if row[5] != "0"] == [
        ("RunStep", "worker:0", "4"), ("RecvTensor", "worker:1", "400"), ("RecvTensor", "ps:0", "400"),
        ("RunStep", "worker:0", "4"), ("RecvTensor", "worker:1", "400"),
    ]  # fmt: skip
    assert [line.split()[0::4] for line in str(picture).splitlines()[2:]] == [[row[0], row[4]] for row in kinds]
    assert "8 calls between 1 client and 3 tasks, 1.2 kB of tensors" in texts(picture)
    sizes = [word.rpartition("  ")[2] for word in texts(picture) if word.endswith(" B")]
    assert sizes == ["800 B", "4 B", "400 B", "4 B"]  # answers; the first carries two tensors


def test_a_pushed_tensor_is_one_arrow_and_counts_like_a_pulled_one():
    pulled = a_step(7, 0.0, (W1, PS))
    pushed = [each._replace(pushed=each.method == "RecvTensor") for each in pulled]
    by_kind, listed = (tf.viz.wire(seen_of(pushed)).tables[i][2] for i in (0, 1))
    assert by_kind == tf.viz.wire(seen_of(pulled)).tables[0][2]
    names = ["RunStep", "RunGraph", "RunGraph", "RecvTensor (pushed)", "RecvTensor (pushed)"]
    assert [row[2] for row in listed] == names
    picture = tf.viz.wire(seen_of(pushed))
    assert (
        "pushed loss, loss: worker:1, ps:0 → worker:0  800 B" in texts(picture)
        and "RecvTensor (pushed) loss" in picture.svg
    )
    assert not [word for word in texts(picture) if word.startswith("RecvTensor  ")]  # nobody asked
    assert "2 RecvTensor" in picture.sentence and fits(picture)
    assert "804 B of tensors (2 of them pushed)" in picture.sentence
    assert "pushed" not in tf.viz.wire(seen_of(pulled)).sentence


def test_a_dot_marks_each_task_between_the_ends_that_an_arrow_starts_from():
    pushed = [call(0.0, "RecvTensor", PS, task, 1.0, 100)._replace(pushed=True) for task in (W0, W1)]
    dots = ET.fromstring(tf.viz.wire(pushed).svg).findall(f".//{SVG}circle")
    assert len(dots) == 1 and "pushed × 2  200 B" in texts(tf.viz.wire(pushed))
    assert not ET.fromstring(tf.viz.wire(pushed[:1]).svg).findall(f".//{SVG}circle")


def test_many_pushed_tensors_are_an_arrow_apart_from_pulled_ones():
    many = [call(float(n), "RecvTensor", W0, PS, n + 0.5, 100)._replace(pushed=n < 5) for n in range(10)]
    words = texts(tf.viz.wire(many))
    assert "pushed × 5  500 B" in words and "pushed × 10  1.0 kB" not in words


def test_requests_and_answers_share_the_bytes_of_a_call():
    assert "RunGraph  52 B" in texts(tf.viz.wire([call(0.0, "RunGraph", W0, PS, nbytes=52)._replace(sent=52)]))
    fed = call(0.0, "RunStep", "client", W0, 1.0, 24, "y:0")._replace(sent=16)
    words = texts(tf.viz.wire([fed]))
    assert "RunStep  y:0  16 B" in words and "RunStep ended  8 B" in words


def test_a_dot_says_where_an_arrow_to_both_sides_begins():
    both = [call(0.0, "RunGraph", W1, PS), call(0.0, "RunGraph", W1, W0)]
    assert "<circle" in tf.viz.wire(both).svg
    assert "<circle" not in tf.viz.wire(both[:1]).svg


def test_one_step_of_several_is_chosen_by_its_number():
    calls = [*a_step(7, 0.0), *a_step(9, 10.0, (W1, PS)), *a_step(8, 20.0)]
    for number, nbytes in ((1, "404"), (2, "804"), (-2, "804"), (-1, "404")):
        assert nbytes in tf.viz.wire(calls, number).sentence
    with pytest.raises(ValueError, match="no step 4: 3 steps were watched, counted from 1"):
        tf.viz.wire(calls, 4)
    with pytest.raises(ValueError, match="Nothing was called"):
        tf.viz.wire([])


def test_graphs_are_registered_within_the_first_step():
    calls = [call(0.5, "RegisterGraph", W0, W1, step=0), *a_step(7, 0.0), *a_step(8, 10.0)]
    assert "RegisterGraph" in str(tf.viz.wire(calls, 1)) and "RegisterGraph" not in str(tf.viz.wire(calls, 2))


@pytest.mark.parametrize("look", ["default", "projector"])
def test_a_long_name_on_an_arrow_stays_between_its_columns(look):
    name = "gradients/layer1/weights/MatMul_grad/tuple/control_dependency"
    calls = [
        call(0.0, "RunStep", "client", W0, 4.0, detail="loss:0"),
        call(1.0, "RecvTensor", W1, PS, 2.0, 400, f"{PS};1;{W1};edge_1_{name};0:0"),
    ]
    tf.viz.style(look)
    try:
        picture = tf.viz.wire(calls)
    finally:
        tf.viz.style("default")
    root = ET.fromstring(picture.svg.encode())
    columns = sorted({float(path.get("d")[1:].split()[0]) for path in root.iter(f"{SVG}path")
                      if path.get("class") == "life"})  # fmt: skip
    long = [text for text in root.iter(f"{SVG}text") if re.search("(^|tensor |  )(gr.*)?…", text.text)]
    assert [text.text.partition("  ")[0] == "RecvTensor" for text in long] == [True, False]
    for text in long:
        assert columns[2] < float(text.get("x")) and float(text.get("x")) + text_width(text.text, 11) < columns[3]
    assert any(text.text.endswith("  400 B") for text in long)
    assert f"RecvTensor {name}, worker:1 → ps:0" in picture.svg and name in [row[7] for row in picture.tables[1][2]]
    assert fits(picture)


def test_tensors_of_an_arrow_are_cut_one_by_one_where_they_are_the_same():
    ends = [f"gradients/tower_0/layer_{i}/MatMul_grad/tuple/control_dependency" for i in range(3)]
    calls = [call(0.0, "RunStep", "client", W0, 4.0, detail="loss:0")]
    calls += [call(1.0, "RecvTensor", W1, PS, 2.0, 400, f"{PS};1;{W1};edge_1_{name};0:0") for name in ends]
    picture = tf.viz.wire(calls, width=1200)
    asked, answered = (text for text in texts(picture) if re.match("RecvTensor  |tensors ", text))
    assert [re.findall(r"_(\d)/", text) for text in (asked, answered)] == [["0", "1", "2"]] * 2
    assert fits(picture)


def test_errors_stand_on_the_answer():
    words = texts(tf.viz.wire([call(0.0, "RunStep", "client", W0, 1.0, detail="train", error="AbortedError")]))
    assert "AbortedError: RunStep ended" in words


def test_many_calls_and_tasks_are_left_out_and_counted():
    tasks = [f"/job:worker/replica:0/task:{n}" for n in range(60)]
    picture = tf.viz.wire([one for step in range(1, 61) for one in a_step(step, step * 10.0, tasks[1:])])
    assert "(the first 60 of " in picture.sentence and "that call most have columns of their own" in picture.sentence
    assert len(picture.tables[1][2]) == 1000 and "first 1,000 of 7,140" in picture.tables[1][0]
    assert sum(row[3] for row in picture.tables[0][2]) == 60 * (59 * 2 + 1)
    assert fits(picture) and len(picture.svg) < 200_000


def test_long_names_do_not_leave_the_picture():
    name = "a/very/long/name/of/a/tensor/" * 8
    client = "a thread with quite a long name that nobody will ever read"
    picture = tf.viz.wire([call(0.0, "RunStep", client, W0, 1.0, detail=name), *a_step(5, 2.0)])
    assert fits(picture)


def test_in_a_live_page_each_arrow_has_its_way_a_sentence_and_a_card():
    picture = tf.viz.wire(seen_of(a_step(7, 0.0, (W1, PS))))
    messages = live(picture)["messages"]
    assert len(messages) == picture.svg.count('class="message"') == 5
    assert [message["says"] for message in messages] == [
        "At 0, client asks worker:0: RunStep loss:0.",
        "At 1.00 s, worker:0 asks worker:1, ps:0: RunGraph, 2 calls.",
        "At 2.00 s, worker:0 asks worker:1, ps:0: RecvTensor loss, 2 calls.",
        "At 3.00 s, worker:1, ps:0 send loss to worker:0, 800 B, 1.00 s after the request.",
        "At 4.00 s, worker:0 answers client after 4.00 s: RunStep loss:0, 4 B.",
    ]
    there, back = messages[2], messages[3]
    assert len(there["ways"]) == 2 and back["ways"] == [way[::-1] for way in there["ways"]]
    assert back["card"][1] == "RecvTensor loss\n  worker:1 → worker:0, 400 B, 2.00 s to 3.00 s"


def test_a_pushed_tensor_says_so_in_its_sentence():
    pushed = call(0.0, "RecvTensor", PS, W0, 1.0, 100, f"{W0};1;{PS};edge_1_w;0:0")._replace(pushed=True)
    (message,) = live(tf.viz.wire([pushed]))["messages"]
    assert message["says"] == "At 0, worker:0 pushes to ps:0: w, 100 B."


@pytest.mark.parametrize("draw", [tf.viz.wire, tf.viz.clients])
def test_what_was_not_watched_gets_the_way_to_watch_it(draw):
    with pytest.raises(
        TypeError, match=r"needed, not Tensor: run something in the block `with tf\.watch\(\) as seen:`"
    ):
        draw(tf.constant(1.0))
