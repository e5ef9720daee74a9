"""RunMetadata.partition_graphs: one graph per device with its sends and receives, as in TensorFlow.

Not compared: names of what the cut adds, the numbers in tensor names, the order of the graphs (TensorFlow keeps them in
a hash table), which shape of control loop lets a device take part in a loop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import dtflab
from dtflab.cluster.addresses import free_addresses
from tests.oracle import answers
from tests.oracle.programs import Programs

program = Programs()
CPUS = {"CPU": 3}
# Where the program's device i is. Tensors cross to one device of a task only: to a second one TensorFlow relays them.
DEVICES = {
    "local": ["/cpu:0", "/cpu:1", "/cpu:2"],
    "cluster": ["/job:ps/cpu:0", "/job:worker/cpu:1", "/job:worker/cpu:2"],
}
DEVICES["cluster in bfloat16"] = DEVICES["cluster"]


@pytest.fixture(scope="module")
def targets() -> Iterator[dict[str, str]]:
    """By layout: the target of a session. In the clusters the master is the ps's."""
    with dtflab.Cluster(ps=1, worker=1, config=dtflab.ConfigProto(device_count=CPUS)) as cluster:
        yield dict.fromkeys(DEVICES, cluster.target_of("ps", 0)) | {"local": ""}


@cache
def their_servers(tf: Any) -> list[Any]:
    ps, worker = free_addresses(2)
    config = tf.ConfigProto(device_count=CPUS)
    return [tf.train.Server({"ps": [ps], "worker": [worker]}, job, 0, config=config) for job in ("ps", "worker")]


@pytest.mark.parametrize("layout", DEVICES)
@program.each("function")
def test_one_graph_per_device(function, layout, targets):
    short = layout == "cluster in bfloat16"

    def as_built(tf):
        messages = answers.module_of(tf, "core.protobuf.rewriter_config_pb2", None)
        options = tf.GraphOptions(
            optimizer_options=tf.OptimizerOptions(opt_level=-1),
            rewrite_options=messages.RewriterConfig(disable_meta_optimizer=True),
            enable_bfloat16_sendrecv=short,
        )
        target = "" if layout == "local" else their_servers(tf)[0].target
        return facts(Report(tf, function, DEVICES[layout], target, graph_options=options))

    theirs = answers.theirs(as_built)
    options = dtflab.GraphOptions(enable_bfloat16_sendrecv=short)
    ours = facts(Report(dtflab, function, DEVICES[layout], targets[layout], graph_options=options))
    for their, our in zip(theirs, ours, strict=True):
        assert our == their


def facts(report: Report) -> Any:
    assert report.devices == sorted(set(report.devices)), "each device has a graph of its own"
    assert report.unmatched() == Counter()
    return report.devices, report.edges(), report.transfers(), report.casts()


def crossing(node: Any) -> bool:
    return node.op in ("_Send", "_HostSend", "_Recv", "_HostRecv") and not node.attr["client_terminated"].b


class Report:
    """The partition graphs of a step of `function(tf, devices)`, which returns (fetches, feeds)."""

    def __init__(self, tf: Any, function: Any, devices: list[str], target: str, **config: Any) -> None:
        metadata, options = tf.RunMetadata(), tf.RunOptions(output_partition_graphs=True)
        with tf.Graph().as_default() as graph:
            fetches, feeds = function(tf, devices)
            with tf.Session(target, config=tf.ConfigProto(device_count=CPUS, **config)) as session:
                session.run(tf.global_variables_initializer())
                session.run(fetches, feeds, options=options, run_metadata=metadata)
        self.graphs = metadata.partition_graphs
        self.programs_own = {op.name for op in graph.get_operations()}
        self.nodes = {node.name: node for part in self.graphs for node in part.node}

    @property
    def devices(self) -> list[str]:
        """The devices of each graph, joined."""
        return sorted(" ".join(sorted({node.device for node in part.node})) for part in self.graphs)

    def unmatched(self) -> Counter[Any]:
        """Sends without a receive, and the other way round."""
        ends: dict[bool, Counter[Any]] = {True: Counter(), False: Counter()}
        for node in filter(crossing, self.nodes.values()):
            key = [node.attr[a].s for a in ("tensor_name", "send_device", "recv_device")]
            assert node.device.encode() == key[1 if "Send" in node.op else 2]
            ends["Send" in node.op][*key, node.attr["send_device_incarnation"].i] += 1
        return (ends[True] - ends[False]) + (ends[False] - ends[True])

    def transfers(self) -> list[tuple[Any, ...]]:
        """(tensor's op, from, to, dtype) of every send."""
        sends = [node for node in self.nodes.values() if crossing(node) and "Send" in node.op]
        ends = ("send_device", "recv_device")
        return sorted((self._source(n), *(n.attr[a].s.decode() for a in ends), n.attr["T"].type) for n in sends)

    def casts(self) -> list[tuple[Any, ...]]:
        """(tensor's op, device, from, to, cut off) of every Cast that the program has not made."""
        casts = [n for n in self.nodes.values() if n.op == "Cast" and n.name not in self.programs_own]
        types = ("SrcT", "DstT")
        return sorted(
            (self._input(n.input[0]), n.device, *(n.attr[a].type for a in types), n.attr["Truncate"].b) for n in casts
        )

    def edges(self) -> dict[str, tuple[Any, ...]]:
        """For each op of the program: type, device, and inputs as they were before the graph was cut."""
        return {
            name: (node.op, node.device, sorted(set(map(self._input, node.input)) - {"tick"}))
            for name, node in self.nodes.items()
            if name in self.programs_own
        }

    def _input(self, text: str) -> str:
        name = text.removeprefix("^")
        control = "^" * text.startswith("^")
        node = self.nodes[name.partition(":")[0]]
        if name.startswith("_cloop"):
            return "tick"
        if crossing(node):
            return control + self._source(node)
        if node.name not in self.programs_own and node.op in ("Cast", "Identity"):  # Identity: of a control edge
            return control + self._input(node.input[0])
        return control + re.sub(r"^_(arg|recv)_(\w+?)_0(_0)?$", r"\2", name)

    def _source(self, node: Any) -> str:
        """The op whose tensor, or whose end, crosses."""
        name = re.sub(r"^edge_\d+_", "", node.attr["tensor_name"].s.decode()).partition(":")[0]
        return re.sub(r"^_(arg|recv)_(\w+?)_0(_0)?$", r"\2", name)


