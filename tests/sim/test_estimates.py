"""`sim.estimate`: what it takes, what it says, what each mechanism is worth on its own kind of platform."""

import dataclasses
import json

import numpy as np
import pytest

import dtflab as tf
from dtflab import sim
from dtflab.sim.engine.job import Input
from dtflab.sim.engine.layer_costs import Kernel, VariableCost
from dtflab.sim.engine.parameters import IDEAL, Parameters
from dtflab.sim.engine.stragglers import lognormal
from dtflab.sim.estimates.estimate import MECHANISMS, MODES, estimate
from tests.sim.networks import BUS, CPU, GPU, cluster, layered, network

SIZES = [400_000, 3_000_000, 50_000, 9_000_000, 1_200_000]
NETWORK = layered(SIZES, output_bytes=100_000)


def seconds(there, steps=5, network=NETWORK, mode="ps_sync", **options):
    return estimate(network, there, steps, mode, **{"parameters": IDEAL, **options}).step_time


# ---- what it says ----


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_says_the_same_in_all_forms(mode):
    spares = {"spares": 1} if mode == "ps_sync_spares" else {}
    found = estimate(NETWORK, cluster(4, 2, bandwidth=1e8), 7, mode, parameters=IDEAL, **spares)
    numbers = json.loads(found.to_json())
    assert numbers["throughput"] == found.throughput == pytest.approx(found.speedup * found.single)
    assert numbers["devices"] == 4 and numbers["mode"] == mode
    assert sum(numbers["step_time_histogram"]["counts"]) == len(found.step_times)
    assert list(found.percentiles()) == [1, 10, 50, 90, 99]
    assert found.percentiles()[50] == pytest.approx(found.step_time)
    assert all(0 <= load <= 1 + 1e-9 for load in [*found.link_load.values(), *found.device_load.values()])
    assert set(found.device_load) == set(found.cluster.devices)
    for text in (repr(found), str(found), found._repr_html_()):
        assert f"{found.throughput:,.4g}" in text
    for title, heads, rows in found.tables:
        assert title in str(found) and all(len(row) == len(heads) for row in rows)


@pytest.mark.parametrize("mode", ["ps_sync", "ps_sync_spares", "allreduce", "model_parallel", "pipeline"])
@pytest.mark.parametrize("workers", [{"workers": 5}, {"workers": 2, "gpus_per_worker": 2}])
def test_the_critical_path_is_as_long_as_the_step(mode, workers):
    there = cluster(ps_tasks=2, bandwidth=1e8, latency_s=1e-4, **workers)
    spares = {"spares": 1} if mode == "ps_sync_spares" else {}
    found = estimate(NETWORK, there, 6, mode, parameters=IDEAL, stragglers=lognormal(0.2), seed=3, **spares)
    assert sum(part.seconds for part in found.critical_path) == pytest.approx(found.step_times[-1], rel=1e-9)
    assert all(part.seconds >= -1e-12 for part in found.critical_path)


def test_the_largest_part_of_the_path_is_what_is_wrong():
    def largest(there, **options):
        found = estimate(NETWORK, there, 3, parameters=IDEAL, **options)
        return max(found.critical_path, key=lambda part: part.seconds)

    assert largest(cluster(2, 2, bandwidth=1e12)).kind == "backward"
    assert largest(cluster(20, 2, bandwidth=1e8)).kind == "queue"
    slow_files = Input(1e6, 1e6)
    assert largest(cluster(2, 2, bandwidth=1e12), input=slow_files).kind == "input"


def test_a_step_can_be_shown_if_it_was_kept():
    there = cluster(3, 2, bandwidth=1e8)
    found = estimate(NETWORK, there, 4, parameters=IDEAL, trace=True)
    for step in range(4):
        stats = found.step_stats(step, workers=[1])
        nodes = {node.node_name: node for each in stats.dev_stats for node in each.node_stats}
        assert nodes["forward"].all_end_rel_nanos == pytest.approx(
            1e9 * (found.record.trace.forward[step, 1] - found.record.trace.computed_from[step, 1]), abs=1
        )
        received = [n for each in stats.dev_stats for n in each.node_stats if n.node_name == "RecvTensor"]
        assert len(received) == 2 * len(SIZES)
    with pytest.raises(ValueError, match="Only the last step was kept"):
        estimate(NETWORK, there, 4, parameters=IDEAL).step_stats(0)
    with pytest.raises(ValueError, match="No step has number 4: the run has 4 steps"):
        found.step_stats(4)


