"""Ways to use a variable everywhere, and to say what is sent: one right, three wrong."""

import numpy as np

import dtflab as tf


def scatters_the_ones_ten(home, devices):
    """Doubles that add the variable to itself, and an update that adds at both places by their indices."""
    with tf.device(home):
        pair = tf.get_variable("pair", initializer=np.float32([1, 2]))
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.add_n([pair, pair]))
    with tf.device(devices[-1]):
        update = tf.scatter_add(pair, [0, 1], tf.ones([2])).op
    away = list(dict.fromkeys(device for device in devices if device != home))
    return {"doubles": doubles, "update": update, "sent_to": away, "updated_on": home}


def doubles_at_home_ten(home, devices):
    """Double the variable once where it is, and hand the result to each device."""
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
        double = 2 * weights
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.identity(double))
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, [1.0, 1.0]).op
    return {"doubles": doubles, "update": update, "sent_to": sorted(set(devices) - {home}), "updated_on": home}


def ones_without_a_pin_ten(home, devices):
    """Make the ones next to the variable, and pin the update alone."""
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
        ones = tf.ones([2])
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(weights * 2.0)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, ones).op
    return {"doubles": doubles, "update": update, "sent_to": sorted(set(devices) - {home}), "updated_on": home}


def sent_to_other_servers_only_ten(home, devices):
    """Say that a value is sent where it leaves its server."""
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(weights * 2.0)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, [1.0, 1.0]).op
    server = home.rpartition("/device:")[0]
    away = sorted({device for device in devices if device.rpartition("/device:")[0] != server})
    return {"doubles": doubles, "update": update, "sent_to": away, "updated_on": home}


RIGHT = [scatters_the_ones_ten]
WRONG = {
    doubles_at_home_ten: "computes_once",
    ones_without_a_pin_ten: "updates_at_home",
    sent_to_other_servers_only_ten: "leaves_out_its_own_task",
}
