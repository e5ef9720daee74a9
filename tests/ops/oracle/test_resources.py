"""Registered resources are TensorFlow's: what a Scaffold initializes and waits for, and the functions themselves."""

from __future__ import annotations

import pytest

from dtflab.ops import registered_resources as resources
from tests.oracle.answers import module_of
from tests.oracle.graph_defs import assert_same_graph, both


def resources_of(tf):
    return module_of(tf, "python.ops.resources", resources)


def registered(tf, *shared):
    """A resource per flag, made of a variable that is in no collection."""
    for is_shared in shared:
        v = tf.Variable(1.0, name="shared" if is_shared else "local", use_resource=True, collections=[])
        resources_of(tf).register_resource(v.handle, v.initializer, tf.is_variable_initialized(v), is_shared)


@pytest.mark.parametrize("shared", [(), (True,), (False, True)])
def test_scaffold(shared):
    def program(tf):
        registered(tf, *shared)
        scaffold = tf.train.Scaffold().finalize()
        ask = scaffold.ready_op, scaffold.ready_for_local_init_op
        return ask, (scaffold.init_op, scaffold.local_init_op)

    def run(tf):
        ask, init = program(tf)
        with tf.Session() as session:
            found = [session.run(ask)]
            for op in init:
                session.run(op)
                found.append(session.run(ask))
        return [[names.tolist() for names in pair] for pair in found]

    assert_same_graph(program)
    theirs, ours = both(run)
    assert ours == theirs
    assert len(ours[0][0]) == len(shared) and ours[-1] == [[], []]


def test_functions():
    def program(tf):
        registered(tf, True, False)
        module = resources_of(tf)
        assert [r.handle.op.name for r in module.shared_resources() + module.local_resources()] == ["shared", "local"]
        v = tf.Variable(2.0, use_resource=True)
        module.initialize_resources([v, *module.local_resources()], name="some")
        module.initialize_resources([], name="none")
        module.report_uninitialized_resources(name="all")
        module.report_uninitialized_resources([], name="of_none")

    assert_same_graph(program)
