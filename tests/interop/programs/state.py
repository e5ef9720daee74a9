"""The state that sessions share, and how it ends."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from tests.interop.programs.calls import in_parts
from tests.interop.programs.errors import kind_of
from tests.interop.programs.site import PS, WORKER, Site


def reset(tf: Any, site: Site) -> list[str]:
    """`Session.reset` of one container, of both tasks: it is empty, the other is not, and old sessions are over."""
    variables = []
    for device in (PS, WORKER):
        for container in (f"{site.name}.emptied", f"{site.name}.kept"):
            with tf.device(device), tf.container(container):
                variables.append(tf.Variable(2.0, name=f"v{len(variables)}", use_resource=device == PS))
    old = tf.Session(site.target)
    old.run(tf.global_variables_initializer())
    tf.Session.reset(site.target, [f"{site.name}.emptied"])
    found = [kind_of(tf, lambda: old.run(variables[1]))]
    with tf.Session(site.target) as sess:
        found += [kind_of(tf, lambda v=v: sess.run(v)) for v in variables]
    tf.Session.reset(site.target)
    return found


def sessions_share(tf: Any, site: Site) -> list[float]:
    """Two sessions, one after the other, and four threads of one: all count up the same variables."""
    with tf.device(PS):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=False)
    with tf.device(WORKER):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer(), use_resource=True)
    more = [tf.assign_add(v, 1.0, use_locking=True), w.assign_add(2.0)]
    with tf.Session(site.target) as sess:
        sess.run(tf.global_variables_initializer())
        threads = [threading.Thread(target=lambda: [sess.run(more) for _ in range(5)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with tf.Session(site.target) as sess:
        return [float(value) for value in sess.run([v, w])]


def handles(tf: Any, site: Site) -> list[Any]:
    """Session handles: a value that stays on the ps from run to run, until it is deleted."""
    with tf.device(PS):
        x = tf.placeholder(tf.float32, [3])
        kept = tf.get_session_handle(x * 2.0)
    with tf.Session(site.target) as sess:
        handle = sess.run(kept, {x: [1, 2, 3]})
        with tf.device(PS):
            holder, value = tf.get_session_tensor(handle.handle, tf.float32)
            total = tf.reduce_sum(value)
        found = [float(sess.run(total, {holder: handle.handle})) for _ in range(2)]
        handle.delete()
        return [*found, kind_of(tf, lambda: sess.run(total, {holder: handle.handle}))]


def callables(tf: Any, site: Site) -> list[float]:
    """Callables, and a graph that grows between them."""
    x = tf.placeholder(tf.float32, [2])
    with tf.device(PS):
        y = x * 3.0
    with tf.Session(site.target) as sess:
        first = sess.make_callable(y, [x])
        found = first(np.float32([1, 2])).tolist()
        with tf.device(WORKER):
            z = tf.reduce_sum(y)
        second = sess.make_callable([z, y.op], [x])
        return [*found, float(second(np.float32([3, 4]))[0]), *first(np.float32([5, 6])).tolist()]


def partial_run(tf: Any, site: Site) -> list[float]:
    """A step that is fed and fetched in several calls, on both tasks; twice."""
    return in_parts(tf, site.target, PS, WORKER)


def devices(tf: Any, site: Site) -> list[Any]:
    """The devices of the session."""
    tf.constant(1.0)
    with tf.Session(site.target) as sess:
        return sorted([d.name, d.device_type, d.incarnation != 0] for d in sess.list_devices())
