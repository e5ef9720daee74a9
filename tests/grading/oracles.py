"""Independent oracles: whether a changed solution is another right answer, judged apart from the question's checks.

Each runs the answer by the public API and compares it with plain Python or NumPy; none imports the checks. In a
question without an oracle, each mutant that no check catches has escaped.
"""

from __future__ import annotations

import tempfile
import unittest.mock
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dtflab as tf

PS = "/job:ps/replica:0/task:0"
PLACE = "/job:worker/task:1/cpu:0"
ORACLES: dict[str, Callable[[Any], bool]] = {}


def oracle(id: str) -> Callable[[Callable[[Any], bool]], Callable[[Any], bool]]:
    def add(agrees: Callable[[Any], bool]) -> Callable[[Any], bool]:
        ORACLES[id] = agrees
        return agrees

    return add


@oracle("queues/q1")
def batches(answer: Any) -> bool:
    """100 sentences go in before any is taken, and come out in batches of one kind: all of them full but three."""
    bounds, size, random = [4, 8], 4, np.random.RandomState(3)
    with tf.Graph().as_default(), tf.Session() as sess:
        sentence = tf.placeholder(tf.int32, [None])
        put, take, close = answer(sentence, bounds, size)
        sentences = [tuple(random.randint(1, 99, size=1 + 5 * i % 12).tolist()) for i in range(100)]
        for one in sentences:
            sess.run(put, {sentence: one})
        sess.run(close)
        found = []
        try:
            while True:
                found.append([tuple(int(word) for word in row if word) for row in sess.run(take)])
        except tf.errors.OutOfRangeError:
            pass
    kinds = [{int(np.searchsorted(bounds, len(row))) for row in batch} for batch in found]
    full = sum(len(batch) == size for batch in found)
    same = Counter(row for batch in found for row in batch) == Counter(sentences)
    return same and all(len(kind) == 1 for kind in kinds) and full >= len(found) - len(bounds) - 1


@oracle("input/q1")
def lines(answer: Any) -> bool:
    """The lines of three files as Python reads them, twice; and the error of a file that is not there."""
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder, f"{i}.txt")) for i in range(3)]
        for i, name in enumerate(names):
            Path(name).write_text("".join(f"{i} {line}\n" for line in range(7 * i + 2)), encoding="utf-8")
        expected = Counter(
            line for name in names for line in Path(name).read_text(encoding="utf-8").split("\n")[:-1] * 2
        )
        if Counter(line.decode() for line in answer("", names, 2)) != expected:
            return False
        try:
            answer("", [*names, str(Path(folder, "none.txt"))], 1)
        except tf.errors.NotFoundError:
            return True
        return False


@oracle("data/q3")
def ring(answer: Any) -> bool:
    """NumPy's sum on each device, with 2(n − 1) tensors of an n-th sent by each, all to one neighbour."""
    for number in range(2, 6):
        devices = [f"/job:worker/task:{i}/cpu:0" for i in range(number)]
        values = [np.arange(12 * number, dtype=np.float32) ** (1 + 0.1 * i) for i in range(number)]
        with tf.Graph().as_default(), tf.Cluster(worker=number, clock="virtual") as cluster:
            tensors = []
            for place, value in zip(devices, values):
                with tf.device(place):
                    tensors.append(tf.constant(value))
            sums = answer(tensors, devices)
            with tf.Session(cluster.target) as sess:
                trace = tf.RunMetadata()
                sess.run(
                    [one.op for one in sums], options=tf.RunOptions(output_partition_graphs=True), run_metadata=trace
                )
                if not all(np.allclose(one, np.sum(values, axis=0)) for one in sess.run(sums)):
                    return False
        nodes = [node for graph in trace.partition_graphs for node in graph.node if node.op == "_Send"]
        ways = Counter((node.attr["send_device"].s, node.attr["recv_device"].s) for node in nodes)
        if len({start for start, _ in ways}) != len(ways) or set(ways.values()) != {2 * (number - 1)}:
            return False
    return True


