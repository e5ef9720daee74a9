"""The calls of a session, one program each, on devices that the caller names."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

_servers: list[Any] = []


def serve(tf: Any, cluster: dict[str, list[str]], job: str, index: int, gpus: int = 0) -> None:
    """Be a task of a cluster, for as long as the process lives; `gpus` are for dtflab to simulate."""
    if gpus:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # it hides simulated ones, too
    config = tf.ConfigProto(device_count={"GPU": gpus})
    _servers.append(tf.train.Server(cluster, job_name=job, task_index=index, config=config))


# -- a small model ------------------------------------------------------------------------------------------


def digits() -> tuple[np.ndarray, np.ndarray]:
    """60 points in four dimensions, in three classes."""
    features = np.random.RandomState(0).rand(60, 4).astype(np.float32)
    return features, (features[:, 0] * 3).astype(np.int32)


def mlp(tf: Any, target: str, use_resource: bool, ps: str = "", worker: str = "", steps: int = 30) -> dict[str, Any]:
    """Train an MLP, its variables on device `ps`, its products on `worker`: first and last loss, accuracy, steps."""
    with tf.Graph().as_default(), tf.variable_scope("model", use_resource=use_resource):
        x = tf.placeholder(tf.float32, [None, 4])
        y = tf.placeholder(tf.int32, [None])
        with tf.device(ps):
            w1 = tf.get_variable("w1", [4, 8], initializer=tf.glorot_uniform_initializer(seed=1))
            b1 = tf.get_variable("b1", [8], initializer=tf.zeros_initializer())
            w2 = tf.get_variable("w2", [8, 3], initializer=tf.glorot_uniform_initializer(seed=2))
            b2 = tf.get_variable("b2", [3], initializer=tf.zeros_initializer())
            global_step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
        with tf.device(worker):
            logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
            right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y)
            accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
            train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step)
        features, classes = digits()
        feed = {x: features, y: classes}
        with tf.Session(target) as sess:
            sess.run(tf.global_variables_initializer())
            losses = [sess.run([loss, train], feed)[0] for _ in range(steps)]
            return {
                "first": float(losses[0]),
                "last": float(losses[-1]),
                "accuracy": float(sess.run(accuracy, feed)),
                "steps": int(sess.run(global_step)),
            }


def spread(tf: Any, target: str, here: str, there: str, count: int = 4) -> list[Any]:
    """Values that cross from `here` to `there` and back."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        with tf.device(here):
            a = x * 2.0
        with tf.device(there):
            b = tf.reduce_sum(a) + tf.constant(1.0)
            text = tf.identity(tf.constant([b"one", b"t\0wo"]))
        with tf.device(here):
            c = b * a
            words = tf.identity(text)
        with tf.Session(target) as sess:
            values, strings = sess.run([c, words], {x: np.arange(count, dtype=np.float32)})
            return [values.tolist(), [s.decode("latin-1") for s in strings]]


def branches(tf: Any, target: str, here: str, there: str) -> list[Any]:
    """A conditional and a loop whose bodies live `there`: dead tensors and iterations cross the wire."""
    with tf.Graph().as_default():
        p = tf.placeholder(tf.bool, [])
        n = tf.placeholder(tf.int32, [])
        with tf.device(here):
            x = tf.constant(3.0)

            def far(value: Any, factor: float) -> Any:
                with tf.device(there):
                    return value * factor

            chosen = tf.cond(p, lambda: far(x, 10.0), lambda: x + 1.0)

            def body(i: Any, total: Any) -> Any:
                with tf.device(there):
                    more = tf.cast(i, tf.float32) * 2.0
                return i + 1, total + more

            _, total = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.constant(0.0)])
        with tf.Session(target) as sess:
            results = [sess.run([chosen, total], {p: flag, n: count}) for flag, count in ((True, 3), (False, 5))]
            return [[float(value) for value in pair] for pair in results]


# -- a session's calls ----------------------------------------------------------------------------------------


def devices(tf: Any, target: str) -> list[list[Any]]:
    """Name, type, and whether there is an incarnation, of the devices of a session."""
    with tf.Graph().as_default():
        tf.constant(1.0)
        with tf.Session(target) as sess:
            return [[d.name, d.device_type, d.incarnation != 0] for d in sess.list_devices()]


def patient(tf: Any, target: str, timeout_in_ms: int) -> list[str]:
    """The devices of a session that does not wait for longer than that."""
    config = tf.ConfigProto(operation_timeout_in_ms=timeout_in_ms)
    with tf.Graph().as_default(), tf.Session(target, config=config) as sess:
        return [device.name for device in sess.list_devices()]


