from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

import dtflab as tf
from dtflab.base import errors
from dtflab.graph import device_spec
from dtflab.graph.apply_op import apply_op
from dtflab.graph.loops import frames_of
from dtflab.graph.node import by_name
from dtflab.placement.control_loops import spread_loops
from dtflab.runtime.partition import partition
from dtflab.runtime.prune import prune
from tests import graphs

DEVICES = [
    device_spec.full_name(job, 0, task, "CPU", i) for job, task in (("a", 0), ("b", 0), ("b", 1)) for i in (0, 1)
]
INCARNATIONS = {device: 100 + number for number, device in enumerate(DEVICES)}


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def by_device(node):
    return node.device


def by_task(node):
    return device_spec.task_name(node.device)


def cut(location=by_device, nodes=None):
    return partition(nodes or tf.get_default_graph().nodes(), location, INCARNATIONS)


def transfers(parts):
    """(tensor name, from, to) of every pair, after a look at both of its ends."""
    sends, recvs = ([n for part in parts.values() for n in part if n.op == op] for op in ("_Send", "_Recv"))
    keys = [[tuple(n[a] for a in ("tensor_name", "send_device", "send_device_incarnation", "recv_device"))
             for n in ends] for ends in (sends, recvs)]  # fmt: skip
    assert Counter(keys[0]) == Counter(keys[1]) and len(set(keys[0])) == len(sends)
    assert all(n["send_device"].decode() == n.device for n in sends)
    assert all(n["recv_device"].decode() == n.device for n in recvs)
    return [(name.decode(), source.decode(), target.decode()) for name, source, _, target in keys[0]]


def test_one_place_is_left_as_it_is():
    with tf.device(DEVICES[0]):
        tf.add(tf.constant(1.0), 2.0)
    nodes = tf.get_default_graph().nodes()
    assert cut(nodes=nodes) == {DEVICES[0]: nodes}
    assert partition([], by_device, INCARNATIONS) == {}


def test_one_pair_per_tensor_and_destination_device():
    with tf.device(DEVICES[0]):
        a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    for device in (DEVICES[1], DEVICES[2]):
        with tf.device(device):
            x = tf.add(a, b)
            tf.add_n([a, a, x])
    found = Counter((name.partition("_")[2].partition("_")[2], to) for name, _, to in transfers(cut()))
    assert found == {(name, device): 1 for name in "ab" for device in DEVICES[1:3]}


def test_two_outputs_are_two_tensors():
    with tf.device(DEVICES[0]):
        first, second = tf.split(tf.constant([1.0, 2.0]), 2)
    with tf.device(DEVICES[1]):
        tf.add(first, second)
    assert len(transfers(cut())) == 2


def test_the_two_ends_of_a_crossing():
    with tf.device(DEVICES[0]):
        a = tf.constant([1, 2], name="a")
    with tf.device(DEVICES[2]):
        tf.negative(a, name="b")
    parts = {place: by_name(part) for place, part in cut().items()}
    send, recv = parts[DEVICES[0]]["a/to_job_b_replica_0_task_0_device_CPU_0/0/send"], parts[DEVICES[2]]["b"].sources()
    recv = parts[DEVICES[2]][recv[0]]
    assert send.inputs == [("a", 0)] and send["T"] == recv["tensor_type"] == tf.int32
    assert send["send_device_incarnation"] == INCARNATIONS[DEVICES[0]]
    assert recv.output_types == [tf.int32] and recv.inputs == [] and recv.controls == []


def test_a_control_edge_crosses_as_an_empty_tensor():
    with tf.device(DEVICES[0]):
        a = tf.no_op(name="a")
    with tf.device(DEVICES[1]), tf.control_dependencies([a]):
        tf.no_op(name="b")
        tf.no_op(name="c")
    parts = {place: by_name(part) for place, part in cut().items()}
    (recv,) = parts[DEVICES[1]]["b"].controls
    assert parts[DEVICES[1]][recv].op == "_Recv", "without a Switch nothing is dead"
    with tf.device(DEVICES[0]):
        tf.raw_ops.Switch(data=1.0, pred=True)
    parts = {place: by_name(part) for place, part in cut().items()}
    (signal,) = [n for n in parts[DEVICES[0]].values() if n.op == "Const" and n.controls == ["a"]]
    assert signal["value"].shape == (0,)
    (arrived,) = parts[DEVICES[1]]["b"].controls
    assert parts[DEVICES[1]]["c"].controls == [arrived]
    # A TensorFlow worker's _Recv is alive even if the signal is dead; what reads it is not.
    assert parts[DEVICES[1]][arrived].op == "Identity" and parts[DEVICES[1]][arrived].inputs[0][0].endswith("/recv")
    assert len(transfers(cut())) == 1


