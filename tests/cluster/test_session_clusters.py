"""Sessions that bring a cluster (`cluster_def`) or have a state of their own (`isolate_session_state`).

`tests/interop/programs/clusters.py` compares what they see with TensorFlow; here is what goes on in the tasks.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.protos import worker_pb2
from dtflab.protos.tensorflow_server_pb2 import ServerDef
from tests.cluster.raw_client import Raw
from tests.cluster.two_tasks import cluster_over, open_links, until

ISOLATED = tf.ConfigProto(isolate_session_state=True)
WIRES = ["direct", "link", "grpc"]


@pytest.fixture(params=WIRES)
def cluster(request):
    """Three workers that call each other's methods, or over a wire; then so do their clients."""
    if request.param == "direct":
        with tf.Cluster(worker=3) as found:
            yield found
    else:
        with cluster_over(request.param, worker=3) as found:
            open_links(found)
            yield found


def brought(cluster, *order, job="worker", shares=False):
    """The config of a session for which the tasks of the cluster are numbered in another order."""
    addresses = [cluster.tasks[number].server.task.address for number in order]
    config = tf.ConfigProto(cluster_def=tf.train.ClusterSpec({job: addresses}).as_cluster_def())
    config.experimental.share_session_state_in_clusterspec_propagation = shares
    return config


def target(cluster, number):
    return cluster.tasks[number].target


def workers(cluster):
    return [task.server.task.worker for task in cluster.tasks]


def ring(x):
    """A value that passes all workers and is changed by each."""
    for number in (1, 2, 0, 2, 1):
        with tf.device(f"/job:worker/task:{number}"):
            x = x * 3.0 + number
    return x


def expected(x):
    for number in (1, 2, 0, 2, 1):
        x = x * 3.0 + number
    return x


def test_the_same_names_mean_other_tasks_in_two_sessions(cluster):
    """A value that is ready is pushed to the task of its name in the servers' own cluster, which here is another."""
    x = tf.placeholder(tf.float32, [4])
    y = ring(x)
    with (
        tf.Session(target(cluster, 0)) as plain,
        tf.Session(target(cluster, 0), config=brought(cluster, 1, 2, 0)) as session,
    ):
        for i in range(6):
            fed = np.arange(4, dtype=np.float32) + i
            for one in (plain, session):
                np.testing.assert_allclose(one.run(y, {x: fed}), expected(fed))
        until(lambda: not any(worker.rendezvous.waiting() for worker in workers(cluster)), "nobody waits any more")


@pytest.mark.parametrize("secret", ["TLS", "token"])
def test_members_use_the_credentials_of_their_servers(tls, secret):
    token = tf.Credentials(token="a-token-of-the-test")
    servers, client = (tls.server, tls.client) if secret == "TLS" else (token, token)
    x = tf.placeholder(tf.float32, [])
    y = ring(x)
    with (
        cluster_over("link", worker=3, credentials=servers) as cluster,
        tf.Session(target(cluster, 0), config=brought(cluster, 1, 2, 0), credentials=client) as session,
    ):
        assert session.run(y, {x: 2.0}) == expected(2.0)


def test_variables_lie_where_the_session_s_names_say(cluster):
    """Seen by the sessions of the servers themselves, when the state is shared."""
    with tf.device("/job:member/task:1"):
        v = tf.Variable(7.0, name="v", use_resource=False)
    with tf.Session(target(cluster, 0), config=brought(cluster, 2, 1, 0, job="member", shares=True)) as session:
        session.run(v.initializer)
    for number in range(3):
        with tf.Graph().as_default(), tf.Session(target(cluster, number)) as session:
            with tf.device(f"/job:worker/task:{number}"):
                there = tf.Variable(0.0, name="v", use_resource=False)
            if number == 1:
                assert session.run(there) == 7.0
            else:
                with pytest.raises(tf.errors.FailedPreconditionError):
                    session.run(there)


