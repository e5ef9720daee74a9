"""A cluster program in one file, as many are: the parent starts one ps and three workers with `multiprocessing`.

    python one_file_cluster.py fork|spawn

Prints, in JSON, how many steps each worker counted, and what the ps counted in the end.
"""

from __future__ import annotations

import json
import multiprocessing
import sys

import dtflab as tf
from dtflab.cluster.addresses import free_addresses

WORKERS, LAST_STEP = 3, 300


def state():
    """The variables on the ps: the global step, and a count of updates next to it."""
    with tf.device("/job:ps/task:0"):
        updates = tf.get_variable("updates", [], tf.int64, tf.zeros_initializer(), trainable=False)
        return tf.train.get_or_create_global_step(), updates


def training_step():
    """Between-graph: each run of it, by whichever worker, adds one to both."""
    step, updates = state()
    with tf.control_dependencies([tf.assign_add(updates, 1, use_locking=True)]):
        return tf.assign_add(step, 1, use_locking=True)


def serve(spec):
    tf.train.Server(spec, "ps", 0).join()


def work(spec, index, initialized, all_there, counts):
    server = tf.train.Server(spec, "worker", index)
    all_there.wait()
    train, count = training_step(), 0
    if index > 0:
        initialized.wait()  # else this worker would look again 30 seconds later
    stop = tf.train.StopAtStepHook(last_step=LAST_STEP)
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=[stop]) as session:
        initialized.set()
        all_there.wait()  # so that all of them train at the same time
        while not session.should_stop():
            session.run(train)
            count += 1
    counts.put((index, count))
    all_there.wait()  # a worker's server is needed until all others have closed their sessions


def main(method):
    context = multiprocessing.get_context(method)
    ps, *workers = free_addresses(1 + WORKERS)
    spec = {"ps": [ps], "worker": workers}
    initialized, all_there, counts = context.Event(), context.Barrier(WORKERS), context.Queue()
    parameter_server = context.Process(target=serve, args=(spec,))
    trainers = [context.Process(target=work, args=(spec, i, initialized, all_there, counts)) for i in range(WORKERS)]
    for process in (parameter_server, *trainers):
        process.start()
    try:
        counted = dict(counts.get() for _ in trainers)
        for process in trainers:
            process.join()
        with tf.Session(f"grpc://{ps}", config=tf.ConfigProto(device_filters=["/job:ps"])) as session:
            global_step, updates = map(int, session.run(state()))
    finally:
        for process in (parameter_server, *trainers):
            process.terminate()
    exits = [process.exitcode for process in trainers]
    print(json.dumps({"counted": counted, "global_step": global_step, "updates": updates, "exits": exits}))


if __name__ == "__main__":
    main(sys.argv[1])