def test_a_control_edge_and_a_data_edge_of_one_node_are_two():
    with tf.device(DEVICES[0]):
        a = tf.constant(1.0, name="a")
    with tf.device(DEVICES[1]), tf.control_dependencies([a]):
        tf.no_op()
        tf.identity(a)
    assert len(transfers(cut())) == 2


def test_a_variable_is_received_when_its_reader_may_read_it():
    with tf.device(DEVICES[0]):
        v = tf.Variable(1.0, name="v")
        assign = tf.assign(v, 2.0)
    ref = v.op.outputs[0]
    with tf.device(DEVICES[1]):
        tf.negative(ref, name="early")
        with tf.control_dependencies([assign]):
            tf.negative(ref, name="late")
            tf.add(ref, tf.constant(3.0, name="three"), name="sum")
    here = by_name(cut()[DEVICES[1]])
    waits = {name: here[here[name].inputs[0][0]].controls for name in ("early", "late", "sum")}
    assert waits["early"] == [] and waits["sum"] == ["three"]
    assert waits["late"] == here["three"].controls
    assert [here[name].op for name in waits["late"]] == ["_Recv"]


def test_what_the_master_cut_the_worker_cuts_again():
    with tf.device(DEVICES[0]):
        a = tf.constant(1.0, name="a")
    with tf.device(DEVICES[2]):
        b = tf.negative(a, name="b")
    with tf.device(DEVICES[3]):
        tf.add(a, b)
    first = cut(by_task)
    again = {place: part for parts in first.values() for place, part in cut(nodes=parts).items()}
    assert set(first) == {by_task(n) for n in tf.get_default_graph().nodes()} and set(again) == set(
        DEVICES[:1] + DEVICES[2:4]
    )
    assert sorted(pair[1:] for pair in transfers(again)) == sorted(pair[1:] for pair in transfers(cut()))
    names = [n.name for part in again.values() for n in part]
    assert len(set(names)) == len(names)


# -- loops ------------------------------------------------------------------------------------------------------


def loop(devices):
    """A loop with its parts on given devices: (i, x) → (i + 1, -x)."""
    with tf.device(devices[0]):
        n = apply_op("Enter", "n", data=tf.constant(3), frame_name="loop", is_constant=True)
        i = apply_op("Enter", "i", data=tf.constant(0), frame_name="loop")
        x = apply_op("Enter", "x", data=tf.constant(1.0), frame_name="loop")
        i, x = apply_op("Merge", "mi", inputs=[i, i])[0], apply_op("Merge", "mx", inputs=[x, x])[0]
        go_on = apply_op("LoopCond", "cond", input=tf.less(i, n))
        with tf.device(devices[1]):
            i_in = tf.identity(apply_op("Switch", "si", data=i, pred=go_on)[1])
            x_out, x_in = apply_op("Switch", "sx", data=x, pred=go_on)
        with tf.control_dependencies([i_in]):
            i_next = tf.add(i_in, tf.constant(1))
        with tf.device(devices[2]):
            x_next = tf.negative(x_in, name="body")
        with tf.device(devices[3]):
            i.op._update_input(1, apply_op("NextIteration", "ni", data=i_next))
            x.op._update_input(1, apply_op("NextIteration", "nx", data=x_next))
            return apply_op("Exit", "out", data=x_out)


def test_the_loops_around_a_node():
    loop(DEVICES[:1] * 4)
    tf.negative(tf.get_default_graph().get_tensor_by_name("out:0"), name="after")
    frames = frames_of(tf.get_default_graph().nodes())
    inside = {"mi", "mx", "cond", "si", "sx", "body", "ni", "nx", "out"}
    assert {name for name in frames if frames[name] == (b"loop",)} > inside
    assert [frames[name] for name in ("i", "n", "x", "after")] == [()] * 4


def test_a_loop_on_one_device_is_left_as_it_is():
    loop(DEVICES[:1] * 4)
    nodes = tf.get_default_graph().nodes()
    assert spread_loops(nodes) == nodes