def test_a_session_sees_its_own_names(cluster):
    config = brought(cluster, 1, 0, job="member")
    with tf.device("/job:member/task:0"):
        a = tf.add(tf.placeholder_with_default(1.0, [], name="one"), 1.0, name="a")
    with tf.device("/job:member/replica:0/task:1/device:CPU:0"):
        b = tf.add(a, 1.0, name="b")
    with tf.Session(target(cluster, 0), config=config) as session:
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        assert session.run(b, options=options, run_metadata=metadata) == 3.0
        ran = {node.node_name: stats.device for stats in metadata.step_stats.dev_stats for node in stats.node_stats}
        devices = [device.name for device in session.list_devices()]
    members = [f"/job:member/replica:0/task:{number}/device:CPU:0" for number in (0, 1)]
    assert (ran["a"], ran["b"]) == tuple(members)
    assert sorted(devices) == members
    assert {node.device for graph in metadata.partition_graphs for node in graph.node} == set(members)


def test_a_partial_run_over_three_members(cluster):
    with tf.device("/job:worker/task:0"):
        x, z = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.device("/job:worker/task:2"):
        y = x + 1.0
    with tf.device("/job:worker/task:1"):
        product = y * z
    with tf.Session(target(cluster, 1), config=brought(cluster, 1, 2, 0)) as session:
        for i in (1.0, 2.0):
            handle = session.partial_run_setup([y, product], [x, z])
            assert session.partial_run(handle, y, {x: i}) == i + 1
            assert session.partial_run(handle, product, {z: 10.0}) == (i + 1) * 10


def test_each_session_has_its_variables_until_it_closes(cluster):
    v = tf.Variable(0.0, name="v")
    more = v.assign_add(1.0)
    for config in (ISOLATED, brought(cluster, 0, 1, job="member")):
        sessions = [tf.Session(target(cluster, 0), config=config) for _ in range(2)]
        for session in sessions:
            with pytest.raises(tf.errors.FailedPreconditionError):
                session.run(v)
            session.run(v.initializer)
        assert [session.run(more) for session in (*sessions, sessions[0])] == [1.0, 1.0, 2.0]
        for session in sessions:
            session.close()
    assert [worker._sessions for worker in workers(cluster)] == [{}, {}, {}]
    assert [device.resources.items() for worker in workers(cluster) for device in worker.devices] == [[], [], []]


def test_a_reset_leaves_the_isolated_sessions_of_other_masters_alone(cluster):
    with tf.device("/job:worker/task:0"):
        v = tf.Variable(3.0)
    with tf.Session(target(cluster, 1), config=ISOLATED) as session:
        session.run(v.initializer)
        tf.Session.reset(target(cluster, 0))
        assert session.run(v) == 3.0
        tf.Session.reset(target(cluster, 1))
        with pytest.raises(tf.errors.AbortedError, match="not found"):
            session.run(v)


def in_a_thread(session, fetch):
    """Run what blocks; the list gets the error that ends it."""
    caught = []

    def run():
        try:
            session.run(fetch)
        except tf.errors.OpError as error:
            caught.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, caught


@pytest.mark.parametrize("ends", ["close", "stop"])
def test_who_waits_at_a_queue_of_an_isolated_session_learns_of_its_end(cluster, ends):
    with tf.device("/job:worker/task:1"):
        queue = tf.FIFOQueue(1, tf.float32, shared_name="q")
        taken, size = queue.dequeue(), queue.size()
    session = tf.Session(target(cluster, 0), config=ISOLATED)
    assert session.run(size) == 0
    thread, caught = in_a_thread(session, taken)
    until(lambda: any(" waits at " in line for line in cluster.waits()), "it waits")
    (held,) = (held for device in workers(cluster)[1].stateful_devices() for _, _, held in device.resources.items())
    if ends == "close":
        session.close()
    else:
        cluster.tasks[1].server.stop()
    thread.join(60)
    assert isinstance(caught[0], tf.errors.CancelledError if ends == "close" else tf.errors.OpError)
    assert held.closed
    session.close()


def test_a_session_with_members_alone_needs_no_other_task():
    with tf.Cluster(worker=3) as cluster:
        config = brought(cluster, 0, 1, job="member")
        cluster.tasks[2].server.stop()
        with tf.device("/job:member/task:1"):
            a = tf.constant(1.0) + 1.0
        with tf.Session(target(cluster, 0), config=config) as session:
            assert session.run(a) == 2.0


