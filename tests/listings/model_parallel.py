"""One network cut in two: each task has half of the units of each layer, and needs both halves of the one before.

It learns what the whole network learns. Most of its edges cross between the tasks.
"""

import numpy as np

import dtflab as tf

cluster_spec = tf.train.ClusterSpec({"worker": ["machine-a.example.com:2222", "machine-b.example.com:2222"]})
servers = [tf.train.Server(cluster_spec, job_name="worker", task_index=index) for index in range(2)]
rng = np.random.RandomState(0)
WEIGHTS = [rng.normal(0, 0.5, shape).astype(np.float32) for shape in ((4, 6), (6, 6), (6, 1))]
X = rng.normal(size=(32, 4)).astype(np.float32)
Y = (X[:, :1] * X[:, 1:2]).astype(np.float32)


def network(x, parts):
    """The layers' units dealt out to that many tasks; their values joined after each layer."""
    for layer, weights in enumerate(WEIGHTS):
        halves = []
        for task, columns in enumerate(np.split(weights, parts, axis=1) if weights.shape[1] > 1 else [weights]):
            with tf.device(f"/job:worker/task:{task}"):
                product = tf.matmul(x, tf.Variable(columns, name=f"w{layer}_{task}"))
                halves.append(product if layer == len(WEIGHTS) - 1 else tf.nn.tanh(product))
        x = tf.concat(halves, axis=1) if len(halves) > 1 else halves[0]
    return x


for parts in (1, 2):
    with tf.Graph().as_default(), tf.container(f"in{parts}"):
        x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
        loss = tf.reduce_mean(tf.square(network(x, parts) - y))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)
        with tf.Session(servers[0].target) as sess:
            sess.run(tf.global_variables_initializer())
            losses = [sess.run([loss, train_op], {x: X, y: Y})[0] for _ in range(100)]
            metadata = tf.RunMetadata()
            options = tf.RunOptions(output_partition_graphs=True)
            sess.run(train_op, {x: X, y: Y}, options=options, run_metadata=metadata)
        tasks = {node.device for graph in metadata.partition_graphs for node in graph.node if "MatMul" in node.op}
        print(f"{parts} parts: loss {losses[0]:.4f} to {losses[-1]:.4f}, products on {sorted(tasks)}")
