"""Variables: what the two kinds promise, without TensorFlow next to them."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.ops.cell import Cell
from dtflab.ops.training import updates
from dtflab.ops.variables.reference_variable import RefVariable
from dtflab.ops.variables.resource_variable import ResourceVariable
from dtflab.protos.variable_pb2 import VariableDef

both_kinds = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_the_kind_is_chosen_by_argument_then_by_switch():
    assert isinstance(tf.Variable(1.0), RefVariable)
    assert isinstance(tf.Variable(1.0, use_resource=True), ResourceVariable)
    tf.enable_resource_variables()
    try:
        assert tf.resource_variables_enabled()
        assert isinstance(tf.Variable(1.0), ResourceVariable)
        assert isinstance(tf.Variable(1.0, use_resource=False), RefVariable)
    finally:
        tf.disable_resource_variables()
    assert isinstance(tf.Variable(1.0), tf.Variable)


@both_kinds
def test_what_was_read_never_changes(use_resource):
    v = tf.Variable(np.zeros(4, np.float32), use_resource=use_resource)
    add = v.assign_add(np.ones(4, np.float32))
    with tf.Session() as session:
        session.run(v.initializer)
        seen = [session.run(v)]
        for _ in range(3):
            session.run(add.op)
            seen.append(session.run(v))
        seen[0][:] = 100.0  # the client's own
        assert [x[0] for x in seen] == [100.0, 1.0, 2.0, 3.0]
        assert session.run(v)[0] == 3.0


@both_kinds
def test_the_value_assigned_is_not_shared_with_its_giver(use_resource):
    given = np.zeros(3, np.float32)
    x = tf.placeholder(tf.float32, [3])
    v = tf.Variable(tf.zeros([3]), use_resource=use_resource)
    w = tf.Variable(tf.zeros([3]), use_resource=use_resource)
    with tf.Session() as session:
        session.run([v.assign(x).op, w.assign(x).op], {x: given})
        given[:] = 5.0
        session.run(v.assign_add([1.0, 1.0, 1.0]).op)
        np.testing.assert_array_equal(session.run(v), [1, 1, 1])
        np.testing.assert_array_equal(session.run(w), [0, 0, 0])


@both_kinds
def test_a_constant_is_not_written_through(use_resource):
    c = tf.constant([1.0, 2.0])
    v = tf.Variable(c, use_resource=use_resource)
    with tf.Session() as session:
        for _ in range(2):
            session.run(v.initializer)
            session.run(v.assign_sub([1.0, 1.0]).op)
            np.testing.assert_array_equal(session.run(v), [0, 1])
        np.testing.assert_array_equal(session.run(c), [1, 2])


@both_kinds
def test_a_write_waits_for_what_reads_before_it(use_resource):
    v = tf.Variable(1.0, use_resource=use_resource)
    before = v.read_value() * 1.0
    with tf.control_dependencies([before]):
        after = tf.identity(v.assign_add(1.0))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([before, after]) == [1.0, 2.0]


def test_results_of_assignments_can_be_assigned_to_in_turn():
    v = tf.Variable([1.0, 2.0], use_resource=True)
    chained = v.assign([5.0, 5.0]).assign_add([1.0, 1.0]).assign_sub([0.5, 0.5])
    with tf.Session() as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(chained), [5.5, 5.5])


@both_kinds
def test_in_place_updates_of_a_resource_variable_refuse(use_resource):
    v = tf.Variable(1.0, use_resource=use_resource)
    if use_resource:
        with pytest.raises(RuntimeError, match="assign_add"):
            v += 1.0
    else:
        v += 1.0
        assert isinstance(v, tf.Tensor)


def test_collections_and_lists():
    a = tf.Variable(1.0, name="a")
    b = tf.Variable(1.0, name="b", trainable=False)
    c = tf.Variable(1.0, name="scope/c", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    assert tf.global_variables() == [a, b]
    assert tf.trainable_variables() == [a, c]
    assert tf.local_variables() == [c]
    assert tf.local_variables("scope/") == [c]
    assert tf.local_variables("other/") == []


@both_kinds
def test_proto_there_and_back(use_resource, graph):
    v = tf.Variable([1.0, 2.0], name="v", trainable=False, use_resource=use_resource)
    message = VariableDef.FromString(v.to_proto().SerializeToString())
    again = tf.Variable.from_proto(message)
    assert type(again) is type(v)
    assert (again.name, again.dtype, again.shape, again.trainable) == (v.name, v.dtype, v.shape, False)
    assert again.initializer is v.initializer
    assert again.op is v.op
    assert again.to_proto() == message
    assert v.to_proto(export_scope="elsewhere") is None
    with tf.Session() as session:
        session.run(again.initializer)
        np.testing.assert_array_equal(session.run(v), [1, 2])


@both_kinds
def test_proto_with_scopes(use_resource):
    with tf.name_scope("outer"):
        v = tf.Variable(1.0, name="v", use_resource=use_resource)
    message = v.to_proto(export_scope="outer")
    assert message.variable_name == "v:0"
    assert tf.Variable.from_proto(message, import_scope="outer").op is v.op


def test_str_names_the_variable():
    assert repr(tf.Variable(1.0, name="v")) == "<tf.Variable 'v:0' shape=() dtype=float32_ref>"
    assert repr(tf.Variable([1], name="w", use_resource=True)) == "<tf.Variable 'w:0' shape=(1,) dtype=int32>"


def test_a_variable_is_no_sequence_and_no_truth():
    v = tf.Variable([1.0])
    with pytest.raises(TypeError, match="not iterable"):
        list(v)
    assert v in {v}
    assert v == v and v != tf.Variable([1.0])


def test_a_variable_without_session_says_so():
    v = tf.Variable(1.0)
    with pytest.raises(ValueError, match="session"):
        v.eval()
    with pytest.raises(ValueError, match="session"):
        v.load(2.0)


def test_handles_of_another_device_are_refused():
    with tf.device("/cpu:0"):
        v = tf.Variable(1.0, use_resource=True)
    assert v.handle.dtype == tf.resource
    assert v.handle.op.type == "VarHandleOp"


def test_cells_are_written_in_place_only_by_a_sole_owner():
    cell = Cell("c", tf.float32, (3,))
    cell.assign(np.zeros(3, np.float32))
    outs = []

    def add(old, out):
        outs.append(out is not None)
        return np.add(old, 1, out=out) if out is not None else old + np.float32(1)

    cell.update(add)
    held = cell.read()
    cell.update(add)
    assert outs == [True, False]
    np.testing.assert_array_equal(held, [1, 1, 1])
    del held
    cell.update(add)
    assert outs[-1]
    np.testing.assert_array_equal(cell.read(), [3, 3, 3])


@both_kinds
def test_updates_from_many_threads_all_count(use_resource):
    import threading

    v = tf.Variable(np.zeros(8, np.float32), use_resource=use_resource)
    add = v.assign_add(np.ones(8, np.float32), use_locking=True).op
    with tf.Session() as session:
        session.run(v.initializer)

        def work():
            for _ in range(50):
                session.run(add)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(session.run(v), [200] * 8)


@both_kinds
def test_reading_before_the_first_value_names_both_initializers(use_resource):
    local = tf.Variable(1.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], use_resource=use_resource)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.FailedPreconditionError) as caught:
            session.run(local)
        assert caught.value.message.count("tf.global_variables_initializer()") == 1
        assert caught.value.message.count("sess.run(tf.local_variables_initializer())") == 1
        session.run(tf.local_variables_initializer())
        assert session.run(local) == 1.0


@pytest.mark.parametrize("shape", [(5, 3), (7,), (2, 2, 2)])
def test_an_update_in_blocks_of_rows_gives_the_same_bits(shape, monkeypatch):
    """Compare the variable and its slots; the last block is smaller than the others."""
    random = np.random.default_rng(0)
    start, gradient = (random.standard_normal(shape).astype(np.float32) for _ in range(2))

    def updated():
        with tf.Graph().as_default(), tf.Session() as session:
            optimizer = tf.train.AdamOptimizer(0.1)
            variable = tf.Variable(start)
            train = optimizer.apply_gradients([(tf.constant(gradient), variable)])
            session.run(tf.global_variables_initializer())
            session.run(train)
            return session.run([variable, *(optimizer.get_slot(variable, slot) for slot in ("m", "v"))])

    whole = updated()
    monkeypatch.setattr(updates, "BLOCK", 4)
    for a, b in zip(whole, updated(), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.all(a != start)