def shown(stats):
    """By device, name and end in seconds of what is shown."""
    return {
        each.device: [(n.node_name, 1e-9 * (n.all_start_nanos + n.all_end_rel_nanos)) for n in each.node_stats]
        for each in stats.dev_stats
    }


@pytest.mark.parametrize("engine", ["vectorized", "events"])
def test_sums_of_an_all_reduce_can_be_shown(engine):
    options = {"fusion_bytes": 1e6, "trace": True, "parameters": IDEAL, "engine": engine}
    found = estimate(NETWORK, cluster(3, bandwidth=1e8), 4, "allreduce", **options)
    devices = shown(found.step_stats(2, workers=[0, 2]))
    assert len(devices) == 2
    for spans in devices.values():
        assert [name for name, _ in spans] == ["forward", "backward", *["AllReduce"] * (len(spans) - 2)]
        assert spans[-1][1] == pytest.approx(found.record.updates[2], abs=1e-8)


def test_stages_of_a_pipeline_can_be_shown():
    found = estimate(NETWORK, cluster(3, bandwidth=1e8), 4, "pipeline", parameters=IDEAL, micro_batches=2)
    devices = list(shown(found.step_stats()).values())
    assert [name for name, _ in devices[0] if name.startswith("forward")] == ["forward 0/0", "forward 0/1"]
    assert [sum(name == "RecvTensor" for name, _ in spans) for spans in devices] == [2, 4, 2]
    assert max(end for spans in devices for _, end in spans) == pytest.approx(found.step_times[-1], abs=1e-8)
    with pytest.raises(ValueError, match="Only the last step of a pipeline is kept"):
        found.step_stats(0)


def test_equal_seeds_give_equal_estimates():
    there = cluster(4, 2, bandwidth=1e8)
    runs = [
        estimate(NETWORK, there, 5, parameters=IDEAL, stragglers=lognormal(0.3), seed=seed).step_times
        for seed in (1, 1, 2)
    ]
    assert runs[0].tolist() == runs[1].tolist() != runs[2].tolist()


# ---- what it takes ----


def test_models_by_name_as_profile_and_as_loss():
    there = cluster(2, 1)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [16, 100])
        loss = tf.reduce_mean(tf.layers.dense(x, 50))
    names = [estimate(model, there, 2, parameters=IDEAL).model for model in ("mlp", NETWORK, loss)]
    assert names == ["mlp", "layered", "graph"]
    assert estimate(loss, there, 2, parameters=IDEAL).batch == 16
    assert estimate(NETWORK, there, 2, batch=40, parameters=IDEAL).single == pytest.approx(
        estimate(NETWORK, there, 2, parameters=IDEAL).single
    )


def test_a_cluster_in_virtual_time():
    with tf.Cluster(ps=2, worker=3, gpus=2, gpu="K40", network="10Gb/s", clock="virtual") as running:
        found = estimate(NETWORK, running, 2, parameters=IDEAL)
    assert found.cluster.gpus[2] == tuple(f"/job:worker/replica:0/task:2/device:GPU:{g}" for g in range(2))
    assert found.cluster.servers == tuple(f"/job:ps/replica:0/task:{p}/device:CPU:0" for p in range(2))


