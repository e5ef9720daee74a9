"""Sessions that bring a cluster or have a state of their own."""

from __future__ import annotations

from typing import Any

from tests.interop.programs.calls import in_parts
from tests.interop.programs.errors import kind_of
from tests.interop.programs.site import PS, WORKER, Site

FIRST, SECOND = "/job:member/task:1", "/job:member/task:4"  # what a session calls the ps and the worker


def own_cluster(tf: Any, site: Site, shares: bool = False) -> Any:
    """The config of a session that has the tasks of the site under other names."""
    tasks = dict(zip((1, 4), site.addresses, strict=True))
    config = tf.ConfigProto(cluster_def=tf.train.ClusterSpec({"member": tasks}).as_cluster_def())
    config.experimental.share_session_state_in_clusterspec_propagation = shares
    return config


def isolated(tf: Any, site: Site) -> list[Any]:
    """Variables and queues of both tasks, as sessions with `isolate_session_state` and without it see them."""
    return [
        _seen(tf, site, device, tf.ConfigProto(isolate_session_state=one), tf.ConfigProto(isolate_session_state=other))
        for device in (PS, WORKER)
        for one, other in ((True, True), (True, False), (False, True), (False, False))
    ]


def cluster_def(tf: Any, site: Site) -> list[Any]:
    """A session with names of its own for both tasks: transfers, devices, partial runs, errors."""
    config = own_cluster(tf, site)
    with tf.device(FIRST):
        x = tf.placeholder(tf.float32, [2], name="x")
        v = tf.Variable([1.0, 2.0], name="v", use_resource=False)
        doubled = x * v
    with tf.device(SECOND):
        w = tf.Variable(3.0, name="w", use_resource=True)
        more = w.assign_add(tf.reduce_sum(doubled))
    with tf.device(FIRST), tf.control_dependencies([more]):
        y = tf.identity(v) + w
    with tf.Session(site.target, config=config) as sess:
        sess.run(tf.global_variables_initializer())
        trace = tf.RunMetadata()
        found = [sess.run(y, {x: [1, 1]}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), trace).tolist()]
        found += [sess.run([y, w], {x: [i, 2]})[0].tolist() for i in range(3)]
        ran = {stats.device for stats in trace.step_stats.dev_stats}
        found += [[f"/job:member/replica:0/task:{i}/device:CPU:0" in ran for i in (1, 4)]]
        found += [sorted([d.name, d.incarnation != 0] for d in sess.list_devices())]
    found += [in_parts(tf, site.target, FIRST, SECOND, config)]
    with tf.Graph().as_default():
        with tf.device(PS):  # which the session does not have
            a = tf.constant(1.0)
        found += [_error(tf, site, a, config)]
    b = tf.Graph()
    with b.as_default():
        a = tf.constant(1.0)
        for spec in ({"member": {0: "localhost:1"}}, {"member": list(site.addresses) * 2}, {"ps": site.addresses[:1],
                     "worker": site.addresses[1:]}):  # fmt: skip
            found += [_error(tf, site, a, tf.ConfigProto(cluster_def=tf.train.ClusterSpec(spec).as_cluster_def()))]
    return found


def cluster_def_state(tf: Any, site: Site) -> list[Any]:
    """The state of such sessions: their own, or shared by `share_session_state_in_clusterspec_propagation`."""
    own, shares = own_cluster(tf, site), own_cluster(tf, site, shares=True)
    found = [_seen(tf, site, device, own, own) for device in (FIRST, SECOND)]
    return [*found, *(_seen(tf, site, device, shares, shares) for device in (FIRST, SECOND))]


def _error(tf: Any, site: Site, fetch: Any, config: Any) -> str:
    with tf.Session(site.target, config=config) as sess:
        return kind_of(tf, lambda: sess.run(fetch))


def _seen(tf: Any, site: Site, device: str, one: Any, other: Any) -> list[Any]:
    """The state that two sessions see of each other's, and a third one of what the first has left."""
    with tf.Graph().as_default(), tf.container(f"{site.name}.seen"):
        with tf.device(device):
            v = tf.Variable(0.0, name="v", use_resource=False)
            queue = tf.FIFOQueue(9, tf.float32, shared_name=f"{site.name}.queue")
            more, size, add = queue.enqueue(1.0), queue.size(), tf.assign_add(v, 1.0)
        first, second = tf.Session(site.target, config=one), tf.Session(site.target, config=other)

        def value(sess: Any, fetch: Any) -> Any:
            try:
                return str(float(sess.run(fetch)))
            except tf.errors.FailedPreconditionError:
                return "uninitialized"

        found = [value(first, v), value(second, v)]
        first.run(v.initializer)
        first.run(more)
        found += [value(first, add), value(second, v), value(first, size), value(second, size)]
        first.close()
        with tf.Session(site.target, config=one) as third:
            found += [value(third, v), value(third, size)]
        second.close()
    tf.Session.reset(site.target, [f"{site.name}.seen"])
    return found
