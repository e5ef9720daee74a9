"""Which steps are one stage of a pipeline."""

from __future__ import annotations

import dtflab as tf
from dtflab.viz.data.pipeline import pipeline


def lines_of(tmp_path, count):
    files = []
    for number in range(count):
        files.append(str(tmp_path / f"{number}.txt"))
        (tmp_path / f"{number}.txt").write_text("a\nb\nc\n")
    return files


def test_a_reader_is_one_stage_though_it_takes_a_name_only_now_and_then(tmp_path):
    """Also if several threads read: those that never need a second name put into the same queue."""
    with tf.Cluster(worker=1, clock="virtual") as cluster:
        names = tf.train.string_input_producer(lines_of(tmp_path, 3), num_epochs=1, shuffle=False)
        lines = [[tf.TextLineReader().read(names)[1]] for _ in range(2)]
        batch = tf.train.batch_join(lines, 3)
        with tf.Session(cluster.target) as sess:
            sess.run(tf.local_variables_initializer())
            with tf.watch() as seen:
                coordinator = tf.train.Coordinator()
                threads = tf.train.start_queue_runners(sess, coordinator)
                for _ in range(3):
                    sess.run(batch)
                coordinator.request_stop()
                coordinator.join(threads)
    found = pipeline(seen)
    assert len(found.queues) == 2
    reading = [stage for stage in found.stages if stage.takes and stage.puts]
    assert len(reading) == 1 and reading[0].put == 9 and reading[0].taken == 3
    assert [bool(stage.takes) for stage in found.stages] == [False, True, True], "names, reading, batches"


def test_clients_that_do_different_things_stay_apart():
    """One fills a queue from nothing, another from a second queue: two stages."""
    with tf.Cluster(worker=2, clock="virtual") as cluster, tf.watch() as seen:

        def work(client):
            with tf.device("/job:worker/task:0"):
                first = tf.FIFOQueue(10, tf.float32, [[]], shared_name="first")
                second = tf.FIFOQueue(10, tf.float32, [[]], shared_name="second")
            put = [first.enqueue(1.0), second.enqueue(2.0)] if client.index == 0 else [second.enqueue(first.dequeue())]
            with tf.Session(client.target) as sess:
                for op in put:
                    sess.run(op)

        cluster.run(work)
    assert sorted((len(stage.takes), len(stage.puts)) for stage in pipeline(seen).stages) == [(0, 1), (0, 1), (1, 1)]