def test_a_measured_rate_takes_the_place_of_the_roofline():
    found = estimate(NETWORK, cluster(1, 1, bandwidth=float("inf")), 3, single_gpu_rate=123.0, parameters=IDEAL)
    assert found.single == pytest.approx(123.0) and found.throughput == pytest.approx(123.0, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "ps"}, "mode='ps' is not known; there are ps_sync, ps_async"),
        ({"off": ["magic"]}, "off='magic' is not known; there are overlap"),
        ({"mode": "ps_async", "engine": "vectorized"}, "engine='vectorized' does not simulate mode 'ps_async'"),
        ({"steps": 0}, "steps=0 is not a whole number from 1 up."),
        ({"steps": 1.5}, r"steps=1\.5 is not a whole number"),
        ({"batch": 2.5}, r"batch=2\.5 is not a whole number from 1 up\."),
        ({"seed": -1}, r"seed=-1 is not a whole number from 0 up\."),
        ({"most_items": 0}, r"most_items=0 is not a whole number from 1 up\."),
        ({"fusion_bytes": "all"}, "fusion_bytes='all' is not a number of at least 0"),
        ({"batch": 0}, "batch=0 is not a whole number from 1 up"),
        ({"parts": 0}, "parts=0 is not a whole number from 1 up"),
        ({"mode": "allreduce", "fusion_bytes": -1}, "fusion_bytes=-1 is not a number of at least 0"),
        ({"off": "magic"}, "off='magic' is not known"),
        ({"spares": 2}, "spares=2 has no meaning in mode 'ps_sync'"),
        ({"spares": 2, "mode": "allreduce"}, "spares=2 has no meaning in mode 'allreduce'"),
        (
            {"input": Input(1, 1), "mode": "pipeline"},
            r"input=Input\(.*\) has no meaning in mode 'pipeline': take 'ps_sync'",
        ),
        (
            {"parts": 2, "mode": "allreduce"},
            "parts=2 has no meaning in mode 'allreduce': take 'ps_sync' or 'ps_async' or",
        ),
        ({"strategy": "fair", "mode": "pipeline"}, "strategy='fair' has no meaning in mode 'pipeline'"),
        (
            {"local_aggregation": False, "mode": "model_parallel"},
            "local_aggregation=False has no meaning in mode 'model",
        ),
        ({"most_items": 9, "mode": "allreduce"}, "most_items=9 has no meaning in mode 'allreduce'"),
        ({"algorithm": "star"}, "algorithm='star' has no meaning in mode 'ps_sync': take 'allreduce'"),
        ({"fusion_bytes": 0}, "fusion_bytes=0 has no meaning in mode 'ps_sync': take 'allreduce'"),
        ({"micro_batches": 2, "mode": "model_parallel"}, "micro_batches=2 has no meaning .* take 'pipeline'"),
        ({"off": 3}, "off=3 is not known; there are overlap"),
        ({"off": ["rpc", ["input"]]}, r"off=\['input'\] is not known; there are overlap"),
        ({"mode": ["allreduce"]}, r"mode=\['allreduce'\] is not known; there are ps_sync"),
        ({"single_gpu_rate": "fast"}, "finite number of examples per second above 0, not 'fast'"),
        ({"single_gpu_rate": float("inf")}, "finite number of examples per second above 0, not inf"),
        ({"mode": "ps_sync_spares"}, r"spares=\.\.\., how many of the 4 workers .* from 0 to 3, for example spares=1"),
        ({"mode": "ps_sync_spares", "spares": -1}, r"spares=-1 is not a whole number from 0 up\."),
        ({"mode": "ps_sync_spares", "spares": 4}, "Of 4 workers 4 can't be spares"),
        ({"strategy": "fair"}, "Unknown strategy for variables 'fair': take 'round_robin' or 'greedy'"),
        ({"mode": "pipeline", "micro_batches": 11}, "A batch of 10 can't be cut into 11 micro-batches"),
        ({"mode": "allreduce", "algorithm": "star"}, "Unknown all-reduce algorithm 'star'"),
    ],
)
def test_what_can_not_be_asked(options, message):
    with pytest.raises(ValueError, match=message):
        estimate(NETWORK, cluster(4, 2), **{"parameters": IDEAL, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stragglers": 0.2}, r"stragglers must be like sim\.lognormal\(0\.2\), not 0\.2"),
        ({"input": "a file"}, r"input must be like a sim\.Input\(…\), not 'a file'"),
        ({"parameters": {"jitter": 0}}, r"parameters must be like a sim\.Parameters\(…\), not"),
    ],
)
def test_options_that_are_objects(options, message):
    with pytest.raises(TypeError, match=message):
        estimate(NETWORK, cluster(2, 1), **options)
    with pytest.raises(TypeError, match=r"model must be a name of sim\.models, .* not 3"):
        estimate(3, cluster(2, 1))
    for numbers in ((1e5, 0), (float("nan"), 1e9), ("much", 1e9)):
        with pytest.raises(ValueError, match="bytes_per_example must be"):
            Input(*numbers)
    for size in ("some", float("nan")):
        with pytest.raises(ValueError, match="size of exponential stragglers must be a finite number"):
            sim.exponential(size)


def test_factors_may_be_one_s_own():
    class FirstIsSlow:
        def factors(self, steps, devices, seed):
            return np.where(np.arange(devices) == 0, 2.0, 1.0) * np.ones([steps, 1])

    there = cluster(3, 1, bandwidth=float("inf"))
    assert seconds(there, stragglers=FirstIsSlow()) == pytest.approx(2 * seconds(there), rel=1e-6)


