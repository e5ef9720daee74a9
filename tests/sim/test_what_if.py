"""what_if: its base is the virtual step, its changes are virtual steps on changed clusters."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings

import dtflab as tf
from dtflab import model_parallel, sim
from dtflab.hardware.catalogue import cpu, gpu
from dtflab.hardware.machines import machines_for
from dtflab.sim import outcomes
from tests.graphs import build, recipes
from tests.test_one_equals_many import PLACES, TWO_CPUS

WORKER = "/job:worker/replica:0/task:0"
PRECISION = 1e-9  # relative: moments of a long run are sums, and the trace has nanoseconds


def cluster(workers=1, **hardware):
    hardware = {"gpu": "K40", "network": "10Gb/s", "gpus": 1} | hardware
    return tf.Cluster(ps=2, worker=workers, clock="virtual", seed=1, **hardware)


def train_on_servers(worker=WORKER, batch=None):
    """Three layers whose variables are on two servers: placeholder and fetches."""
    spec = tf.train.ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    setter = tf.train.replica_device_setter(cluster=spec, ps_device="/job:ps/cpu:0", worker_device=f"{worker}/gpu:0")
    with tf.device(setter):
        x = h = tf.placeholder(tf.float32, [batch, 200], name="x")
        for i, units in enumerate((300, 150, 10)):
            weights = tf.get_variable(f"w{i}", [h.shape[1].value, units])
            h = tf.nn.relu(tf.matmul(h, weights) + tf.get_variable(f"b{i}", [units]))
        loss = tf.reduce_mean(tf.square(h), name="loss")
        return x, [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)]


def images(batch):
    return np.ones([batch, 200], np.float32)


def seconds_of_a_step(batch=32, workers=1, **hardware):
    """What a step takes in a real virtual run, in which all workers begin it at once: the longest."""
    with cluster(workers, **hardware) as made:

        def program(client):
            x, fetches = train_on_servers(client.device)
            with tf.Session(client.target) as session:
                if client.is_chief:
                    session.run(tf.global_variables_initializer())
                for moment in (10, 20):
                    sim.sleep(moment - sim.now())
                    session.run(fetches, {x: images(batch)})
                return sim.now() - 20

        return max(made.run(program))


@pytest.fixture(scope="module")
def question():
    """The step of one worker, asked of its session."""
    with tf.Graph().as_default() as graph:
        x, fetches = train_on_servers()
        initialize = tf.global_variables_initializer()
    with cluster() as made, contextlib.closing(tf.Session(made.target, graph=graph)) as session:
        session.run(initialize)
        yield sim.what_if(session, fetches=fetches, feed_dict={x: images(32)})


# -- the base ---------------------------------------------------------------------------------------------------------


def on_servers():
    x, fetches = train_on_servers()
    return fetches, {x: images(32)}


def pipelined():
    """Four stages on four GPUs, and back."""
    x = tf.placeholder(tf.float32, [32, 64])
    stages = [lambda value: tf.layers.dense(value, 64, tf.nn.relu)] * 4
    parts = model_parallel.pipeline(stages, x, [f"/gpu:{i}" for i in range(4)], 4)
    loss = tf.add_n([tf.reduce_mean(tf.square(part)) for part in parts])
    step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, colocate_gradients_with_ops=True)
    return [loss, step], {x: np.ones([32, 64], np.float32)}


def in_one_graph():
    """Three workers in one graph, whose loss comes from all of them."""
    x = tf.placeholder(tf.float32, [32, 64])
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [64, 64])
    losses = []
    for i in range(3):
        with tf.device(f"/job:worker/task:{i}/gpu:0"):
            losses.append(tf.reduce_mean(tf.square(tf.matmul(x, weights))))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses), colocate_gradients_with_ops=True)
    return [losses, step], {x: np.ones([32, 64], np.float32)}


def layers_of_cells():
    """Two LSTM layers, each on its own GPU, unrolled."""
    x = tf.placeholder(tf.float32, [8, 4, 16])
    cells = [tf.nn.rnn_cell.LSTMCell(16) for _ in range(2)]
    cell = model_parallel.rnn_layers(cells, ["/gpu:0", "/gpu:1"])
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.stack(outputs)))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)
    return [step], {x: np.ones([8, 4, 16], np.float32)}


def classified_on_a_cpu():
    """Adam and a softmax, on a CPU."""
    with tf.device("/job:worker/task:0/cpu:0"):
        x, labels = tf.placeholder(tf.float32, [32, 64]), tf.placeholder(tf.int32, [32])
        logits = tf.layers.dense(tf.layers.dense(x, 128, tf.nn.relu), 10)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        step = tf.train.AdamOptimizer().minimize(tf.reduce_mean(losses))
        return [losses, step], {x: np.ones([32, 64], np.float32), labels: np.zeros(32, np.int32)}


@pytest.mark.parametrize("network", ["10Gb/s", "100Mb/s"])
@pytest.mark.parametrize("program", [on_servers, pipelined, in_one_graph, layers_of_cells, classified_on_a_cpu])
def test_the_base_is_the_virtual_step_traced_or_only_planned(program, network):
    with tf.Graph().as_default(), cluster(3, gpus=4, network=network) as made:
        fetches, feeds = program()
        config = tf.ConfigProto(allow_soft_placement=True)
        with tf.Session(made.target, config=config) as session:
            session.run(tf.global_variables_initializer())
            before = made.now()
            session.run(fetches, feeds)
            took = made.now() - before
            asked = sim.what_if(session, fetches=fetches, feed_dict=feeds)
        planned = sim.what_if(flat(fetches), made)
    assert asked.base.makespan == pytest.approx(took, rel=PRECISION)
    assert planned.base.makespan == pytest.approx(took, rel=PRECISION)


def looped():
    """LSTM layers in a loop of ten words: nodes of a loop run once, for as long as all its turns."""
    x = tf.placeholder(tf.float32, [8, 10, 64])
    with tf.device("/gpu:0"):
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(64) for _ in range(2)])
        loss = tf.reduce_mean(tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0])
    return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], {x: np.ones([8, 10, 64], np.float32)}


def chosen():
    """One of two branches, whose weights are on a server: what did not run takes no time, and is sent as nothing."""
    x, yes = tf.placeholder(tf.float32, [8, 64]), tf.placeholder(tf.bool, [])
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [64, 64])
    with tf.device("/job:worker/task:0/gpu:0"):
        y = tf.cond(yes, lambda: tf.matmul(x, weights), lambda: tf.matmul(tf.matmul(x, weights), weights))
    return [tf.reduce_sum(y)], {x: np.ones([8, 64], np.float32), yes: True}


@pytest.mark.parametrize("program, bound", [(looped, 0.01), (chosen, 0.001)])
def test_loops_and_branches_are_near(program, bound):
    with tf.Graph().as_default(), cluster() as made:
        fetches, feeds = program()
        with tf.Session(made.target, config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            before = made.now()
            session.run(fetches, feeds)
            took = made.now() - before
            asked = sim.what_if(session, fetches=fetches, feed_dict=feeds)
    assert asked.base.makespan == pytest.approx(took, rel=bound)


@pytest.fixture(scope="module")
def three_tasks():
    with tf.Cluster(ps=1, worker=2, config=TWO_CPUS, clock="virtual", network="1Gb/s") as made:
        yield made


WITHOUT_LOOPS = recipes.map(lambda recipe: [line for line in recipe if line.kind != "loop"]).filter(bool)


@pytest.mark.timeout(120)
@settings(max_examples=150, derandomize=True)
@given(recipe=WITHOUT_LOOPS)
def test_random_programs_over_six_devices(three_tasks, recipe):
    """Equal; with branches, whose dead values race with others at one moment, to a thousandth."""
    built = build(recipe, lambda place: PLACES[place % 6])
    with tf.Session(three_tasks.target, graph=built.graph) as session:
        if built.initializers:
            session.run(built.initializers)
        before = three_tasks.now()
        session.run(built.values)
        took = three_tasks.now() - before
        asked = sim.what_if(session, fetches=built.values)
    tf.Session.reset(three_tasks.target)
    branches = any(line.kind == "cond" for line in recipe)
    assert asked.base.makespan == pytest.approx(took, rel=1e-3 if branches else 1e-8)


def flat(fetches):
    return [one for each in fetches for one in (each if isinstance(each, list) else [each])]


def test_every_kernel_and_message_of_the_base_is_where_the_log_has_it():
    with tf.Graph().as_default(), cluster() as made:
        x, fetches = train_on_servers()
        with tf.Session(made.target) as session:
            session.run(tf.global_variables_initializer())
            asked = sim.what_if(session, fetches=fetches, feed_dict={x: images(32)})
            before, count = made.now(), made.log().count
            session.run(fetches, {x: images(32)})
        new = list(made.log().lines)[count - made.log().count :]
    ran = {line.what: (line.started - before, line.ended - before) for line in new if not line.target}
    mine = {span.name: (span.start, span.end) for own in asked.base.schedule.spans.values() for span in own}
    assert mine.keys() == ran.keys()
    for name, moments in ran.items():
        assert mine[name] == pytest.approx(moments, rel=PRECISION, abs=1e-14)
    sent = sorted((line.ended - before, line.nbytes) for line in new if line.target)
    carried = sorted((last_byte(message), message.nbytes) for message in asked.base.messages)
    assert np.array(carried) == pytest.approx(np.array(sent), rel=PRECISION)


def last_byte(message):
    """When a message has come, before a core of the receiver takes it in."""
    return message.hops[-1].end + sum(hop.link.latency_s for hop in message.hops)


# -- what is changed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"network": "1Gb/s"},
        {"network": "InfiniBand EDR"},
        {"gpu": "V100"},
        {"cpu": "2x Xeon E5-2686 v4"},
        {"gpu": "P100", "bus": "nvlink2"},
        {"batch": 128},
        {"workers": 2},
        {"workers": 8, "network": "1Gb/s"},
        {"workers": 5, "batch": 512, "gpu": "V100", "network": "25Gb/s"},
    ],
    ids=str,
)
def test_a_change_is_what_a_cluster_with_it_does(question, changes):
    """Also under contention: both pass links in the same order."""
    assert question.run(**changes).makespan == pytest.approx(seconds_of_a_step(**changes), rel=PRECISION)


class Fixed:
    """Stragglers that are always the same."""

    def factors(self, steps, devices, seed):
        return np.tile(np.linspace(1.0, 4.0, devices), (steps, 1))


def test_stragglers_are_those_of_a_cluster(question):
    slow = question.run(workers=3, stragglers=Fixed())
    assert slow.makespan == pytest.approx(seconds_of_a_step(workers=3, stragglers=Fixed()), rel=PRECISION)
    by_name = {f"/job:worker/task:{i}": factor for i, factor in enumerate((1.0, 2.5, 4.0))}
    assert question.run(workers=3, stragglers=by_name).makespan == slow.makespan
    assert question.run(workers=3, stragglers={"/job:worker/task:2": 4.0}).makespan == slow.makespan
    drawn = [question.run(workers=3, stragglers=sim.lognormal(1.0), seed=seed).makespan for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_factors_are_parts_that_much_faster(question):
    k40 = gpu("K40")
    faster = tf.sim.Processor("K40 twice", "GPU", {name: 2 * flops for name, flops in k40.peak_flops.items()},
                              k40.memory_bytes, 2 * k40.memory_bandwidth, k40.launch_s / 2, 1, "made up")  # fmt: skip
    twice = question.run(gpu=2.0)
    assert twice.makespan == question.run(gpu=faster).makespan < question.base.makespan
    assert question.run(gpu=1.0, network=1, bus=1.0, cpu=1, latency=1).makespan == question.base.makespan
    gpus = [name for name in question.base.busy if "GPU" in name]
    assert [twice.busy[name] for name in gpus] == pytest.approx([question.base.busy[name] / 2 for name in gpus])


def test_bandwidth_and_latency_are_what_a_transfer_takes(question):
    """The first message on its links: halved bandwidth doubles its bytes' part, doubled latency that of the wires."""
    base, *changed = (read(question.run(**c)) for c in ({}, {"network": 0.5, "bus": 0.5}, {"latency": 2.0}))
    nbytes = 200 * 300 * 4 / 1.25e9  # 10 Gb/s are 1.25e9 B/s
    assert changed[0] - base == pytest.approx(nbytes)
    assert changed[1] - base == pytest.approx(base - nbytes - 100e-6)  # of which two ends of a message take 50 µs each


