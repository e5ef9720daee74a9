"""Runs in a process of its own: the graphs of memory_graphs.py on TensorFlow's CPU; prints their facts as JSON."""

from __future__ import annotations

import json
import os

os.environ |= {"TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": ""}

import tensorflow.compat.v1 as tf
from memory_graphs import GRAPHS, facts

tf.disable_v2_behavior()
config = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
config.graph_options.rewrite_options.disable_meta_optimizer = True
config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
found = {}
for name, build in GRAPHS.items():
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        op = build(tf)
        session.run(op)
        metadata = tf.RunMetadata()
        session.run(op, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        found[name] = facts(metadata)
print(json.dumps(found))