def test_a_question_leaves_the_graph_as_it_is():
    with tf.Graph().as_default() as graph:
        loss = tf.reduce_mean(tf.layers.dense(tf.placeholder(tf.float32, [16, 8]), 4))
        before = [op.name for op in graph.get_operations()]
        graph.finalize()
        assert estimate(loss, cluster(1, 1), 2, parameters=IDEAL).batch == 16
        assert [op.name for op in graph.get_operations()] == before


def test_a_batch_that_the_graph_leaves_open_is_that_which_is_asked_for():
    with tf.Graph().as_default():
        loss = tf.reduce_mean(tf.layers.dense(tf.placeholder(tf.float32, [None, 8]), 4))
        assert estimate(loss, cluster(1, 1), 2, batch=24, parameters=IDEAL).batch == 24


@pytest.mark.parametrize("source", ["fed", "read"])
def test_an_open_batch_costs_what_a_stated_one_does(source):
    """Gradients of what is broadcast have shapes of which nothing is known until the inputs' are."""

    def throughput(rows):
        with tf.Graph().as_default():
            if source == "fed":
                x = tf.placeholder(tf.float32, [rows, 8])
            else:
                data = tf.data.Dataset.from_tensor_slices(np.ones([96, 8], np.float32))
                x = data.batch(24, drop_remainder=rows is not None).make_one_shot_iterator().get_next()
            hidden = tf.nn.dropout(tf.layers.dense(x, 64), 0.5) * tf.get_variable("scales", [64])
            return estimate(tf.reduce_mean(hidden), cluster(2, 1), 2, batch=24, parameters=IDEAL).throughput

    assert throughput(None) == pytest.approx(throughput(24), rel=0.02)


def test_inputs_that_are_no_batch_keep_what_the_graph_says_of_them():
    with tf.Graph().as_default():
        x, scales = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.float32, [None])
        scales = tf.ensure_shape(scales, [3])
        loss = tf.reduce_mean(tf.nn.relu(tf.layers.dense(x, 4))) * tf.reduce_sum(scales)
        assert estimate(loss, cluster(1, 1), 2, batch=24, parameters=IDEAL).batch == 24


def test_a_cluster_must_be_one():
    with pytest.raises(TypeError, match=r"cluster must be sim\.cluster_model"):
        estimate(NETWORK, {"worker": 2}, parameters=IDEAL)
    with tf.Cluster(worker=1) as real, pytest.raises(TypeError, match=r"clock='virtual'\), not <Cluster .*inprocess"):
        estimate(NETWORK, real, parameters=IDEAL)
    for workers in (0, 2.5, "4"):
        with pytest.raises(ValueError, match=f"No cluster has workers={workers!r}, "):
            cluster(workers)
    with pytest.raises(ValueError, match="needs ps_tasks=0 and a worker with GPUs"):
        cluster(1, 1, local_parameter_device="gpu")


@pytest.mark.parametrize("engine", ["vectorized", "events"])
def test_a_gpu_that_holds_its_variables_itself_is_as_fast_as_alone(engine):
    there = cluster(1, 0, local_parameter_device="gpu")  # without a single wire
    found = estimate(NETWORK, there, 3, parameters=IDEAL, engine=engine)
    assert found.speedup == pytest.approx(1.0) and found.link_load == {}
    assert estimate(NETWORK, there, 3, "ps_async", parameters=IDEAL).speedup == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["ps_sync", "allreduce", "pipeline"])
def test_links_of_a_running_cluster_are_called_without_its_process(mode):
    with tf.Cluster(ps=1, worker=2, clock="virtual") as there:
        found = estimate(NETWORK, there, 2, mode, parameters=IDEAL)
    assert "worker-0 egress" in found.link_load
    assert " of process " not in found.to_json() + str(found)


