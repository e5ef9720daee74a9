"""GPUs of a cluster's hosts: who has which, who shares them, and when their memory is free again."""

from __future__ import annotations

import os

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.addresses import free_addresses
from dtflab.machine import cards, hosts, registry

MIB = 1 << 20
BOOK = {"ps": ["machine-a.example.com:2221"], "worker": ["machine-a.example.com:2222", "machine-b.example.com:2222"]}


def gpus(cluster, job, index=0):
    return [d.physical_device_desc for d in cluster.task(job, index).devices() if d.device_type == "GPU"]


def buses(cluster, job, index=0):
    return [description.partition("bus id: ")[2][:12] for description in gpus(cluster, job, index)]


def fraction(share):
    return tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=share))


def use(cluster, job, index=0, gpu=0):
    """Run something on a GPU of a task, so that its program takes memory."""
    with tf.Graph().as_default(), tf.device(f"/job:{job}/task:{index}/gpu:{gpu}"):
        product = tf.matmul(tf.ones([8, 8]), tf.ones([8, 8]))
        with tf.Session(cluster.target_of(job, index)) as sess:
            assert sess.run(product).sum() == 512


def held():
    """Whole MiB by (host, card, program), as all processes tell."""
    return {
        (holding.host, holding.card, holding.program or record.command): -(-holding.held // MIB)
        for record in registry.registry().everyone()
        for holding in record.holdings
    }


# ---- who sees which ----


def test_counted_tasks_have_a_host_each_and_a_ps_sees_none():
    with tf.Cluster(ps=1, worker=2, gpus=2, gpu="K40", gpu_memory="4GiB", name="lab") as cluster:
        assert gpus(cluster, "ps") == []
        assert gpus(cluster, "worker", 0) == gpus(cluster, "worker", 1) == [
            "device: 0, name: Tesla K40m, pci bus id: 0000:00:03.0, compute capability: 3.5",
            "device: 1, name: Tesla K40m, pci bus id: 0000:00:04.0, compute capability: 3.5",
        ]  # fmt: skip
        first, second = (cluster.task("worker", i).server.task.devices[1].claim for i in range(2))
        assert first.card is not second.card and first.card.memory_bytes == 4 << 30
        assert first.card.host == f"worker-0.lab of process {os.getpid()}"
        (record,) = registry.registry().everyone()
        assert sorted(record.hosts) == [f"worker-{i}.lab of process {os.getpid()}" for i in range(2)]
    assert registry.registry().everyone()[0].hosts == {}


def test_tasks_on_one_machine_share_its_cards():
    with tf.Cluster(BOOK, gpus=1, config=fraction(0.4), visible_devices={"ps": "0"}, name="book") as cluster:
        assert buses(cluster, "ps") == buses(cluster, "worker", 0) == buses(cluster, "worker", 1) == ["0000:00:03.0"]
        for job, index in (("ps", 0), ("worker", 0), ("worker", 1)):
            use(cluster, job, index)
        assert held() == {
            ("machine-a.example.com", 0, "/job:ps/task:0 of book"): 1677,
            ("machine-a.example.com", 0, "/job:worker/task:0 of book"): 1677,
            ("machine-b.example.com", 0, "/job:worker/task:1 of book"): 1677,
        }


def test_the_second_of_two_greedy_tasks_gets_an_error_that_says_who_has_all(capfd):
    with tf.Cluster(BOOK, gpus=1, visible_devices={"ps": "0"}, name="book") as cluster:
        use(cluster, "ps")
        with pytest.raises(errors.ResourceExhaustedError, match=r"/job:ps/task:0 of book holds 3785 MiB"):
            use(cluster, "worker")
        assert capfd.readouterr().err == (
            "failed to allocate 3.66G (3928915968 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY\n"
        )
        use(cluster, "worker", 1)


@pytest.mark.parametrize(
    ("visible", "ps", "first", "second"),
    [
        (None, [], [3, 4, 5], [3, 4, 5]),
        ({}, [], [3, 4, 5], [3, 4, 5]),
        ({"ps": None}, [3, 4, 5], [3, 4, 5], [3, 4, 5]),
        ({"ps": "2", "worker": "0,1"}, [5], [3, 4], [3, 4]),
        ({"worker": ["2,0", ""]}, [], [5, 3], []),
        ({"worker": ["1", None]}, [], [4], [3, 4, 5]),
    ],
)
def test_visible_devices_per_job_and_per_task(visible, ps, first, second):
    def ids(*args):
        return [int(bus[8:10], 16) for bus in buses(cluster, *args)]

    with tf.Cluster(ps=1, worker=2, gpus=3, visible_devices=visible) as cluster:
        assert [ids("ps"), ids("worker", 0), ids("worker", 1)] == [ps, first, second]


def test_the_shell_of_the_notebook_is_not_the_one_of_the_hosts(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with tf.Cluster(worker=1, gpus=2) as cluster:
        assert len(gpus(cluster, "worker")) == 2


def test_without_gpus_hosts_have_what_this_process_simulates():
    with tf.Cluster(worker=1) as cluster:
        assert gpus(cluster, "worker") == []
    with tf.Cluster(worker=1, config=tf.ConfigProto(device_count={"GPU": 2})) as cluster:
        assert len(gpus(cluster, "worker")) == 2
    hosts.simulate_gpus(1, "P100")
    with tf.Cluster(ps=1, worker=1) as cluster:
        assert "Tesla P100" in gpus(cluster, "worker")[0] and gpus(cluster, "ps") == []
    with tf.Cluster(worker=1, gpus=0) as cluster:
        assert gpus(cluster, "worker") == []


def test_a_program_s_own_servers_see_their_hosts_cards(monkeypatch):
    monkeypatch.setenv("DTFLAB_GPUS", "2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    servers = [tf.train.Server(BOOK, "worker", index, listen=False) for index in range(2)]
    try:
        claims = [server.task.devices[1].claim for server in servers]
        assert [claim.card.host for claim in claims] == ["machine-a.example.com", "machine-b.example.com"]
        assert [claim.card.index for claim in claims] == [1, 1] and {c.program for c in claims} == {hosts.THIS_PROCESS}
        assert [len(server.task.devices) for server in servers] == [2, 2]
    finally:
        for server in servers:
            server.stop()


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"gpu": "K40"}, ValueError, "the number of GPUs of each host"),
        ({"gpus": 1, "gpu": "K41"}, ValueError, "No GPU model 'K41'"),
        ({"gpus": -1}, ValueError, "must be 0 or more"),
        ({"gpus": 1, "gpu_memory": "much"}, ValueError, "'much' is not an amount of memory"),
        ({"gpus": 1, "visible_devices": {"chief": "0"}}, ValueError, "names 'chief', but the jobs are ps, worker"),
        ({"gpus": 1, "visible_devices": "0"}, TypeError, "must name jobs, as in {'worker': '0,1'}, not '0'"),
        ({"gpus": 1, "visible_devices": {"worker": ["0"]}}, ValueError, "is for 1 tasks, but the job has 2"),
        ({"gpus": 1, "visible_devices": {"worker": 0}}, TypeError, "must be a text such as '0,1'"),
        ({"gpus": 1, "visible_devices": {"worker": [0, 1]}}, TypeError, "must be a text such as '0,1'"),
    ],
)
def test_what_can_t_be_is_refused_before_anything_starts(arguments, kind, message):
    before = registry.registry().everyone()[0].hosts.copy()
    with pytest.raises(kind, match=message):
        tf.Cluster(ps=1, worker=2, **arguments)
    assert registry.registry().everyone()[0].hosts == before