@oracle("split/q1")
def halves(answer: Any) -> bool:
    """NumPy's product; each of two GPUs multiplies twice, by half of the weights."""
    random = np.random.RandomState(5)
    inputs, first, second = (random.randn(*shape).astype(np.float32) for shape in ((6, 8), (8, 40), (40, 4)))
    with tf.Graph().as_default() as graph, tf.Cluster(worker=1, gpus=2, clock="virtual") as cluster:
        with tf.device("/cpu:0"):
            x = tf.placeholder(tf.float32, inputs.shape)
        output = answer(x, first, second, ["/gpu:0", "/gpu:1"])
        with tf.Session(cluster.target) as sess:
            trace, options = tf.RunMetadata(), tf.RunOptions(output_partition_graphs=True)
            value = sess.run(output, {x: inputs}, options=options, run_metadata=trace)
    weights = Counter[str]()
    for part in trace.partition_graphs:
        for node in part.node:
            if node.op == "MatMul":
                weights[node.device] += graph.get_operation_by_name(node.name).inputs[1].shape.num_elements()
    right = np.shape(value) == (6, 4) and np.allclose(value, np.maximum(inputs @ first, 0) @ second, atol=1e-3)
    return right and sorted(weights.values()) == [240, 240] and all("GPU" in place for place in weights)


@oracle("clusters/q1")
def machines(answer: Any) -> bool:
    """A worker for each GPU of a machine, and no other; ps tasks in turn; no address twice; ports that exist."""
    for names, gpus, count in ((["a", "b", "c"], 2, 5), (["a", "b"], 3, 1), (["a"], 1, 3)):
        jobs, visible = answer(names, gpus, count)
        cards = Counter((one.partition(":")[0], card) for one, card in zip(jobs["worker"], visible["worker"]))
        load = Counter(one.partition(":")[0] for one in jobs["ps"])
        ports = [int(one.partition(":")[2]) for one in (*jobs["ps"], *jobs["worker"])]
        if cards != Counter((name, str(gpu)) for name in names for gpu in range(gpus)):
            return False
        if visible["ps"] != [""] * count or sorted(load[name] for name in names) != _dealt(count, len(names)):
            return False
        if len({*jobs["ps"], *jobs["worker"]}) < count + gpus * len(names) or not all(0 < one < 65536 for one in ports):
            return False
    return True


def _dealt(things: int, hands: int) -> list[int]:
    """How many each hand has when things are dealt, fewest first."""
    return sorted(len(range(hand, things, hands)) for hand in range(hands))


@oracle("data/q1")
def training(answer: Any) -> bool:
    """Each worker wants the weight to be its own number: the mean of them is where synchronous training goes.

    It does so as gradient descent by hand does, and asynchronous training does not. The grace period is advice: the
    chief may wait its 120 s.
    """
    rate, steps, wanted = 0.1, 7, (1.0, 2.0, 6.0)

    def loss(number: int) -> Any:
        return tf.square(tf.get_variable("weight", [], initializer=tf.zeros_initializer()) - wanted[number])

    for sync in (True, False):
        with tf.Cluster(ps=1, worker=3, clock="virtual") as cluster:
            took = cluster.run(lambda client, sync=sync: answer(client, lambda: loss(client.index), rate, sync, steps))
            with tf.Graph().as_default(), tf.device("/job:ps/task:0"), tf.Session(cluster.target) as sess:
                names = ("weight", tf.float32), ("global_step", tf.int64)
                weight, taken = sess.run([tf.get_variable(name, [], kind) for name, kind in names])
            if not all(0 < seconds < 125 for seconds in took) or taken < steps:
                return False
            together = abs(weight - 3 * (1 - (1 - 2 * rate) ** int(taken))) < 1e-4
            if together != sync or (sync and taken != steps):
                return False
    return True


