"""The costs and the memory of a graph's nodes, read off the nodes alone."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.graph.node_shapes import static_shapes
from dtflab.hardware import costs
from dtflab.hardware.machines import machines_for
from dtflab.hardware.schedule import simulate
from dtflab.hardware.workload import Measured, Workload, tasks_of, viewed

TASK = "/job:worker/replica:0/task:0"
MACHINES = machines_for({TASK: "host"}, gpus=1, gpu="K40")
CPU, GPU = MACHINES.devices
K40 = MACHINES.processor(GPU)[0]


def graph_of(build):
    graph = tf.Graph()
    with graph.as_default():
        build()
    return graph


def tasks(build, device=GPU, **options):
    """The tasks of a program, all on one device, by name."""
    nodes = [node.replace(device=device) for node in graph_of(build).nodes()]
    return {task.name: task for task in tasks_of(nodes, MACHINES, **options)}


def test_shapes_come_back_from_nodes_alone():
    """All that the program's graph knew, loops included."""

    def program():
        x = tf.placeholder(tf.float32, [None, 4])
        parts = tf.split(tf.matmul(x, tf.get_variable("w", [4, 6])), 3, axis=1)
        tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.tanh(y)), [tf.constant(0), parts[0]])

    graph = graph_of(program)
    found = static_shapes(graph.nodes())
    for op in graph.get_operations():
        for tensor, shape in zip(op.outputs, found[op.name], strict=True):
            assert tensor.shape.is_compatible_with(shape), tensor
    assert found["split"][2].as_list() == [None, 2]
    assert static_shapes(graph.nodes(), {"Placeholder": [8, 4]})["split"][2].as_list() == [8, 2]


def test_a_task_takes_what_its_cost_takes_and_makes_what_its_shapes_say():
    found = tasks(lambda: tf.matmul(tf.ones([8, 16]), tf.ones([16, 32]), name="product"))["product"]
    assert found.seconds == costs.seconds(costs.Cost(2 * 8 * 16 * 32, 4 * (8 * 16 + 16 * 32 + 8 * 32)), K40)
    assert found.outputs == (4 * 8 * 32,) and found.inputs == [("ones", 0), ("ones_1", 0)]


def test_what_only_a_run_tells_counts_as_the_batch():
    def program():
        tf.tanh(tf.placeholder(tf.float32, [None, 3]), name="rows")
        tf.tanh(tf.placeholder(tf.float32), name="anything")
        tf.as_string(tf.placeholder(tf.float32, [2], name="x"), name="texts")

    found = tasks(program, batch=10)
    assert found["rows"].outputs == (120,) and tasks(program)["rows"].outputs == (384,)
    assert found["anything"].seconds == pytest.approx(K40.launch_s, rel=1e-3)
    assert found["texts"].outputs == (32,)


def test_what_stays_and_what_owns_nothing():
    def program():
        v = tf.get_variable("v", [10])
        tf.get_variable("r", [10], use_resource=True)
        x = tf.tanh(v, name="x")
        tf.reshape(x, [5, 2], name="reshaped")
        tf.add_n([x, x], name="sum")
        tf.cast(x, tf.int32, name="whole")
        tf.assign(v, x, name="update")
        tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients([(x, v)])

    nodes = {node.name: node for node in graph_of(program).nodes()}
    views = {
        name: viewed(nodes[name])
        for name in ("v/read", "reshaped", "sum", "whole", "update", "x", "Momentum/update_v/ApplyMomentum")
    }
    assert views == {"v/read": 0, "reshaped": 0, "sum": -1, "whole": -1, "update": 0, "x": -1,
                     "Momentum/update_v/ApplyMomentum": 0}  # fmt: skip
    assert viewed(nodes["r/Read/ReadVariableOp"]) == 0
    found = tasks(program)
    assert (found["v"].kept, found["r"].kept, found["reshaped/shape"].kept, found["x"].kept) == (40, 40, 8, 0)


def test_the_memory_of_a_step_is_what_lives_at_its_fullest_moment():
    """A variable of 4 MB, read without a copy; a result of as much, and its tanh next to it."""

    def program():
        v = tf.get_variable("v", [1 << 20], initializer=tf.zeros_initializer())
        tf.reduce_sum(tf.tanh(tf.exp(v)))

    nodes = [
        n.replace(device=GPU) for n in graph_of(program).nodes() if "Initializer" not in n.name and "Ass" not in n.op
    ]
    peak = simulate(tasks_of(nodes, MACHINES), MACHINES).peak[GPU]
    assert 12 << 20 <= peak < (12 << 20) + 64


def test_a_measured_time_holds_elsewhere_in_the_ratio_of_the_estimates():
    program = lambda: tf.matmul(tf.ones([64, 64]), tf.ones([64, 64]), name="product")  # noqa: E731
    here, there = tasks(program, GPU)["product"].seconds, tasks(program, CPU)["product"].seconds
    known = {"product": Measured(0.5, GPU, (7,))}
    assert tasks(program, GPU, measured=known)["product"].seconds == 0.5
    assert tasks(program, GPU, measured=known)["product"].outputs == (7,)
    assert tasks(program, CPU, measured=known)["product"].seconds == pytest.approx(0.5 * there / here)
    assert tasks(program, CPU, measured=known)["ones"].seconds == 0.0  # it did not belong to the step


def test_a_time_from_unknown_hardware_says_so():
    known = {"product": Measured(0.5, "/job:localhost/replica:0/task:0/device:CPU:0", ())}
    program = lambda: tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]), name="product")  # noqa: E731
    with pytest.raises(ValueError, match=r"'product' was measured on /job:localhost.* machines= .*describe"):
        tasks(program, measured=known)


def test_a_loop_runs_once():
    def program():
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])

    found = tasks(program)
    assert list(found["while/Merge"].inputs) == [("while/Enter", 0)]


def test_a_workload_answers_for_any_device():
    work = Workload(graph_of(lambda: tf.matmul(tf.ones([64, 64]), tf.ones([64, 64]))).nodes())
    by_device = {device: sum(work.seconds(MACHINES, device)) for device in (CPU, GPU)}
    assert by_device[CPU] != by_device[GPU]
    assert [task.device for task in work.tasks(dict.fromkeys((n.name for n in work.nodes), CPU), MACHINES)] == [
        CPU
    ] * len(work.nodes)
