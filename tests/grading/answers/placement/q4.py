"""Answers to placement/q4 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf


def built(home, devices, double=lambda variable: 2.0 * variable):
    """A variable, its doubles, and an op that adds 1."""
    with tf.device(home):
        variable = tf.get_variable("shared", initializer=[1.0, 2.0])
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(double(variable))
    with tf.device(devices[-1]):
        return variable, doubles, tf.assign_add(variable, tf.ones([2]))


def by_counting(home, devices):
    sent = []
    for device in devices:
        if device not in (*sent, home):
            sent.append(device)
    _, doubles, update = built(home, devices, lambda variable: variable + variable)
    return {"doubles": tuple(doubles), "update": update, "sent_to": sent, "updated_on": home}


def with_a_function(home, devices):
    _, doubles, update = built(home, devices, lambda variable: tf.scalar_mul(2.0, variable.read_value()))
    elsewhere = {device for device in devices if device != home}
    return {"doubles": doubles, "update": update.op, "sent_to": frozenset(elsewhere), "updated_on": home}


def answer(home, devices, **changed):
    """The right one, but for what is changed."""
    _, doubles, update = built(home, devices)
    found = {"doubles": doubles, "update": update, "sent_to": sorted({*devices} - {home}), "updated_on": home}
    return found | changed


def by_way_of_the_cpu(home, devices):
    with tf.device(home):
        variable = tf.Variable([1.0, 2.0])
    with tf.device(home.partition("/device")[0] + "/cpu:0"):
        copy = tf.identity(variable)
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(2.0 * copy)
    with tf.device(devices[-1]):
        update = tf.assign_add(variable, [1.0, 1.0])
    return {"doubles": doubles, "update": update, "sent_to": sorted({*devices} - {home}), "updated_on": home}


def nothing_travels(home, devices):
    return answer(home, devices, sent_to=[])


def to_the_last_only(home, devices):
    return answer(home, devices, sent_to=[devices[-1]])


def to_gpus_only(home, devices):
    return answer(home, devices, sent_to=sorted({device for device in devices if "GPU" in device} - {home}))


def adds_two(home, devices):
    variable, doubles, _ = built(home, devices)
    return answer_with(home, devices, doubles, tf.assign_add(variable, [2.0, 2.0]))


def answer_with(home, devices, doubles, update):
    return {"doubles": doubles, "update": update, "sent_to": sorted({*devices} - {home}), "updated_on": home}


def assigns_once_and_for_all(home, devices):
    """The first update is right: it is [2, 3] each time."""
    variable, doubles, _ = built(home, devices)
    return answer_with(home, devices, doubles, tf.assign(variable, [2.0, 3.0]))


def two_variables(home, devices):
    """The update is of a variable that nobody reads."""
    _, doubles, _ = built(home, devices)
    return answer_with(home, devices, doubles, tf.assign_add(tf.Variable([1.0, 2.0]), [1.0, 1.0]))


def says_the_ps(home, devices):
    return answer(home, devices, updated_on="/job:ps/replica:0/task:0/device:CPU:0")


def constants(home, devices):
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.constant([2.0, 4.0]) * 1.0)
    return answer_with(home, devices, doubles, tf.assign_add(tf.Variable([1.0, 2.0]), [1.0, 1.0])) | {"sent_to": []}


def measures_it(home, devices):
    """By the wrong means: a trace of a step of its own."""
    found = answer(home, devices)
    with tf.Cluster(ps=1, worker=2, gpus=2) as cluster, tf.Session(cluster.target) as sess:
        sess.run(tf.global_variables_initializer())
        stats = sess.trace([tensor.op for tensor in found["doubles"]]).step_stats.dev_stats
    sent = [one.device for one in stats for node in one.node_stats if node.node_name == "RecvTensor"]
    return found | {"sent_to": sent}


RIGHT = [by_counting, with_a_function]
WRONG = {
    by_way_of_the_cpu: "goes_by_another_device",
    nothing_travels: "sends_nothing",
    to_the_last_only: "sends_to_the_last_only",
    to_gpus_only: "sends_to_gpus_only",
    adds_two: "adds_another_number",
    assigns_once_and_for_all: "assigns_a_constant",
    two_variables: "makes_copies",
    says_the_ps: "updates_on_the_ps",
    constants: "reads_no_variable",
    measures_it: "opens_a_session",
}
