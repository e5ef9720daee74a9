"""The options about threads, in TensorFlow and in dtflab: what runs, and what is refused with which words."""

from __future__ import annotations

import pytest

import dtflab

tensorflow = pytest.importorskip("tensorflow.compat.v1")


def outcome(tf, number=None, target="", **config):
    """The value of a step or the words of its error."""
    with tf.Graph().as_default():
        y = tf.placeholder_with_default(1.0, []) * 2.0
        proto = tf.ConfigProto(**{key: value for key, value in config.items() if key != "pools"})
        for options in config.get("pools", ()):
            proto.session_inter_op_thread_pool.add(**options)
        options = None if number is None else tf.RunOptions(inter_op_thread_pool=number)
        try:
            with tf.Session(target, config=proto) as session:
                return float(session.run(y, options=options))
        except tf.errors.InvalidArgumentError as error:
            return error.message.removeprefix("Graph execution error:\n\n")


@pytest.mark.parametrize("number", [-2, -1, 0, 1, 2, 5])
@pytest.mark.parametrize("pools", [(), ({"num_threads": 2}, {"num_threads": 1, "global_name": "of the oracle"})])
def test_the_pool_of_a_step(number, pools):
    expected = outcome(tensorflow, number, pools=pools)
    found = outcome(dtflab, number, pools=pools)
    assert found == expected or found.startswith(f"{expected} (")


@pytest.mark.parametrize("threads", [-5, -1, 0, 1, 100])
@pytest.mark.parametrize("option", ["inter_op_parallelism_threads", "intra_op_parallelism_threads"])
@pytest.mark.parametrize("own", [False, True])
def test_any_number_of_threads_runs(option, threads, own):
    config = {option: threads, "use_per_session_threads": own}
    assert outcome(dtflab, **config) == outcome(tensorflow, **config) == 2.0


@pytest.fixture(scope="module")
def targets():
    theirs = tensorflow.train.Server.create_local_server()
    ours = dtflab.train.Server.create_local_server()
    yield {tensorflow: theirs.target, dtflab: ours.target}
    ours.stop()


@pytest.mark.parametrize("number", [None, -2, 0, 5])
def test_a_server_has_one_pool_whatever_a_step_says(targets, number):
    assert outcome(dtflab, number, targets[dtflab]) == outcome(tensorflow, number, targets[tensorflow]) == 2.0


def test_a_server_takes_no_pools_of_a_session(targets):
    pools = ({"num_threads": 2},)
    expected = outcome(tensorflow, target=targets[tensorflow], pools=pools)
    assert outcome(dtflab, target=targets[dtflab], pools=pools) == expected
