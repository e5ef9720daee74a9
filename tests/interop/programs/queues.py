"""Two clients that meet at queues: on the ps and on the worker, of all kinds, blocking, closing, failing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.interop.programs.errors import kind_of
from tests.interop.programs.site import PS, WORKER, Site


class _Queues(NamedTuple):
    forth: Any  # smaller than what is sent through it
    back: Any
    ranked: Any
    padded: Any
    full: Any


def _queues(tf: Any) -> _Queues:
    with tf.device(PS):
        forth = tf.FIFOQueue(2, [tf.int32, tf.string], [[], []], shared_name="forth")
        ranked = tf.PriorityQueue(9, tf.string, [[]], shared_name="ranked")
    with tf.device(WORKER):
        back = tf.RandomShuffleQueue(9, 0, tf.int32, [[]], seed=1, shared_name="back")
        padded = tf.PaddingFIFOQueue(9, tf.float32, [[None]], shared_name="padded")
        full = tf.FIFOQueue(1, tf.int32, [[]], shared_name="full")
    return _Queues(forth, back, ranked, padded, full)


def producer(tf: Any, site: Site) -> list[Any]:
    """Enqueue more than the queue has room for, and dequeue what the other client sends back, until the end."""
    q = _queues(tf)
    with tf.Session(site.target) as sess:
        sess.run(q.full.enqueue(1))
        sess.run(q.forth.enqueue_many([[1, 2, 3, 4, 5], [b"a", b"b", b"c", b"d", b"\xff\0"]]))  # waits for the other
        found: list[Any] = [sorted(sess.run(q.back.dequeue_many(3)).tolist())]
        sess.run(q.forth.close())
        for rank, word in ((3, "last"), (1, "first")):
            sess.run(q.ranked.enqueue((np.int64(rank), word)))
        for row in ([1.0], [2.0, 3.0]):
            sess.run(q.padded.enqueue([row]))
        sess.run(q.padded.close())
        found.append(kind_of(tf, lambda: sess.run(q.back.dequeue())))  # the other closes it
        found.append(kind_of(tf, lambda: sess.run(q.forth.enqueue((6, b"e")))))
        found.append(kind_of(tf, lambda: sess.run(q.full.enqueue(2))))  # the other gives up for us
        return found


def consumer(tf: Any, site: Site) -> list[Any]:
    """Dequeue what the other client sends, send some of it back, and close."""
    q = _queues(tf)
    numbers, words = q.forth.dequeue_many(5)
    with tf.device(WORKER):
        tenfold = tf.identity(numbers[:3]) * 10
    with tf.Session(site.target) as sess:
        sent, seen = sess.run([q.back.enqueue_many([tenfold]), words])
        found: list[Any] = [sent, [word.decode("latin-1") for word in seen]]
        found.append(kind_of(tf, lambda: sess.run(q.forth.dequeue())))  # the other closes it
        found.append(sess.run(q.padded.dequeue_up_to(5)).tolist())
        taken = q.ranked.dequeue()
        found += [[int(rank), word.decode()] for rank, word in (sess.run(taken), sess.run(taken))]
        limit = tf.RunOptions(timeout_in_ms=50)
        found.append(kind_of(tf, lambda: sess.run(taken, options=limit)))
        sess.run(q.back.close())
        found.append(kind_of(tf, lambda: sess.run(q.back.enqueue(1))))
        sess.run(q.full.close(cancel_pending_enqueues=True))
        found.append(sess.run([q.full.is_closed(), q.forth.is_closed(), q.forth.size()]))
        return [str(item) for item in found]
