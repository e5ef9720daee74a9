"""TF1 training programs for either library.

A dense net, a CNN, an RNN as a while loop, a net fed by a queue, a net with a loss of `tf.losses`.
"""

from __future__ import annotations

from typing import Any


def dense(tf: Any) -> None:
    """Adam, weight decay, an accuracy, a saver, a decaying rate, initializers."""
    x, labels = tf.placeholder(tf.float32, [None, 4], name="x"), tf.placeholder(tf.int64, [None], name="labels")
    w1 = tf.Variable(tf.random_normal([4, 8]), name="w1")
    b1 = tf.Variable(tf.zeros([8]), name="b1")
    hidden = tf.nn.relu(tf.matmul(x / 2.0, w1) + b1, name="hidden")
    w2 = tf.Variable(tf.random_normal([8, 3]), name="w2")
    logits = tf.matmul(hidden, w2, name="logits")
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="entropy")
    decay = tf.multiply(0.01, tf.nn.l2_loss(w1, name="l2"), name="decay")
    loss = tf.add(tf.reduce_mean(entropy, name="mean"), decay, name="loss")
    tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32), name="accuracy")
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 100, 0.9, name="rate")
    tf.train.AdamOptimizer(rate).minimize(loss, global_step=step, name="train")
    tf.global_variables_initializer()
    tf.train.Saver()


def cnn(tf: Any) -> None:
    """Dropout, a softmax that is not part of the loss, clipped gradients."""
    x, labels = tf.placeholder(tf.float32, [None, 64], name="x"), tf.placeholder(tf.float32, [None, 10], name="labels")
    keep = tf.placeholder(tf.float32, name="keep")
    image = tf.reshape(x, [-1, 8, 8, 1], name="image")
    kernel = tf.Variable(tf.truncated_normal([3, 3, 1, 4], stddev=0.1), name="kernel")
    conv = tf.nn.relu(tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME", name="conv"), name="relu")
    pool = tf.nn.max_pool(conv, [1, 2, 2, 1], [1, 2, 2, 1], "SAME", name="pool")
    flat = tf.nn.dropout(tf.reshape(pool, [-1, 64], name="flat"), keep, name="dropout")
    weights = tf.Variable(tf.truncated_normal([64, 10], stddev=0.1), name="weights")
    out = tf.nn.softmax(tf.matmul(flat, weights, name="logits"), name="out")
    loss = tf.reduce_sum(tf.multiply(labels, -out, name="joined"), name="loss")
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss)
    clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 1.0, name="clip")
    optimizer.apply_gradients(list(zip(clipped, [variable for _, variable in pairs])), name="train")


def rnn(tf: Any) -> None:
    """A while loop that reads its input step by step; momentum."""
    x, target = tf.placeholder(tf.float32, [5, 2, 3], name="x"), tf.placeholder(tf.float32, [2, 4], name="target")
    weights = tf.Variable(tf.random_normal([7, 4]), name="weights")
    steps = tf.TensorArray(tf.float32, 5).unstack(x, name="unstack")

    def turn(i: Any, state: Any) -> Any:
        both = tf.concat([steps.read(i, name="read"), state], 1, name="concat")
        return i + 1, tf.tanh(tf.matmul(both, weights, name="product"), name="tanh")

    _, state = tf.while_loop(lambda i, _: i < 5, turn, [tf.constant(0), tf.zeros([2, 4])], name="loop")
    loss = tf.reduce_mean(tf.square(tf.subtract(state, target, name="error")), name="loss")
    tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, name="train")


def queue(tf: Any) -> None:
    """Examples and targets come out of one queue, which ops of the graph fill."""
    source = tf.random_uniform([2], name="source")
    queue = tf.FIFOQueue(10, [tf.float32, tf.float32], [[2], []], name="queue")
    queue.enqueue([source, tf.reduce_sum(source, name="total")], name="enqueue")
    queue.close(name="close")
    x, target = queue.dequeue_many(4, name="dequeue")
    weights = tf.Variable([[1.0], [2.0]], name="weights")
    loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(x, weights, name="product"), 1) - target), name="loss")
    tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")


def losses(tf: Any) -> None:
    """A loss of `tf.losses`, whose scope checks the shape of its weights."""
    x, labels = tf.placeholder(tf.float32, [None, 4], name="x"), tf.placeholder(tf.int64, [None], name="labels")
    weights = tf.Variable(tf.zeros([4, 3]), name="weights")
    logits = tf.matmul(x, weights, name="layer/logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, scope="entropy")
    tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")


PROGRAMS = {"dense": dense, "cnn": cnn, "rnn": rnn, "queue": queue, "losses": losses}

# What people would say of the ops that have a name in the programs.
SAID = {
    "dense": {
        "input": "x labels truediv",
        "forward": "w1 w1/read b1 b1/read MatMul add hidden w2 w2/read logits",
        "loss": "entropy/entropy l2 decay decay/x mean Const loss",
        "update": "global_step rate rate/truediv train train/update_w1/ApplyAdam w1/Adam w1/Adam_1 beta1_power "
        "train/epsilon",
        "other": "w1/Assign random_normal accuracy init save/SaveV2 save/restore_all",
    },
    "cnn": {
        "input": "x labels keep image",
        "forward": "kernel kernel/read conv relu pool flat dropout/RealDiv weights logits out",
        "loss": "joined loss",
        "update": "clip/global_norm clip/mul train/learning_rate train/update_kernel/ApplyGradientDescent train",
        "other": "kernel/Assign truncated_normal",
    },
    "rnn": {
        "input": "x target unstack/Shape loop/read",
        "forward": "weights loop/Merge loop/Merge_1 loop/LoopCond loop/concat loop/product loop/tanh loop/Exit_1",
        "loss": "error Square loss",
        "update": "train train/update_weights/ApplyMomentum weights/Momentum",
        "other": "weights/Assign",
    },
    "queue": {
        "input": "source/RandomUniform total queue enqueue dequeue",
        "forward": "weights weights/read product Squeeze",
        "loss": "sub Square loss",
        "update": "train train/learning_rate train/update_weights/ApplyGradientDescent",
        "other": "weights/Assign",
    },
    "losses": {
        "input": "x labels",
        "forward": "weights weights/read layer/logits",
        "loss": "entropy/xentropy/xentropy entropy/assert_broadcastable/static_scalar_check_success entropy/Mul "
        "entropy/value",
        "update": "train train/learning_rate train/update_weights/ApplyGradientDescent",
        "other": "weights/Assign",
    },
}
