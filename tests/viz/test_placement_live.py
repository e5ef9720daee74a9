"""Data of a live picture of placement: every scope laid out once, closed; every tensor on its way through them."""

from __future__ import annotations

import itertools
import json
import re

import pytest

import dtflab as tf
from dtflab import viz
from dtflab.graph.node import Node
from dtflab.viz.data.graph_ops import edges_of, ops_of
from dtflab.viz.layout.nested import Link, inside
from dtflab.viz.layout.shapes import OUT, Box
from tests.viz.programs import PS, mlp, worker

NODES = mlp((64, 80, 40, 10)) + mlp(task=1, prefix="b/")


@pytest.fixture(scope="module")
def data():
    return viz.placement(NODES, max_boxes=9)._live()


def test_a_large_graph_begins_with_its_outermost_scopes_closed_and_a_small_one_open():
    def boxes(picture):
        return len(re.findall(r'class="box"', picture.svg))

    picture = viz.placement(NODES)
    assert len(NODES) > 40 and 4 <= boxes(picture) <= 12
    tree = picture._live()["tree"]
    assert tree["open"] and leaves(tree) == len(NODES), "the rest is there to be opened"
    assert {scope["open"] for scope in scopes(tree)} == {True, False}
    assert boxes(viz.placement(NODES, max_boxes=30)) > 12
    few = [node for node in mlp() if not node.name.startswith("gradients")]
    assert 12 < len(few) <= 40 and boxes(viz.placement(few)) == len(few)


@pytest.mark.parametrize("act", [None, "relu"])  # 181 ops, and 211
def test_thirty_layers_in_a_row_are_a_few_boxes_and_the_same_in_the_still_and_live(act):
    with tf.Graph().as_default() as graph:
        y = tf.placeholder(tf.float32, [None, 8], name="x")
        for i in range(30):
            y = tf.layers.dense(y, 8, activation=act and tf.nn.relu, name=f"layer{i}")
        picture = viz.placement(graph)
    boxes = ["layer0 … 4", "layer5 … 9", "layer10 … 14", "layer15 … 19", "layer20 … 24", "layer25 … 29"]
    assert [text for text in re.findall(r"<text[^>]*>([^<]*)<", picture.svg) if text[:5] == "layer"] == boxes
    tree = picture._live()["tree"]
    assert [child["label"] for child in tree["children"] if child] == boxes and not any(
        child["open"] for child in tree["children"] if child
    )
    assert [child["label"] for child in tree["children"][1]["children"]] == [f"layer{i}" for i in range(5)]


@pytest.mark.parametrize("name", ["a", "just/one/op"])
def test_a_graph_of_one_op_is_a_box(name):
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name=name)
    written = viz.placement(graph)._live()
    assert written["tree"]["children"] == [0] and written["ops"]["name"] == [name]


def chain(count, *acts):
    with tf.Graph().as_default() as graph:
        y, w = tf.placeholder(tf.float32, [8, 8], name="x"), tf.get_variable("w", [8, 8])
        for _ in range(count):
            y = tf.matmul(y, w)
            for act in acts:
                y = act(y)
    return viz.placement(graph)


def test_a_loop_without_scopes_is_a_few_boxes_too_each_with_whole_rounds():
    tree = chain(24, tf.nn.relu)._live()["tree"]
    boxes = [child for child in tree["children"] if child][-6:]
    names = ["MatMul … Relu_3", *(f"MatMul_{i} … Relu_{i + 3}" for i in range(4, 24, 4))]
    assert [box["label"] for box in boxes] == names and len(tree["children"]) < 12
    assert [box["children"] for box in boxes] == [[0] * 8] * 6, "ops"