def growing(tf: Any, target: str) -> list[float]:
    """A graph that grows between the runs of one session."""
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with tf.Session(target) as sess:
            found = [float(sess.run(x))]
            for _ in range(3):
                x = x * 2.0
                found.append(float(sess.run(x)))
            return found


def values(tf: Any, target: str, device: str, names: list[str]) -> list[str]:
    """Which dtypes come back changed from a round trip through `device`."""
    changed = []
    for name in names:
        dtype = tf.as_dtype(name)
        value = np.array([[0, 1, 1], [1, 0, 2]]).astype(dtype.as_numpy_dtype)
        if name == "string":
            value = np.array([b"", b"\x00\xff", b"text\x00"], object)
        with tf.Graph().as_default():
            x = tf.placeholder(dtype, value.shape)
            with tf.device(device):
                y = tf.identity(x)
            with tf.Session(target) as sess:
                found = sess.run(y, {x: value})
                if found.dtype != value.dtype or found.tolist() != value.tolist():
                    changed.append(name)
    return changed


def large(tf: Any, target: str, device: str, count: int) -> float:
    """A feed and a fetch of `count` floats each."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [count])
        with tf.device(device):
            y = x + 1.0
        with tf.Session(target) as sess:
            return float(sess.run(y, {x: np.ones(count, np.float32)}).sum())


def counter(tf: Any, target: str, name: str, times: int, initialize: bool) -> float:
    """Count up a variable that other sessions know by the same name."""
    with tf.Graph().as_default():
        v = tf.Variable(0.0, name=name, use_resource=False)
        more = tf.assign_add(v, 1.0)
        with tf.Session(target) as sess:
            if initialize:
                sess.run(v.initializer)
            for _ in range(times):
                sess.run(more)
            return float(sess.run(v))


def reset(tf: Any, target: str) -> str:
    """The session's answer after `Session.reset`."""
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        sess = tf.Session(target)
        sess.run(x)
        tf.Session.reset(target)
        try:
            sess.run(x)
        except tf.errors.OpError as error:
            return f"{type(error).__name__}: {error.message}"
    return "nothing"


def trace(tf: Any, target: str, here: str, there: str) -> dict[str, list[str]]:
    """The nodes of each device in the trace of a step."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [100])
        with tf.device(there):
            a = tf.exp(x, name="made_there")
        with tf.device(here):
            b = tf.reduce_sum(a, name="used_here")
        with tf.Session(target) as sess:
            options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
            sess.run(b, {x: np.zeros(100, np.float32)}, options=options, run_metadata=metadata)
            return {s.device: [n.node_name for n in s.node_stats] for s in metadata.step_stats.dev_stats}


def called(tf: Any, target: str) -> list[float]:
    """A callable of a session."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        y = x * 3.0
        with tf.Session(target) as sess:
            call = sess.make_callable(y, [x])
            return call(np.float32([1, 2])).tolist() + call(np.float32([3, 4])).tolist()


def in_parts(tf: Any, target: str, here: str, there: str, config: Any = None) -> list[float]:
    """A partial run: what is fed and fetched first lies `here`, the rest `there`."""
    with tf.Graph().as_default():
        with tf.device(here):
            x = tf.placeholder(tf.float32, [])
            doubled = x * 2.0
        with tf.device(there):
            y = tf.placeholder(tf.float32, [])
            product = doubled * y
        with tf.Session(target, config=config) as sess:
            found = []
            for start in (1.0, 2.0):
                handle = sess.partial_run_setup([doubled, product], [x, y])
                found.append(float(sess.partial_run(handle, doubled, {x: start})))
                found.append(float(sess.partial_run(handle, product, {y: found[-1] + 1})))
            return found


