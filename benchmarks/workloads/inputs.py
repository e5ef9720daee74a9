"""How data come in: queues, files, data sets."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workloads.workload import KEPT, Measure, Row, best, workload


@workload("queue-scalar", {"FIFOQueue, single elements: enqueue, dequeue": Row("el/s", 5)})
def queue_scalar(tf: Any) -> Measure:
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(1000, tf.float32, [()])
        put, take = queue.enqueue(1.0), queue.dequeue()
        session = tf.Session()

    def through() -> None:
        session.run(put)
        session.run(take)

    return lambda: [1 / best(through, 1, 500)]


_QUEUE_ROWS = {
    "FIFOQueue, 100 at a time": Row("el/s", 1),
    "RandomShuffleQueue, 100 at a time": Row("el/s", 1),
    "PaddingFIFOQueue, 100 at a time": Row("el/s"),
}


@workload("queue-batches", _QUEUE_ROWS)
def queue_batches(tf: Any) -> Measure:
    """Rows of 32 floats and a label, put and taken by the hundred."""
    with tf.Graph().as_default():
        types, shapes = [tf.float32, tf.int32], [(32,), ()]
        queues = [
            tf.FIFOQueue(1000, types, shapes),
            tf.RandomShuffleQueue(1000, 100, types, shapes),
            tf.PaddingFIFOQueue(1000, types, [(None,), ()]),
        ]
        rows = tf.constant(np.ones((100, 32), np.float32)), tf.constant(np.arange(100, dtype=np.int32))
        session = tf.Session()
        session.run([queue.enqueue_many(rows) for queue in queues])
        steps = [(queue.enqueue_many(rows), queue.dequeue_many(100)) for queue in queues]

    def through(put: Any, take: Any) -> None:
        session.run(put)
        session.run(take)

    return lambda: [100 / best(lambda step=step: through(*step), 5) for step in steps]


@workload("queue-threads", {"one row a step on a thread, batches of 50 on another": Row("rows/s")})
def queue_threads(tf: Any) -> Measure:
    """Measure how a QueueRunner and a training loop slow each other down."""
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(200, [tf.float32, tf.int32], [(32,), ()])
        put, take = queue.enqueue((np.ones(32, np.float32), 1)), queue.dequeue_many(50)
        session = tf.Session()

    def measure() -> list[float]:
        def fill() -> None:
            for _ in range(2000):
                session.run(put)

        start = time.perf_counter()
        filling = threading.Thread(target=fill)
        filling.start()
        for _ in range(40):
            session.run(take)
        filling.join()
        return [2000 / (time.perf_counter() - start)]

    return measure


_INPUT_ROWS = {
    "examples one by one through tf.train.batch, 1 thread": Row("/s"),
    "same, 2 threads": Row("/s"),
    "same from a slice_input_producer, 1 thread": Row("/s"),
    "same, 2 threads there": Row("/s"),
}


@workload("input", _INPUT_ROWS, rounds=3)
def input_pipeline(tf: Any) -> Measure:
    """Queue runners that put one example a step, and a loop that takes batches of 100."""
    return lambda: [_examples(tf, sliced, threads) for sliced in (False, True) for threads in (1, 2)]


def _examples(tf: Any, sliced: bool, threads: int) -> float:
    """Examples per second, of 8 floats and a label, in the best of some stretches."""
    rows, labels = np.ones((1000, 8), np.float32), np.arange(1000)
    with tf.Graph().as_default():
        example = tf.train.slice_input_producer([rows, labels]) if sliced else [tf.constant(rows[0]), tf.constant(1)]
        batch = tf.train.batch(example, 100, num_threads=threads)
        with tf.Session() as session:
            coordinator = tf.train.Coordinator()
            running = tf.train.start_queue_runners(session, coordinator)
            rate = 100 / best(lambda: session.run(batch), 20, 10)
            coordinator.request_stop()
            coordinator.join(running)
    return rate


# ---- files and data sets ------------------------------------------------------------------------------------


def _csv_columns(tf: Any, path: str, batch: int | None) -> Callable[[], Any]:
    """A step that reads the next record, or the next `batch`, of a file that is read again and again."""
    with tf.Graph().as_default():
        names = tf.FIFOQueue(1000, [tf.string], shapes=[()])
        reader = tf.TextLineReader()
        _, lines = reader.read(names) if batch is None else reader.read_up_to(names, batch)
        columns = tf.decode_csv(lines, [[0.0]] * 4 + [[0]])
        fill = names.enqueue_many([[path] * 1000])
        session = tf.Session()
        session.run(fill)
    return lambda: session.run(columns)


@workload("csv", {"CSV records of 5 columns, one per run": Row("/s"), "same, read_up_to 1,000": Row("/s")})
def csv(tf: Any) -> Measure:
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "records.csv")
    random = np.random.RandomState(0)
    with open(path, "w", encoding="ascii") as file:
        for row in random.rand(50_000, 4):
            file.write(",".join(f"{x:.3f}" for x in row) + f",{random.randint(3)}\n")
    one, many = _csv_columns(tf, path, None), _csv_columns(tf, path, 1000)
    KEPT.append(folder)
    return lambda: [1 / best(one, 50), 1000 / best(many, 2)]


_DATA_ROWS = {
    "from_tensor_slices().repeat(), one row a step": Row("/s", 1),
    "same in batches of 100": Row("batches/s", 1),
    "map(x * 2 + 1), batches of 100": Row("batches/s"),
    "same with prefetch(2)": Row("batches/s"),
    "same with num_parallel_calls=2": Row("batches/s"),
    "shuffle(1,000), batches of 100": Row("batches/s", 0.8),
}


@workload("data", _DATA_ROWS)
def data(tf: Any) -> Measure:
    """Rows of 32 floats and a label through tf.data, taken by one step each."""
    rows = np.ones((1000, 32), np.float32), np.arange(1000)
    with tf.Graph().as_default():
        endless = tf.data.Dataset.from_tensor_slices(rows).repeat()
        mapped, in_parallel = (
            endless.map(lambda x, label: (x * 2 + 1, label), num_parallel_calls=calls).batch(100) for calls in (None, 2)
        )
        made = [endless, endless.batch(100), mapped, mapped.prefetch(2), in_parallel, endless.shuffle(1000).batch(100)]
        iterators = [dataset.make_initializable_iterator() for dataset in made]
        elements = [iterator.get_next() for iterator in iterators]
        session = tf.Session()
        session.run([iterator.initializer for iterator in iterators])
    calls = (
        200,
        200,
        100,
        100,
        100,
        100,
    )  # many more than TensorFlow makes ahead, unasked, between two batches of them
    return lambda: [1 / best(lambda e=e: session.run(e), n, 3) for e, n in zip(elements, calls, strict=True)]
