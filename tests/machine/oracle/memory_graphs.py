"""Graphs whose use of memory is looked at, built with either library: `GRAPHS[name](tf)` gives what to run."""

from __future__ import annotations

N = 1 << 18  # floats: 1 MiB


def big(tf, value=1.0):
    return tf.fill(tf.placeholder_with_default([N], [1]), value, name="big")


def chain(tf):
    x = big(tf)
    for i in range(4):
        x = tf.cumsum(x, name=f"sums{i}")
    return x.op


def chain_in_place(tf):
    x = big(tf)
    for i in range(4):
        x = tf.negative(x, name=f"neg{i}")
    return x.op


def in_place_unless_another_reads(tf):
    x = big(tf)
    with tf.control_dependencies([x]):
        first = tf.negative(x, name="first")
    with tf.control_dependencies([first]):
        second = tf.negative(x, name="second")
    return tf.add(first, second, name="both").op


def one_after_the_other(tf):
    sums = []
    for i in range(3):
        with tf.control_dependencies(sums[-1:]):
            large = big(tf, float(i))
            sums.append(tf.reduce_sum(tf.cumsum(large, name=f"sums{i}"), name=f"sum{i}"))
    return tf.add_n(sums, name="out").op


def views(tf):
    x = tf.reshape(big(tf), [2, -1], name="shaped")
    return tf.cumsum(tf.identity(x, name="same"), name="sums").op


def sum_with_one_that_is_used_again(tf):
    a = big(tf)
    with tf.control_dependencies([a]):
        b = tf.fill(tf.placeholder_with_default([N], [1]), 2.0, name="b")
    c = tf.add(a, b, name="c")
    return tf.multiply(c, a, name="d").op


def product(tf):
    x = tf.reshape(big(tf), [512, 512])
    return tf.matmul(tf.matmul(x, x, name="p"), x, name="q").op


GRAPHS = {
    one.__name__: one
    for one in (
        chain,
        chain_in_place,
        in_place_unless_another_reads,
        one_after_the_other,
        views,
        sum_with_one_that_is_used_again,
        product,
    )
}


def facts(run_metadata):
    """From the trace of a step: large allocations of each op, whether they are freed within the step, and the peak.

    The peak is that of the large tensors, in bytes. In one microsecond memory is freed before other is taken: between
    taking it and freeing an input an op computes, which is longer; but the next op may take its own at once.
    """
    taken, changes = {}, []
    for device in run_metadata.step_stats.dev_stats:
        for node in device.node_stats:
            records = [r for memory in node.memory for r in memory.allocation_records if abs(r.alloc_bytes) > 1000]
            if records and node.node_name != "_SOURCE":
                taken[node.node_name] = [r.alloc_bytes for r in records]
                changes += [(r.alloc_micros, r.alloc_bytes) for r in records]
    peak = now = 0
    for _, change in sorted(changes):
        now += change
        peak = max(peak, now)
    return {"taken": taken, "peak": peak}