def through_queues(tf: Any, target: str, here: str, there: str, name: str) -> list[Any]:
    """Queues on `there`, shared by two sessions, for values of `here`: what was taken, and the errors at the end."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        with tf.device(there):
            queue = tf.FIFOQueue(4, [tf.float32, tf.string], [[2], []], shared_name=name)
            shuffled = tf.RandomShuffleQueue(9, 0, tf.int32, [[]], seed=1, shared_name=name + "_shuffled")
        with tf.device(here):
            put = queue.enqueue((x * 2.0, tf.constant("two")))
            taken, word = queue.dequeue_many(2)
            double = tf.identity(taken) * 2.0
        with tf.Session(target) as one, tf.Session(target) as two:
            for n in range(4):
                one.run(put, {x: [n, n + 1]})
            values, words = two.run([double, word])
            one.run(shuffled.enqueue_many([list(range(6))]))
            found = [values.tolist(), [w.decode() for w in words], two.run(shuffled.dequeue_many(6)).tolist()]
            one.run(queue.close())
            for fetch in (put, queue.dequeue_many(3), queue.dequeue_up_to(3), queue.dequeue()):
                try:
                    found.append(str(two.run(fetch, {x: [0.0, 0.0]}) and "taken"))
                except tf.errors.OpError as error:
                    found.append(type(error).__name__)
            try:
                two.run(shuffled.dequeue(), options=tf.RunOptions(timeout_in_ms=100))
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
            return found


def optimized(tf: Any, target: str, here: str, there: str) -> list[list[float]]:
    """Three steps of optimizers with slots on `there`, a table and a matrix, gradients of `here`; the values."""
    with tf.Graph().as_default():
        with tf.device(there):
            table = tf.Variable(np.linspace(-2, 2, 10, dtype=np.float32).reshape(5, 2), name="optimized_table")
            w = tf.Variable(np.linspace(-1, 1, 4, dtype=np.float32).reshape(2, 2), use_resource=True, name="optimized")
        with tf.device(here):
            loss = tf.reduce_sum(tf.square(tf.matmul(tf.gather(table, [1, 3, 1]), w) - 0.3))
        optimizers = [
            tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True), tf.train.AdamOptimizer(0.1),
            tf.train.AdagradOptimizer(0.1), tf.train.RMSPropOptimizer(0.01, centered=True), tf.train.FtrlOptimizer(0.1),
        ]  # fmt: skip
        steps = [o.minimize(loss, var_list=[table, w], gate_gradients=o.GATE_GRAPH) for o in optimizers]
        with tf.Session(target) as sess:
            sess.run(tf.global_variables_initializer())
            return [
                [float(v) for array in (sess.run(step), *sess.run([table, w])) if array is not None for v in array.flat]
                for step in steps
                for _ in range(3)
            ]


def accumulated(tf: Any, target: str, here: str, there: str, name: str) -> list[Any]:
    """Accumulators on `there`, shared by two sessions, for gradients of `here`: means, counts, and a time-out."""
    with tf.Graph().as_default():
        x, step = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int64, [])
        with tf.device(there):
            dense = tf.ConditionalAccumulator(tf.float32, [2], shared_name=name)
            rows = tf.SparseConditionalAccumulator(tf.float32, [None, 2], shared_name=name + "_rows")
        with tf.device(here):
            slices = tf.IndexedSlices(tf.expand_dims(x, 0), tf.constant([1]), tf.constant([3, 2]))
            give = [dense.apply_grad(x * 2.0, step), rows.apply_indexed_slices_grad(slices, step)]
        mean, mean_of_rows, count = dense.take_grad(2), rows.take_grad(1), dense.num_accumulated()
        with tf.Session(target) as one, tf.Session(target) as two:
            for session, at, value in ((one, 0, 1.0), (two, 0, 3.0), (two, 0, 5.0)):
                session.run(give, {x: [value, -value], step: at})
            found = [one.run(count).tolist(), two.run(mean).tolist(), *(v.tolist() for v in one.run(mean_of_rows))]
            one.run(give, {x: [7.0, 7.0], step: 0})  # stale
            found.append(two.run(count).tolist())
            try:
                one.run(mean, options=tf.RunOptions(timeout_in_ms=100))
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
            return found


def conditional(tf: Any, target: str) -> float:
    """`tf.cond` and `tf.while_loop` as this process makes them: with functions, unless v2 behaviour is off."""
    with tf.Graph().as_default():
        p = tf.placeholder(tf.bool, [])
        y = tf.cond(p, lambda: tf.constant(1.0), lambda: tf.constant(2.0))
        with tf.Session(target) as sess:
            return float(sess.run(y, {p: True}))


def growing_by_calls(tf: Any, target: str, there: str = "") -> list[float]:
    """A function is called, and called again after the first run; then one of three branches is chosen."""
    with tf.Graph().as_default():
        double = tf.function(lambda x: x * 2.0 + 1.0)
        y = double(tf.constant(3.0))
        with tf.Session(target) as sess:
            found = [float(sess.run(y))]
            with tf.device(there):
                z = double(y)
                branches = [lambda: z, lambda: z * 10.0, lambda: y]
                chosen = [tf.switch_case(tf.constant(i), branches) for i in (0, 1, 5)]
            return [*found, *map(float, sess.run([z, *chosen]))]


def recurrent(tf: Any, target: str, ps: str = "", worker: str = "", steps: int = 12) -> list[float]:
    """The losses of a model with a loop, a conditional in it and a function around it; part of its body is on the ps.

    What the gradient needs of each turn waits in lists of tensors, which cross between the tasks.
    """
    random = np.random.RandomState(1)
    features = random.rand(8, 3).astype(np.float32)
    with tf.Graph().as_default():
        x, target_sum = tf.constant(features), tf.constant(features.sum(1))
        with tf.device(ps), tf.variable_scope("recurrent"):
            value = random.uniform(-0.5, 0.5, (3, 3)).astype(np.float32)
            w = tf.get_variable("w", initializer=tf.constant(value), use_resource=True)

        def body(i: Any, h: Any) -> Any:
            with tf.device(ps):
                h = tf.matmul(h, w)
            return i + 1, tf.cond(tf.reduce_sum(h) > 0.0, lambda: tf.tanh(h + x), lambda: tf.exp(h) * x)

        with tf.device(worker):
            _, h = tf.while_loop(lambda i, h: i < 4, body, [tf.constant(0), x])
            total = tf.function(lambda h: tf.reduce_sum(h, 1))(h)
            loss = tf.reduce_mean(tf.square(total - target_sum))
            train = tf.train.AdamOptimizer(0.05).minimize(loss)
        with tf.Session(target) as sess:
            sess.run(tf.global_variables_initializer())
            return [float(sess.run([loss, train])[0]) for _ in range(steps)]


def failing(tf: Any, target: str, how: str, device: str = "") -> Any:
    """A step that fails, in one of the ways in which steps fail."""
    with tf.Graph().as_default(), tf.device(device):
        x = tf.placeholder(tf.float32, name="x")
        if how == "unfed":
            y = x + 1.0
        elif how == "uninitialized":
            y = tf.Variable(1.0, name="v", use_resource=False) + 1.0
        elif how == "uninitialized resource":
            y = tf.Variable(1.0, name="v", use_resource=True) + 1.0
        elif how == "shape":
            y = tf.matmul(tf.placeholder_with_default(np.ones((2, 3), np.float32), None), tf.ones([2, 3]), name="wrong")
        elif how == "index":
            y = tf.gather(tf.constant([1, 2, 3]), tf.placeholder_with_default([7], None), name="beyond")
        elif how == "device":
            with tf.device("/job:nobody/task:3"):
                y = tf.constant(1.0)
        elif how == "kernel":
            y = tf.raw_ops.Fact()  # an op that dtflab will never need
        with tf.Session(target) as sess:
            return np.asarray(sess.run(y)).tolist()


def saved(tf: Any, target: str, here: str, there: str, prefix: str, act: str) -> list[Any]:
    """Save variables of two tasks as two shards, or restore them; their values, which a save then forgets."""
    with tf.Graph().as_default(), tf.Session(target) as session:
        with tf.device(here):
            a = tf.Variable([[1.5, 2.5]], name="a", use_resource=True)
        with tf.device(there):
            b = tf.Variable(["text", ""], name="b", use_resource=False)
        saver = tf.train.Saver(sharded=True)
        if act == "save":
            session.run([a.initializer, b.initializer])
            saver.save(session, prefix)
        else:
            saver.restore(session, prefix)
        found = [session.run(a).tolist(), [item.decode() for item in session.run(b)]]
        session.run([a.assign([[0.0, 0.0]]), b.assign(["", ""])])
    return found


# -- data sets ----------------------------------------------------------------------------------------------


def batches(tf: Any, target: str, here: str, there: str, one_shot: bool = False) -> list[Any]:
    """Batches that a pipeline on device `there` makes and device `here` uses, to the end."""
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        with tf.device(there):
            offset = tf.get_variable("offset", [], tf.int64, tf.constant_initializer(5), use_resource=True)
            dataset = tf.data.Dataset.from_tensor_slices((np.arange(10), [[i, -i] for i in range(10)]))
            dataset = dataset.map(lambda x, y: (x * x, y), num_parallel_calls=2).filter(lambda x, y: x > 3)
            if not one_shot:
                dataset = dataset.map(lambda x, y: (x + offset, y))
            dataset = dataset.shuffle(4, seed=3).batch(3).repeat(2).prefetch(2)
            iterator = dataset.make_one_shot_iterator() if one_shot else dataset.make_initializable_iterator()
            numbers, pairs = iterator.get_next()
        with tf.device(here):
            used = [numbers + 0, pairs * 2]
        found: list[Any] = []
        with tf.Session(target) as sess:
            sess.run(offset.initializer)
            if not one_shot:
                sess.run(iterator.initializer)
            try:
                while True:
                    found.append([value.tolist() for value in sess.run(used)])
            except tf.errors.OutOfRangeError as error:
                found.append("End of sequence" in error.message)
    return found
