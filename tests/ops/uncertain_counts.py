"""Train networks and run kernels in an interpreter whose reference counts are off by `argv[1]`; print what came out.

One line of JSON: the limits of `base/ownership.py`, how many buffers kernels took over, and a digest of all values.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress

real_count = sys.getrefcount
if int(sys.argv[1]):
    sys.getrefcount = lambda x: real_count(x) - 1 + int(sys.argv[1])  # the lambda holds x once more

import numpy as np  # noqa: E402

import dtflab as tf  # noqa: E402
from dtflab.base import ownership  # noqa: E402
from dtflab.graph import op_registry  # noqa: E402
from dtflab.graph.node import make_node  # noqa: E402
from dtflab.machine.devices import Device  # noqa: E402
from dtflab.ops import forwarding  # noqa: E402
from tests.op_examples import EXAMPLES, dtypes_of, examples_of, main_attr  # noqa: E402

OPTIMIZERS = [
    tf.train.GradientDescentOptimizer(0.1),
    tf.train.MomentumOptimizer(0.1, 0.9),
    tf.train.AdagradOptimizer(0.1),
    tf.train.AdamOptimizer(0.1),
    tf.train.RMSPropOptimizer(0.1),
    tf.train.FtrlOptimizer(0.1),
]


def trained(use_resource):
    """Losses, gradients and weights; what was fetched before is looked at once more after the last step."""
    for optimizer in OPTIMIZERS:
        with tf.Graph().as_default(), tf.variable_scope("net", use_resource=use_resource):
            tf.set_random_seed(1)
            x = tf.placeholder(tf.float32, [None, 4])
            hidden = tf.layers.dense(tf.tanh(tf.layers.dense(x, 8)) * 2.0 + 1.0, 3)
            loss = tf.reduce_mean(tf.nn.softmax(hidden)[:, 0])
            pairs = optimizer.compute_gradients(loss)
            fetches = [optimizer.apply_gradients(pairs), loss, hidden, pairs]
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                feed = {x: np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)}
                steps = [session.run(fetches, feed)[1:] for _ in range(4)]
                yield from (steps, session.run(tf.trainable_variables()))


def computed():
    """Each kernel that may write into an input, called with arguments that nobody else holds."""
    device = Device("/job:a/replica:0/task:0/device:CPU:0")
    for op in sorted(EXAMPLES.keys() & {name for name in op_registry.names() if op_registry.get(name).into}):
        for dtype in dtypes_of(op_registry.get(op).op_def):
            for example in examples_of(op, dtype):
                if all(isinstance(value, np.ndarray) for value in example.inputs):
                    given = {name: v.encode() if isinstance(v, str) else v for name, v in example.attrs.items()}
                    attrs = {main_attr(op_registry.get(op).op_def): dtype} | given
                    node = make_node("n", op, [(f"x{i}", 0) for i in range(len(example.inputs))], **attrs)
                    args = [value.copy() for value in example.inputs]
                    with np.errstate(all="ignore"), suppress(tf.errors.NotFoundError):  # no kernel for the dtype
                        yield device.bind(node)(*args)


def leaves(value):
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield np.asarray(value)


taken, is_own = [], forwarding._is_own
forwarding._is_own = lambda x: is_own(x) and not taken.append(1)
digest = hashlib.sha256()
for array in leaves([*trained(False), *trained(True), *computed()]):
    digest.update(array.dtype.str.encode() + repr(array.shape).encode())
    digest.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
limits = [ownership.SOLE_ARGUMENT, ownership.SOLE_ELEMENT, ownership.SOLE_ATTRIBUTE]
print(json.dumps({"limits": limits, "taken": len(taken), "digest": digest.hexdigest()}))
