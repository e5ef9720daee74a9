"""Answers to placement/q4 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def once_per_other_device(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0], name="weights")
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.multiply(weights, tf.constant(2.0)))
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, tf.constant([1.0, 1.0])).op
    sent_to = [device for device in dict.fromkeys(devices) if device != home]
    return {"doubles": doubles, "update": update, "sent_to": sent_to, "updated_on": home}


def runs_where_it_is_pinned(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0], name="weights")
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(weights * 2.0)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, tf.constant([1.0, 1.0]))
    return {
        "doubles": doubles,
        "update": update.op,
        "sent_to": sorted(set(devices) - {home}),
        "updated_on": devices[-1],
    }


def only_between_servers(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0], name="weights")
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(weights * 2.0)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, tf.constant([1.0, 1.0]))
    my_server = home.split("/device:")[0]
    sent_to = sorted({device for device in devices if device.split("/device:")[0] != my_server})
    return {"doubles": doubles, "update": update.op, "sent_to": sent_to, "updated_on": home}


def numbers_stay_at_home(home, devices):
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0], name="weights")
        ones = tf.constant([1.0, 1.0], name="ones")
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(weights * 2.0)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, ones)
    return {"doubles": doubles, "update": update.op, "sent_to": sorted(set(devices) - {home}), "updated_on": home}


RIGHT = [once_per_other_device]
WRONG = {
    # Predicts that the update runs on the device that it is pinned to, not next to its variable.
    runs_where_it_is_pinned: "updates_elsewhere",
    # Believes that devices of one server share memory, so that the value is only sent to other servers.
    only_between_servers: "leaves_out_its_own_task",
    # Pins only the update to the last device; the numbers that it adds are made on the variable's device.
    numbers_stay_at_home: "updates_at_home",
}
