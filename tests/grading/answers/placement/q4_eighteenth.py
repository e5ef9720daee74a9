"""Answers of an eighteenth author to placement/q4: what devices can do with a variable of another one."""

import dtflab as tf


def asks_the_graph_eighteenth(home, devices):
    """Read the variable once, and let the consumers of that read tell where its value goes."""
    with tf.device(home):
        weights = tf.get_variable("weights", initializer=tf.constant([1.0, 2.0]))
    value = weights.value()
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.add_n([value, value]))
    with tf.device(devices[-1]):
        update = weights.assign_add(tf.ones([2]))
    away = [double.device for double in doubles if double.device != home]
    return {
        "doubles": doubles,
        "update": update.op,
        "sent_to": sorted(set(away)),
        "updated_on": weights.device,
    }


def once_to_each_server_eighteenth(home, devices):
    """Predict one sending for each task, to the first of its devices that needs the value."""
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
    doubles, first = [], {}
    for device in devices:
        with tf.device(device):
            doubles.append(weights * 2.0)
        if device != home:
            first.setdefault(device.rpartition("/")[0], device)
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, [1.0, 1.0])
    return {"doubles": doubles, "update": update.op, "sent_to": list(first.values()), "updated_on": home}


def doubled_at_home_eighteenth(home, devices):
    """Compute the double next to the variable, and pass it on to the devices."""
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
        double = tf.multiply(weights, 2.0)
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.identity(double))
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, tf.constant([1.0, 1.0]))
    sent_to = [device for device in dict.fromkeys(devices) if device != home]
    return {"doubles": doubles, "update": update.op, "sent_to": sent_to, "updated_on": home}


def ones_stay_at_home_eighteenth(home, devices):
    """Make the numbers of the update next to the variable, and pin only the update."""
    with tf.device(home):
        weights = tf.Variable([1.0, 2.0])
        ones = tf.ones_like(weights)
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.scalar_mul(2.0, weights))
    with tf.device(devices[-1]):
        update = tf.assign_add(weights, ones)
    sent_to = sorted(set(devices) - {home})
    return {"doubles": doubles, "update": update.op, "sent_to": sent_to, "updated_on": home}


RIGHT = [asks_the_graph_eighteenth]
WRONG = {
    once_to_each_server_eighteenth: "counts_the_servers",
    doubled_at_home_eighteenth: "computes_once",
    ones_stay_at_home_eighteenth: "updates_at_home",
}
