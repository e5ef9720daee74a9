import itertools

import pytest
from hypothesis import given, settings, strategies as st

from dtflab.viz.layout import ranks
from dtflab.viz.layout.layered import Box, Cluster, Rect, layout
from dtflab.viz.layout.shapes import Rect as Placed


@st.composite
def drawings(draw):
    """A tree of clusters over some boxes, and edges between these: mostly forward, a few that may close cycles."""
    count = draw(st.integers(1, 24))
    keys = [f"n{i}" for i in range(count)]
    boxes = [Box(key, draw(st.integers(40, 160)), 26) for key in keys]
    cuts = sorted(draw(st.sets(st.integers(1, count), max_size=5)) | {0, count})
    children = []
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        inside = tuple(boxes[start:stop])
        if draw(st.booleans()):
            half = len(inside) // 2
            inner = Cluster(f"c{i}/inner", inside[half:], 40)
            children.append(Cluster(f"c{i}", (*inside[:half], inner), draw(st.integers(10, 200))))
        else:
            children.extend(inside)
    pairs = st.tuples(st.sampled_from(keys), st.sampled_from(keys))
    edges = draw(st.lists(pairs.map(lambda p: tuple(sorted(p, key=keys.index))), max_size=50))
    edges += draw(st.lists(pairs, max_size=4))
    return Cluster("", tuple(children)), edges, draw(st.sampled_from([300, 600, 880]))


def leaves(cluster):
    return [k for c in cluster.children for k in (leaves(c) if isinstance(c, Cluster) else [c.key])]


def clusters(cluster):
    return [d for c in cluster.children if isinstance(c, Cluster) for d in [c, *clusters(c)]]


def crosses(rect: Rect, a, b) -> bool:
    """Whether the segment from a to b, not quite horizontal or vertical at worst, enters the rectangle."""
    inner = Placed(rect.x + 0.6, rect.y + 0.6, rect.width - 1.2, rect.height - 1.2)
    steps = max(2, int((abs(a[0] - b[0]) + abs(a[1] - b[1])) / 4))
    points = [(a[0] + (b[0] - a[0]) * i / steps, a[1] + (b[1] - a[1]) * i / steps) for i in range(steps + 1)]
    return any(inner.x < x < inner.right and inner.y < y < inner.bottom for x, y in points)


@settings(max_examples=80)
@given(drawings())
def test_laws(drawing):
    root, edges, width = drawing
    done = layout(root, edges, width)
    page = Placed(-0.01, -0.01, done.width + 0.02, done.height + 0.02)
    assert set(done.boxes) == set(leaves(root))
    assert all(page.holds(rect) for rect in [*done.boxes.values(), *done.clusters.values()])
    # no two boxes overlap
    assert not [p for p in itertools.combinations(done.boxes, 2) if done.boxes[p[0]].overlaps(done.boxes[p[1]])]
    # a cluster holds its own, and nothing else
    for cluster in clusters(root):
        frame, own = done.clusters[cluster.key], set(leaves(cluster))
        assert all(frame.holds(rect) if key in own else not frame.overlaps(rect) for key, rect in done.boxes.items())
        assert frame.width >= cluster.title
    # every line leads from its source's border to its target's, on the page, behind no box
    assert set(done.lines) == {edge for edge in edges if edge[0] != edge[1]}
    for (source, target), points in done.lines.items():
        a, b = done.boxes[source], done.boxes[target]
        leave, enter = (a.y if source in done.rising else a.bottom), (b.bottom if target in done.rising else b.y)
        assert points[0][1] == pytest.approx(leave) and a.x < points[0][0] < a.right
        assert points[-1][1] == pytest.approx(enter) and b.x < points[-1][0] < b.right
        assert all(page.x <= x <= page.right and page.y <= y <= page.bottom for x, y in points)
        for p, q in itertools.pairwise(points):
            assert not [key for key, rect in done.boxes.items() if crosses(rect, p, q)], (source, target)


@settings(max_examples=20)
@given(drawings())
def test_same_input_same_drawing(drawing):
    assert layout(*drawing) == layout(*drawing)


def test_edges_go_down():
    root = Cluster("", tuple(Box(k, 60, 26) for k in "abcdef"))
    edges = [*itertools.pairwise("abcdef"), ("a", "f")]
    done = layout(root, edges)
    assert all(done.boxes[a].bottom < done.boxes[b].y for a, b in edges)
    assert not done.rising


def chain(count):
    keys = [f"n{i}" for i in range(count)]
    return Cluster("", tuple(Box(k, 90, 26) for k in keys)), [*itertools.pairwise(keys)]


