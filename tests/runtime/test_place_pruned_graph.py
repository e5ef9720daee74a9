"""`graph_options.place_pruned_graph`: a node is placed when a step needs it. Interactive sessions always do that."""

from __future__ import annotations

import pytest

import dtflab as tf

PRUNED = tf.GraphOptions(place_pruned_graph=True)


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def pruned(**settings):
    return tf.ConfigProto(graph_options=PRUNED, device_count={"CPU": 2}, **settings)


def impossible(value=1.0):
    with tf.device("/device:GPU:7"):
        return tf.constant(value, name="bad")


def kernels(session, fetch):
    """Where the kernels of a step ran."""
    metadata = tf.RunMetadata()
    session.run(fetch, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    return {node.node_name: stats.device[-5:] for stats in metadata.step_stats.dev_stats for node in stats.node_stats}


def test_a_node_that_is_not_run_may_be_impossible_to_place():
    bad, good = impossible(), tf.constant(2.0)
    with tf.Session(config=pruned()) as session:
        assert session.run(good) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device for operation bad"):
            session.run(bad)
        assert session.run([good, bad], {bad: 3.0}) == [2.0, 3.0]  # fed, it is not run
        again = impossible() * 2.0
        assert session.run(good + 1.0) == 3.0
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(again)
    for config in (None, tf.ConfigProto()):
        with tf.Session(config=config) as session, pytest.raises(tf.errors.InvalidArgumentError):
            session.run(good)


def test_soft_placement():
    bad = impossible()
    with tf.Session(config=pruned(allow_soft_placement=True)) as session:
        assert session.run(bad) == 1.0


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_stays_where_its_first_step_has_put_it(use_resource):
    v = tf.get_variable("v", [], initializer=tf.ones_initializer(), use_resource=use_resource)
    with tf.device("/cpu:1"):
        doubled = v.assign(v.read_value() * 2.0 if use_resource else v * 2.0)
    with tf.Session(config=pruned()) as session:
        session.run(v.initializer)
        assert session.run(doubled if not use_resource else doubled.op) in (2.0, None)
        assert session.run(v) == 2.0
        name = v.handle.op.name if use_resource else v.op.name
        assert {node.name: node.device[-5:] for node in session.placed_nodes(v)}[name] == "CPU:0"


def test_a_stateless_node_is_placed_with_those_that_need_it():
    """Each kind of step has it next to the one consumer that it has there."""
    value = tf.constant(5.0, name="value")
    with tf.device("/cpu:1"):
        there = tf.negative(tf.placeholder_with_default(value, [], name="p"), name="there")
    here = tf.negative(value, name="here")
    with tf.Session(config=pruned()) as session:
        where = {node.name: node.device[-5:] for node in session.placed_nodes(there)}
        assert where["there"] == "CPU:1"
        assert session.run(there) == -5.0
        assert kernels(session, here)["here"] == "CPU:0"


def test_a_partial_run():
    x = tf.placeholder(tf.float32, [])
    y, bad = x + 1.0, impossible()
    with tf.Session(config=pruned()) as session:
        handle = session.partial_run_setup([y], [x])
        assert session.partial_run(handle, y, {x: 1.0}) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="operation bad"):
            session.partial_run_setup([bad], [])


def test_what_can_be_looked_at():
    impossible()
    good = tf.constant(2.0, name="good") + 1.0
    with tf.Session(config=pruned()) as session:
        assert {node.name: node.device[-5:] for node in session.placed_nodes(good)}["good"] == "CPU:0"
        assert "good" in session.placement_reasons()
        with pytest.raises(tf.errors.InvalidArgumentError, match="operation bad"):
            session.placed_nodes()  # all of them, which would be impossible to run together


def test_looking_settles_nothing():
    v = tf.Variable(1.0, name="v", use_resource=False)
    with tf.device("/cpu:1"):
        w = tf.Variable(2.0, name="w", use_resource=False)
    with tf.Session(config=pruned()) as session:
        session.placed_nodes(v)
        session.placed_nodes()
        assert session.master_session()._graph._settled == {}
        session.run(w.initializer)
        ((name, device),) = session.master_session()._graph._settled.items()
        assert (name, device[-5:]) == ("w", "CPU:1")


def test_a_placer_of_the_program_s_own_gets_the_pruned_graph():
    seen = []

    def place(nodes, devices, default_task, *, allow_soft_placement, placed):
        seen.append(({node.name for node in nodes if node.name[0] != "_"}, dict(placed)))
        return {node.name: devices[0] for node in nodes}

    v = tf.Variable(1.0, name="v", use_resource=False)
    impossible()
    with tf.Session(config=pruned(), placer=place) as session:
        session.run(v.initializer)
        session.run(v)
        assert session.placement_reasons()["v"] == "placed by the program's own placer place"
    assert seen == [({"v", "v/initial_value", "v/Assign"}, {}), ({"v"}, {"v": seen[1][1]["v"]})]


def test_log_device_placement_shows_each_kind_of_step(capfd):
    bad = impossible()
    doubled = bad * 2.0
    with tf.Session(config=pruned(log_device_placement=True)) as session:
        for _ in range(2):
            assert session.run(doubled, {bad: 4.0}) == 8.0
    lines = [line.partition(":")[0] for line in capfd.readouterr().out.splitlines() if "/job:" in line]
    assert sorted(line for line in lines if line[0] != "_") == ["mul", "mul/y"]


def test_interactive_sessions_place_what_they_run():
    config = tf.ConfigProto(device_count={"CPU": 2})
    session = tf.InteractiveSession(config=config)
    try:
        bad, good = impossible(), tf.constant(2.0)
        assert good.eval() == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError):
            bad.eval()
        assert len(session.list_devices()) == 2
        assert not config.graph_options.place_pruned_graph  # the program's own is not changed
    finally:
        session.close()
    with pytest.raises(TypeError, match=r"must be a tf\.ConfigProto"):
        tf.InteractiveSession(config={})
    session = tf.InteractiveSession()
    assert session.config.gpu_options.allow_growth
    session.close()


def test_a_session_on_a_server_places_all_at_once_and_says_so(caplog):
    server = tf.train.Server.create_local_server()
    try:
        impossible()
        with tf.Session(server.target, config=pruned()) as session, pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.constant(1.0))
    finally:
        server.stop()
    assert "Distributed session does not support the place_pruned_graph option." in caplog.text
