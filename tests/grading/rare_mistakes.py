"""Wrong answers for the checks that refuse no catalogued mistake which another check of the question would let pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dtflab as tf
from solutions.wrong.many.q1 import read, trained
from solutions.wrong.queues.q2 import stages


def keeps_a_record(argv):
    """Leaves a variable in no container of its own, where other programs find it."""
    options = read(argv)
    share = trained(argv)
    with tf.Graph().as_default(), tf.device(options.device):
        record = tf.Variable(share, name="record")
        with tf.Session(options.server) as sess:
            sess.run(record.initializer)
    return share


def knows_short_names_only(pin: str, gpu_kernel: bool, devices: Sequence[str], master: str) -> str | None:
    """A pin may say /gpu:0 or /device:GPU:0; here, only the former."""
    wishes = [part.lower() for part in pin.split("/") if part]

    def fields(device: str) -> list[str]:
        return device.lower().replace("device:", "").split("/")

    def allowed(device: str) -> bool:
        return all(wish in fields(device) for wish in wishes) and (gpu_kernel or "CPU" in device)

    def order(device: str) -> tuple[bool, bool, str]:
        return "CPU" in device, not device.startswith(f"{master}/"), device

    return min(filter(allowed, devices), key=order, default=None)


def takes_all(tokens: Sequence[Any], i: int, j: int, work: Callable[[], Any]) -> Any:
    """Looks for the token of each GPU first, and so waits for some that it does not need."""
    seen: list[Any] = []
    for number, queue in enumerate(tokens):
        if number not in (i, j):
            with tf.control_dependencies(seen):
                token = queue.dequeue()
            with tf.control_dependencies([token]):
                seen = [queue.enqueue(token)]
    with tf.control_dependencies(seen):
        return stages(tokens, min(i, j), max(i, j), work)


def splits_single_rows_otherwise(shards: Sequence[Any], ids: Any, block_rows: int) -> Any:
    """Right for larger blocks; rows that are dealt out one by one are looked for one shard after the other."""
    tasks = len(shards)
    if block_rows == 1:
        return tf.nn.embedding_lookup(list(shards), ids, partition_strategy="div")
    block = ids // block_rows
    task, row = block % tasks, block // tasks * block_rows + ids % block_rows
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, tasks)
    found = []
    for shard, mine in zip(shards, tf.dynamic_partition(row, task, tasks)):
        with tf.device(shard.device):
            found.append(tf.gather(shard, mine))
    return tf.dynamic_stitch(places, found)


def texts_for_the_gpu(gpu: int, cpu: int, dragged: int) -> dict[str, list[Any]]:
    """Ops of one kind for two."""
    counter = tf.Variable(0)
    with tf.colocate_with(counter.op):
        there = [tf.square(2.0).op for _ in range(dragged)]
    texts = [tf.as_string(1.0).op for _ in range(gpu + cpu)]
    return {"gpu": texts[:gpu], "cpu": texts[gpu:], "dragged": there}


RARE: dict[str, list[Callable[..., Any]]] = {
    "many/q1": [keeps_a_record],
    "placement/q2": [knows_short_names_only],
    "placement/q3": [texts_for_the_gpu],
    "queues/q2": [takes_all],
    "shared/q2": [splits_single_rows_otherwise],
}