def read(outcome):
    """How long the first layer's weights are on their way."""
    (message,) = (m for m in outcome.messages if m.source == "w0/read")
    return message.arrived - message.sent


def test_more_of_anything_never_hurts(question):
    steps = [question.run(network=factor).makespan for factor in (0.1, 0.5, 1, 2, 10, 1e6)]
    assert steps == sorted(steps, reverse=True)
    steps = [question.run(gpu=factor).makespan for factor in (0.1, 0.5, 1, 2, 10)]
    assert steps == sorted(steps, reverse=True)
    saturated = [question.run(network=factor, latency=0, gpu=1e9, cpu=1e9).makespan for factor in (1e-4, 5e-5)]
    assert saturated[1] / saturated[0] == pytest.approx(2, rel=1e-3)


# -- what it says -----------------------------------------------------------------------------------------------------


def test_an_outcome_adds_up(question):
    base, four = question.base, question.run(workers=4)
    assert base.speedup == 1 and base.throughput == pytest.approx(32 / base.makespan)
    assert four.throughput == pytest.approx(4 * 32 / four.makespan)
    assert four.speedup == pytest.approx(four.throughput / base.throughput)
    for outcome in (base, four):
        assert sum(part.seconds for part in outcome.critical_path) == pytest.approx(outcome.makespan, rel=PRECISION)
        assert all(0 <= load <= 1 for load in outcome.link_load.values())
        gpus = [name for name in outcome.busy if "GPU" in name]
        assert len(gpus) == outcome.workers
        for name in gpus:  # one thing at a time
            assert outcome.busy[name] == pytest.approx(outcome.makespan * (1 - outcome.idle[name]), rel=PRECISION)
    assert {part.kind for part in base.critical_path} == {"compute", "transfer"}
    assert "RunGraph" in base.critical_path[0].what
    assert not any("1000" in device or "1001" in device for device in base.busy)