@oracle("many/q1")
def program(answer: Any) -> bool:
    """Each step takes 32 training images; the bias moves if the rate is not next to nothing.

    A net of the same variables, in NumPy, is right on as many validation images as the program says.
    """
    digits, batches = tf.datasets.digits(), Counter[tuple[int, bool]]()
    next_batch = type(digits.train).next_batch

    def counted(data: Any, size: int) -> Any:
        batches[size, np.array_equal(data.images, digits.train.images)] += 1
        return next_batch(data, size)

    for width, rate, steps in ((9, 1e-9, 3), (14, 0.4, 40)):
        with tf.Cluster(worker=2, clock="virtual") as cluster:
            options = {"server": cluster.target, "device": PLACE, "container": "net", "hidden": width, "rate": rate}
            line = [f"--{name}={value}" for name, value in {**options, "steps": steps}.items()]
            with unittest.mock.patch.object(type(digits.train), "next_batch", counted):
                share = answer(line)
            with tf.Graph().as_default(), tf.container("net"), tf.device(PLACE), tf.Session(cluster.target) as sess:
                shapes = {"hidden/kernel": [64, width], "hidden/bias": [width], "logits/kernel": [width, 10]}
                names = {**shapes, "logits/bias": [10]}
                first, lift, second, bias = sess.run([tf.get_variable(f"net/{name}", names[name]) for name in names])
                taken = sess.run(tf.get_variable("global_step", [], tf.int64))
        logits = np.maximum(digits.validation.images @ first + lift, 0) @ second + bias
        right = float(np.mean(logits.argmax(axis=1) == digits.validation.labels))
        moved = abs(bias).max() > 0.001  # it begins with zeros
        if (
            taken != steps
            or len(lift) != width
            or batches.pop((32, True), 0) != steps
            or batches
            or moved != (rate > 0.1)
        ):
            return False
        if abs(share - right) > 0.003:
            return False
    return True


