"""Clients, tasks and what they share."""

from __future__ import annotations

import re

import pytest

import dtflab as tf
from dtflab.base.events import Use
from dtflab.viz.drawing.palette import GREY
from dtflab.viz.participants import party
from tests.viz.texts import clipped, overlapping
from tests.viz.watched import PS, W0, W1, call, event, fits, seen_of, texts


def test_clients_tasks_and_what_they_share():
    device = f"{PS}/device:CPU:0"
    calls = [call(0.0, "RunStep", "A", W0), call(0.0, "RunStep", "B", W1)]
    uses = [Use("A", device, "", "x"), Use("B", device, "problem", "x")]
    events = [event(0.0, "put", 1, 1, client="A"), event(1.0, "take", 1, 0, client="B")]
    picture = tf.viz.clients(seen_of(calls, events, uses))
    rows = [row[:3] for row in picture.tables[0][2]]
    assert rows == [
        ["A", "has a session at", "worker:0"], ["B", "has a session at", "worker:1"], ["A", "uses", "x"],
        ["B", "uses", "problem/x"], ["A", "puts into", "q"], ["B", "takes from", "q"],
    ]  # fmt: skip
    assert "2 clients, 3 tasks, 2 variables, 1 queue" in picture.sentence
    assert {"client A", "client B", "x", "problem/x", "A, B"} <= set(texts(picture)) and fits(picture)


def test_a_line_is_of_its_client_its_thing_and_the_task_of_that():
    device = f"{PS}/device:CPU:0"
    calls = [call(0.0, "RunStep", "A", W0)]
    drawn = tf.viz.clients(seen_of(calls, [event(0.0, "put", 1, 1, client="A")], [Use("A", device, "", "x")])).svg
    keys = re.findall(r'data-key="(\S+)"', drawn)
    of = [set(each.split()) for each in re.findall(r'data-of="([^"]+)"', drawn)]
    ps, one, other, worker, client = keys
    assert of[0] == {client, worker} and sorted(of[1:], key=sorted) == sorted(
        [{client, one, ps}, {client, other, ps}], key=sorted
    )


def test_clients_are_grey_with_their_letters_at_all_that_they_reach():
    calls = [call(0.0, "RunStep", "A", W0), call(0.0, "RunStep", "B", W0), call(0.0, "RunStep", "C", W1)]
    uses = [Use("A", f"{PS}/device:CPU:0", "", "x"), Use("C", f"{PS}/device:CPU:0", "", "y")]
    picture = tf.viz.clients(seen_of(calls, (), uses))
    words = texts(picture)
    badges = {party(task).colour.fill for task in (PS, W0, W1)}
    seen = set(re.findall(r"#[0-9A-Fa-f]{6}", picture.svg.partition("</style>")[2]))
    assert badges < seen and {colour.upper() for colour in seen - badges} <= {
        c.upper() for c in (GREY.fill, GREY.line, GREY.ink)
    } | {"#111111"}
    assert [words[words.index(name) + 1] for name in ("worker:0", "worker:1", "x", "y")] == ["A, B", "C", "A", "C"]
    assert fits(picture)


def test_clients_with_longer_names_have_numbers_that_are_nobodys_name():
    names = ["C1", "train", "client /job:worker/task:0", "B"]
    calls = [call(float(n), "RunStep", name, W0) for n, name in enumerate(names)]
    picture = tf.viz.clients(seen_of(calls, (), [Use("C1", f"{PS}/device:CPU:0", "", "x")]))
    words = texts(picture)
    badges = {word: words[words.index(word) - 1] for word in ("client C1", "client train", "client of worker:0")}
    assert badges == {"client C1": "C1", "client train": "C3", "client of worker:0": "C2"} and fits(picture)
    assert words[words.index("client B") - 1] == "B"


@pytest.mark.parametrize("style", ["default", "projector"])
def test_long_names_stay_clear_of_the_letters_beside_them(style):
    device = f"{PS}/device:CPU:0"
    names = [f"client /job:worker/task:{n}" for n in range(3)]
    calls = [call(0.0, "RunStep", name, W0) for name in names]
    uses = [Use(name, device, "", f"a_long_name_of_a_layer/{n}/kernel/read") for n, name in enumerate(names)]
    puts = [event(0.0, "put", 1, 1, client=name, queue=f"a_long_name_of_a_queue_{name[-1]}") for name in names]
    tf.viz.style(style)
    try:
        svg = tf.viz.clients(seen_of(calls, puts, uses)).svg
    finally:
        tf.viz.style("default")
    assert overlapping(svg) == clipped(svg) == []
    words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert ("client of worker:0" in words) if style == "default" else ({"client of", "worker:0"} <= set(words))


def test_the_legend_of_clients_explains_what_is_there():
    calls = [call(0.0, "RunStep", "A", W0)]
    uses, puts = [Use("A", f"{PS}/device:CPU:0", "", "x")], [event(0.0, "put", 1, 1, client="A")]
    all_ways = {"session, at this master", "uses a variable", "puts into a queue", "takes from a queue"}
    for seen, drawn in ((seen_of(calls, (), uses), 2), (seen_of(calls, puts, uses), 3), (seen_of(calls), 1)):
        assert len(all_ways & set(texts(tf.viz.clients(seen)))) == drawn
    assert "puts into a queue" not in texts(tf.viz.clients(seen_of(calls, (), uses)))


def test_clients_that_do_the_same_are_one_and_so_are_things_used_alike():
    device = f"{PS}/device:CPU:0"
    clients = [f"client /job:worker/task:{n}" for n in range(60)]
    calls = [call(0.0, "RunStep", client, f"/job:worker/replica:0/task:{n}") for n, client in enumerate(clients)]
    uses = [Use(client, device, "", f"layer{n}/weights") for client in clients for n in range(20)]
    picture = tf.viz.clients(seen_of(calls, (), uses))
    words = texts(picture)
    assert "60 clients that do the same" in " ".join(words) and "20 variables " in words
    assert "worker:0 and 59 more, all empty" in words
    assert "60 clients, 61 tasks, 20 variables" in picture.sentence
    assert len(picture.tables[0][2]) == 60 + 1200 and fits(picture)


def test_many_different_clients_are_left_out_and_counted():
    calls = [call(0.0, "RunStep", f"c{n}", W0) for n in range(20)]
    uses = [Use(f"c{n}", f"{PS}/device:CPU:0", "", f"v{n}") for n in range(20)]
    picture = tf.viz.clients(seen_of(calls, (), uses))
    assert "8 clients not drawn" in " ".join(texts(picture)) and "and 12 more" in texts(picture) and fits(picture)
    with pytest.raises(ValueError, match="No client asked"):
        tf.viz.clients(seen_of())