def test_its_trace_is_a_timeline(question):
    outcome = question.run(workers=2, network="1Gb/s")
    picture = tf.viz.timeline(outcome.step_stats())
    ops = sum(len(own) for own in outcome.schedule.spans.values())
    tensors = [
        message for message in outcome.messages if message.source.partition(" ")[2] not in ("RunGraph", "answer")
    ]
    assert f"{ops} ops on 6 devices, {len(tensors)} transfers" in picture.sentence
    assert "worker:1 GPU:0 99 % idle" in picture.sentence


def test_tables(question):
    answers = question.sweep(network=["1Gb/s", "10Gb/s", "100Gb/s"])
    assert [outcome.title for outcome in answers] == ["network 1Gb/s", "network 10Gb/s", "network 100Gb/s"]
    lines = question.table(network=["1Gb/s", "10Gb/s", "100Gb/s"]).splitlines()
    assert len(lines) == 5 and lines[1].split()[:3] == ["as", "it", "is"]
    assert f"{1e3 * answers[0].makespan:.3f}" in lines[2]
    assert "ingress" in repr(answers[0]) and "0.20" in lines[2]
    assert answers[0].to_dict()["makespan"] == answers[0].makespan


def test_a_session_without_a_cluster_runs_where_the_first_worker_does():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 64])
        there = sim.cluster_model(workers=2, ps_tasks=1, gpu="K40")
        asked = sim.what_if(session, there, fetches=tf.matmul(x, tf.ones([64, 64])), feed_dict={x: np.ones([32, 64])})
    first = "/job:worker/replica:0/task:0/device:CPU:0"
    assert asked.machines.place(asked.step.nodes[0].device).host == there.machines.place(first).host
    assert asked.run(cpu=2.0).speedup > 1.9 and asked.run(workers=3).throughput > 2 * asked.base.throughput


