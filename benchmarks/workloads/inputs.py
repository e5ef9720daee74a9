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


def _empty_step(tf: Any) -> Callable[[], float]:
    """The seconds of a step that does nothing."""
    with tf.Graph().as_default():
        nothing = tf.no_op()
        session = tf.Session()
    return lambda: best(lambda: session.run(nothing), 100)


def _empty_rates(*elements: float) -> Callable[[Any], Measure]:
    """Elements per second, if all that they cost were empty steps; given are the elements of a step of each row."""

    def prepare(tf: Any) -> Measure:
        seconds = _empty_step(tf)
        return lambda: [count / seconds() for count in elements]

    return prepare


_SINGLE_ROWS = {"FIFOQueue, single elements: enqueue, dequeue": Row("el/s", 4), "same, fed": Row("el/s")}


@workload("queue-scalar", _SINGLE_ROWS, empty=_empty_rates(1 / 2, 1 / 2))
def queue_scalar(tf: Any) -> Measure:
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(1000, tf.float32, [()])
        fed = tf.placeholder(tf.float32, [])
        put, put_fed, take = queue.enqueue(1.0), queue.enqueue(fed), queue.dequeue()
        session = tf.Session()

    def through() -> None:
        session.run(put)
        session.run(take)

    def through_fed() -> None:
        session.run(put_fed, {fed: 2.0})
        session.run(take)

    return lambda: [1 / best(steps, 1, 500) for steps in (through, through_fed)]


_QUEUE_ROWS = {
    "FIFOQueue, 100 at a time": Row("el/s", 1),
    "RandomShuffleQueue, 100 at a time": Row("el/s", 1),
    "PaddingFIFOQueue, 100 at a time": Row("el/s"),
    "RandomShuffleQueue, 100 at a time of 784 floats, fed": Row("el/s", 1.3),
}


@workload("queue-batches", _QUEUE_ROWS, empty=_empty_rates(50, 50, 50, 50))
def queue_batches(tf: Any) -> Measure:
    """Rows of 32 floats and a label, put and taken by the hundred; at last images, of which 5,000 are mixed."""
    rows, images = (np.ones((100, size), np.float32) for size in (32, 784))
    with tf.Graph().as_default():
        types, shapes = [tf.float32, tf.int32], [(32,), ()]
        queues = [
            tf.FIFOQueue(1000, types, shapes),
            tf.RandomShuffleQueue(1000, 100, types, shapes),
            tf.PaddingFIFOQueue(1000, types, [(None,), ()]),
        ]
        labelled = tf.constant(rows), tf.constant(np.arange(100, dtype=np.int32))
        steps = [(queue.enqueue_many(labelled), queue.dequeue_many(100), None) for queue in queues]
        mixed, fed = tf.RandomShuffleQueue(10_000, 5000, [tf.float32], [(784,)]), tf.placeholder(tf.float32)
        steps.append((mixed.enqueue_many([fed]), mixed.dequeue_many(100), {fed: images}))
        session = tf.Session()
        session.run([put for put, _, _ in steps], {fed: np.ones((5000, 784), np.float32)})

    def through(put: Any, take: Any, feed: Any) -> None:
        session.run(put, feed)
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
    """Examples per second, of 8 floats and a label."""
    rows, labels = np.ones((1000, 8), np.float32), np.arange(1000)
    with tf.Graph().as_default():
        example = tf.train.slice_input_producer([rows, labels]) if sliced else [tf.constant(rows[0]), tf.constant(1)]
        return _batches_rate(tf, tf.train.batch(example, 100, num_threads=threads), 100)


def _batches_rate(tf: Any, batch: Any, size: int) -> float:
    """Elements per second, in the best of some stretches while queue runners of the current graph run."""
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        running = tf.train.start_queue_runners(session, coordinator)
        rate = size / best(lambda: session.run(batch), 20, 10)
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
        columns = tf.decode_csv(lines, _CSV_DEFAULTS)
        fill = names.enqueue_many([[path] * 1000])
        session = tf.Session()
        session.run(fill)
    return lambda: session.run(columns)


_CSV_DEFAULTS = [[0.0]] * 4 + [[0]]


def _csv_file(quote: str = "") -> str:
    """50,000 records; the last field may be in quotes."""
    folder = tempfile.TemporaryDirectory()
    KEPT.append(folder)
    path = os.path.join(folder.name, "records.csv")
    random = np.random.RandomState(0)
    with open(path, "w", encoding="ascii") as file:
        for row in random.rand(50_000, 4):
            file.write(",".join(f"{x:.3f}" for x in row) + f",{quote}{random.randint(3)}{quote}\n")
    return path


_CSV_ROWS = {
    "CSV records of 5 columns, one a step": Row("/s", 2),
    "same, read_up_to(100)": Row("/s", 1),
    "same, read_up_to(1,000)": Row("/s"),
    "same, one field quoted, read_up_to(100)": Row("/s"),
}


@workload("csv", _CSV_ROWS, empty=_empty_rates(1, 100, 1000, 100))
def csv(tf: Any) -> Measure:
    path, batches = _csv_file(), {1: 50, 100: 10, 1000: 2}  # records of a step, and how many steps are timed together
    steps = [(_csv_columns(tf, path, size if size > 1 else None), size, calls) for size, calls in batches.items()]
    steps.append((_csv_columns(tf, _csv_file('"'), 100), 100, 10))
    return lambda: [size / best(step, calls) for step, size, calls in steps]


_CSV_RUNNER_ROWS = {
    "CSV records by queue runners through tf.train.batch": Row("/s", 1),
    "same through tf.train.shuffle_batch": Row("/s", 1),
}


@workload("csv-runners", _CSV_RUNNER_ROWS, rounds=3, empty=_empty_rates(1, 1))
def csv_runners(tf: Any) -> Measure:
    """A runner's thread reads one record a step, and a loop takes batches of 100."""
    path = _csv_file()

    def batches(lines: Any, shuffled: bool) -> Any:
        columns = tf.decode_csv(lines, _CSV_DEFAULTS)
        return tf.train.shuffle_batch(columns, 100, 2000, 1000) if shuffled else tf.train.batch(columns, 100)

    def rate(shuffled: bool) -> float:
        with tf.Graph().as_default():
            _, lines = tf.TextLineReader().read(tf.train.string_input_producer([path]))
            return _batches_rate(tf, batches(lines, shuffled), 100)

    return lambda: [rate(shuffled) for shuffled in (False, True)]


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