@program
def one_device(tf, devices):
    with tf.device(devices[0]):
        x = tf.placeholder(tf.float32, [2], name="x")
        return tf.reduce_sum(tf.square(x, name="square"), name="sum"), {x: [1, 2]}


@program
def three_devices_with_feeds_and_fetches(tf, devices):
    with tf.device(devices[1]):
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.identity(x, name="y")
    with tf.device(devices[2]):
        z, w = tf.add(y, 1.0, name="z"), tf.multiply(y, y, name="w")
    with tf.device(devices[0]), tf.control_dependencies([y]):
        c = tf.constant(3.0, name="c")
    with tf.device(devices[0]):
        t = tf.add(z, c, name="t")
    return [t, w, t.op], {x: 2.0}


@program
def a_variable_read_and_written_elsewhere(tf, devices):
    with tf.device(devices[1]):
        v = tf.Variable(1.0, name="v", use_resource=False)
    with tf.device(devices[2]):
        doubled = tf.multiply(v, 2.0, name="doubled")
    with tf.device(devices[1]):
        return tf.assign_add(v, doubled, name="update").op, None


@program
def several_outputs_and_dtypes(tf, devices):
    with tf.device(devices[0]):
        values, places = tf.nn.top_k([1.0, 3.0, 2.0], 2, name="top")
        text = tf.constant(["a", "b", "c"], name="text")
    with tf.device(devices[2]):
        taken = tf.gather(text, places, name="taken")
        half = tf.cast(values, tf.float16, name="half")
    return [taken, half], None


@program
def a_branch_elsewhere(tf, devices):
    with tf.device(devices[0]):
        x = tf.placeholder(tf.float32, [], name="x")
        positive = tf.greater(x, 0.0, name="positive")
        no, yes = tf.raw_ops.Switch(data=x, pred=positive, name="switch")
    with tf.device(devices[1]):
        root = tf.sqrt(yes, name="root")
    with tf.device(devices[0]):
        return tf.raw_ops.Merge(inputs=[no, root], name="merge")[0], {x: 4.0}


@program
def a_branch_on_a_fed_value(tf, devices):
    """The value comes in on the client's device, and the Switch that reads it goes there, wherever it was placed."""
    with tf.device(devices[2]):
        x = tf.placeholder(tf.float32, [], name="x")
        positive = tf.greater(x, 0.0, name="positive")
        no, yes = tf.raw_ops.Switch(data=x, pred=positive, name="switch")
        root = tf.sqrt(yes, name="root")
        return tf.raw_ops.Merge(inputs=[no, root], name="merge")[0], {x: 4.0}


@program
def a_loop_with_a_part_elsewhere(tf, devices):
    def body(i, a):
        with tf.device(devices[1]):
            b = tf.add(a, 1.0, name="b")
        return i + 1, b

    with tf.device(devices[0]):
        return tf.while_loop(lambda i, a: i < 3, body, [tf.constant(0), tf.constant(0.0)]), None
