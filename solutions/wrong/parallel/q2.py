"""Wrong answers to parallel/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def waiting(parts, distance, joined=tf.add_n):
    """Each part waits for the one that is that many before it."""
    results = []
    for i, part in enumerate(parts):
        with tf.control_dependencies([results[i - distance]] if i >= distance else []):
            results.append(part())
    return joined(results)


def lets_all_begin(parts, at_once):
    return tf.add_n([part() for part in parts])


def makes_them_before(parts, at_once):
    results = [part() for part in parts]
    for i in range(at_once, len(parts)):
        with tf.control_dependencies([results[i - at_once]]):
            results[i] = tf.identity(results[i])
    return tf.add_n(results)


def always_one(parts, at_once):
    return waiting(parts, 1)


def one_too_many(parts, at_once):
    return waiting(parts, at_once + 1)


def counts_from_the_end(parts, at_once):
    results = []
    for i, part in enumerate(parts):
        with tf.control_dependencies(results[i - at_once : i - at_once + 1]):
            results.append(part())
    return tf.add_n(results)


def calls_twice(parts, at_once):
    results = [part() for part in parts]
    for i, part in enumerate(parts):
        with tf.control_dependencies([results[i - at_once]] if i >= at_once else []):
            results[i] = part()
    return tf.add_n(results)


def waits_for_groups(parts, at_once):
    done, results = [], []
    for start in range(0, len(parts), at_once):
        with tf.control_dependencies(done):
            done = [part() for part in parts[start : start + at_once]]
        results += done
    return tf.add_n(results)


def all_wait_for_one(parts, at_once):
    results = []
    for i, part in enumerate(parts):
        with tf.control_dependencies(results[:1] if i >= at_once else []):
            results.append(part())
    return tf.add_n(results)


def leaves_parts_out(parts, at_once):
    return waiting(parts[:-1], at_once)


def waits_for_a_beginning(parts, at_once):
    begins, results = [], []
    for i, part in enumerate(parts):
        with tf.control_dependencies([begins[i - at_once]] if i >= at_once else []):
            begins.append(tf.no_op())
        with tf.control_dependencies([begins[i]]):
            results.append(part())
    return tf.add_n(results)


def takes_the_mean(parts, at_once):
    return waiting(parts, at_once, tf.reduce_mean)


def runs_them_before(parts, at_once):
    with tf.Session() as sess:
        return tf.constant(sum(sess.run(part()) for part in parts))


def waits_for_the_one_before(parts, at_once):
    results = []
    for i, part in enumerate(parts):
        with tf.control_dependencies([results[-1]] if i >= at_once else []):
            results.append(part())
    return tf.add_n(results)


def waits_for_one_of_a_group(parts, at_once):
    results, last = [], []
    for i, part in enumerate(parts):
        if i and i % at_once == 0:
            last = [results[-1]]
        with tf.control_dependencies(last):
            results.append(part())
    return tf.add_n(results)


def leaves_room(parts, at_once):
    results = []
    length = -(-len(parts) // at_once)
    for i, part in enumerate(parts):
        with tf.control_dependencies(results[i - 1 : i] if i % length else []):
            results.append(part())
    return tf.add_n(results)