def test_device_filters_have_the_session_s_names(cluster):
    config = brought(cluster, 1, 0, 2, job="member")
    config.device_filters.append("/job:member/task:2")
    a = tf.constant(1.0)
    with tf.Session(target(cluster, 0), config=config) as session:
        assert session.run(a) == 1.0
        found = sorted(device.name for device in session.list_devices())
    assert found == [f"/job:member/replica:0/task:{number}/device:CPU:0" for number in (1, 2)]  # 1: the master's own


def test_several_devices_of_a_task():
    server_config = tf.ConfigProto(device_count={"CPU": 2})
    servers = [tf.train.Server.create_local_server(server_config) for _ in range(2)]
    try:
        addresses = [server.target.removeprefix("grpc://") for server in servers]
        config = tf.ConfigProto(cluster_def=tf.train.ClusterSpec({"worker": addresses}).as_cluster_def())
        with tf.device("/job:worker/task:1/cpu:1"):
            one = tf.placeholder_with_default(17.0, [])
        with tf.device("/job:worker/task:0/device:CPU:1"):
            other = tf.placeholder_with_default(3.0, [])
        with tf.device("/job:worker/task:1/cpu:0"):
            first = one + other
        with tf.device("/job:worker/task:0/cpu:1"):
            second = one - other
        with tf.device("/job:worker/replica:0/task:0/cpu:0"):
            both = first * second
        with tf.Session(servers[0].target, config=config) as session:
            assert session.run(both) == 280.0
            assert len(session.list_devices()) == 4
    finally:
        for server in servers:
            server.stop()


def test_what_can_be_looked_at():
    with tf.Cluster(worker=2) as cluster:
        with tf.device("/job:member/task:1"):
            v = tf.Variable(1.0, name="v", use_resource=False)
        with tf.Session(target(cluster, 1), config=brought(cluster, 0, 1, job="member")) as session:
            session.run(v.initializer)
            assert session.master_task == "/job:member/replica:0/task:1"
            assert {node.device for node in session.placed_nodes()} == {f"{session.master_task}/device:CPU:0"}
            names = {(d.name, name) for d in session.local_devices() for _, name, _ in d.resources.items()}
            assert names == {(f"{session.master_task}/device:CPU:0", "v")}
            assert [held.name for held in cluster.variables()] == ["v"]
            steps = session.step_through(v)
            assert steps.finish() == 1.0


def test_an_isolated_variable_on_a_gpu_takes_its_memory_until_the_end():
    with tf.Cluster(worker=1, gpus=1) as cluster:
        memory = next(d.memory for d in workers(cluster)[0].devices if d.type == "GPU")
        with tf.device("/gpu:0"):
            v = tf.Variable(tf.zeros([1000, 1000]))
        before = memory.bytes_in_use
        with tf.Session(target(cluster, 0), config=ISOLATED) as session:
            session.run(v.initializer)
            assert memory.bytes_in_use >= before + 4_000_000
            assert session.run(tf.reduce_sum(v)) == 0.0
        assert memory.bytes_in_use < before + 4_000_000


# ---- what is refused ----


def refused(target, fetch, **cluster):
    config = tf.ConfigProto(cluster_def=tf.train.ClusterSpec(cluster).as_cluster_def())
    with tf.Session(target, config=config) as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(fetch)
    return caught.value.message


def test_clusters_of_which_the_master_is_not_a_task_of_its_own(cluster):
    a, here = tf.constant(1.0), cluster.tasks[0].server.task.address
    text = refused(target(cluster, 0), a, member=["localhost:1"])
    assert text.startswith("The master (current machine) is not included in the provided cluster_def.")
    assert f"The session's target is {here}" in text
    text = refused(target(cluster, 0), a, member=[here], other=[here])
    assert text.startswith("Found multiple matching tasks that correspond to to the master. Master target: 'grpc://")
    text = refused(target(cluster, 0), a, worker=[here])
    assert "to be the same names that were provided when the server booted" in text
    assert "Job: worker, task index: 0" in text