def test_two_clusters_on_one_machine_must_agree():
    with tf.Cluster(BOOK, gpus=2):
        other = {"worker": ["machine-b.example.com:3333"]}
        with pytest.raises(ValueError, match="while another cluster of this process is running"):
            tf.Cluster(other, gpus=1)
        with tf.Cluster(other, gpus=2) as cluster:
            assert len(gpus(cluster, "worker")) == 2
    with tf.Cluster(other, gpus=1) as cluster:
        assert len(gpus(cluster, "worker")) == 1


# ---- when memory is free again ----


def test_a_task_that_stops_frees_its_memory():
    with tf.Cluster(BOOK, gpus=1, visible_devices={"ps": "0"}, name="book") as cluster:
        use(cluster, "ps")
        assert len(held()) == 1
        cluster.kill("ps")
        assert held() == {}
        cluster.restart("ps")
        use(cluster, "worker")
        cluster.restart("worker")
        assert held() == {}
        use(cluster, "ps")
        assert list(held()) == [("machine-a.example.com", 0, "/job:ps/task:0 of book")]
    assert held() == {}


def test_a_cluster_that_was_stopped_starts_again_with_its_cards():
    cluster = tf.Cluster(worker=2, gpus=1)
    try:
        use(cluster, "worker")
        cluster.stop()
        assert held() == {} and registry.registry().everyone()[0].hosts == {}
        cluster.restart()
        assert {state for _, _, state in cluster.rows()} == {"running"}
        use(cluster, "worker", 1)
    finally:
        cluster.stop()


# ---- an operating system process per task ----


def test_tasks_in_processes_of_their_own():
    with tf.Cluster(ps=1, worker=2, gpus=2, gpu="K40", engine="process", name="far",
                    visible_devices={"worker": ["1", None]}) as cluster:  # fmt: skip
        assert gpus(cluster, "ps") == [] and buses(cluster, "worker", 0) == ["0000:00:04.0"]
        assert len(gpus(cluster, "worker", 1)) == 2 and "Tesla K40m" in gpus(cluster, "worker", 1)[0]
        use(cluster, "worker", 0)
        use(cluster, "worker", 1)
        whole = -(-(cards.grab_all_limit(cards.model("K40").memory_bytes) // 256 * 256 + cards.CONTEXT_BYTES) // MIB)
        own = f"far of process {os.getpid()}"
        assert held() == {
            (f"worker-0.{own}", 1, "/job:worker/task:0"): whole,
            (f"worker-1.{own}", 0, "/job:worker/task:1"): whole,
            (f"worker-1.{own}", 1, "/job:worker/task:1"): whole,  # a program takes all cards that it sees
        }
        cluster.kill("worker", 0)
        assert list(held()) == [(f"worker-1.{own}", gpu, "/job:worker/task:1") for gpu in (0, 1)]
        cluster.restart("worker", 0)
        use(cluster, "worker", 0)
        assert len(held()) == 3
    assert held() == {}


def test_processes_on_one_host_share_its_card():
    with tf.Cluster({"worker": free_addresses(2)}, gpus=1, engine="process", config=fraction(0.6)) as cluster:
        use(cluster, "worker", 0)
        with pytest.raises(errors.ResourceExhaustedError, match=r"process \d+ \(/job:worker/task:0\) holds 2496 MiB"):
            use(cluster, "worker", 1)
        cluster.kill("worker", 0)
        cluster.restart("worker", 0)
        use(cluster, "worker", 1)