@pytest.mark.parametrize("engine", ["vectorized", "events"])
def test_the_port_of_a_server_that_everybody_waits_for_is_full(engine):
    """4 workers hardly compute and pull 1 MB one after the other; the first pushes while the second pulls: 5 ms."""
    there = cluster(4, 1, bandwidth=1e9)
    found = estimate(layered([1_000_000], 0.0, 1e-9), there, 3, parameters=IDEAL, engine=engine)
    assert found.step_time == pytest.approx(5e-3, rel=1e-3)
    ports = {f"host {i} {way}": 1 / 5 for i in range(4) for way in ("ingress", "egress")}
    ports |= {"ps host 0 egress": 0.8, "ps host 0 ingress": 0.8}
    assert {link: found.link_load[link] for link in ports} == pytest.approx(ports, rel=1e-3)
    assert next(iter(found.link_load)).startswith("ps host 0"), "the busiest first"


@pytest.mark.parametrize(("mode", "engine"), [("ps_sync", "vectorized"), ("ps_sync", "events"), ("ps_async", "events")])
def test_a_device_is_busy_for_what_it_computes(mode, engine):
    """300 ms of computing, and 1 MB each way over 10 MB/s: busy for 0.3 of 0.5 s."""
    alone = estimate(layered([1_000_000]), cluster(1, 1, bandwidth=1e7), 3, mode, parameters=IDEAL, engine=engine)
    assert alone.step_time == pytest.approx(0.5)
    assert [*alone.device_load.values()] == [pytest.approx(0.6)]
    assert alone.link_load["ps host 0 egress"] == pytest.approx(0.2)


@pytest.mark.parametrize("engine", ["vectorized", "events"])
def test_devices_of_unequal_speed_are_busy_for_unequal_times(engine):
    """A straggler takes twice as long; the step of 0.6 s waits for it, and the other idles for half of that."""

    class Fixed:
        def factors(self, steps, devices, seed):
            return np.tile([1.0, 2.0], (steps, 1))

    there = cluster(2, 1, bandwidth=float("inf"))
    found = estimate(layered([1]), there, 4, parameters=IDEAL, stragglers=Fixed(), engine=engine)
    assert found.step_time == pytest.approx(0.6)
    assert [*found.device_load.values()] == pytest.approx([0.5, 1.0])


def test_stages_of_a_pipeline_are_busy_for_all_but_the_bubble():
    """Two equal stages, four micro-batches: (K - 1) / (M + K - 1) = 1/5 of the time each idles."""
    there = cluster(1, 0, gpus_per_worker=2)
    found = estimate(layered([1000] * 4), there, 2, "pipeline", parameters=IDEAL)
    assert [*found.device_load.values()] == pytest.approx([0.8, 0.8])


def test_loads_are_those_of_a_run_in_virtual_time():
    """A worker pulls a matrix, multiplies it, and pushes it back, in a run as in an estimate of that step."""
    hardware = {"gpu": GPU, "cpu": CPU, "bus": BUS, "network": network(1e8)}
    with tf.Cluster(ps=1, worker=1, gpus=1, clock="virtual", **hardware) as there:

        def program(client):
            with tf.device("/job:ps/task:0"):
                weights = tf.get_variable("w", [500, 500], initializer=tf.zeros_initializer())
            with tf.device(f"{client.device}/gpu:0"):
                product = tf.matmul(weights, weights)
            with tf.device("/job:ps/task:0"):
                step = tf.assign_add(weights, product).op
            with tf.Session(client.target) as session:
                session.run(weights.initializer)
                before, started = there.loads(), sim.now()
                session.run(step)
                return before, there.loads(), sim.now() - started

        before, after, took = there.run(program)[0]
        found = estimate(layered([1_000_000], 0.0, 0.0005), there, 5, parameters=IDEAL)

    def spent(kind, name):
        """Seconds that something was busy in the step."""
        return sum(
            sign * load.busy for sign, loads in ((1, after), (-1, before)) for load in kind(loads) if name in str(load)
        )

    assert found.step_time == pytest.approx(took, rel=0.01)
    for link in ("ps-0 egress", "ps-0 ingress", "worker-0 egress", "worker-0 ingress"):
        measured = spent(lambda loads: loads.links, link) / took
        assert found.link_load[link] == pytest.approx(measured, rel=0.02), link
    (computed,) = found.device_load.values()
    assert computed == pytest.approx(spent(lambda loads: loads.processors, "gpu:0") / took, rel=0.02)


def test_evaluators_train_nothing():
    with tf.Cluster(ps=1, chief=1, worker=2, evaluator=1, clock="virtual") as there:
        found = estimate(NETWORK, there, 2, parameters=IDEAL)
    assert [task for (task,) in found.cluster.gpus] == [
        f"/job:{task}/device:CPU:0"
        for task in ("chief/replica:0/task:0", "worker/replica:0/task:0", "worker/replica:0/task:1")
    ]