def test_switch_and_exit_go_where_their_value_is_and_the_way_back_to_its_merge():
    loop([DEVICES[0], DEVICES[1], DEVICES[2], DEVICES[3]])
    spread = by_name(spread_loops(tf.get_default_graph().nodes()))
    assert {spread[name].device for name in ("si", "sx", "out", "ni", "nx", "x", "i")} == {DEVICES[0]}
    assert spread["body"].device == DEVICES[2]


def test_each_device_that_receives_in_a_loop_has_a_loop_that_ticks():
    loop([DEVICES[0], DEVICES[0], DEVICES[2], DEVICES[0]])
    nodes = spread_loops(tf.get_default_graph().nodes())
    added = [n for n in nodes if n.name.startswith("_cloop")]
    assert Counter((n.op, n.device) for n in added) == {
        (op, device): 1
        for op in ("Const", "Enter", "Merge", "Switch", "NextIteration")
        for device in (DEVICES[0], DEVICES[2])
    }
    parts = cut(nodes=nodes)
    for part in parts.values():
        own = by_name(part)
        for node in part:
            assert all(name in own for name in node.sources())
            if node.op == "_Recv":
                assert [own[c].op for c in node.controls] == ["Merge"], "it ticks with the loop of its device"


def test_inner_loops_tick_inside_outer_ones():
    line = graphs.Line("loop", 2, 10, 0, None)
    built = graphs.build([graphs.Line("const", 0, 0, 0, None), line], lambda place: DEVICES[place % 3])
    nodes = spread_loops(built.graph.nodes())
    frames = frames_of(nodes)
    ticks = [n for n in nodes if n.name.startswith("_cloop") and n.op == "Enter"]
    assert {len(frames[n.name]) for n in ticks} == {0, 1}
    for enter in ticks:
        assert (enter.inputs[0][0].endswith("/merge")) == (len(frames[enter.name]) == 1)


def test_a_value_comes_into_a_loop_by_enter_only():
    enter = apply_op("Enter", data=tf.constant(1), frame_name="loop")
    tf.add(enter, tf.constant(2), name="wrong")
    with pytest.raises(
        errors.InvalidArgumentError, match=r"\{\{node wrong\}\} has inputs from different frames.*'loop'"
    ):
        spread_loops(tf.get_default_graph().nodes())


# -- laws -------------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(recipe=graphs.recipes)
def test_every_part_stands_by_itself(recipe):
    built = graphs.build(recipe, lambda place: DEVICES[place % 6])
    nodes = by_name(built.graph.nodes())
    nodes = spread_loops(prune(nodes, [], [t.name for t in built.values], [], DEVICES[0]))
    both = {}
    for place, part in cut(by_task, nodes).items():
        assert {by_task(n) for n in part} == {place}
        both |= cut(nodes=part)
    transfers(both)
    for place, part in both.items():
        own = by_name(part)
        assert len(own) == len(part) and {n.device for n in part} == {place}
        assert all(source in own for n in part for source in n.sources())
    kept = {n.name for part in both.values() for n in part if n.op not in ("_Send", "_Recv")}
    assert kept >= {n.name for n in nodes}


def test_what_crosses_is_called_the_same_in_every_graph_of_a_session():
    """TensorFlow's workers keep the kernel of a `_Send` by its name, for the whole session, with its attributes."""
    with tf.device(DEVICES[0]):
        a, b, c = (tf.constant(1.0, name=name) for name in "abc")
    with tf.device(DEVICES[1]):
        tf.negative(b)
    before = {node.name: node.attrs for part in cut().values() for node in part if node.op in ("_Send", "_Recv")}
    with tf.device(DEVICES[1]), tf.control_dependencies([c]):
        tf.negative(a)
    after = {node.name: node.attrs for part in cut().values() for node in part if node.op in ("_Send", "_Recv")}
    assert len(before) == 2 and len(after) == 6
    assert before.items() <= after.items()
    assert len({attrs["tensor_name"] for attrs in after.values()}) == 3


def test_who_has_a_value_knows_that_its_producer_has_finished():
    """No second transfer for a control edge next to a data edge."""
    with tf.device(DEVICES[0]):
        a = tf.constant(1.0, name="a")
    with tf.device(DEVICES[1]):
        tf.negative(a, name="b")
        with tf.control_dependencies([a.op]):
            tf.constant(2.0, name="c")
    parts = cut()
    crossing = [node for part in parts.values() for node in part if node.op == "_Recv"]
    assert len(crossing) == 1
    there = by_name(parts[DEVICES[1]])
    assert there["b"].inputs == [(crossing[0].name, 0)] and there["c"].controls == [crossing[0].name]
