"""`Session(placer=my_place)`: what a program's own placer is given, what it may say, what is refused and how."""

from __future__ import annotations

import re
import runpy

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.device_spec import parse
from dtflab.runtime.placer import place
from tests.house import ROOT

LOCAL = "/job:localhost/replica:0/task:0"
THREE = tf.ConfigProto(device_count={"CPU": 3})


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()


def taking_turns(nodes, devices, default_task, **options):
    return {node.name: devices[i % len(devices)] for i, node in enumerate(nodes)}


def products_elsewhere(nodes, devices, default_task, **options):
    """By the rules, but products on the last device."""
    where = dict(place(nodes, devices, default_task, **options))
    where.update({node.name: devices[-1] for node in nodes if node.op == "MatMul"})
    return where


def model(use_resource=False, dtype=tf.float32):
    v = tf.get_variable("v", [2, 2], dtype, tf.ones_initializer(), use_resource=use_resource)
    return v, tf.matmul(v, v, name="product")


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_local_session_is_placed_by_it(use_resource):
    v, product = model(use_resource)
    with tf.Session(config=THREE, placer=products_elsewhere) as session:
        session.run(v.initializer)
        assert session.run(product).tolist() == [[2, 2], [2, 2]]
        where = {node.name: node.device for node in session.placed_nodes()}
    assert where.pop("product") == f"{LOCAL}/device:CPU:2"
    assert set(where.values()) == {f"{LOCAL}/device:CPU:0"}


def test_a_cluster_in_this_process_is_placed_by_it():
    v, product = model()
    asked = {}

    def noting(nodes, devices, default_task, **options):
        asked.update(devices=devices, task=default_task, options=options)
        return products_elsewhere(nodes, devices, default_task, **options)

    with tf.Cluster(ps=1, worker=2) as cluster, tf.Session(cluster.target, placer=noting) as session:
        session.run(v.initializer)
        assert session.run(product).tolist() == [[2, 2], [2, 2]]
        where = {node.name: node.device for node in session.placed_nodes()}
    tasks = ["/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"]
    assert asked["devices"] == [f"{task}/device:CPU:0" for task in tasks]
    assert where["product"] == f"{tasks[2]}/device:CPU:0" and where["v"] == f"{tasks[1]}/device:CPU:0"
    assert asked["task"] == tasks[1] and asked["options"] == {"allow_soft_placement": False, "placed": {}}


def test_a_pin_is_the_placers_to_keep_or_not():
    with tf.device("/cpu:1"):
        a = tf.constant(1.0, name="a")
    with tf.Session(config=THREE, placer=taking_turns) as session:
        session.run(a)
        assert [parse(node.device).id for node in session.placed_nodes()] == [0]
        assert [node.device for node in session.graph.nodes()] == ["/device:CPU:1"]  # as it was asked for


def test_what_was_placed_stays_whatever_the_placer_says_later():
    a = tf.constant(1.0, name="a")
    calls = []

    def moving(nodes, devices, default_task, *, placed, **options):
        calls.append(dict(placed))
        return {node.name: devices[len(calls)] for node in nodes}

    with tf.Session(config=THREE, placer=moving) as session:
        session.run(a)
        b = tf.negative(a, name="b")
        assert session.run(b) == -1
        assert {n.name: parse(n.device).id for n in session.placed_nodes()} == {"a": 1, "b": 2}
    assert calls == [{}, {"a": f"{LOCAL}/device:CPU:1"}]


def test_reasons_say_whose_placement_it_is():
    v, product = model()
    with tf.Session(config=THREE, placer=products_elsewhere) as session:
        assert "own placer products_elsewhere" in session.placement_reasons()["product"]
        assert v is not None and product is not None


# ---- what is refused ----


def refused(placer, fetch, config=THREE):
    with tf.Session(config=config, placer=placer) as session, pytest.raises(errors.InvalidArgumentError) as caught:
        session.run(fetch)
    return caught.value.message


@pytest.mark.parametrize("device", [None, "/cpu:0", f"{LOCAL}/device:CPU:7"])
def test_a_node_without_a_device_of_the_session(device):
    a = tf.constant(1.0, name="a")
    text = refused(lambda nodes, *_, **__: {node.name: device for node in nodes if device}, a)
    assert f"The placer <lambda> put a on {device!r}; it must name one of [ {LOCAL}/device:CPU:0, " in text
    assert "for 1 of 1 nodes" in text and "dtflab.extend.place" in text


@pytest.mark.parametrize("use_resource, kind", [(False, "reference"), (True, "resource")])
def test_a_variable_apart_from_what_is_handed_it(use_resource, kind):
    v, _ = model(use_resource)

    def parting(nodes, devices, default_task, **options):
        return {node.name: devices[node.op.startswith("Assign")] for node in nodes}

    text = refused(parting, v.initializer)
    assert f"put v on {LOCAL}/device:CPU:0 and v/Assign on {LOCAL}/device:CPU:1, but they must share a device" in text
    assert f"a {kind} edge joins them." in text


def test_colocated_nodes_apart():
    a = tf.constant(1.0, name="a")
    with tf.colocate_with(a):
        b = tf.constant(2.0, name="b")
    assert "a colocation joins them." in refused(taking_turns, b)


def test_a_new_node_apart_from_a_variable_of_an_earlier_run():
    v, _ = model()
    turn = []

    def moving(nodes, devices, default_task, **options):
        turn.append(1)
        return {node.name: devices[len(turn) - 1] for node in nodes}

    with tf.Session(config=THREE, placer=moving) as session:
        session.run(v.initializer)
        update = tf.assign_add(v, [[1.0, 1.0], [1.0, 1.0]])
        with pytest.raises(errors.InvalidArgumentError, match=r"put v on .*:0 and AssignAdd on .*:1, but"):
            session.run(update)


def test_a_device_without_a_kernel():
    v = tf.get_variable("v", [2], tf.int32, tf.zeros_initializer())
    config = tf.ConfigProto(device_count={"GPU": 1})
    text = refused(lambda nodes, devices, *_, **__: {node.name: devices[-1] for node in nodes}, v.initializer, config)
    assert f"put v on {LOCAL}/device:GPU:0, where VariableV2 has no GPU kernel for int32." in text


def test_what_is_no_placement():
    a = tf.constant(1.0)
    with tf.Session(placer=lambda *_, **__: None) as session, pytest.raises(TypeError, match="must return a dict"):
        session.run(a)
    with pytest.raises(TypeError, match="`placer` must be a function"):
        tf.Session(placer="/cpu:0")


def test_an_error_of_the_placer_is_the_callers_and_the_session_can_go_on():
    a = tf.constant(1.0)
    broken = [True]

    def sometimes(nodes, devices, default_task, **options):
        if broken:
            raise ZeroDivisionError("mine")
        return {node.name: devices[0] for node in nodes}

    with tf.Session(placer=sometimes) as session:
        with pytest.raises(ZeroDivisionError, match="mine"):
            session.run(a)
        broken.clear()
        assert session.run(a) == 1


def test_the_page_about_placers_runs(tmp_path, capsys):
    """The page's blocks of Python, in order, are one program; its blocks of text are that program's output."""
    page = (ROOT / "docs" / "placers.md").read_text(encoding="utf-8")
    program, printed = ("\n".join(re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)) for kind in ("python", "text"))
    (tmp_path / "page.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(tmp_path / "page.py"))
    assert capsys.readouterr().out.split("\n") == [line for line in printed.split("\n") if line] + [""]