@oracle("memory/q1")
def cards(answer: Any) -> bool:
    """By arithmetic, to the MiB: whether there are settings, one card for each, and room for all that it takes."""
    mib = 2**20
    for programs, number, room in ((1, 1, 192), (3, 1, 256), (4, 2, 256), (3, 3, 128), (5, 2, 260)):
        most = -(-programs // number)
        largest = (room - 11) // most - 38
        if answer(programs, number, (largest + 1) * mib, room * mib) is not None:
            return False
        found = answer(programs, number, largest * mib, room * mib)
        if found is None or len(found) != programs or max(Counter(card for card, _ in found).values()) > most:
            return False
        for card, config in found:
            fraction = config.gpu_options.per_process_gpu_memory_fraction
            if card not in [str(i) for i in range(number)] or not largest <= fraction * room + 1e-3 < largest + 1:
                return False
    return True


@oracle("placement/q1")
def balance(answer: Any) -> bool:
    """Books of its own: each variable, of whatever kind, went to one of the tasks with the fewest bytes."""
    random = np.random.RandomState(2)
    for tasks in (1, 2, 5):
        held = dict.fromkeys((f"/job:ps/task:{i}" for i in range(tasks)), 0)
        with tf.Graph().as_default() as graph, tf.device(answer(tasks, "/job:worker/task:1")):
            for _ in range(12):
                size, kind = int(random.randint(1, 50)), (tf.float32, tf.int64, tf.bool)[random.randint(3)]
                shape, resource = [size, 2] if size > 25 else [], bool(random.randint(2))
                made = tf.get_variable(
                    f"v{len(graph.get_operations())}", shape, kind, tf.zeros_initializer(), use_resource=resource
                )
                home = made.device
                if home not in held or held[home] != min(held.values()):
                    return False
                held[home] += int(np.prod(shape)) * np.dtype(kind.as_numpy_dtype).itemsize
            others = [one.device for one in (tf.square(2.0).op, tf.range(3).op)]
            if others != ["/job:worker/task:1"] * 2:
                return False
    return True


@oracle("placement/q3")
def unpinned(answer: Any) -> bool:
    """By what a session says of each op: where it is, and which types of devices have a kernel for it."""
    from dtflab.extend import device_types

    for counts in ((3, 2, 1), (0, 1, 2), (2, 0, 0)):
        with tf.Graph().as_default() as graph, tf.Cluster(worker=1, gpus=2) as cluster:
            found = answer(*counts)
            with tf.Session(cluster.target) as sess:
                where = {node.name: node.device[-5:] for node in sess.placed_nodes()}
        for count, kind, place, on_gpu in zip(
            counts, ("gpu", "cpu", "dragged"), ("GPU:0", "CPU:0", "CPU:0"), (1, 0, 1)
        ):
            ops = found[kind]
            kernels = ["GPU" in device_types(op.type, op.attrs) for op in ops]
            if len(set(ops)) != count or kernels != [bool(on_gpu)] * count or {where[op.name] for op in ops} - {place}:
                return False
        if any(op.device for op in graph.get_operations()):
            return False
    return True


@oracle("placement/q4")
def reach(answer: Any) -> bool:
    """Sends as the partitions of the step have them; the update is at home whatever its pin, and seen by all."""
    with tf.Cluster(ps=1, worker=2, gpus=2) as cluster:
        names = [str(device.name) for task in cluster.tasks for device in task.devices()]
        home = names[-1]
        for places in (names, [home, home, names[2]], [names[3]] * 3, [home, names[1]], [names[1]]):
            with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
                found = answer(home, list(places))
                sess.run(tf.global_variables_initializer())
                trace, options = tf.RunMetadata(), tf.RunOptions(output_partition_graphs=True)
                doubles, update = found["doubles"], getattr(found["update"], "op", found["update"])
                sess.run([one.op for one in doubles], options=options, run_metadata=trace)  # what is fetched travels
                before = sess.run(doubles)
                sess.run(update)
                after = sess.run(doubles)
                where = {node.name: node.device for node in sess.placed_nodes()}
            nodes = [node for graph in trace.partition_graphs for node in graph.node if node.op == "_Recv"]
            arrived = sorted(node.attr["recv_device"].s.decode() for node in nodes)
            wanted = sorted(set(places) - {home})
            if not arrived == wanted == sorted(found["sent_to"]):
                return False
            if found["updated_on"] != home or where[update.name] != home:
                return False
            if [where[one.op.name] for one in doubles] != places or any(one.op.type == "Identity" for one in doubles):
                return False
            if not (np.all(np.equal(before, [2, 4])) and np.all(np.equal(after, [4, 6]))):
                return False
    return True


@oracle("welcome/q1")
def counting(answer: Any) -> bool:
    """The view of a watch: the client of each worker asked its server for all steps, and each was an `AssignAdd`.

    All of these changed one variable on the only ps task, which was assigned once; and the sum is right.
    """
    for workers, steps in ((1, 9), (3, 30), (4, 17)):
        with tf.watch() as seen:
            value = answer(workers, steps)
        tasks = [f"/job:worker/replica:0/task:{i}" for i in range(workers)]
        asked = {call.target for call in seen.calls if call.method == "GetStatus"} | set(tasks)
        ran = Counter((call.source, call.target) for call in seen.calls if call.method == "RunStep")
        adds = [use.client for use in seen.uses if "AssignAdd" in use.ops]
        mine = [max(adds, key=lambda client, task=task: ran[client, task]) for task in tasks] if adds else []
        if value != workers * steps or asked != {PS, *tasks} or len(set(mine)) < workers or len(adds) != workers:
            return False
        if any(ran[pair] < steps for pair in zip(mine, tasks)) or sum("Assign" in use.ops for use in seen.uses) != 1:
            return False
        if len({(use.device, use.container, use.variable) for use in seen.uses if use.ops}) != 1:
            return False
        if not all(use.device.startswith(f"{PS}/") for use in seen.uses):
            return False
    return True
