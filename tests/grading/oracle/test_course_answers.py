"""The answers to the exercises of lessons 01 to 05 run in TensorFlow, and what they claim is so there.

Where GPUs are needed, the placer's side is in test_gpu_placement.py; here are the claims that CPUs can show.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import dtflab
from dtflab.grading.catalogue import find
from tests.grading.answers import answer_cell
from tests.grading.oracle.test_exercises import program

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

from dtflab.cluster.addresses import free_addresses

BOTH = ((real_tf, "tensorflow.compat.v1"), (dtflab, "dtflab"))
TASK = "/job:localhost/replica:0/task:0/device"


def answer(id, folder, library):
    question = find(id)
    return program(folder, library, answer_cell(question))[question.answer]


def edges(graph):
    ops = graph.get_operations()
    return {op.name: [t.name for t in op.inputs] + [f"^{o.name}" for o in op.control_inputs] for op in ops}


def test_a_lookup_finds_the_same_rows_with_the_same_graph(tmp_path):
    table = np.arange(24, dtype=np.float32).reshape(12, 2)
    ids, blocks = [7, 0, 11, 7, 4], {1: [table[0::3], table[1::3], table[2::3]], 4: [table[:4], table[4:8], table[8:]]}
    for block_rows, parts in blocks.items():
        graphs = []
        for tf, library in BOTH:
            with tf.Graph().as_default() as graph, tf.Session() as session:
                shards = [tf.Variable(part) for part in parts]
                found = answer("shared/q2", tmp_path, library)(shards, tf.constant(ids), block_rows)
                session.run(tf.global_variables_initializer())
                np.testing.assert_array_equal(session.run(found), table[ids])
            graphs.append(edges(graph))
        assert graphs[0] == graphs[1]


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_parts_in_turn_wait_for_each_other_alike(at_once, tmp_path):
    graphs = []
    for tf, library in BOTH:
        with tf.Graph().as_default() as graph, tf.Session() as session:
            parts = [lambda i=i, tf=tf: tf.reduce_sum(tf.fill([100], float(i))) for i in range(5)]
            total = answer("parallel/q2", tmp_path, library)(parts, at_once)
            assert session.run(total) == 1000
        graphs.append(edges(graph))
    assert graphs[0] == graphs[1]
    assert any("^" in name for names in graphs[0].values() for name in names) == (at_once < 5)


def test_ready_sets_and_overlaps_of_the_same_graph(tmp_path):
    found = []
    for tf, library in BOTH:
        with tf.Graph().as_default() as graph, tf.device(f"{TASK}:CPU:0"):
            a, b = tf.timestamp(name="a"), tf.timestamp(name="b")
            with tf.control_dependencies([a]):
                c = tf.add_n([b, b], name="c")
            tf.add_n([a, c], name="d")
        ops = graph.get_operations()
        sets = answer("parallel/q3", tmp_path, library)(ops)
        overlap = answer("parallel/q1", tmp_path, library)
        found.append(([set(names) for names in sets], {(x.name, y.name): overlap(x, y) for x in ops for y in ops}))
    assert found[0][0] == found[1][0] == [{"a", "b"}, {"c"}, {"d"}]
    assert found[0][1] == found[1][1] and sum(found[0][1].values()) == 6  # a b, b a, each with itself


def test_a_variable_is_sent_once_to_each_device_and_updated_at_home(tmp_path):
    home, devices = f"{TASK}:CPU:0", [f"{TASK}:CPU:1", f"{TASK}:CPU:2", f"{TASK}:CPU:0", f"{TASK}:CPU:1"]
    options = real_tf.RunOptions(trace_level=real_tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with real_tf.Graph().as_default():
        found = answer("placement/q4", tmp_path, "tensorflow.compat.v1")(home, devices)
        with real_tf.Session(config=real_tf.ConfigProto(device_count={"CPU": 3})) as session:
            session.run(real_tf.global_variables_initializer())
            metadata = real_tf.RunMetadata()
            doubles = session.run(found["doubles"], options=options, run_metadata=metadata)
            received = Counter(
                node.attr["recv_device"].s.decode()
                for graph in metadata.partition_graphs
                for node in graph.node
                if node.op == "_Recv" and "Variable" in node.attr["tensor_name"].s.decode()
            )
            session.run(found["update"], options=options, run_metadata=metadata)
            updates = [node for graph in metadata.partition_graphs for node in graph.node if node.op == "AssignAdd"]
    np.testing.assert_array_equal(doubles, [[2, 4]] * 4)
    assert received == Counter(found["sent_to"])
    assert [node.device for node in updates] == [found["updated_on"]]


def test_what_is_left_of_a_model_on_real_servers(tmp_path):
    tf = real_tf
    addresses = free_addresses(3)
    spec = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    servers = [tf.train.Server(spec, job, index) for job, index in (("ps", 0), ("worker", 0), ("worker", 1))]

    def build():
        with tf.device("/job:ps/task:0"):
            tf.get_variable("kept", initializer=tf.constant([1.0, 2.0]))
        tf.get_variable("nowhere", [])  # on the task of whichever master places it

    with tf.Graph().as_default(), tf.Session(servers[1].target) as session:
        build()
        session.run(tf.global_variables_initializer())
        session.run(tf.assign_add(tf.global_variables()[0], [10.0, 10.0]))
    path = str(tmp_path / "model.ckpt")
    assert answer("shared/q1", tmp_path, "tensorflow.compat.v1")(servers[2].target, build, path) == ["nowhere"]
    assert [name for name, _ in tf.train.list_variables(path)] == ["kept"]
    np.testing.assert_array_equal(dtflab.train.load_variable(path, "kept"), [11, 12])


def test_settings_and_plans_are_what_tensorflow_takes(tmp_path):
    found = answer("memory/q1", tmp_path, "tensorflow.compat.v1")(3, 2, 1 << 30, 4 << 30)
    assert [visible for visible, _ in found] == ["0", "1", "0"]
    assert all(isinstance(config, real_tf.ConfigProto) for _, config in found)
    jobs, _ = answer("clusters/q1", tmp_path, "tensorflow.compat.v1")(["a.example.com", "b.example.com"], 2, 2)
    assert real_tf.train.ClusterSpec(jobs).as_dict() == dtflab.train.ClusterSpec(jobs).as_dict() == jobs


def test_a_batch_is_searched_with_tensorflows_error(tmp_path):
    def step(n):
        if n > 37:
            raise real_tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")

    assert answer("memory/q2", tmp_path, "tensorflow.compat.v1")(step, 100) == 37