def test_long_chains_are_folded_down_and_up():
    done = layout(*chain(40), 880)
    assert done.height < 800 and done.width <= 880
    for (a, b), _ in done.lines.items():
        first, second = done.boxes[a], done.boxes[b]
        if (a in done.rising) == (b in done.rising):
            assert second.bottom < first.y if a in done.rising else first.bottom < second.y
        else:
            assert first.right < second.x  # on to the next column


def test_a_cycle_is_drawn_with_one_line_back():
    root = Cluster("", tuple(Box(k, 60, 26) for k in "abc"))
    done = layout(root, [("a", "b"), ("b", "c"), ("c", "a")])
    upward = [edge for edge in done.lines if done.boxes[edge[1]].y < done.boxes[edge[0]].y]
    assert upward == [("c", "a")]
    assert max(x for x, _ in done.lines["c", "a"]) > max(rect.right for rect in done.boxes.values())


def test_a_straight_chain_has_straight_lines():
    done = layout(*chain(6))
    assert all(len(points) == 2 and points[0][0] == points[1][0] for points in done.lines.values())


def test_wide_rows_are_broken():
    root = Cluster("", tuple(Box(f"n{i}", 100, 26) for i in range(30)))
    assert layout(root, [], 400).width <= 400


def test_crossings_are_avoided_and_counted():
    rows = [["a", "b"], ["c", "d"]]
    links = [[("a", "d", 0.0, 0.0), ("b", "c", 0.0, 0.0)]]
    assert ranks.crossings(rows, links) == 1
    ranks.order_rows(rows, links, frozenset())
    assert ranks.crossings(rows, links) == 0


HALVES = [["t0", "b0"], ["t1", "b1"], ["t2", "b2"], ["t3", "b3"]]  # t0 sends to b1, b0 to t1; then all to all
CROSSED = [[("t0", "b1", 0.0, 0.0), ("b0", "t1", 0.0, 0.0)]] + [
    [(f"{a}{r}", f"{b}{r + 1}", 0.0, 0.0) for a in "tb" for b in "tb"] for r in (1, 2)
]


def test_groups_keep_their_sides_where_no_more_lines_cross():
    plain, sided = ([list(row) for row in HALVES] for _ in range(2))
    ranks.order_rows(plain, CROSSED, frozenset())
    ranks.order_rows(sided, CROSSED, frozenset(), {key: key[0] for row in HALVES for key in row})
    assert ranks.crossings(plain, CROSSED) == ranks.crossings(sided, CROSSED) == 2
    first = [[key[0] for key in row] for row in sided]
    assert first[1] == first[2] == first[3] and first[0] != first[1]  # turned once, where else two more would cross
    assert len({tuple(key[0] for key in row) for row in plain[1:]}) == 2  # without groups, sides change


def test_a_title_stays_left_when_rows_are_mirrored():
    rows = [["title", *HALVES[0]], *([*row] for row in HALVES[1:])]
    ranks.order_rows(rows, CROSSED, frozenset(["title"]), {key: key[0] for row in HALVES for key in row})
    assert rows[0][0] == "title"


def test_a_side_is_not_kept_at_the_price_of_a_crossing():
    rows = [["a1", "b1"], ["b2", "a2"]]
    links = [[("a1", "b2", 0.0, 0.0), ("b1", "a2", 0.0, 0.0)]]
    ranks.order_rows(rows, links, frozenset(), {key: key[0] for row in rows for key in row})
    assert ranks.crossings(rows, links) == 0


def test_rows():
    after = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "late": ["d"]}
    rows = ranks.assign_rows([*"abcd", "late"], after, lambda _: 10, 100)
    assert rows == {"a": 0, "b": 1, "c": 1, "late": 1, "d": 2}
    assert ranks.back_edges(["a", "b"], {"a": ["b"], "b": ["a"]}) == {("b", "a")}


def test_a_long_chain_folds_into_columns_that_go_down_unless_its_flow_turns():
    boxes = tuple(Box(f"{i}", 80, 26) for i in range(30))
    edges = [(f"{i}", f"{i + 1}") for i in range(29)]
    down, in_turn = (layout(Cluster("chain", boxes, 0), edges, 800, turns=turns) for turns in (False, True))
    assert len({box.x for box in in_turn.boxes.values()}) > 1 and in_turn.rising and not down.rising
    up = [(a, b) for a, b in edges if down.boxes[b].y < down.boxes[a].y]
    columns = sorted({box.x for box in down.boxes.values()})
    assert len(up) == len(columns) - 1 > 0, "only from the end of a column to the beginning of the next"
