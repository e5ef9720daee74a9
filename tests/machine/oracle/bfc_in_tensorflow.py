"""Runs in a process of its own: TensorFlow's CPU with its BFC allocator, driven by a list of actions on stdin.

An action above 0 allocates that many bytes, which stay in the session; one below 0 frees the n-th of what is there.
Prints what TensorFlow's RunMetadata says of each allocation: chunk size, address, bytes in use; of a failed one, the
error. Its log, on stderr, has the allocator's dump.
"""

from __future__ import annotations

import json
import os
import sys

actions, limit_mib = json.load(sys.stdin)
os.environ |= {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit_mib)}
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"

import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()
count = tf.placeholder(tf.int32, [1])
handle = tf.get_session_handle(tf.fill(count, 1.0, name="big"))
config = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
config.graph_options.rewrite_options.disable_meta_optimizer = True
live, results = [], []


def allocate(session, nbytes):
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    try:
        live.append(session.run(handle, {count: [nbytes // 4]}, options, metadata))
    except tf.errors.ResourceExhaustedError as error:
        return {"error": error.message}
    stats = next(node for node in metadata.step_stats.dev_stats[0].node_stats if node.node_name == "big")
    description = stats.output[0].tensor_description.allocation_description
    memory = stats.memory[0]
    return {
        "address": description.ptr,
        "size": description.allocated_bytes,
        "in_use": memory.allocator_bytes_in_use,
        "memory": [memory.total_bytes, memory.peak_bytes, memory.live_bytes],
        "records": [record.alloc_bytes for record in memory.allocation_records],
    }


with tf.Session(config=config) as session:
    for action in actions:
        if action > 0:
            results.append(allocate(session, action))
        else:
            live.pop(-action - 1).delete()
            results.append(None)
print(json.dumps(results))
os._exit(0)  # handles that are still there would be deleted on a session that is closed
