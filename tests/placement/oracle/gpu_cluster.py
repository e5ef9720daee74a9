"""TensorFlow's placer at work on GPUs, without one: its master, in a cluster with tasks of dtflab that simulate GPUs.

Placing happens in the master, on the full graph, when a session is created; the devices are only names to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from dtflab.cluster.addresses import free_addresses
from tests.interop.peer import Peer

MASTER = "/job:t/replica:0/task:0"
GPUS = (3, 2, 1, 0)  # of the tasks of job d
_LINE = re.compile(r"^(\S+): \(\w+\): (/job:\S+)$", re.MULTILINE)


class Failed(Exception):
    """TensorFlow's error: its class, and its own text."""

    def __init__(self, error: tf.errors.OpError) -> None:
        super().__init__(error.message)
        self.kind = type(error).__name__
        # Python's account of where the nodes were made comes first.
        account = r"\AGraph execution error:\n\n(Detected at node.*?\nNode: [^\n]*\n)*"
        self.text = re.sub(account, "", error.message, flags=re.DOTALL)


class GPUCluster:
    """The servers. End it, or its process of dtflab stays; TensorFlow's server knows no end."""

    def __init__(self) -> None:
        addresses = free_addresses(len(GPUS) + 1)
        spec = {"d": addresses[1:], "t": addresses[:1]}
        self._peer = Peer("dtflab")
        for index, gpus in enumerate(GPUS):
            self._peer.run("serve", cluster=spec, job="d", index=index, gpus=gpus)
        self._target = tf.train.Server(spec, "t", 0).target

    def end(self) -> None:
        self._peer.stop()

    def place(self, build: Callable[[Any], Any], tasks: tuple[int, ...], soft: bool) -> tuple[Any, list[str], Any]:
        """Place a graph with the master and some tasks of d: its GraphDef, all devices, and where each node is.

        In place of the latter a Failed, if it can't be placed.
        """
        with tf.Graph().as_default() as graph:
            build(tf)
            with tf.device("/job:t/cpu:0"), tf.control_dependencies(None):
                nothing = tf.no_op(name="nothing")
            config = _config(tasks, allow_soft_placement=soft, log_device_placement=True)
            return graph.as_graph_def(), *self._placed(config, nothing)

    def partitions(self, build: Callable[[Any], list[Any]], tasks: tuple[int, ...]) -> list[Any]:
        """The GraphDefs of the parts when the fetches that `build` returns are run, as TensorFlow cut them."""
        metadata = tf.RunMetadata()
        with tf.Graph().as_default():
            fetches = build(tf)
            with tf.Session(self._target, config=_config(tasks)) as session:
                session.run(fetches, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
        return list(metadata.partition_graphs)

    def _placed(self, config: Any, fetch: Any) -> tuple[list[str], Any]:
        printed: list[str] = []
        with printed_by_c(printed), tf.Session(self._target, config=config) as session:
            try:
                session.run(fetch)
                found: Any = None
            except tf.errors.OpError as error:
                found = Failed(error)
            with tf.Graph().as_default(), tf.Session(self._target, config=config) as other:
                devices = [device.name for device in other.list_devices()]
        return devices, found or dict(_LINE.findall(printed[0]))


def _config(tasks: tuple[int, ...], **more: Any) -> Any:
    options = tf.GraphOptions(
        rewrite_options=RewriterConfig(disable_meta_optimizer=True), optimizer_options=tf.OptimizerOptions(opt_level=-1)
    )
    filters = ["/job:t", *(f"/job:d/task:{task}" for task in tasks)]
    return tf.ConfigProto(device_filters=filters, graph_options=options, **more)


@contextlib.contextmanager
def printed_by_c(into: list[str]) -> Iterator[None]:
    """Collects what C prints to standard output, which is where `log_device_placement` writes."""
    libc = ctypes.CDLL(None)
    sys.stdout.flush()
    libc.fflush(None)
    saved = os.dup(1)
    with tempfile.TemporaryFile("w+") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            libc.fflush(None)
            os.dup2(saved, 1)
            os.close(saved)
            file.seek(0)
            into.append(file.read())
