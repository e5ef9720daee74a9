"""An eleventh author's answers to placement/q4: a variable at home, and ops elsewhere that use it."""

import dtflab as tf


def _at_home(home, resource=False):
    """The variable."""
    with tf.device(home):
        return tf.Variable([1.0, 2.0], use_resource=resource)


def each_reads_on_its_own_eleven(home, devices):
    """A resource variable: it is read, and sent, again for each op."""
    variable = _at_home(home, resource=True)
    doubles, sent_to = [], []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.multiply(tf.constant(2.0), variable))
        if device != home:
            sent_to.append(device)
    with tf.device(devices[-1]):
        update = tf.assign_add(variable, tf.ones([2])).op
    return {"doubles": doubles, "update": update, "sent_to": sent_to, "updated_on": home}


def once_for_each_reader_eleven(home, devices):
    """A reference variable, and a prediction with a sending for each op elsewhere."""
    variable = _at_home(home)
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(variable * 2.0)
    with tf.device(devices[-1]):
        update = tf.assign_add(variable, [1.0, 1.0]).op
    sent_to = [device for device in devices if device != home]
    return {"doubles": doubles, "update": update, "sent_to": sent_to, "updated_on": home}


def doubled_before_it_travels_eleven(home, devices):
    """Copies, on the devices, of a double that is computed at home."""
    variable = _at_home(home)
    with tf.device(home):
        double = variable * 2.0
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(tf.identity(double))
    with tf.device(devices[-1]):
        update = tf.assign_add(variable, [1.0, 1.0]).op
    return {"doubles": doubles, "update": update, "sent_to": list(set(devices) - {home}), "updated_on": home}


def numbers_from_home_eleven(home, devices):
    """An update with a pin, of numbers that are pinned next to the variable."""
    variable = _at_home(home)
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(variable * 2.0)
    with tf.device(home):
        ones = tf.constant([1.0, 1.0])
    with tf.device(devices[-1]):
        update = tf.assign_add(variable, ones).op
    return {"doubles": doubles, "update": update, "sent_to": list(set(devices) - {home}), "updated_on": home}


RIGHT = [each_reads_on_its_own_eleven]
WRONG = {
    once_for_each_reader_eleven: "counts_the_ops",
    doubled_before_it_travels_eleven: "computes_once",
    numbers_from_home_eleven: "updates_at_home",
}