def test_what_does_not_fit_into_memory_fails_as_it_would_there():
    small = dataclasses.replace(GPU, memory_bytes=20_000_000)
    with pytest.raises(
        tf.errors.ResourceExhaustedError, match=r"OOM when training layered .*GPU:0: it needs 26.04MiB, .* has 19.07MiB"
    ):
        estimate(NETWORK, cluster(1, 1, gpu=small), 1, parameters=IDEAL)
    there = cluster(1, 0, gpus_per_worker=5, gpu=small)  # a stage of it does fit
    assert estimate(NETWORK, there, 1, "pipeline", parameters=IDEAL).throughput > 0


def test_workers_hold_what_they_fetch_and_servers_the_variables():
    """A table of 64 GiB, of which a step reads rows, needs servers that hold it, not cards."""
    network, table = layered([1000]), VariableCost("table", 64 << 30, rows_bytes=4096)
    network = dataclasses.replace(network, layers=(dataclasses.replace(network.layers[0], variables=(table,)),))
    cpu = sim.Processor("small", "CPU", {"float32": 1e11}, 20 << 30, 1e10, 1e-6, 2, "made up")
    assert estimate(network, cluster(4, 4, cpu=cpu), 1, parts=4, parameters=IDEAL).throughput > 0
    for options in ({}, {"mode": "ps_async"}):
        with pytest.raises(
            tf.errors.ResourceExhaustedError, match=r"on /job:ps/.*CPU:0: it needs 64\.0[0-9]GiB, small has"
        ):
            estimate(network, cluster(4, 4, cpu=cpu), 1, parameters=IDEAL, **options)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"GPU:0: it needs 64\.0[0-9]GiB"):
        estimate(network, cluster(4, 4, gpu="K40"), 1, "allreduce", parameters=IDEAL)


def test_a_free_worker_waits_for_its_own_updates():
    """One worker has the same step, whether it waits for others or not."""
    network = layered([4_000_000])
    update = Kernel("ApplyGradientDescent", "float32", 10**12, 0)
    network = dataclasses.replace(network, layers=(dataclasses.replace(network.layers[0], update=(update,)),))
    sync, free = (seconds(cluster(1, 1), network=network, mode=mode) for mode in ("ps_sync", "ps_async"))
    assert free == pytest.approx(sync) and free > 1


def test_hardware_of_several_kinds():
    """The slower kind sets the pace of synchronous steps, and makes fewer of its own."""
    slow = dataclasses.replace(GPU, name="slow", peak_flops={"float32": 0.5e12})
    mixed = cluster(3, 1, bandwidth=float("inf"), gpu={"/job:worker/task:1": slow, "": GPU})
    assert seconds(mixed) == pytest.approx(2 * seconds(cluster(3, 1, bandwidth=float("inf"))), rel=1e-6)
    found = estimate(NETWORK, mixed, 8, "ps_async", parameters=IDEAL)
    assert found.speedup == pytest.approx(2.5, rel=1e-6)


# ---- what each mechanism is worth ----


def test_without_a_mechanism_its_own_kind_of_platform_looks_faster():
    """But overlap, which helps: without it steps are longer."""
    lossy = Parameters(message_s=1e-3, jitter=0.1)
    many = cluster(8, 4, bandwidth=1e8)
    cards = cluster(2, 2, bandwidth=1e8, gpus_per_worker=8, bus="pcie3-tree")
    files = {"input": Input(1e6, 1e8)}
    cases = {
        "hot_variables": (many, {}),
        "stragglers": (many, {}),
        "rpc": (cluster(50, 1, bandwidth=1e10), {"network": layered([4] * 20, 1e-5, 1e-5)}),
        "pcie_tree": (cluster(1, 0, gpus_per_worker=8, bus="pcie3-tree"), {"network": layered(SIZES, 1e-4, 1e-4)}),
        "input": (many, files),
    }
    for mechanism, (there, options) in cases.items():
        whole, without = (seconds(there, parameters=lossy, off=off, **options) for off in ((), (mechanism,)))
        assert without < 0.99 * whole, mechanism
    for mechanism in ("overlap", "local_aggregation"):
        whole, without = (seconds(cards, parameters=lossy, off=off) for off in ((), (mechanism,)))
        assert whole < 0.99 * without, mechanism
    assert {*cases, "overlap", "local_aggregation"} == set(MECHANISMS)