@pytest.mark.parametrize("acts", [[], [tf.nn.relu, tf.nn.tanh]])
def test_more_rows_than_a_page_has_are_bundled_whatever_the_still_shows(acts):
    tree = chain(24 // (1 + len(acts)), *acts)._live()["tree"]
    assert 24 < leaves(tree) <= 40 and len(tree["children"]) < 19


def scopes(tree):
    yield tree
    for child in tree["children"]:
        if child:
            yield from scopes(child)


def leaves(tree):
    return sum(leaves(child) if child else 1 for child in tree["children"])


def paths(tree, first=0):
    """For each op, by number, the scopes that it is in, with its place in each."""
    found = []
    for i, child in enumerate(tree["children"]):
        inner = paths(child) if child else [[]]
        found += [[(tree, i), *path] for path in inner]
    return found


def test_boxes_of_a_row_are_apart_and_lines_pass_between_them(data):
    for scope in scopes(data["tree"]):
        widths = iter_widths(data, scope)
        rows = {}
        for row, left, width in zip(scope["rows"], scope["lefts"], widths, strict=True):
            rows.setdefault(row, []).append((left, left + width))
        for origin, _, _, lanes, _ in scope["nets"]:
            start = 0 if origin < 0 else scope["rows"][origin] + 1
            for row, x in enumerate(lanes, start):
                rows.setdefault(row, []).append((x, x))
        assert rows
        for spans in rows.values():
            spans.sort()
            assert all(end < start for (_, end), (start, _) in itertools.pairwise(spans))
        assert max(end for spans in rows.values() for _, end in spans) <= scope["room"] + 1


def iter_widths(data, scope):
    """The widths of its children: leaves are the next ops, in the order of the tree."""
    first = next(first for each, first in numbered(data["tree"]) if each is scope)
    for child in scope["children"]:
        yield child["width"] if child else data["ops"]["width"][first]
        first += leaves(child) if child else 1


def numbered(tree, first=0):
    yield tree, first
    for child in tree["children"]:
        if child:
            yield from numbered(child, first)
        first += leaves(child) if child else 1


def test_every_edge_has_a_net_in_each_scope_that_it_passes(data):
    edges, where = data["edges"], paths(data["tree"])
    assert len(edges["source"]) == len(edges_of(ops_of(NODES)))
    for source, target, kind in zip(edges["source"], edges["target"], edges["kind"], strict=True):
        a, b = where[source], where[target]
        common = next(i for i, ((_, x), (_, y)) in enumerate(zip(a, b, strict=False)) if x != y)
        steps = [(scope, i, -1) for scope, i in a[common + 1 :]] + [(scope, -1, i) for scope, i in b[common + 1 :]]
        for scope, origin, goal in [*steps, (a[common][0], a[common][1], b[common][1])]:
            fitting = [net for net in scope["nets"] if net[0] == origin and goal in [to for to, _, _ in net[4]]]
            assert fitting
            if kind == 1:
                assert data["ops"]["look"][source] + 1 in [net[1] for net in fitting]


def test_a_net_has_a_lane_in_every_row_that_it_passes(data):
    for scope in scopes(data["tree"]):
        last = max(scope["rows"]) + 1
        for origin, _, _, lanes, goals in scope["nets"]:
            start = 0 if origin < 0 else scope["rows"][origin] + 1
            ends = [last + 1 if goal < 0 else scope["rows"][goal] for goal, _, closes in goals if not closes]
            assert len(lanes) == max([*ends, start]) - start
            assert all(closes or goal < 0 or scope["rows"][goal] >= start for goal, _, closes in goals)


def test_it_begins_with_the_scopes_of_the_still():
    picture = viz.placement(mlp(), max_boxes=20)
    opened = [scope["title"] for scope in scopes(picture._live()["tree"]) if scope["open"]][1:]
    assert {"layer1", "layer2"} <= set(opened)
    assert sorted(opened) == sorted(re.findall(r'class="s11 b soft">([^<]+)<', picture.svg))
    assert not any(scope["open"] for scope in list(scopes(viz.placement(mlp(), max_boxes=1)._live()["tree"]))[1:])


def test_ops_have_what_a_card_says():
    nodes = [Node("a", "Const", device=PS), Node("s/b", "Neg", [("a", 0)], device=worker())]
    data = viz.placement(nodes, reasons={"a": "pinned to /job:ps"})._live()
    ops, texts = data["ops"], data["texts"]
    cards = [[ops["name"][i], *(texts[ops[key][i]] for key in ("op", "device", "why"))] for i in range(2)]
    assert sorted(cards) == [["a", "Const", PS, "pinned to /job:ps"], ["s/b", "Neg", worker(), ""]]
    assert [texts[i] for i in data["edges"]["tensor"]] == [":0"] and data["edges"]["kind"] == [1]


def test_scopes_that_are_alike_have_one_layout():
    towers = [node for i in range(3) for node in mlp(task=i, prefix=f"t{i}/")]
    tree = viz.placement(towers)._live()["tree"]
    first, *others = [scope for scope in tree["children"] if scope]
    for other in others:
        assert (other["rows"], other["lefts"]) == (first["rows"], first["lefts"])
        assert [net[3:] for net in other["nets"]] == [net[3:] for net in first["nets"]]


def test_a_line_that_closes_a_cycle_has_no_lanes():
    laid = inside(
        [Box("a", 60, 26), Box("b", 60, 26)], [Link("a", 0, "b"), Link("b", 0, "a"), Link("b", 0, OUT)], 0, 300
    )
    closing = [(net.origin, goal.target) for net in laid.strands for goal in net.goals if goal.closes]
    assert closing == [("b", "a")] and laid.rows == {"a": 1, "b": 2}


def test_the_data_of_a_large_graph_are_small():
    nodes = [node for i in range(60) for node in mlp(task=i % 4, prefix=f"part{i}/")]
    data = viz.placement(nodes, max_boxes=9)._live()
    assert len(data["ops"]["name"]) > 2000 and len(json.dumps(data)) < 350 * len(nodes)
    assert max(len(scope["children"]) for scope in scopes(data["tree"])) <= 24
