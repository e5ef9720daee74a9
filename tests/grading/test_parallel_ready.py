"""parallel/q3 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

import dtflab as tf
from tests.grading.answers import full_marks

Q3 = "parallel/q3"


def sources(op):
    return [*(tensor.op for tensor in op.inputs), *op.control_inputs]


def by_levels(ops):
    level = {}

    def of(op):
        if op not in level:
            level[op] = 1 + max(map(of, sources(op)), default=-1)
        return level[op]

    found = defaultdict(set)
    for op in ops:
        found[of(op)].add(op.name)
    return [found[i] for i in sorted(found)]


def by_removal(ops):
    left, order = set(ops), []
    while left:
        now = {op for op in left if not left & set(sources(op))}
        order.append(frozenset(op.name for op in now))
        left -= now
    return order


def by_consumers(ops):
    """Kahn's way, with what ops know of their consumers."""
    count = {op: len(sources(op)) for op in ops}
    ready, order = [op for op in ops if not count[op]], []
    while ready:
        order.append(tuple(op.name for op in ready))
        falls = Counter(c for op in ready for c in ops for source in sources(c) if source is op)
        for op, by in falls.items():
            count[op] -= by
        ready = [op for op in falls if not count[op]]
    return tuple(order)


def by_names(ops):
    waits = {op.name: {s.name for s in sources(op)} for op in ops}
    order, done = [], set()
    while len(done) < len(waits):
        order.append(sorted(name for name in waits if name not in done and waits[name] <= done))
        done |= set(order[-1])
    return order


RIGHT = {
    "levels": by_levels,
    "removal": by_removal,
    "consumers": by_consumers,
    "names": by_names,
    "the ops themselves": lambda ops: [[op for op in ops if op.name in part] for part in by_levels(ops)],
}


@pytest.mark.parametrize("name", RIGHT)
def test_every_right_answer_gets_full_marks(name, monkeypatch):
    full_marks(Q3, RIGHT[name], monkeypatch, seeds="012")


BAD = {
    "nothing": (lambda ops: None, "ready_order returned None; expected: a list of sets"),
    "no sets": (lambda ops: [op.name for op in ops], "expected: a list of sets"),
    "an op twice": (lambda ops: [[ops[0].name] * 2], "Each has an op, and none twice."),
    "only the first set": (lambda ops: by_levels(ops)[:1], "You have 1 set; then come"),
    "a set too many": (lambda ops: [*by_levels(ops), ["more"]], "of them all ops have run"),
    "backwards": (lambda ops: by_levels(ops)[::-1], "Set 1 of yours is wrong"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q3, answer)
    assert score < 10 and message in score.text, score.text


def test_the_picture_shows_the_graph_at_the_moment_where_the_sets_differ():
    score = tf.grade(Q3, lambda ops: [*by_levels(ops)[:1], *by_levels(ops)[:1]])
    reading, waiting, _ = score.reports[0].results
    assert "Set 2 of yours is wrong" in reading.message and len(reading.message) < 300
    for result in (reading, waiting):
        (_, _, rows) = result.picture.tables[0]
        states = {node: state for _, node, state, _ in rows}
        right = re.findall(r"'(\w+)'", result.message.partition(" Ready then: ")[2].partition(".")[0])
        assert sorted(right) == sorted(node for node, state in states.items() if state == "ready")
        assert all(state == "done" for node, state in states.items() if node.startswith("source"))
        told = re.findall(r"'(\w+)'", result.message.partition(" Ready then: ")[0])
        assert sorted(re.findall(r'<g class="node \w+ marked"><title>(\w+):', result.picture.svg)) == sorted(told)
        assert result.picture.svg.count("your set differs here") > len(told), "in the legend, too"
    assert 'class="node ready marked"' in score.html