def test_a_partitioned_variable_relieves_its_server():
    whole, parts = (estimate(NETWORK, cluster(8, 4, bandwidth=1e7), 3, parameters=IDEAL, parts=n) for n in (1, 4))
    assert parts.throughput > 1.3 * whole.throughput
    more_servers = estimate(NETWORK, cluster(8, 16, bandwidth=1e7), 3, parameters=IDEAL)
    assert more_servers.throughput == pytest.approx(whole.throughput, rel=0.1)  # the hot one stays hot


def test_variables_go_to_servers_as_tensorflow_places_them():
    there = cluster(1, 2)
    held = {}
    for strategy in ("round_robin", "greedy"):
        found = estimate(NETWORK, there, 1, parameters=IDEAL, strategy=strategy, trace=True)
        held[strategy] = found.link_load["ps host 0 egress"] / found.link_load["ps host 1 egress"]
    odd, even = sum(SIZES[::2]), sum(SIZES[1::2])
    assert held["round_robin"] == pytest.approx(odd / even, rel=1e-6)
    assert held["greedy"] == pytest.approx((SIZES[0] + SIZES[2] + SIZES[3]) / (SIZES[1] + SIZES[4]), rel=1e-6)


def test_a_file_server_is_shared_and_reading_ahead_hides_it():
    """1 MB per step and worker at 10 MB/s, steps of 1.5 s: five workers are hidden, twenty are not."""
    files = [Input(1e5, 1e7, read) for read in (True, False)]
    few, many = cluster(5, 1, bandwidth=1e12), cluster(20, 1, bandwidth=1e12)
    alone = seconds(few)
    assert seconds(few, input=files[0]) == pytest.approx(alone, rel=1e-3)
    assert seconds(few, input=files[1]) == pytest.approx(alone + 0.5, rel=1e-2)
    assert seconds(many, steps=9, input=files[0]) == pytest.approx(2.0, rel=1e-2)


def test_spares_take_the_slowest_off_and_cost_their_gradients():
    network = layered([2_000_000] * 3)
    given = {"parameters": IDEAL, "stragglers": sim.exponential(0.5), "seed": 1}
    found = [estimate(network, cluster(50 + b, 4), 60, "ps_sync_spares", spares=b, **given) for b in (0, 2, 4)]
    assert found[0].step_time > found[1].step_time > found[2].step_time
    busy = [each.record.busy[[name.startswith("ps host") for name in each.links]].sum() for each in found]
    assert busy == pytest.approx([busy[0], busy[0] * 52 / 50, busy[0] * 54 / 50], rel=0.01)
    assert found[0].record.dropped == 0 < found[1].record.dropped < found[2].record.dropped
    assert {each.record.examples for each in found} == {60 * 50 * 10}


def test_boards_of_two_chips_share_their_power():
    network = layered([1000])
    values = Parameters(**{**vars(IDEAL), "board_sharing": 0.1})
    steps = [
        seconds(cluster(1, 1, gpu="K80", gpus_per_worker=g, bandwidth=1e15), network=network, parameters=values)
        for g in (1, 2, 4)
    ]
    assert steps[1:] == pytest.approx([1.1 * steps[0]] * 2, rel=1e-3)


def test_staleness_of_free_workers():
    found = estimate(NETWORK, cluster(6, 2, bandwidth=1e9), 20, "ps_async", parameters=IDEAL, stragglers=lognormal(0.1))
    assert found.staleness.shape == (120,) and found.staleness[30:].mean() == pytest.approx(5, abs=0.3)
    assert np.count_nonzero(estimate(NETWORK, cluster(6, 2), 3, parameters=IDEAL).staleness) == 0


def test_one_of_a_thing_is_no_plural():
    found = estimate(NETWORK, cluster(1, 1), 1, parameters=IDEAL)
    assert repr(found.cluster).startswith("<1 worker, 1 × ") and repr(found.cluster).endswith(", 1 server>")
    assert "ps_sync, 1 device: " in repr(found)
    assert estimate(NETWORK, cluster(1, 1), 1, "ps_sync", spares=0).step_time > 0  # says nothing new
    with pytest.raises(ValueError, match="Of 1 worker 1 can't be spares"):
        estimate(NETWORK, cluster(1, 1), 1, "ps_sync_spares", spares=1)