def test_numbers_of_numpy_are_numbers(question):
    assert [one.workers for one in question.sweep(workers=2 ** np.arange(3))] == [1, 2, 4]
    assert question.run(gpu=np.float32(2)).makespan == question.run(gpu=np.int64(2)).makespan
    assert question.run(batch=np.int64(question.base.batch)).makespan == question.base.makespan


def test_a_sweep_with_something_else_changed_too(question):
    slow = question.sweep(workers=[1, 3], network="1Gb/s")
    assert [one.title for one in slow] == ["network 1Gb/s, workers 1", "network 1Gb/s, workers 3"]
    assert slow[1].makespan == question.run(workers=3, network="1Gb/s").makespan
    drawn = question.sweep(stragglers=sim.lognormal(0.3), seed=range(3))
    assert len({one.makespan for one in drawn}) == 3 and drawn[2].title == "stragglers lognormal(0.3), seed 2"
    named = question.run(gpu=2, stragglers={"/job:worker/task:0/gpu:0": 3.0})
    assert named.title == "gpu × 2, worker:0 GPU:0 3 × as slow"


def test_the_link_in_the_way_is_named_first(question):
    """A GPU's lanes are taken as long as the slow network lets a message through; they are not what is in the way."""
    loads = question.run(network="1Gb/s").link_load
    first, *_ = loads
    assert first.endswith(("egress", "ingress")) and "lanes" not in first
    assert max(load for link, load in loads.items() if "lanes" in link) > 0.9 * loads[first]
    assert {link.partition(" ")[0] for link in question.run(workers=3).link_load} >= {
        "worker-0",
        "worker-1",
        "worker-2",
    }