@pytest.mark.parametrize(
    "jobs, text",
    [
        ([("a b", {})], "'a b' can't be the name of a job"),
        ([("", {})], "'' can't be the name of a job"),
        ([("a/b", {})], "'a/b' can't be the name of a job"),
        ([("w", {}), ("w", {1: "localhost:1"})], "Duplicate job ID in cluster specification: w"),
        ([("w", {-1: "localhost:1"})], "Job 'w' can't have a task -1"),
        ([("w", {1: "nonsense"})], 'Could not interpret "nonsense" as a host-port pair'),
        ([("w", {1: ""})], 'Could not interpret "" as a host-port pair'),
        ([("w", {1: "localhost:99999"})], 'Could not interpret "localhost:99999" as a host-port pair'),
    ],
)
def test_clusters_that_can_t_be(jobs, text):
    with tf.Cluster(worker=1) as cluster:
        config = tf.ConfigProto()
        for name, tasks in jobs:
            job = config.cluster_def.job.add(name=name)
            job.tasks[0] = cluster.tasks[0].server.task.address
            for index, address in tasks.items():
                job.tasks[index] = address
        a = tf.constant(1.0)
        refusal = pytest.raises(tf.errors.InvalidArgumentError)
        with tf.Session(target(cluster, 0), config=config) as session, refusal as caught:
            session.run(a)
        assert text in caught.value.message


def test_a_worker_that_is_not_the_task_it_is_told_to_be():
    with tf.Cluster(worker=1, listen=True) as cluster:
        task = cluster.tasks[0].server.task
        spec = tf.train.ClusterSpec({"member": [task.address, "localhost:1"]}).as_cluster_def()
        raw = Raw(task.address)
        for index, text in [(1, "Requested port 1 differs from expected port"), (2, "is not a task of the provided")]:
            definition = ServerDef(cluster=spec, job_name="member", task_index=index, protocol="grpc")
            request = worker_pb2.CreateWorkerSessionRequest(session_handle="s", server_def=definition)
            with pytest.raises(errors.InvalidArgumentError, match=text):
                raw("CreateWorkerSession", request, 60)
        assert task.worker._sessions == {}


def test_a_session_that_one_worker_refuses_leaves_nothing_at_the_others(cluster):
    config = brought(cluster, 0, 2, 1, job="member")

    def refuse(definition, target):
        raise errors.InvalidArgumentError.of("not here")

    workers(cluster)[1].join = refuse
    a = tf.constant(1.0)
    with tf.Session(target(cluster, 0), config=config) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="not here"):
            session.run(a)
        assert [worker._sessions for worker in workers(cluster)] == [{}, {}, {}]


def test_in_virtual_time_tasks_keep_their_names():
    with tf.Cluster(worker=2, clock="virtual") as cluster:
        config = brought(cluster, 0, 1, job="member")
        v = tf.Variable(1.0)
        refusal = pytest.raises(tf.errors.UnimplementedError, match="leave cluster_def out")
        with tf.Session(target(cluster, 0), config=config) as session, refusal:
            session.run(v.initializer)
        with tf.Session(target(cluster, 0), config=ISOLATED) as session:
            session.run(v.initializer)
            assert session.run(v) == 1.0
        with tf.Session(target(cluster, 0)) as session, pytest.raises(tf.errors.FailedPreconditionError):
            session.run(v)


def test_a_session_in_this_process_alone_has_neither():
    config = tf.ConfigProto(isolate_session_state=True)
    config.cluster_def.CopyFrom(tf.train.ClusterSpec({"member": ["localhost:1"]}).as_cluster_def())
    with tf.Session(config=config) as session:
        assert session.run(tf.constant(1.0)) == 1.0
        assert [device.name for device in session.list_devices()] == ["/job:localhost/replica:0/task:0/device:CPU:0"]


def test_a_server_may_isolate_all_its_sessions():
    server = tf.train.Server.create_local_server(ISOLATED)
    try:
        v = tf.Variable(1.0)
        with tf.Session(server.target) as one, tf.Session(server.target) as other:
            one.run(v.initializer)
            with pytest.raises(tf.errors.FailedPreconditionError):
                other.run(v)
    finally:
        server.stop()