def test_a_slider_can_drive_it(question):
    """What a change costs is events, some 3 µs each (`docs/decisions.md`); wall-clock times are not asserted."""
    assert question.run(network=0.5).schedule.events < 500
    assert question.run(workers=4, network=0.5).schedule.events < 2000
    work = question.step._costs
    question.run(gpu=1.5, bus=2.0)
    assert question.step._costs is work and len(work) <= 3, "nothing is worked out again for another GPU"
    for factor in range(40):
        question.run(gpu=1 + factor / 100)
    assert len(question.step._times) <= 16, "and what a slider has left behind is forgotten"


# -- from measured times, and from metadata ---------------------------------------------------------------------------


def metadata_of_a_step(made, fetches, feeds):
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session(made.target) as session:
        session.run(tf.global_variables_initializer())
        session.run(fetches, feeds, options=options, run_metadata=(metadata := tf.RunMetadata()))
    return metadata


def test_measured_times_hold_in_the_ratio_of_the_models():
    with tf.Graph().as_default(), cluster() as made:
        x, fetches = train_on_servers()
        metadata = metadata_of_a_step(made, fetches, {x: images(32)})
    modelled = sim.what_if(metadata, made.world.machines)
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            node.all_end_rel_nanos *= 3
    measured = sim.what_if(metadata, made.world.machines, measured=True)
    for changes in ({}, {"gpu": "V100"}, {"cpu": 2.0}):
        model, three = modelled.run(**changes).busy, measured.run(**changes).busy
        for device, seconds in model.items():
            assert three[device] == pytest.approx(3 * seconds, rel=1e-3), "a nanosecond of some microseconds is lost"
    assert sim.what_if(metadata, made.world.machines).base.makespan == modelled.base.makespan


def test_a_session_in_real_time_says_how_long_numpy_took():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [64, 300])
        y = tf.matmul(x, tf.ones([300, 400]), name="y")
        with pytest.raises(ValueError, match="real time"):
            sim.what_if(session, fetches=y, feed_dict={x: np.ones([64, 300], np.float32)})
        host = machines_for({"/job:localhost/task:0": "laptop"})
        asked = sim.what_if(session, host, fetches=y, feed_dict={x: np.ones([64, 300], np.float32)})
    spent = asked.step.seconds["y"]
    assert spent > 0 and asked.base.schedule.tasks["y"].end - asked.base.schedule.tasks["y"].start == spent
    half = asked.run(cpu=0.5).schedule.tasks["y"]
    assert half.end - half.start == pytest.approx(2 * spent)


def test_a_step_that_never_ran_is_placed_by_whom_one_likes():
    with tf.Graph().as_default(), cluster(gpus=2) as made:
        x = tf.placeholder(tf.float32, [None, 512])
        products = [tf.matmul(x, tf.ones([512, 512])) for _ in range(2)]
        fetches = [tf.reduce_sum(product) for product in products]

    def apart(nodes, devices, task, **rest):
        return {node.name: f"{WORKER}/device:GPU:{int(node.name.endswith('_1'))}" for node in nodes}

    one = sim.what_if(fetches, made, batch=512)
    two = sim.what_if(fetches, made, batch=512, placer=apart)
    assert [two.base.busy[f"{WORKER}/device:GPU:{i}"] > 0 for i in range(2)] == [True, True]
    assert two.base.makespan < one.base.makespan
    with pytest.raises(TypeError, match="'dynamic'"):
        sim.what_if(fetches, made, placer="mine")


def test_a_batch_that_is_built_in_says_so():
    with tf.Graph().as_default(), cluster() as made:
        x = tf.placeholder(tf.float32, [32, 8])
        flattened = tf.reshape(tf.square(x), [32 * 8], name="flatten")
        asked = sim.what_if([tf.reduce_sum(tf.sqrt(flattened))], made)
        with pytest.raises(ValueError, match=r"'flatten' on .*batch of 32 built in"):
            asked.run(batch=64)
        fine = sim.what_if([tf.reduce_sum(tf.sqrt(tf.reshape(tf.square(x), [-1])))], made)
        assert fine.run(batch=3200).makespan > fine.base.makespan
        with pytest.raises(ValueError, match="Nothing with 32 examples is fed"):
            sim.what_if([tf.reduce_sum(tf.ones([32, 8]))], made).run(batch=64)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"gpu": "K4000"}, "K4000"),
        ({"network": 0}, "network=0: a factor is a number above 0"),
        ({"gpu": cpu("2x Xeon E5-2690 v3")}, "is a CPU"),
        ({"network": "fast"}, "fast"),
        ({"latency": -1}, "latency=-1: a factor is a number from 0 up"),
        ({"workers": 0}, "workers=0"),
        ({"workers": 2.5}, "workers=2.5"),
        ({"batch": -3}, "batch=-3"),
        ({"stragglers": {"/job:worker/task:7": 2.0}}, "/job:worker/task:7.*There are /job:"),
        ({"stragglers": {"/job:worker/task:0": -2.0}}, "how many times as long"),
        ({"stragglers": 2.0}, r"sim.lognormal\(0.2\), or a factor by name"),
    ],
    ids=str,
)
def test_bad_changes_say_what_is_wrong(question, changes, words):
    with pytest.raises(ValueError, match=words):
        question.run(**changes)


def test_a_step_of_constants_takes_what_it_takes_in_virtual_time():
    with tf.Graph().as_default(), cluster() as made:
        constant = tf.constant(3.0)
        with tf.Session(made.target) as session:
            before = made.now()
            session.run(constant)
            took = made.now() - before
            asked = sim.what_if(session, fetches=constant)
    assert asked.base.makespan == pytest.approx(took)
    assert asked.run(gpu=2.0).speedup == 1 and "as it is" in asked.table(cpu=[2.0])


def test_bad_questions_say_what_is_lacking(question):
    with pytest.raises(ValueError, match="/gpu:3 computes nothing"):
        question.base.bubble(["/gpu:0", "/gpu:3"])
    with pytest.raises(ValueError, match=r"one thing several values.*here: network and gpu"):
        question.sweep(network=["1Gb/s"], gpu=["K40"])
    with pytest.raises(ValueError, match="here: none"):
        question.table(network="1Gb/s")
    with pytest.raises(ValueError, match="On which hardware"):
        sim.what_if(tf.RunMetadata())
    with pytest.raises(ValueError, match="for a session to run"):
        sim.what_if([], question.machines, feed_dict={})
    with pytest.raises(ValueError, match="batch=-3"):
        sim.what_if([], question.machines, batch=-3)
    with pytest.raises(ValueError, match="output_partition_graphs=True"):
        sim.what_if(tf.RunMetadata(), question.machines)
    with pytest.raises(TypeError, match="not 'a name'"):
        sim.what_if("a name", question.machines)
    with pytest.raises(TypeError, match="Machines"):
        sim.what_if(tf.RunMetadata(), 3)
    with tf.Graph().as_default(), cluster(3) as made:
        fetches, _ = in_one_graph()
        with pytest.raises(ValueError, match="3 tasks of one job"):
            sim.what_if(flat(fetches), made).run(workers=2)
        with tf.Session(made.target) as session, pytest.raises(ValueError, match="What does the step fetch"):
            sim.what_if(session)


def test_answers_are_tables_in_a_notebook_too(question):
    several = question.sweep(workers=[1, 2])
    assert repr(several) == outcomes.table(several) and len(several) == 2
    html = several._repr_html_()
    assert html.count("<tr>") == 3 and all(cell in html for one in several for cell in one.row[1:])
    html = question.base._repr_html_()
    assert question.base.sentence in html and "critical path" in html and html.count("<table>") == 3


def test_the_table_of_the_critical_path_adds_up_to_the_step(question):
    rows = question.base.path_rows
    assert len(question.base.critical_path) > len(rows) == 13
    assert sum(float(ms) for _, _, ms, _ in rows) == pytest.approx(1e3 * question.base.makespan, abs=1e-2)
    longest = max(question.base.critical_path, key=lambda part: part.seconds)
    assert (longest.kind, longest.what) in [row[:2] for row in rows] and rows[-1][0] == "…"
    assert "critical path" in repr(question.base) and longest.what in repr(question.base)
